"""A reader's graph with 8-bit products for CPUs, by onnxruntime's static quantisation, per channel.

Nothing is scaled by what a batch holds: what the products read has fixed scales, measured on real examples. Weights
have 7 bits, so that sums of their products with 8-bit inputs fit into 16 bits, as an x86 CPU without VNNI adds them up:
every CPU computes the same, by its fastest products.

One feature of a pretrained BERT is about twelve times as wide as the others, and one or two inner units of each layer
make it so. Weights are balanced with the widths of what they multiply, and these units stay in float32.
"""

import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.quant_utils import add_pre_process_metadata
from torch import Tensor, nn

from mqan_core.ask.request import read_request
from mqan_core.errors import InputError
from mqan_core.example import Example
from mqan_export.parity import readable
from mqan_export.reader_graphs import PiecesGraph, trace_pieces
from mqan_export.step_graph import Table, TableStep, trace_step
from mqan_export.trace import without_notes
from mqan_runtime.engine import Engine
from mqan_runtime.graphs import PIECES_INPUTS
from mqan_runtime.readers import padded_windows
from mqan_training.model.pretrained import PretrainedNetwork
from mqan_training.start import Trained

_BALANCE = 0.75  # how much of a feature's width the scales take; the weights get it
_APART: Final[Mapping[str, int]] = {"outer": 2}  # last name of a product -> inputs that stay in float32
_LEAST = 1e-5
_LEAST_WIDTH = 16  # of inputs and outputs of products that become 8-bit
_PRODUCTS: Final = ["MatMul", "Gemm"]
_PRODUCT: Final = "MatMulIntegerToFloat"  # what onnxruntime fuses a MatMul with 8-bit inputs into
_BIAS = 6  # place of its bias among its inputs
_BY_OUTPUT: Final = (1, 3, 5, _BIAS)  # inputs with one column an output: weights, scales, zero points and biases
_MOST_STEPS = 20  # of an answer, that scales are measured on
_MOST_EXAMPLES = 200  # that scales are measured on

Inputs = dict[str, npt.NDArray[Any]]


class BalancedLinear(nn.Module):
    """A product as 8-bit numbers can hold it: the same function of its inputs as before.

    Its inputs are divided by a scale a feature, and its weights multiplied. Some inputs are ``apart``: they have a
    small product of their own, which is to stay in float32, and their columns of the weights are zeros.
    """

    inverse_I: Tensor
    places: Tensor
    own: Tensor

    def __init__(self, linear: nn.Linear, scale_I: Tensor, apart: Sequence[int] = ()) -> None:
        super().__init__()
        weight = linear.weight.detach().clone()
        self.register_buffer("places", torch.tensor(apart, dtype=torch.int64))
        self.register_buffer("own", weight[:, self.places].T.contiguous())
        weight[:, self.places] = 0.0
        self.register_buffer("inverse_I", 1 / scale_I)
        self.rest = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None)
        with torch.no_grad():
            self.rest.weight.copy_(weight * scale_I)
            if linear.bias is not None:
                self.rest.bias.copy_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = self.rest(x * self.inverse_I)
        return mapped + x.index_select(-1, self.places) @ self.own if len(self.places) else mapped


def quantise_reader(trained: Trained, examples: Sequence[Example]) -> onnx.ModelProto:
    """Return the graph of a reader with 8-bit products, with onnxruntime's own operators for them.

    Scales are measured on the first windows of examples, evenly chosen where there are many; ValueError: none can be
    read.
    """
    windows = _first_windows(trained, examples)
    graph = PiecesGraph(trained.network)
    _balance(graph, _ranges(graph, windows))
    return _quantised(trace_pieces(graph), windows)


def quantise_step(
    network: PretrainedNetwork, generator_inputs: Tensor, engine: Engine, examples: Sequence[Example]
) -> onnx.ModelProto:
    """Return the graph of the decoding step with 8-bit products.

    Scales are measured on the steps in which the engine, in float32, answers examples, evenly chosen where many.
    """
    model = trace_step(TableStep(network.decoder, generator_inputs, is_compact=False))
    return _quantised(model, list(_steps(engine, _some(examples))))


