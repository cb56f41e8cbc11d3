"""MT-DNN: a lexicon and transformer encoder that all tasks share, and an output layer for each (figure 1)."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from mqan_baselines.mt_dnn.heads import ClassHead, SanHead, ScoreHead
from mqan_baselines.mt_dnn.packing import Sequences
from mqan_baselines.recipes import MtDnnRecipe
from mqan_baselines.tasks import BaselineTask, baseline_task
from mqan_training.cpu import is_reduced
from mqan_training.model.bert import Bert, BertConfig
from mqan_training.sentence_encoder import encoder_folder


class MtDnn(nn.Module):
    """The encoder and the output layers.

    Args:
        recipe: names the tasks, and says what their output layers are.
        encoder: the shared layers l1 and l2.
        tasks: other tasks than the recipe's.
    """

    def __init__(self, recipe: MtDnnRecipe, encoder: Bert, tasks: tuple[str, ...] | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(recipe.dropout)
        width = encoder.config.hidden_size
        self.heads = nn.ModuleDict(
            {name: _head(baseline_task(name), recipe, width) for name in (recipe.tasks if tasks is None else tasks)}
        )
        for name, parameter in self.heads.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)  # as BERT's own
            elif name.endswith(("bias_ih", "bias_hh")):
                nn.init.zeros_(parameter)

    def forward(self, task: str, sequences: Sequences) -> Tensor:
        """Return what a task's output layer says of N sequences.

        Logits [N, C] of classes (logarithms of probabilities from SAN), or scores [N] of a similarity or a ranking.
        """
        output: Tensor = self.heads[task](self.dropout(self._encode(sequences)), sequences)
        return output

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.encoder.pieces.weight.device

    def _encode(self, sequences: Sequences) -> Tensor:
        """Return the encoder's states; in training its products are in bfloat16 where the processor has them."""
        device = sequences.pieces_NS.device
        positions_S = torch.arange(sequences.pieces_NS.shape[1], device=device)
        read = (sequences.pieces_NS, positions_S, sequences.segments_NS, sequences.mask_NS)
        if not is_reduced(self.training, device):
            return cast(Tensor, self.encoder(*read))
        with torch.autocast(device.type, torch.bfloat16):
            return cast(Tensor, self.encoder(*read)).float()


def pretrained_network(recipe: MtDnnRecipe, tasks: tuple[str, ...] | None = None) -> MtDnn:
    """Return a network with a pretrained encoder and untrained output layers, drawn by the recipe's seed."""
    torch.manual_seed(recipe.seed)
    return MtDnn(recipe, Bert.from_folder(encoder_folder(recipe.encoder), recipe.dropout), tasks)


def network_of(
    recipe: MtDnnRecipe, config: Mapping[str, object], weights: Mapping[str, Tensor], tasks: tuple[str, ...]
) -> MtDnn:
    """Return a network with the weights of a trained one.

    Args:
        recipe: that it was trained by.
        config: sizes of its encoder.
        weights: by name.
        tasks: that it has output layers for.
    """
    network = MtDnn(recipe, Bert(BertConfig.model_validate(config), recipe.dropout), tasks)
    network.load_state_dict(dict(weights))
    return network


def _head(task: BaselineTask, recipe: MtDnnRecipe, width: int) -> nn.Module:
    if task.form in ("similarity", "ranking"):
        return ScoreHead(width)
    if task.form == "pair" and recipe.pair_head == "san":
        return SanHead(width, len(task.labels), recipe.san_steps, recipe.prediction_dropout)
    return ClassHead(width, len(task.labels))
