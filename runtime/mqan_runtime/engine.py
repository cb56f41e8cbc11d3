"""Answers questions with a bundle: text in, attributed answers out. Needs no torch."""

from collections.abc import Collection, Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime

from mqan_core.answer.calibration import Temperatures
from mqan_core.answer.decide import count_decided
from mqan_core.answer.finish import Decoded, finish
from mqan_core.answer.trace import attribute, read_words
from mqan_core.answer.types import Answer, AnswerToken
from mqan_core.ask.options import PLAIN, Options
from mqan_core.ask.request import Check
from mqan_core.bundle import Bundle, open_bundle
from mqan_core.errors import BundleError, MqanError
from mqan_core.manifest import MANIFEST, Device, Graphs
from mqan_runtime.device import SIZES, DeviceLoop, DeviceWindowsRead, fix_sizes, gather_graph
from mqan_runtime.graphs import FIXED, NEXT, step_constants, step_state
from mqan_runtime.readers import PieceReader, WordReader
from mqan_runtime.session import CPU, CUDA, Precision, Provider, has_cuda, is_int8, open_session
from mqan_runtime.steps import SAMPLE, Decoding, Ended, ReadRequest, Row, StepLoop

_WINDOWS_TOGETHER: Final = 32  # on a GPU


class Engine:
    """A bundle, ready to answer.

    It may be called from any thread, for one decoding from one at a time; on a GPU always from the thread that made it.
    At most ``num_together`` windows are read together, padded; by default 1 on a CPU. ``places`` are rows and context
    tokens of the fixed buffers to decode in, as on a GPU.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        provider: Provider = "auto",
        num_threads: int = 1,
        precision: Precision = "auto",
        num_together: int | None = None,
        places: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        graphs, sizes = _choose(bundle, provider, precision), bundle.manifest.sizes
        self.bundle = bundle
        self.precision: str = graphs.precision
        open_here = partial(open_session, provider=provider, num_threads=num_threads)

        def open_graph(name: str, inputs: Collection[str], outputs: Collection[str]) -> onnxruntime.InferenceSession:
            return open_here(bundle.read_graph(name), name, list(inputs), list(outputs))

        on_gpu = provider != "cpu" and has_cuda()
        self.reader: PieceReader | WordReader
        if bundle.manifest.reader == "pieces":
            self.reader = PieceReader(bundle, graphs, open_graph, num_together or (_WINDOWS_TOGETHER if on_gpu else 1))
        else:
            self.reader = WordReader(bundle, graphs, open_graph)
        constants = step_constants(sizes.num_layers, self.reader.left_out)
        state = step_state(sizes.num_layers, self.reader.left_out)
        axes, outputs = {**constants, **state}, [NEXT + name for name in state]
        content = bundle.read_graph(graphs.decoder_step)
        step = open_here(content, graphs.decoder_step, list(axes), outputs)
        self.provider: str = step.get_providers()[0]
        self.temperatures = Temperatures(bundle.manifest.calibration)
        lengths = {"D": sizes.width, "H": sizes.num_heads, "W": sizes.head_width, "V": sizes.num_generated}
        lengths |= {"F": self.reader.num_fields, **FIXED}
        of_loop = (step, constants, state, lengths, self.reader.shared)
        self.has_one_thread = self.provider == CUDA or places is not None
        if not self.has_one_thread:
            self.loop = StepLoop(*of_loop)
            return

        def open_captured(sizes: Mapping[str, int]) -> onnxruntime.InferenceSession:
            fix = partial(fix_sizes, axes=axes, sizes=sizes)
            return open_here(content, graphs.decoder_step, list(axes), outputs, fix=fix)

        device: Device = "cuda" if self.provider == CUDA else "cpu"
        self.loop = DeviceLoop(
            *of_loop,
            open_captured,
            device=device,
            max_positions=bundle.manifest.max_positions,
            places=SIZES if places is None else places,
        )
        if isinstance(self.reader, PieceReader):
            gather, *names = gather_graph(self.reader, lengths)
            session = open_here(gather, "gather", *names)
            self.reader.on_device = partial(DeviceWindowsRead, sizes=lengths, device=device, gather=session)

    @classmethod
    def open(
        cls, folder: Path, *, provider: Provider = "auto", num_threads: int = 1, precision: Precision = "auto"
    ) -> "Engine":
        """Open and verify a bundle, make it ready, and answer once; a BundleError says what is wrong with it.

        The provider ``auto`` takes a GPU when there is one. ``float32`` computes what the checkpoint does to 1e-4;
        ``int8``, a CPU's ``auto``, is faster. RuntimeError or ValueError: what was asked for does not run here.
        """
        engine = cls(open_bundle(folder), provider=provider, num_threads=num_threads, precision=precision)
        try:  # graphs can have the right names and types and yet not run with the sizes that are stated
            engine.answer([engine.read(*SAMPLE)], [1])
        except MqanError:
            raise
        except Exception as error:  # onnxruntime and numpy raise many types
            if engine.provider != CPU:  # it may be the device's fault
                raise
            message = f"bundle {folder}: does not run with the sizes that {MANIFEST} states: {error}"
            raise BundleError(message) from error
        return engine

    @property
    def max_answer_tokens(self) -> int:
        """Most tokens that an answer can have: the decoder's positions less one for the end."""
        room = self.loop.room if isinstance(self.loop, DeviceLoop) else self.bundle.manifest.max_positions
        return room - 1

    @property
    def text_width(self) -> int:
        """Width of the vectors of texts that adapters read; 0 of a model that gives none."""
        return self.bundle.manifest.text_width

    def read(self, context: str, question: str, options: Options = PLAIN, check: Check | None = None) -> ReadRequest:
        """Tokenise a request, each text once, or raise InputError; ``check`` sees each before its tokens are made."""
        return self.reader.tokenise(context, question, options, check)

    def answer(self, requests: Sequence[ReadRequest], max_answer_tokens: Sequence[int]) -> list[Answer]:
        """Answer a batch; each answer is what its request would get alone. Errors are those of ``start_in_turns``."""
        return [self.write(ended) for ended in self.decode(requests, max_answer_tokens)]

    def decode(self, requests: Sequence[ReadRequest], max_answer_tokens: Sequence[int]) -> list[Ended]:
        """Return what ``answer`` writes of each request of a batch."""
        decoding = self.start(requests, max_answer_tokens, range(len(requests)))
        ended: dict[int, Ended] = {}
        while decoding.num_live:
            ended.update(self.step(decoding))
        return [ended[place] for place in range(len(requests))]

    def start(self, requests: Sequence[ReadRequest], max_answer_tokens: Sequence[int], keys: Sequence[Any]) -> Decoding:
        """Read a batch as ``start_in_turns`` does, without pauses."""
        reading = self.start_in_turns(requests, max_answer_tokens, keys)
        while True:
            try:
                next(reading)
            except StopIteration as done:
                decoding: Decoding = done.value
                return decoding

    def start_in_turns(
        self, requests: Sequence[ReadRequest], max_answer_tokens: Sequence[int], keys: Sequence[Any]
    ) -> Generator[None, None, Decoding]:
        """Read a batch, whose answers then come from ``step``, each as soon as it has ended.

        It pauses between parts of long requests, so that others need not wait. The keys are what the caller knows each
        request by; of a choice the limit of tokens is not used. ValueError: no requests, or a limit is out of range.
        """
        if not requests or not len(requests) == len(max_answer_tokens) == len(keys):
            found = f"{len(requests)} requests with {len(max_answer_tokens)} limits and {len(keys)} keys"
            raise ValueError(f"{found}; expected one or more each")
        if not all(1 <= limit <= self.max_answer_tokens for limit in max_answer_tokens):
            message = f"max_answer_tokens must be 1 to {self.max_answer_tokens}, found {list(max_answer_tokens)}"
            raise ValueError(message)
        rows = [Row(*row) for row in zip(keys, requests, max_answer_tokens, strict=True)]
        # a choice and a quotation are made in one step: no word of it follows
        most = [
            0 if request.request.choices or request.request.options.quotes else limit
            for request, limit in zip(requests, max_answer_tokens, strict=True)
        ]
        begin = partial(self.loop.begin, rows, np.array(most, np.int64))
        with self.loop.guard("reading"):
            return (yield from self.reader.read(rows, begin))

    def step(self, decoding: Decoding) -> list[tuple[Any, Ended]]:
        """Take a step or several, of at least one row; return the keys of those that ended, and what to ``write``."""
        return [(ended.row.key, ended) for ended in self.loop.step(decoding)]

    def decided(self, decoding: Decoding, told: Mapping[Any, int]) -> list[tuple[Any, list[AnswerToken]]]:
        """Return the next words of rows that have not left: those that no later step takes back.

        ``told`` has how many words of a row are known already, by its key; of other rows nothing is returned.
        """
        found: list[tuple[Any, list[AnswerToken]]] = []
        for place, row in enumerate(decoding.keys):
            request, vocabulary = row.request.request, self.bundle.vocabulary
            if decoding.is_live[place] and row.key in told:
                trace = self.loop.trace_so_far(decoding, place)
                number = count_decided(trace) if vocabulary.refuses else len(trace)
                new = trace[:0] if request.options.may_be_withheld else trace[told[row.key] : number]
                found.append((row.key, read_words(new, request, vocabulary)))
        return found

    def drop(self, decoding: Decoding, keys: Collection[Any]) -> None:
        """Let rows leave whose answers nobody waits for."""
        for row in decoding.live_keys:
            if any(row.key is key for key in keys):
                self.loop.drop(decoding, row)

    def merge(self, decodings: Sequence[Decoding]) -> Decoding:
        """Return decodings, of which at least one row has not left, as one; they are not to be used again."""
        return self.loop.merge(decodings)

    def write(self, ended: Ended) -> Answer:
        """Turn what was decoded into text, with the sources of its words."""
        row, request, vocabulary = ended.row, ended.row.request.request, self.bundle.vocabulary
        if ended.masses is None:  # a model without choices and refusals
            return attribute(ended.trace, request, vocabulary, row.max_answer_tokens)
        return finish(self.decoded(ended), request, vocabulary, self.temperatures, row.max_answer_tokens)

    def decoded(self, ended: Ended) -> Decoded:
        """Return what was decoded of a request by a model with a pretrained reader."""
        row, request = ended.row, ended.row.request.request
        if ended.masses is None or ended.evidence is None:
            raise ValueError("a model of the paper decides between no choices")
        first = len(request.question_tokens)  # of the choices' separators
        return Decoded(
            ended.trace,
            ended.masses[first : first + len(request.choices)].tolist(),
            ended.evidence[: request.num_context_tokens],
            row.scores,
            row.pointers,
            row.evidence,
            len(row.request.windows),
            row.text_vector,
        )


def _choose(bundle: Bundle, provider: Provider, precision: Precision) -> Graphs:
    int8 = is_int8(provider, precision)
    device: Device = "cuda" if provider == "cuda" or (provider == "auto" and has_cuda()) else "cpu"
    graphs = bundle.manifest.graphs
    if precision == "auto" and device in graphs:
        return graphs[device]
    found = next((some for some in graphs.values() if (some.precision == "int8") == int8), None)
    if found is None:
        raise BundleError(f"bundle {bundle.folder}: has no graphs for {device} with precision {precision}")
    return found
