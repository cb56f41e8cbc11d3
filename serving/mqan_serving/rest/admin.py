"""Changing the models while serving: routes with keys of their own, which are there only where such keys are."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI
from pydantic import BaseModel, Field

from mqan_serving.contract.errors import SettingsError, refuse
from mqan_serving.rest.gateway import ADMIN
from mqan_serving.service.catalog import CANARY, STABLE, Changes, Name
from mqan_serving.service.models import Models


class _Load(BaseModel, extra="forbid"):
    folder: Path | None = None  # of the bundle; None: as the settings have it


class _Alias(BaseModel, extra="forbid"):
    model: str
    share: float | None = Field(None, ge=0, le=1)


def add_admin_routes(app: FastAPI, get_models: Callable[[], Models]) -> None:
    async def change(make: Callable[[Changes], Changes]) -> dict[str, Any]:
        models = get_models()
        try:
            await models.change(make)
        except SettingsError as error:
            hint = "`mqan models list` shows what is served."
            raise refuse("invalid_input", "body", f"{str(error).rstrip('.')}.", hint) from None
        return _document(models)

    async def set_to(**values: Any) -> dict[str, Any]:
        return await change(lambda changes: changes.model_copy(update=values))

    async def list_models() -> dict[str, Any]:
        return _document(get_models())

    async def load(name: Name, given: Annotated[_Load, Body()]) -> dict[str, Any]:
        def make(changes: Changes) -> Changes:
            bundles = changes.bundles if given.folder is None else {**changes.bundles, name: given.folder}
            rest = tuple(other for other in changes.unloaded if other != name)
            return changes.model_copy(update={"bundles": bundles, "unloaded": rest})

        await change(make)
        await get_models().open_one(name)
        return _document(get_models())

    async def unload(name: str) -> dict[str, Any]:
        def make(changes: Changes) -> Changes:
            bundles = {other: folder for other, folder in changes.bundles.items() if other != name}
            return changes.model_copy(update={"bundles": bundles, "unloaded": (*changes.unloaded, name)})

        catalog = get_models().catalog
        if name not in catalog.entries:
            raise refuse("unknown_model", "model", f"There is no such model; {', '.join(catalog.entries)} are served.")
        if name == catalog.canary:
            hint = "End that first: `mqan models alias canary`."
            raise refuse("invalid_input", "model", f"{name} is the canary.", hint)
        if name == catalog.stable:
            hint = "Make another one stable first: `mqan models alias stable NAME`."
            raise refuse("invalid_input", "model", f"{name} is the stable model.", hint)
        return await change(make)

    async def set_stable(given: Annotated[_Alias, Body()]) -> dict[str, Any]:
        return await set_to(stable=given.model, first_stable=None)

    async def set_canary(given: Annotated[_Alias, Body()]) -> dict[str, Any]:
        return await set_to(canary=given.model, canary_share=given.share)

    async def drop_canary() -> dict[str, Any]:
        return await set_to(canary="", canary_share=None)

    for path, method, call in (
        ("models", "GET", list_models),
        ("models/{name}", "PUT", load),
        ("models/{name}", "DELETE", unload),
        (f"aliases/{STABLE}", "PUT", set_stable),
        (f"aliases/{CANARY}", "PUT", set_canary),
        (f"aliases/{CANARY}", "DELETE", drop_canary),
    ):
        app.add_api_route(ADMIN + path, call, methods=[method], name="other", include_in_schema=False)


def _document(models: Models) -> dict[str, Any]:
    rows = [
        {
            "name": entry.name,
            "version": entry.version,
            "sha256": entry.sha256,
            "folder": str(entry.folder),
            "loaded": is_open,
            "aliases": aliases,
        }
        for entry, is_open, aliases in models.listed()
    ]
    return {"models": rows, "canary_share": models.catalog.canary_share}
