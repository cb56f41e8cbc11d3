"""The Open Inference Protocol, version 2: what both transports share (https://github.com/kserve/open-inference-protocol).

A request is a batch of questions in tensors of text: ``context`` and ``question``, one of each for a question or one
for all, and optionally ``choices`` for all. So is its response: ``answer``, and ``attributions``, which has for each
answer the JSON document of ``POST /v1/answer``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from mqan_core.answer import Answer
from mqan_serving.formats.adapting import Place, refuse
from mqan_serving.rest.documents import AnswerDocument
from mqan_serving.rest.many_documents import read_item
from mqan_serving.service.answer_service import Model, Service
from mqan_serving.service.errors import AnsweringError, Failure, describe, shown_field
from mqan_serving.service.many import MOST_IN_ALL, AskedText, Outcome, check_explained, check_shared
from mqan_serving.service.validation import Question

SERVER_NAME: Final = "mqan"
DATATYPE: Final = "BYTES"
PLATFORM: Final = "onnxruntime_onnx"
INPUTS: Final = ("context", "question", "choices")
OUTPUTS: Final = ("answer", "attributions")
BINARY_EXTENSION: Final = "binary_tensor_data"
_NOT_FOR_TENSORS: Final = ("scale", "sources", "stream", "citations")  # lists, and what changes the response
_PARAMETERS: Final = frozenset(Question.model_fields) - {*INPUTS, *_NOT_FOR_TENSORS}
_LENGTH_BYTES: Final = 4  # before each element of a tensor in binary, the lowest first


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a request.

    Attributes:
        name: what it is.
        datatype: the type of its elements.
        shape: its dimensions.
        texts: its elements.
    """

    name: str
    datatype: str
    shape: Sequence[int]
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class InferRequest:
    """A request, as either transport reads it.

    Attributes:
        inputs: its tensors.
        parameters: what else is asked for, of every question.
        outputs: the tensors that are wanted; none: all.
    """

    inputs: Sequence[Tensor]
    parameters: Mapping[str, Any]
    outputs: Sequence[str]


def check_model(model: Model, name: str, version: str) -> None:
    """Check that a model is the one that is served.

    Args:
        model: what is served.
        name: of the model that is asked for.
        version: of it; empty for any.

    Raises:
        PlacedError: it is another.
    """
    if name != model.name or version not in ("", model.version):
        hint = f"Ask for {model.name!r}, version {model.version!r} or none."
        raise refuse("unknown_model", ("model",), "The model or version is not served here.", hint)


def texts_of(service: Service, request: InferRequest) -> list[AskedText]:
    """Return the questions of a request.

    Raises:
        PlacedError: a tensor or parameter is missing, unknown or malformed.
        AnsweringError: a question cannot be answered; it says which.
        InputError: the question and choices of all rows are too long together.
    """
    for name in request.outputs:
        if name not in OUTPUTS:
            raise refuse("unknown_field", ("outputs",), "An output is unknown.", f"Ask for {' and '.join(OUTPUTS)}.")
    for name, value in request.parameters.items():
        _check_parameter(name, value)
    tensors = _tensors(request.inputs)
    contexts, questions = (tensors[name] for name in ("context", "question"))
    number = max(len(contexts), len(questions))
    choices = {"choices": tensors["choices"]} if "choices" in tensors else {}
    shared = sum(map(len, tensors.get("choices", ())))
    asked = number * len(questions[0]) if len(questions) == 1 else sum(map(len, questions))
    most = service.limits.max_request_bytes
    check_shared(number * shared + asked, most, "inputs", "The question and choices of all rows together")
    rows = [{"question": one, **choices, **request.parameters} for one in _spread(questions, number, "question")]
    pairs = zip(rows, _spread(contexts, number, "context"), strict=True)
    items = []
    for i, (row, context) in enumerate(pairs):
        item = read_item(service.validator, row, context)
        if not isinstance(item.question, Question):
            raise _failed(describe(item.question), i, number)
        items.append(item)
    texts = [AskedText(None, tuple(items))] if len(contexts) == 1 else [AskedText(None, (item,)) for item in items]
    check_explained(texts)
    return texts


