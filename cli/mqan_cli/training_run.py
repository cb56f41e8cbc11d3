"""One training run: in this process and those that torchrun started beside it, or on a Ray cluster.

The recipe decides the batches, so that both are the same run; a run that began in one way can go on in the other.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mqan_cli.errors import CommandError
from mqan_core.errors import command_to_install
from mqan_data.formats.dataset_file import OWN_DATA
from mqan_data.mixture import OwnRows
from mqan_training.checkpoint import is_checkpoint, latest_checkpoint, load_checkpoint
from mqan_training.distributed import WAIT_S
from mqan_training.loop import train
from mqan_training.recipe import Recipe, load_recipe
from mqan_training.start import Start, start_from_checkpoint
from mqan_training.tasks import kept_pools, sources_of, validation_of

_ROWS_OF_RECIPE: Final = 1000  # more rows take more steps


def run_recipe(
    recipe: Recipe, data: Path, folder: Path, *, resume: bool, start: Path | None, own: OwnRows | None = None
) -> Path:
    begin = None if start is None else read_start(start)
    kept = kept_pools(recipe, data, begin.tokens if begin else ()) if own is None else None
    sources, validation = sources_of(recipe, data, own), validation_of(recipe, data)
    return train(recipe, sources, validation, folder, resume=resume, start=begin, kept=kept)


def rows_recipe(overrides: Mapping[str, str], num_rows: int) -> tuple[Recipe, Path]:
    """Return the recipe of rows of one's own, with more steps for many rows, and where its other texts are."""
    path = OWN_DATA.parent / "training" / "recipes" / "rows.yaml"
    if not path.is_file():
        raise ValueError(
            "training on rows needs the texts that come with the source: run it in a clone, or give RECIPE"
        )
    recipe = load_recipe(path, overrides)
    times = 1.0 if "steps" in overrides else max(1.0, num_rows / _ROWS_OF_RECIPE)
    counts = {name: round(times * getattr(recipe, name)) for name in ("steps", "cooldown_steps")}
    return recipe.model_copy(update=counts), OWN_DATA


def find_start(folder: Path | None) -> Path | None:
    """Return the folder to begin from: ``default`` is the packaged bundle, where no folder is called so."""
    if folder is None or folder.is_dir():
        return folder
    if str(folder) != "default":
        raise ValueError(f"--from: there is no folder {folder}")
    from mqan_serving.default_bundle import default_bundle

    return default_bundle()


def read_start(folder: Path) -> Start:
    if is_checkpoint(folder):
        return start_from_checkpoint(load_checkpoint(folder))
    from mqan_export.bundle_weights import start_from_bundle

    return start_from_bundle(folder)


def run_on_ray(folder: Path, num_workers: int, **given: Any) -> Path:
    """Train a recipe in workers of a Ray cluster, each with a GPU if the cluster has any; return the last checkpoint.

    The cluster is the one that ``RAY_ADDRESS`` or this machine knows, else one on this machine alone. All its machines
    need this package and must see the folder that the command runs in, the data and the run's folder at the same
    paths. Ray's own notes go to ``ray`` in the run's folder. The arguments are those of ``run_recipe``.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray reads its environment when it is imported
    try:
        import ray
        from ray.train import RunConfig, ScalingConfig, WorkerGroupError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        raise CommandError(f"Ray Train is not installed: {command_to_install('cluster')}") from error

    ray.init(ignore_reinit_error=True)
    has_gpus = any(node["Resources"].get("GPU", 0) for node in ray.nodes())  # type: ignore[no-untyped-call]
    trainer = TorchTrainer(
        _work,
        train_loop_config={"folder": os.getcwd(), "arguments": {"folder": folder, **given}},
        torch_config=TorchConfig(timeout_s=WAIT_S),
        scaling_config=ScalingConfig(num_workers=num_workers, use_gpu=has_gpus),
        run_config=RunConfig(name="ray", storage_path=str(folder.resolve())),
    )
    try:
        trainer.fit()
    except WorkerGroupError as error:
        refused = [failure for failure in error.worker_failures.values() if isinstance(failure, ValueError)]
        if refused:
            raise ValueError(str(refused[0])) from error
        raise
    newest = latest_checkpoint(folder)
    if newest is None:
        raise ValueError(f"the workers left no checkpoint in {folder}: it must be on storage that all machines share")
    return newest


def _work(job: Mapping[str, Any]) -> None:
    os.chdir(job["folder"])
    run_recipe(**job["arguments"])
