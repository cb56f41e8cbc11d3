"""Turn a traced module into the bytes of an ONNX graph with dynamic axes and its weights inside."""

import inspect
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from mqan_core.text.vectors import FloatArray
from mqan_runtime.graphs import DYNAMIC, TYPES

OPSET: Final = 23  # the first with attention as an operator
WORDS_OPSET: Final = 18  # whose LSTM the translation in ``reader_graphs.py`` is written in
_HALF: Final = ".half"  # end of the name of the stored weights; what reads them keeps their own name
_LEAST_SIZE = 1024  # smaller ones would save nothing
_SIZES: Final = {"B": 3, "U": 11, "C": 13, "Q": 7, "K": 5, "N": 2, "S": 11, "T": 7}


def save_graph(path: Path, model: onnx.ModelProto) -> None:
    """Write a graph, with the weights that float16 holds in half the space."""
    store_half(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def examples_of(axes: Mapping[str, tuple[str, ...]], fixed: Mapping[str, int]) -> tuple[Tensor, ...]:
    """Return inputs to trace with; every dynamic size is different, so that none is taken for another."""
    sizes = {**_SIZES, **fixed}
    examples = []
    for name, letters in axes.items():
        shape = [sizes[letter] for letter in letters]
        kind = TYPES.get(name)
        examples.append(torch.rand(shape) if kind is None else torch.ones(shape, dtype=getattr(torch, kind)))
    return tuple(examples)


def traced(
    module: nn.Module,
    example_inputs: Sequence[Tensor],
    inputs: Mapping[str, tuple[str, ...]],
    output_names: Sequence[str],
    opset: int = OPSET,
    table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
) -> onnx.ModelProto:
    """Trace a module that takes and returns tensors by position into an ONNX graph that names no place on this machine.

    ``table`` says how custom operators are translated.
    """
    dynamic = {letter: torch.export.Dim.DYNAMIC for letter in DYNAMIC}
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
    return without_notes(program.model_proto)


def without_notes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Take away what a graph does not use: places in sources, which name this machine's paths, and inner shapes."""
    for node in model.graph.node:
        del node.metadata_props[:]
    del model.graph.value_info[:]
    del model.metadata_props[:]
    del model.graph.metadata_props[:]
    return model


def as_half(array: FloatArray) -> npt.NDArray[np.float16] | None:
    """Return the same numbers in float16, or None where it does not hold them."""
    with np.errstate(over="ignore"):  # what overflows differs
        half = array.astype(np.float16)
    return half if np.array_equal(half, array) else None


def store_half(model: onnx.ModelProto) -> None:
    """Store the float32 weights that float16 holds exactly as float16, with a Cast after each, in place."""
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT:
            continue
        array = numpy_helper.to_array(tensor)
        half = as_half(array) if array.size >= _LEAST_SIZE else None
        if half is not None:
            casts.append(helper.make_node("Cast", [tensor.name + _HALF], [tensor.name], to=TensorProto.FLOAT))
            tensor.CopyFrom(numpy_helper.from_array(half, tensor.name + _HALF))
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*casts, *nodes])
