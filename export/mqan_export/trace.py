"""Turn a traced module into the bytes of an ONNX graph with dynamic axes and its weights inside."""

import inspect
import logging
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from mqan_export.lstm import translation_table
from mqan_runtime.graphs import DYNAMIC_AXES
from mqan_runtime.half import store_half
from mqan_training.model.layers import MultiHead

_OPSET = 18
QUERIES, KEYS_VALUES = "inputs.queries", "inputs.keys_values"  # parts of what a ``MultiHead`` calls inputs.weight
TRANSPOSED = ".transposed"  # end of the name of weights that the exporter stores the other way round


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
    _name_weights(model, module)
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


def _name_weights(model: onnx.ModelProto, module: nn.Module) -> None:
    """Give weights that the exporter folded their names back, so that a bundle's weights can be read by name."""
    matrices = {name: p.detach() for name, p in module.named_parameters() if p.dim() == 2}
    for name, attention in module.named_modules():
        if isinstance(attention, MultiHead):  # the encoder holds keys and values of the context, the step the queries
            queries, *others = attention.inputs.weight.detach().chunk(3)
            matrices[f"{name}.{QUERIES}"] = queries
            matrices[f"{name}.{KEYS_VALUES}"] = torch.cat(others)
    names = {}
    for name, matrix in matrices.items():
        array = matrix.numpy().T
        names[(array.shape, array.tobytes())] = name + TRANSPOSED
    renamed = {}
    for initializer in model.graph.initializer:
        array = numpy_helper.to_array(initializer)
        known = names.get((array.shape, array.tobytes()))
        if known is not None:
            renamed[initializer.name] = known
            initializer.name = known
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name in renamed:
                node.input[i] = renamed[name]
