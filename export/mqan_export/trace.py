"""Turn a traced module into the bytes of an ONNX graph with dynamic axes and its weights inside."""

import logging
import warnings
from collections.abc import Mapping, Sequence

import onnx
import torch
from torch import Tensor, nn

from mqan_export.graphs import DYNAMIC_AXES
from mqan_export.lstm import translation_table

_OPSET = 18


def to_onnx(
    module: nn.Module,
    example_inputs: Sequence[Tensor],
    inputs: Mapping[str, tuple[str, ...]],
    output_names: Sequence[str],
    hidden_width: int,
) -> bytes:
    """Export a module.

    Args:
        module: in evaluation mode; takes and returns tensors by position.
        example_inputs: inputs to trace with.
        inputs: names and axes of the inputs, in order; single letters of ``DYNAMIC_AXES`` become dynamic.
        output_names: names of the outputs, in order.
        hidden_width: width of one direction of the LSTMs.
    """
    dynamic = {letter: torch.export.Dim.DYNAMIC for letter in DYNAMIC_AXES}
    shapes = tuple({i: dynamic[axis] for i, axis in enumerate(axes) if axis in dynamic} for axes in inputs.values())
    with warnings.catch_warnings():  # torch's exporter warns of its own internals and of packages it can do without
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
        program = torch.onnx.export(
            module.eval(),
            tuple(example_inputs),
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=list(inputs),
            output_names=list(output_names),
            custom_translation_table=translation_table(hidden_width),
            opset_version=_OPSET,
            optimize=True,
            verbose=False,
            external_data=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returned no program")
    model = program.model_proto
    for node in model.graph.node:  # source locations: large, and they name this machine's paths
        del node.metadata_props[:]
    del model.graph.value_info[:]
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content
