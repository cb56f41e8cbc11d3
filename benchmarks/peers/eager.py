"""The same network and weights in eager torch, step by step."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from mqan_core.request import Request
from mqan_core.vocab import END_ID
from mqan_training.model.greedy import GreedyStep, SlotBatch, greedy_trace
from mqan_training.model.network import Network, gather_slots

Decode = Callable[[], npt.NDArray[np.float32]]


class Eager:
    """Answers one request at a time.

    Args:
        network: in evaluation mode.
        max_steps: most steps of an answer, the end included.
    """

    def __init__(self, network: Network, max_steps: int) -> None:
        self._network, self._max_steps = network, max_steps
        self._step = GreedyStep(network.mqan.decoder, END_ID)
        self._generator_inputs = network.generator_inputs().detach()

    def read(self, request: Request) -> Decode:
        """Look up the word vectors of a request; return what encodes and decodes it, to its trace."""
        mqan, slots = self._network.mqan, request.slots
        vectors = self._network.embedder.embed_words(slots.words)[None].detach()
        c_slots, q_slots, ids = (torch.as_tensor(x)[None] for x in (slots.context, slots.question, slots.generator_ids))
        lengths = torch.tensor([request.num_context_tokens]), torch.tensor([request.num_question_tokens])

        @torch.no_grad()
        def decode() -> npt.NDArray[np.float32]:
            projected = mqan.encoder.project(vectors)
            c_proj, q_proj = gather_slots(projected, c_slots), gather_slots(projected, q_slots)
            encoded = mqan.encode(c_proj, q_proj, *lengths)
            batch = SlotBatch(c_slots, q_slots, ids, mqan.decoder.project(vectors), self._generator_inputs)
            return greedy_trace(self._step, encoded, batch, self._step.start(encoded, self._max_steps), self._max_steps)

        return decode
