"""``mqan ask --record``: a record of named fields from one text, as JSON."""

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import typer

from mqan_cli.answering import Provider, explain, find_folder, open_client
from mqan_cli.errors import CommandError
from mqan_cli.show import show_json, visible


def read_schema(given: str, option: str = "--record") -> Any:
    """Return the JSON Schema of a file, or of a class: ``module:Class``, such as a model of pydantic.

    Raises:
        typer.BadParameter: the file cannot be read, or is not JSON, or there is no such class.
    """
    module, colon, name = given.partition(":")
    try:
        if not colon or Path(given).exists():
            return json.loads(Path(given).read_bytes())
        sys.path.insert(0, str(Path.cwd()))
        return getattr(importlib.import_module(module), name).model_json_schema()
    except (ImportError, AttributeError) as error:
        what = f"{given} is neither a file nor a class with model_json_schema(): {error}"
        raise typer.BadParameter(what, param_hint=option) from None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {given}: {error.strerror}", param_hint=option) from None
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{given} is not JSON: {error}", param_hint=option) from None


def fill(schema: Any, text: str, url: str | None, bundle: Path | None, provider: Provider, *, as_json: bool) -> bool:
    """Fill a record from a text, and print it; return whether it has all fields, but for those that may be null.

    The record goes to standard output; what has no value, and why, to standard error.

    Args:
        schema: a JSON Schema.
        text: the text.
        url: the server that fills it; None: a bundle does, in this process.
        bundle: which one; the packaged one if None.
        provider: where the bundle runs.
        as_json: whether the whole document of REST is wanted.

    Raises:
        CommandError: there is no record; it says why.
        BundleError: the bundle is damaged.
        SettingsError: there is no bundle.
    """
    document = _by_bundle(bundle, provider, text, schema) if url is None else _by_server(url, text, schema)
    if as_json:
        show_json(document)
    else:
        _show(document)
    return all(name in document["record"] for name in document["missing"])


def _by_server(url: str, text: str, schema: Any) -> dict[str, Any]:
    from mqan_client import Client, ClientError
    from mqan_client.documents import document_of

    with open_client(Client, url) as client:
        try:
            record = client.fill_record(text, schema)
        except ClientError as error:
            raise CommandError(explain(error, url)) from None
    return dict(document_of(record))


def _by_bundle(folder: Path | None, provider: Provider, text: str, schema: Any) -> dict[str, Any]:
    from mqan_core.errors import InputError
    from mqan_serving.contract.errors import AnsweringError
    from mqan_serving.observability.logs import set_up_logs
    from mqan_serving.records.documents import record_document
    from mqan_serving.records.filling import RecordRequest, ask_record, record_of
    from mqan_serving.records.schema import read_schema as read_fields
    from mqan_serving.service.answer_service import open_service
    from mqan_serving.service.many import answer_texts
    from mqan_serving.settings import load_settings

    set_up_logs("error")

    async def fill() -> dict[str, Any]:
        request = RecordRequest(text, tuple(read_fields(schema)), None)
        service = await open_service(find_folder(folder), load_settings(provider=provider))
        try:
            texts = await ask_record(request, service.limits.max_request_bytes)
            filled = record_of(request, await answer_texts(service, texts), service.knows)
            return record_document(filled, service.model)
        finally:
            await service.close()

    try:
        return asyncio.run(fill())
    except InputError as error:
        raise CommandError(f"{error.message} {error.hint}") from None
    except AnsweringError as error:
        raise CommandError(f"{error.failure.message} {error.failure.hint}") from None
    except RuntimeError as error:
        raise CommandError(str(error)) from None


def _show(document: dict[str, Any]) -> None:
    show_json(document["record"])
    for name in document["missing"]:
        field = document["fields"][name]
        quoted = f" {visible(field['text'])!r}" if field["text"] else ""
        print(f"  {visible(name)}: {field['reason']}{quoted}", file=sys.stderr)
