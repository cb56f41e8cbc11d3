"""MQAN, the multitask question answering network (McCann et al. 2018), in the order of its appendix C and section 3.

- The question is the task: no heads, no labels. Context and question are encoded jointly (dual coattention).
- Each answer word is a mixture of three sources: the generator's vocabulary, a pointer into the context and a pointer
  into the question (equation 13). The mixture is what tells where a word came from.
- Ours, not the paper's: ``input_residual`` adds the projected inputs to the final encodings, without which pointer
  keys of similar words ("negative", "positive") are nearly equal and classification hardly trains.
- Ours, not the paper's: ``coattention_residual`` adds them to what coattention reads, so that equal words of context
  and question are aligned from the first step; question answering then trains several times faster.

The rungs of the paper's table 2 are this model without parts (``ModelConfig``): ``question_pointer: false`` is +CAtt;
``coattention: false`` beside it, so that context and question are read as one sequence, +SAtt; and no self-attentive
layers beside both, S2S. Only the whole model copies from the question.

Shape letters: B batch, C context length, Q question length, A answer length, D width, E vector width, U slots.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mqan_core.answer.trace import attribute
from mqan_core.answer.types import Answer
from mqan_core.ask.request import Request
from mqan_core.text.tokens import word_of
from mqan_core.text.vocab import Vocabulary
from mqan_training.batch import pad
from mqan_training.model.decoder import Decoder, Encoded, Mixture
from mqan_training.model.embeddings import Embedder, StaticVectors
from mqan_training.model.encoder import Encoder
from mqan_training.model.greedy import GreedyStep, SlotBatch, greedy_trace
from mqan_training.recipe import ModelConfig
from mqan_training.words import WordBatch


class MQAN(nn.Module):
    def __init__(self, config: ModelConfig, vector_width: int, num_generated: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config, vector_width)
        self.decoder = Decoder(config, vector_width, num_generated)

    def encode(self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor) -> Encoded:
        c_fin, q_fin, c_mask, q_mask = self.encoder(c_proj_BCD, q_proj_BQD, c_lengths_B, q_lengths_B)
        keys, values = self.decoder.read_context(self.decoder.attended((c_fin, q_fin)))
        return Encoded(c_fin, q_fin, keys, values, c_mask, q_mask)


class Network(nn.Module):
    def __init__(self, config: ModelConfig, vectors: StaticVectors, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.embedder = Embedder(vectors, config.ngram_buckets, config.ngram_width)
        self.mqan = MQAN(config, self.embedder.width, vocabulary.num_generated)

    def forward(self, batch: WordBatch) -> tuple[Encoded, Mixture]:
        vectors_NE = self.embedder(batch.word_rows, batch.word_buckets, batch.word_offsets)
        encoder, decoder = self.mqan.encoder, self.mqan.decoder
        projected_ND = encoder.project(vectors_NE)  # once: a word has the same dropout in context and question
        c_proj = nn.functional.embedding(batch.context_words, projected_ND)
        q_proj = nn.functional.embedding(batch.question_words, projected_ND)
        encoded = self.mqan.encode(c_proj, q_proj, batch.context_lengths, batch.question_lengths)
        a_proj = nn.functional.embedding(batch.answer_words, decoder.project(vectors_NE))
        start = decoder.start.to(a_proj.dtype).expand(a_proj.shape[0], 1, -1)
        return encoded, decoder(torch.cat([start, a_proj[:, 1:]], dim=1), encoded)

    def generator_inputs(self) -> Tensor:
        """Return the projected decoder input of every generator piece, [V, D]; the end's is never used."""
        words = [word_of(piece) for piece in self.vocabulary.pieces]
        return self.mqan.decoder.project(self.embedder.embed_words(words))

    @torch.no_grad()
    def greedy_answers(self, requests: Sequence[Request], max_answer_tokens: int) -> list[Answer]:
        """Answer a batch of requests in torch: the reference for every other way to run the model."""
        was_training = self.training
        self.eval()
        device = self.mqan.decoder.start.device
        step = GreedyStep(self.mqan.decoder)
        encoded, slots = self.encode_requests(requests, device)
        # one step more than tokens, for the end
        state = step.start(encoded, max_answer_tokens + 1)
        trace = greedy_trace(step, encoded, slots, state, max_answer_tokens + 1)
        self.train(was_training)
        return [
            attribute(row, request, self.vocabulary, max_answer_tokens)
            for row, request in zip(trace, requests, strict=True)
        ]

    def encode_requests(self, requests: Sequence[Request], device: torch.device) -> tuple[Encoded, SlotBatch]:
        """Encode requests by their slots, as the exported encoder does."""
        num_generated = self.vocabulary.num_generated
        of_context, of_question = [r.slots.context for r in requests], [r.slots.question for r in requests]
        c_slots, q_slots = torch.from_numpy(pad(of_context, 0)), torch.from_numpy(pad(of_question, 0))
        c_lengths, q_lengths = torch.tensor(list(map(len, of_context))), torch.tensor(list(map(len, of_question)))
        ids = torch.from_numpy(pad([r.slots.generator_ids for r in requests], num_generated))
        dtype = self.embedder.ngrams.weight.dtype
        vectors_BUE = torch.zeros(len(requests), ids.shape[1], self.embedder.width, dtype=dtype, device=device)
        for i, request in enumerate(requests):
            vectors_BUE[i, : len(request.slots.pieces)] = self.embedder.embed_words(request.slots.words)
        c_slots, q_slots, ids, c_lengths, q_lengths = (
            t.to(device) for t in (c_slots, q_slots, ids, c_lengths, q_lengths)
        )
        encoder, decoder = self.mqan.encoder, self.mqan.decoder
        projected_BUD = encoder.project(vectors_BUE)
        c_proj, q_proj = gather_slots(projected_BUD, c_slots), gather_slots(projected_BUD, q_slots)
        encoded = self.mqan.encode(c_proj, q_proj, c_lengths, q_lengths)
        return encoded, SlotBatch(c_slots, q_slots, ids, decoder.project(vectors_BUE), self.generator_inputs())


def gather_slots(x_BUD: Tensor, slots_BT: Tensor) -> Tensor:
    return x_BUD.gather(1, slots_BT[:, :, None].expand(-1, -1, x_BUD.shape[2]))