def _steps(engine: Engine, examples: Sequence[Example]) -> Iterator[Inputs]:
    limit = min(_MOST_STEPS, engine.max_answer_tokens)
    for _, request in readable(engine, examples):
        decoding = engine.start([request], [limit], [0])
        while decoding.num_live:
            given = {**decoding.buffers.constants, **decoding.buffers.state}
            yield {name: array.copy() for name, array in given.items()}
            engine.step(decoding)


def _quantised(model: onnx.ModelProto, inputs: Sequence[Inputs]) -> onnx.ModelProto:
    """Return a graph with 8-bit products whose scales come from what it reads of given inputs."""
    if not inputs:
        raise ValueError("8-bit products cannot be scaled without examples that can be read")
    with tempfile.TemporaryDirectory() as folder:
        quantised, fused = Path(folder) / "quantised.onnx", Path(folder) / "fused.onnx"
        add_pre_process_metadata(model)  # which is traced with its shapes: nothing to advise
        quantize_static(
            model,
            quantised,
            _Given(inputs),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=_PRODUCTS,
            nodes_to_exclude=_excluded(model),
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod.MinMax,
            extra_options={"OpTypesToExcludeOutputQuantization": _PRODUCTS},
        )
        _fuse(quantised, fused)
        model = onnx.load(fused)
        used = {node.domain for node in model.graph.node}
        kept = [opset for opset in model.opset_import if opset.domain in used or not opset.domain]
        del model.opset_import[:]
        model.opset_import.extend(kept)
        return fold_into_products(without_notes(model))


