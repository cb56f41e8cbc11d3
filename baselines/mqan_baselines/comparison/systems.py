"""The systems that are compared, in torch: a question in, the likeliest of its classes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mqan_baselines.mt_dnn import learning as mt_dnn
from mqan_baselines.mt_dnn.packing import packer_of, stack
from mqan_baselines.shared_memory import learning as shared_memory
from mqan_baselines.tasks import baseline_task
from mqan_core.ask.options import choices_of
from mqan_core.ask.request import read_request
from mqan_core.errors import InputError
from mqan_training.checkpoint import load_checkpoint
from mqan_training.model.bert import encoder_folder
from mqan_training.torch_answers import answer_batch, generator_inputs
from mqan_training.trained import load_trained


@dataclass(frozen=True, slots=True)
class Question:
    """A row as it is asked: texts for a system of fixed tasks, or context and question, and the classes."""

    task: str | None  # whose own words it is asked in; None where its classes are renamed
    texts: tuple[str, ...]
    context: str
    question: str
    labels: tuple[str, ...]
    gold: int  # number of the right class


@dataclass(frozen=True, slots=True)
class System:
    """A trained model.

    ``choose`` returns the likeliest class of a question, and raises InputError where it cannot be asked.
    """

    model: str
    network: nn.Module
    sources: tuple[str, ...]
    choose: Callable[[Question], str]
    training: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def shared_memory_system(folder: Path) -> System:
    network, lexicon, labels, recipe = shared_memory.load_network(folder)

    def read(task: str, texts: tuple[str, ...]) -> Tensor:
        numbers = torch.tensor([lexicon.numbers(texts[0], recipe.most_words)])
        found: Tensor = network(task, numbers, torch.tensor([numbers.shape[1]]))
        return found

    return _of_fixed_tasks(recipe.name, network, labels, read, lexicon.count, recipe.most_words)


def mt_dnn_system(folder: Path) -> System:
    network, recipe = mt_dnn.load_network(folder)
    packer = packer_of(encoder_folder(recipe.encoder), recipe.most_pieces)
    labels = {task: baseline_task(task).labels for task in network.heads}

    def read(task: str, texts: tuple[str, ...]) -> Tensor:
        found: Tensor = network(task, stack([packer.pack(*texts)]))
        return found

    return _of_fixed_tasks(recipe.name, network, labels, read, packer.count, recipe.most_pieces)


def question_answering_system(folder: Path) -> System:
    checkpoint = load_checkpoint(folder)
    trained = load_trained(checkpoint)
    network, vocabulary, layout = trained.network, trained.vocabulary, trained.layout
    with torch.no_grad():
        words = generator_inputs(network, vocabulary, layout)

    def choose(question: Question) -> str:
        request = read_request(vocabulary, question.context, question.question, choices_of(question.labels))
        (answer,) = answer_batch(network, vocabulary, layout, [request], 1, words)
        return max(answer.choices, key=lambda choice: choice.probability).label

    recipe = checkpoint.recipe
    return System(f"{recipe.name}, step {checkpoint.step:,}", network, tuple(recipe.sources), choose)


def _of_fixed_tasks(
    name: str,
    network: nn.Module,
    labels: Mapping[str, tuple[str, ...]],
    read: Callable[[str, tuple[str, ...]], Tensor],
    count: Callable[..., int],
    most: int,
) -> System:

    @torch.no_grad()
    def choose(question: Question) -> str:
        if question.task is None or question.task not in labels:
            raise InputError("unknown_question", "question", "It is of none of the tasks.", "Ask one of them.")
        if (length := count(*question.texts)) > most:
            raise InputError("context_too_long", "context", f"{length} units; {most} are read.", "Send less.")
        return labels[question.task][int(read(question.task, question.texts).argmax())]

    return System(name, network, tuple(labels), choose)
