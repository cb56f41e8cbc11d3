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

Shape letters: B batch, C context length, Q question length, D width, E vector width.
"""

from torch import Tensor, nn

from mqan_training.model.decoder import Decoder, Encoded
from mqan_training.model.encoder import Encoder
from mqan_training.recipe import ModelConfig


class MQAN(nn.Module):
    """The whole network over word vectors; it knows no words."""

    def __init__(self, config: ModelConfig, vector_width: int, num_generated: int) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config, vector_width)
        self.decoder = Decoder(config, vector_width, num_generated)

    def encode(self, c_proj_BCD: Tensor, q_proj_BQD: Tensor, c_lengths_B: Tensor, q_lengths_B: Tensor) -> Encoded:
        """Encode projected contexts [B, C, D] and questions [B, Q, D]."""
        c_fin, q_fin, c_mask, q_mask = self.encoder(c_proj_BCD, q_proj_BQD, c_lengths_B, q_lengths_B)
        keys, values = self.decoder.read_context(self.decoder.attended((c_fin, q_fin)))
        return Encoded(c_fin, q_fin, keys, values, c_mask, q_mask)
