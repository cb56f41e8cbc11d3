"""Fold what stands around the 8-bit products of a graph into them: the same numbers in fewer passes over memory.

Works on what ``quantize`` makes of a graph. What does not have the expected form stays as it is.
"""

import numpy as np
import onnx

from mqan_core.vectors import FloatArray
from mqan_runtime.rewrite import DOMAIN, Graph, attribute

PRODUCT = "MatMulIntegerToFloat"
SCALES, BIAS = 3, 6  # where these stand among its inputs


def fuse_products(model: onnx.ModelProto) -> None:
    """Rewrite the surroundings of 8-bit products, in place."""
    for fuse in (fold_biases, _fold_rectifiers, _fold_scales_into_norms, _transpose_bytes, gather_rows):
        graph = Graph(model)
        fuse(graph)
        graph.save()


def scale_product(graph: Graph, product: onnx.NodeProto, factors_D: FloatArray, output: str) -> list[str]:
    """Return the inputs of a product whose outputs are multiplied by a factor each."""
    inputs = list(product.input)
    inputs[SCALES] = graph.constant(f"{output}.scales", graph.constants[inputs[SCALES]] * factors_D)
    if len(inputs) > BIAS:
        inputs[BIAS] = graph.constant(f"{output}.bias", graph.constants[inputs[BIAS]] * factors_D)
    return inputs


def fold_biases(graph: Graph) -> None:
    """Add a bias within the product."""
    for add in graph.nodes("Add"):
        for source, bias in (tuple(add.input), tuple(reversed(add.input))):
            product = graph.only(source, PRODUCT)
            if product is not None and len(product.input) <= BIAS and _is_vector(graph, bias):
                inputs = [*product.input, *[""] * (BIAS - len(product.input)), bias]
                graph.put(PRODUCT, inputs, list(add.output), DOMAIN)
                break


def _fold_rectifiers(graph: Graph) -> None:
    """Rectify by quantising without negative numbers, and scale within the product before."""
    for quantized in graph.nodes("QuantizeLinear"):
        scaled = graph.only(quantized.input[0], "Mul")
        rectified = graph.only(scaled.input[0], "Relu") if scaled is not None else None
        product = graph.only(rectified.input[0], PRODUCT) if rectified is not None else None
        readers = graph.readers(quantized.output[0])
        if scaled is None or product is None or not _is_vector(graph, scaled.input[1]):
            continue
        if any(reader.op_type != PRODUCT or reader.input[0] != quantized.output[0] for reader in readers):
            continue
        unit = graph.constant("int8.positive_unit", np.array(1 / 255, np.float32))  # 0 to 1
        least = graph.constant("int8.least", np.array(0, np.uint8))
        output = scaled.output[0]
        graph.put(PRODUCT, scale_product(graph, product, graph.constants[scaled.input[1]], output), [output], DOMAIN)
        graph.put("QuantizeLinear", [output, unit, least], list(quantized.output))
        for reader in readers:
            source, weight, _, scales, _, *rest = reader.input
            graph.put(PRODUCT, [source, weight, unit, scales, least, *rest], list(reader.output), DOMAIN)


def _fold_scales_into_norms(graph: Graph) -> None:
    """Scale a layer normalisation by its own weights; a transposition between the two stays."""
    for scaled in graph.nodes("Mul"):
        source = scaled.input[0]
        transposed = graph.only(source, "Transpose")
        norm = graph.only(transposed.input[0] if transposed is not None else source, "LayerNormalization")
        if norm is None or not _is_vector(graph, scaled.input[1]):
            continue
        if transposed is not None and attribute(transposed, "perm")[-1] != len(attribute(transposed, "perm")) - 1:
            continue
        factors_D, output = graph.constants[scaled.input[1]], scaled.output[0]
        weights = [graph.constant(f"{output}.norm.{i}", graph.constants[norm.input[i]] * factors_D) for i in (1, 2)]
        kept = {"axis": attribute(norm, "axis", -1), "epsilon": attribute(norm, "epsilon", 1e-5)}
        normalised = output if transposed is None else norm.output[0]
        graph.put("LayerNormalization", [norm.input[0], *weights], [normalised], **kept)
        if transposed is not None:
            graph.put("Transpose", [normalised], [output], perm=attribute(transposed, "perm"))


def _transpose_bytes(graph: Graph) -> None:
    """Transpose what is quantised after that, not before: a quarter of the memory."""
    for quantized in graph.nodes("QuantizeLinear"):
        scaled = graph.only(quantized.input[0], "Mul")
        transposed = graph.only(scaled.input[0] if scaled is not None else quantized.input[0], "Transpose")
        if transposed is None:
            continue
        source, output = transposed.input[0], quantized.output[0]
        order = attribute(transposed, "perm")
        if scaled is not None:
            if not _is_vector(graph, scaled.input[1]) or order[-1] != len(order) - 1:
                continue
            graph.put("Mul", [source, scaled.input[1]], list(scaled.output))
            source = scaled.output[0]
        graph.put("QuantizeLinear", [source, *quantized.input[1:]], [f"{output}.before"])
        graph.put("Transpose", [f"{output}.before"], [output], perm=order)


def gather_rows(graph: Graph) -> None:
    """Gather whole rows where one index a row was spread over its elements."""
    for gathered in graph.nodes("GatherElements"):
        rows, index = gathered.input
        spread = graph.writer(index, "Expand")
        column = graph.writer(spread.input[0], "Unsqueeze") if spread is not None else None
        if column is None or attribute(gathered, "axis", 0) != 1:
            continue
        if graph.constants.get(column.input[1], np.zeros(0)).tolist() not in ([2], [-1]):
            continue
        graph.put("GatherND", [rows, column.output[0]], list(gathered.output), batch_dims=1)


def _is_vector(graph: Graph, name: str) -> bool:
    return name in graph.constants and graph.constants[name].ndim == 1
