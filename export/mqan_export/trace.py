"""Turn a traced module into the bytes of an ONNX graph with dynamic axes and its weights inside."""

import inspect
import logging
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from mqan_export.lstm import translation_table
from mqan_runtime.graphs import DYNAMIC_AXES
from mqan_runtime.half import store_half

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
    table = translation_table(hidden_width)
    model = traced(module, example_inputs, inputs, output_names, DYNAMIC_AXES, _OPSET, table)
    store_half(model)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def traced(
    module: nn.Module,
    example_inputs: Sequence[Tensor],
    inputs: Mapping[str, tuple[str, ...]],
    output_names: Sequence[str],
    dynamic_axes: Collection[str],
    opset: int,
    table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
) -> onnx.ModelProto:
    """Trace a module into an ONNX graph that names no place on this machine.

    Args:
        module: in evaluation mode; takes and returns tensors by position.
        example_inputs: inputs to trace with.
        inputs: names and axes of the inputs, in order.
        output_names: names of the outputs, in order.
        dynamic_axes: letters of the axes of any length.
        opset: version of the operators.
        table: how custom operators are translated.
    """
    dynamic = {letter: torch.export.Dim.DYNAMIC for letter in dynamic_axes}
    shapes = tuple({i: dynamic[axis] for i, axis in enumerate(axes) if axis in dynamic} for axes in inputs.values())
    takes_any_number = any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(module.forward).parameters.values())
    with warnings.catch_warnings():  # torch's exporter warns of its own internals and of packages it can do without
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
        program = torch.onnx.export(
            module.eval(),
            tuple(example_inputs),
            dynamo=True,
            dynamic_shapes=(shapes,) if takes_any_number else shapes,
            input_names=list(inputs),
            output_names=list(output_names),
            custom_translation_table=table,
            opset_version=opset,
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
    return model