def _check_parameter(name: str, value: Any) -> None:
    place = ("parameters", shown_field(name, "a field of it"))
    if name not in _PARAMETERS:
        known = ", ".join(sorted(_PARAMETERS))
        raise refuse("unknown_field", place, f"The parameter {place[1]} is unknown.", f"Send {known} only.")
    if not isinstance(value, bool | int | float | str):
        raise refuse("wrong_type", place, f"The parameter {name} is no number, flag or string.", "Send one of these.")


def _tensors(inputs: Sequence[Tensor]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tensor in inputs:
        if tensor.name not in INPUTS or tensor.name in found:
            message = "An input is unknown, or comes twice."
            raise refuse("unknown_field", ("inputs",), message, f"Send each of {', '.join(INPUTS)} at most once.")
        place = ("inputs", tensor.name)
        if tensor.datatype != DATATYPE:
            message = f"The input {tensor.name} is not of the type {DATATYPE}."
            raise refuse("wrong_type", place, message, f"Send texts as {DATATYPE}.")
        if list(tensor.shape) != [len(tensor.texts)]:
            message = f"The input {tensor.name} has {len(tensor.texts)} texts, which its shape does not say."
            raise refuse("invalid_input", place, message, "Send a shape of one number: how many texts there are.")
        found[tensor.name] = list(tensor.texts)
    for name in ("context", "question"):
        if name not in found:
            raise refuse("missing_field", ("inputs", name), f"The input {name} is missing.", "Send it, too.")
        if not found[name]:
            raise refuse("invalid_input", ("inputs", name), f"The input {name} has no texts.", "Send at least one.")
        if len(found[name]) > MOST_IN_ALL:
            message = f"The input {name} has {len(found[name])} texts; 1 to {MOST_IN_ALL} are accepted."
            raise refuse("too_many_questions", ("inputs", name), message)
    return found


def _spread(texts: list[str], number: int, name: str) -> list[str]:
    if len(texts) not in (1, number):
        message = f"The input {name} has {len(texts)} texts for {number} questions."
        raise refuse("invalid_input", ("inputs", name), message, "Send one for each question, or one for all.")
    return texts * number if len(texts) == 1 else texts


def outputs_of(request: InferRequest, outcomes: Iterable[Sequence[Outcome]], model: Model) -> dict[str, list[str]]:
    """Return the tensors that are wanted, with one text for each question.

    Raises:
        AnsweringError: a question was not answered; it says which.
    """
    results = [outcome.result for outcome in chain.from_iterable(outcomes)]
    answers = []
    for i, result in enumerate(results):
        if not isinstance(result, Answer):
            raise _failed(result, i, len(results))
        answers.append(result)
    tellers: dict[str, Callable[[Answer], str]] = {
        "answer": lambda answer: answer.text,
        "attributions": lambda answer: AnswerDocument.of(answer, model).model_dump_json(),
    }
    return {name: [tellers[name](answer) for answer in answers] for name in request.outputs or OUTPUTS}


def _failed(failure: Failure, index: int, number: int) -> AnsweringError:
    message = f"Question {index}: {failure.message}" if number > 1 else failure.message
    return AnsweringError(replace(failure, message=message), ("inputs",))


def decode_elements(content: bytes, place: Place) -> list[str]:
    """Return the texts of a tensor in binary.

    Raises:
        PlacedError: it is cut, or no UTF-8.
    """
    elements = []
    at = 0
    while at < len(content):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(content[at:begin], "little")
        if at > len(content) or begin > len(content):
            hint = f"Send each text with its length before it, in {_LENGTH_BYTES} bytes, the lowest first."
            raise refuse("malformed_request", place, "A tensor in binary ends within a text.", hint)
        elements.append(content[begin:at])
    return decode_texts(elements, place)


def decode_texts(elements: Iterable[bytes], place: Place) -> list[str]:
    """Return the texts that bytes stand for.

    Raises:
        PlacedError: they are no UTF-8.
    """
    try:
        return [element.decode("utf-8") for element in elements]
    except UnicodeDecodeError:
        raise refuse("invalid_text", place, "A text is not valid UTF-8.") from None


def encode_elements(texts: Iterable[str]) -> bytes:
    """Return a tensor in binary."""
    encoded = (text.encode("utf-8") for text in texts)
    return b"".join(len(one).to_bytes(_LENGTH_BYTES, "little") + one for one in encoded)
