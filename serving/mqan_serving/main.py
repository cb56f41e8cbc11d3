"""Entry points: check everything that can be checked, start a server, say how to use it, and stop it without loss."""

import gc
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

from mqan_core.bundle import verify_files
from mqan_core.errors import EngineFailedError
from mqan_serving.checks import check_keys, check_ports, make_room_for_files
from mqan_serving.contract.errors import SettingsError
from mqan_serving.observability.log_writer import WRITER
from mqan_serving.observability.logs import log, set_up_logs
from mqan_serving.observability.metrics import Metrics
from mqan_serving.ray_serve.environment import QUIET_CORE, for_replicas, ray_environment
from mqan_serving.ray_serve.leftovers import end_leftovers
from mqan_serving.service.catalog import read_catalog, read_changes
from mqan_serving.settings import Settings, address

_OBJECT_STORE_BYTES = 80 * 1024 * 1024  # the least that Ray takes; requests do not pass through it
_TEXT, _QUESTION = "The tower is 330 m tall.", "How tall is the tower?"
_ASK = "mqan"  # the command

_AGAIN_S = 0.1  # until an interruption that was lost comes again


def serve_local(settings: Settings) -> None:
    """Serve in this process until SIGTERM or SIGINT; raise ``MqanError`` where that cannot be, or the engine fails."""
    set_up_logs(settings.log_level)
    check_ports(settings)
    check_keys(settings)
    make_room_for_files(settings)
    read_catalog(settings, read_changes(settings))
    os.environ.setdefault("GRPC_VERBOSITY", QUIET_CORE)
    import uvloop  # after the checks: a wrong setting is reported at once

    uvloop.run(_run_local(settings))


async def _run_local(settings: Settings) -> None:
    from mqan_serving.local import LocalServer, wait_for_end
    from mqan_serving.service.models import open_models

    metrics = Metrics()
    models = await open_models(settings, metrics)
    server = LocalServer(models, settings, metrics)
    try:
        await server.start()
    except OSError as error:
        await models.close()
        raise SettingsError(str(error)) from error
    gc.freeze()  # what is loaded stays: later collections need not look at it
    model = models.stable.model
    others = len(models.listed()) - 1
    announce(settings, f"{model.name} {model.version}{f' and {others} more' if others else ''}, {model.provider}")
    await wait_for_end(models)
    is_live = models.is_live
    await server.stop()
    if not is_live:
        raise EngineFailedError("the engine has failed; start the server again")


def serve_ray(settings: Settings) -> None:
    """Serve with Ray Serve on this machine until SIGTERM or SIGINT; a second one does not wait for what is in progress.

    It raises ``MqanError`` where that cannot be, or Ray has died.
    """
    set_up_logs(settings.log_level)
    given = for_replicas(settings)
    check_ports(settings)
    catalog = read_catalog(settings, read_changes(settings))
    stable = verify_files(catalog.entries[catalog.stable].folder)  # damage is reported now, not by replicas
    # Only this user may look into it: who can write to HAProxy's socket decides where requests go.
    with tempfile.TemporaryDirectory(prefix="mqan-", ignore_cleanup_errors=True) as run_folder, ExitStack() as claims:
        for name, value in ray_environment(settings, Path(run_folder), claims).items():
            os.environ.setdefault(name, value)
        _interrupt_on_signals()
        metrics_folder = Path(run_folder) / "metrics"
        metrics_folder.mkdir()
        is_serving = False
        try:
            # Ray reads its environment when it is imported.
            from mqan_serving.ray_serve.app import drain_ray, start_ray, wait_while_ray_lives

            def once_connected(ray_folder: Path) -> None:
                claims.enter_context(end_leftovers(ray_folder, Path(run_folder)))
                _interrupt_on_signals()

            start_ray(given, metrics_folder, object_store_bytes=_OBJECT_STORE_BYTES, once_connected=once_connected)
            is_serving = True
            model = f"{catalog.stable} {stable.manifest.version}"
            announce(settings, f"{model}, {settings.num_replicas} replica(s) on Ray Serve")
            wait_while_ray_lives()
        except (KeyboardInterrupt, SystemExit):  # the latter is how Ray takes SIGTERM while it starts
            signal.alarm(0)  # Ray's library, while it connects, sets one that would abort this process after 3 s
            if is_serving:
                log("draining")
                drain_ray(given)
        finally:
            _stop_ray()
            log("stopped")


def _interrupt_on_signals() -> None:

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_again(lost: "sys.UnraisableHookArgs") -> None:
        is_in_main_thread = threading.get_ident() == threading.main_thread().ident
        if is_in_main_thread and lost.exc_type in (KeyboardInterrupt, SystemExit):
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(lost)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    # Python drops what is raised in a finalizer or a callback, such as those of each import: the signal would be lost.
    sys.unraisablehook = interrupt_again


def _stop_ray() -> None:
    stop = getattr(sys.modules.get("ray"), "shutdown", None)
    if stop is not None:
        stop()


def announce(settings: Settings, what: str) -> None:
    """Print that a server is ready with ``what`` (the model, and what runs it), and lines to ask it with."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104  asked from here
    rest, rpc = address(host, settings.http_port), address(host, settings.grpc_port)
    body = json.dumps({"context": _TEXT, "question": _QUESTION})
    key = ' -H "authorization: Bearer $MQAN_API_KEY"' if settings.api_key_file else ""
    url, sent = shlex.quote(f"http://{rest}/v1/answer"), shlex.quote(body)
    lines = [
        f"mqan is ready: {what}. REST and a page on {rest}, gRPC on {rpc}. Try:",
        f"  http://{rest}/",
        f"  curl {url} -H 'content-type: application/json'{key} -d {sent}",
        f"  {_command()} ask {shlex.quote(_QUESTION)} --text {shlex.quote(_TEXT)} --server {shlex.quote(f'grpc://{rpc}')}",
    ]
    WRITER.write("\n".join(lines))  # dropped where it cannot be written, as the log's lines are


def _command() -> str:
    installed = Path(sys.executable).parent / _ASK
    found = shutil.which(_ASK)
    if found is not None and (not installed.exists() or installed.samefile(found)):
        return _ASK
    if not installed.exists():
        return f"{shlex.quote(sys.executable)} -m mqan_cli.main"
    here = Path.cwd()
    is_below = here.name and installed.is_relative_to(here)  # all are below the root, where systemd starts servers
    return shlex.quote(str(installed.relative_to(here) if is_below else installed))
