"""A layer of the decoder (equations 4 to 6); shape letters as in ``decoder.py``, and T positions of the answer."""

from torch import Tensor, nn

from mqan_training.model.layers import FeedForward, MultiHead, Residual
from mqan_training.recipe import ModelConfig


class DecoderLayer(nn.Module):
    """Self-attention over the answer so far, attention over the context, feed-forward network (equations 4 to 6)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.context_attention = MultiHead(config.width, config.num_heads, config.head_width, config.attention_dropout)
        self.ffn = FeedForward(config.width, config.ffn_width, config.dropout)
        self.around_self = Residual(config.width, config.norm, config.dropout)
        self.around_context = Residual(config.width, config.norm, config.dropout)
        self.around_ffn = Residual(config.width, config.norm, config.dropout)

    def forward(
        self,
        a_BTD: Tensor,
        answer: tuple[Tensor, Tensor, Tensor, Tensor],
        context: tuple[Tensor, Tensor, Tensor],
    ) -> Tensor:
        """Map [B, T, D] to [B, T, D], by what ``read_answer`` returned and the keys, values and mask of the context.

        The answer's keys and values are with those of earlier words; a mask over these comes last.
        """
        a_BTD = self.around_self.leave(a_BTD, self.self_attention.attend(*answer))
        c_keys_BHCW, c_values_BHCW, c_mask_BC = context
        queries = self.context_attention.queries(self.around_context.enter(a_BTD))
        attended = self.context_attention.attend(queries, c_keys_BHCW, c_values_BHCW, c_mask_BC[:, None, None, :])
        a_BTD = self.around_context.leave(a_BTD, attended)  # (5)
        return self.around_ffn.leave(a_BTD, self.ffn(self.around_ffn.enter(a_BTD)))  # (6)

    def read_answer(self, a_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the self-attention's queries, keys and values of answer positions, each [B, H, T, W]."""
        return self.self_attention.queries_keys_values(self.around_self.enter(a_BTD))