def _some(examples: Sequence[Example]) -> Sequence[Example]:
    return examples[:: max(1, len(examples) // _MOST_EXAMPLES)]


def _first_windows(trained: Trained, examples: Sequence[Example]) -> list[Inputs]:
    embeddings = Table(trained.network.bert.pieces.weight)
    found = []
    for example in _some(examples):
        try:
            request = read_request(trained.vocabulary, example.context, example.question, example.choices)
            texts = request.question_tokens, request.choice_tokens, request.context_tokens
            inputs: Inputs = dict(padded_windows(trained.layout.windows(*texts)[:1]))
        except InputError:
            continue
        inputs["vectors"] = embeddings(torch.from_numpy(inputs.pop("pieces"))).numpy()
        found.append(inputs)
    return found


@torch.no_grad()
def _ranges(graph: PiecesGraph, windows: Sequence[Inputs]) -> dict[str, Tensor]:
    """Return the largest absolute value of each feature that each product reads."""
    ranges: dict[str, Tensor] = {}

    def watch(name: str, linear: nn.Linear) -> Any:
        def note(_: nn.Module, given: tuple[Tensor, ...], __: Tensor) -> None:
            seen_I = given[0].abs().flatten(0, -2).amax(dim=0)
            ranges[name] = torch.maximum(ranges[name], seen_I) if name in ranges else seen_I

        return linear.register_forward_hook(note)

    hooks = [watch(name, module) for name, module in graph.named_modules() if _is_wide(module)]
    for inputs in windows:
        graph(*(torch.from_numpy(inputs[name]) for name in PIECES_INPUTS))
    for hook in hooks:
        hook.remove()
    return ranges


def _balance(graph: PiecesGraph, ranges: Mapping[str, Tensor]) -> None:
    """Put a ``BalancedLinear`` in the place of each product whose inputs were measured."""
    for name, range_I in ranges.items():
        parent, _, last = name.rpartition(".")
        linear: nn.Linear = graph.get_submodule(name)  # type: ignore[assignment]
        range_I = range_I.clamp(min=_LEAST)
        width_I = linear.weight.detach().abs().amax(dim=0).clamp(min=_LEAST)
        scale_I = range_I**_BALANCE / width_I ** (1 - _BALANCE)
        apart = (range_I * width_I).topk(_APART.get(last, 0)).indices
        is_rest_I = torch.ones_like(range_I, dtype=torch.bool)
        is_rest_I[apart] = False
        scale_I = scale_I / scale_I[is_rest_I].log().mean().exp()
        widest = (range_I / scale_I)[is_rest_I].max()
        scale_I[apart] = range_I[apart] / widest  # what is apart does not widen the others' range
        setattr(graph.get_submodule(parent), last, BalancedLinear(linear, scale_I, apart.tolist()))


def _is_wide(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) and min(module.in_features, module.out_features) >= _LEAST_WIDTH


def _excluded(model: onnx.ModelProto) -> list[str]:
    """Return the names of products that stay in float32: of two tensors, or with few inputs or outputs."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type in _PRODUCTS]
    return [node.name for node in products if min(shapes.get(node.input[1], (0,))) < _LEAST_WIDTH]


class _Given(CalibrationDataReader):  # type: ignore[misc]
    """Hands inputs to onnxruntime's calibration, one at a time, so that nothing is padding."""

    def __init__(self, inputs: Sequence[Inputs]) -> None:
        self._left = iter(inputs)

    def get_next(self) -> Inputs | None:
        return next(self._left, None)


def _fuse(quantised: Path, fused: Path) -> None:
    """Let onnxruntime fuse products with what quantises them, once and for every CPU alike."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED  # all CPUs alike
    options.optimized_model_filepath = str(fused)
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "0")
    onnxruntime.InferenceSession(
        str(quantised), options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


def fold_into_products(model: onnx.ModelProto) -> onnx.ModelProto:
    """Let 8-bit products add their biases, and make each part of what was split after one by a product of its own.

    The numbers stay the same to the last bit: a bias is added to the same float32, and a column of a product does not
    depend on the others.
    """
    graph = model.graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    outputs = {value.name for value in graph.output}

    def attends(split: onnx.NodeProto) -> bool:  # with one word a step's product is faster whole
        return all(node.op_type == "Attention" for name in split.output for node in readers[name])

    nodes: list[onnx.NodeProto] = []
    gone: set[str] = set()  # first outputs of the nodes that products take over
    for node in graph.node:
        if node.output[0] in gone:
            continue
        nodes.append(node)
        if node.op_type != _PRODUCT:
            continue
        after = _only_reader(node.output[0], readers, outputs)
        if after is not None and after.op_type in ("Add", "BiasGelu") and len(node.input) == _BIAS:
            [bias] = [name for name in after.input if name != node.output[0]] or [""]
            if bias in weights and weights[bias].shape == weights[node.input[1]].shape[1:]:
                node.input.append(bias)
                if after.op_type == "Add":
                    gone.add(after.output[0])
                    node.output[0] = after.output[0]
                else:
                    after.CopyFrom(helper.make_node("Gelu", [node.output[0]], list(after.output), name=after.name))
        after = _only_reader(node.output[0], readers, outputs)
        if after is not None and after.op_type == "Split" and len(after.input) == 1 and attends(after):
            nodes[-1:] = _parts_of(node, list(after.output), weights)
            gone.add(after.output[0])
    used = {name for node in nodes for name in node.input}
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items() if name in used)
    return model


def _only_reader(
    name: str, readers: Mapping[str, Sequence[onnx.NodeProto]], outputs: Collection[str]
) -> onnx.NodeProto | None:
    return readers[name][0] if len(readers[name]) == 1 and name not in outputs else None


def _parts_of(
    product: onnx.NodeProto, names: Sequence[str], weights: dict[str, npt.NDArray[Any]]
) -> list[onnx.NodeProto]:
    """Return a product of its own for each equal part of another's outputs; add their weights."""
    parts = [list(product.input) for _ in names]
    for place in _BY_OUTPUT:
        if place < len(product.input):
            whole = product.input[place]
            for number, array in enumerate(np.split(weights[whole], len(names), axis=-1)):
                parts[number][place] = f"{whole}_{number}"
                weights[f"{whole}_{number}"] = array
    return [
        helper.make_node(_PRODUCT, inputs, [name], name=f"{product.name}_{name}", domain=product.domain)
        for inputs, name in zip(parts, names, strict=True)
    ]
