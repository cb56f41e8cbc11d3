"""``mqan siblings``: train the two systems that question answering is compared with (extra ``training``)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqan_cli.errors import make_folder
from mqan_cli.training_verbs import Data, Overrides, parse_overrides, told_in_one_line

if TYPE_CHECKING:
    from mqan_training.siblings.recipes import MtDnnRecipe, SharedMemoryRecipe

app = typer.Typer(
    help="Train the two sibling systems, shared-memory LSTMs and MT-DNN.",
    no_args_is_help=True,
)

Recipe = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Recipe, as in training/recipes/siblings.")]
Output = Annotated[
    Path | None, typer.Option(file_okay=False, help="Folder of the run; runs/siblings/NAME if not given.")
]


@app.command()
def embed(
    recipe: Recipe,
    data: Data = Path("data"),
    encoder: Annotated[
        Path | None, typer.Option(help="Folder of a sentence encoder to distil; the packaged one if not given.")
    ] = None,
    glove: Annotated[Path | None, typer.Option(help="GloVe text file to read instead of distilling.")] = None,
    overrides: Overrides = None,
) -> None:
    """Make the word vectors that a recipe of shared-memory LSTMs starts from."""
    with told_in_one_line():
        from mqan_training.shared_memory.words import make_vectors

        loaded = _shared_memory(recipe, overrides)
        num_words = make_vectors(loaded, data, encoder=encoder, glove=glove)
    print(f"{loaded.vectors}: {num_words} words")


@app.command()
def train(recipe: Recipe, data: Data = Path("data"), output: Output = None, overrides: Overrides = None) -> None:
    """Train what a recipe says; print the scores of its tasks as JSON.

    A run that has ended in the same folder, with the same settings, is not repeated. One that was cut begins anew.
    """
    with told_in_one_line():
        import json

        loaded = _load(recipe, overrides)
        folder = _folder(loaded.name, output)
        if loaded.kind == "shared-memory":
            from mqan_training.shared_memory.learning import Texts, run

            print(json.dumps(run(loaded, loaded.architecture, Texts(loaded, data), folder / loaded.architecture)))
        else:
            from mqan_training.mt_dnn.learning import run as run_mt_dnn

            print(json.dumps(run_mt_dnn(loaded, data, folder / "mt-dnn")))


@app.command()
def table(recipe: Recipe, data: Data = Path("data"), output: Output = None, overrides: Overrides = None) -> None:
    """Train all rows of a recipe's table, and print it: ours beside the published figures.

    Shared memory: LSTM, ME-LSTM, ARC-I, ARC-II (tables 3 and 4). MT-DNN: BERT, ST-DNN, MT-DNN, MT-DNN without SAN
    (table 3). Rows that have ended already are not trained again.
    """
    with told_in_one_line():
        loaded = _load(recipe, overrides)
        folder = _folder(loaded.name, output)
        if loaded.kind == "shared-memory":
            from mqan_training.shared_memory.learning import Texts, run
            from mqan_training.shared_memory.tables import ARCHITECTURES, comparison

            texts = Texts(loaded, data)
            text = comparison(loaded.tasks, {row: run(loaded, row, texts, folder / row) for row in ARCHITECTURES})
        else:
            from mqan_training.mt_dnn.tables import train_rows

            text = train_rows(loaded, data, folder)
        (folder / "table.md").write_text(text, encoding="utf-8")
    print(text, end="")


@app.command()
def grid(recipe: Recipe, data: Data = Path("data"), output: Output = None, overrides: Overrides = None) -> None:
    """Try every learning rate and L2 of a recipe's grid in a short joint training; print them, the best first."""
    with told_in_one_line():
        from mqan_training.shared_memory.learning import Texts, search

        loaded = _shared_memory(recipe, overrides)
        folder = _folder(loaded.name, output)
        for found in search(loaded, Texts(loaded, data), folder / "grid"):
            print(f"rate {found['rate']:g}, l2 {found['l2']:g}: {found['tune']:.2f} % on the tuning splits")


@app.command()
def follow(
    text: Annotated[str, typer.Argument(help="Text to read.")],
    task: Annotated[str, typer.Option(help="Task of the models, for example sst-2.")],
    models: Annotated[
        list[str],
        typer.Option("--model", metavar="[LABEL=]FOLDER", help="Folder of a model below a run's; may be repeated."),
    ],
    output: Annotated[Path, typer.Option(help="Picture to write: .svg, .png or .pdf.")] = Path("follow.svg"),
) -> None:
    """Draw the score of the predicted class and the fusion gate of shared-memory LSTMs, word by word (figure 3)."""
    with told_in_one_line():
        from mqan_training.shared_memory.picture import draw_followed
        from mqan_training.shared_memory.picture import follow as follow_text

        followed = []
        for given in models:
            label, separator, folder = given.partition("=")
            if not separator or Path(given).is_dir():
                label, folder = "/".join(Path(given).resolve().parts[-2:]), given
            followed.append(follow_text(label, Path(folder), task, text))
        draw_followed(followed, output)
    print(output)


@app.command()
def adapt(recipe: Recipe, data: Data = Path("data"), output: Output = None, overrides: Overrides = None) -> None:
    """Adapt MT-DNN and its encoder alone to new tasks from shares of their rows; draw both curves (figure 2)."""
    with told_in_one_line():
        from mqan_training.mt_dnn.adaptation import adapt as adapt_mt_dnn

        loaded = _load(recipe, overrides)
        if loaded.kind != "mt-dnn":
            raise ValueError(f"{recipe} is of the kind {loaded.kind!r}: domains are adapted to by mt-dnn")
        print(adapt_mt_dnn(loaded, data, _folder(loaded.name, output)), end="")


@app.command()
def compare(
    recipe: Recipe,
    checkpoint: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Checkpoint of the question-answering system.")
    ],
    output: Annotated[Path, typer.Option(file_okay=False, help="Folder of the run.")],
    data: Data = Path("data"),
    limit: Annotated[int, typer.Option(min=1, help="Most test rows of a task, drawn by the recipe's seed.")] = 400,
    price: Annotated[float, typer.Option(min=0, help="Price of a core for an hour, in any currency.")] = 0.05,
    overrides: Overrides = None,
) -> None:
    """Compare question answering with both siblings on the tasks they share; print the tables.

    Trains the siblings where that is not done yet. Accuracy, size, time and cost of an answer, renamed
    classes, and learning from few rows; written to comparison.md and comparison.json, too.
    """
    with told_in_one_line():
        from mqan_evaluation.comparison import compare as compare_systems
        from mqan_evaluation.comparison_recipe import load_comparison

        loaded = load_comparison(recipe, parse_overrides(overrides))
        make_folder(output)
        text = compare_systems(loaded, data, output, checkpoint, limit=limit, price=price)
    print(text, end="")


def _load(recipe: Path, overrides: list[str] | None) -> "SharedMemoryRecipe | MtDnnRecipe":
    from mqan_training.siblings.recipes import load_recipe

    return load_recipe(recipe, parse_overrides(overrides))


def _shared_memory(recipe: Path, overrides: list[str] | None) -> "SharedMemoryRecipe":
    loaded = _load(recipe, overrides)
    if loaded.kind != "shared-memory":
        raise ValueError(f"{recipe} is of the kind {loaded.kind!r}: this verb is for shared-memory")
    return loaded


def _folder(name: str, output: Path | None) -> Path:
    folder = output or Path("runs") / "siblings" / name
    make_folder(folder)
    return folder
