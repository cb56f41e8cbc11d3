"""A graph that is being rewritten: who writes and who reads each tensor, and the weights by name."""

from collections import defaultdict
from collections.abc import Set
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"  # onnxruntime's own operators

Constant = npt.NDArray[Any]


class Graph:
    """A model's graph, to look for patterns in and to put other nodes in the place of what was found.

    Attributes:
        model: what the graph is of.
        constants: the weights, by name.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._outputs = {output.name for output in model.graph.output}
        self.constants = known_constants(model)
        self._added: set[str] = set()
        nodes = [node for node in model.graph.node if node.output[0] not in self.constants]
        self._writers = {name: node for node in nodes for name in node.output if name}
        self._readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in nodes:
            for name in node.input:
                self._readers[name].append(node)

    def nodes(self, op: str) -> list[onnx.NodeProto]:
        """Return the nodes of one kind."""
        return [node for node in self._distinct() if node.op_type == op]

    def writer(self, name: str, op: str) -> onnx.NodeProto | None:
        """Return the node that writes a tensor, if it is of this kind."""
        node = self._writers.get(name)
        return node if node is not None and node.op_type == op else None

    def readers(self, name: str) -> list[onnx.NodeProto]:
        """Return the nodes that read a tensor."""
        return list(self._readers[name])

    def only_reader(self, name: str, op: str) -> onnx.NodeProto | None:
        """Return the one node that reads a tensor, if nothing else does and it is of this kind."""
        readers = self._readers[name]
        if len(readers) != 1 or name in self._outputs or readers[0].op_type != op:
            return None
        return readers[0]

    def only(self, name: str, op: str) -> onnx.NodeProto | None:
        """Return the node that writes a tensor that is read once, if it is of this kind."""
        return self.writer(name, op) if len(self._readers[name]) == 1 and name not in self._outputs else None

    def constant(self, name: str, array: Constant) -> str:
        """Add a weight; return its name."""
        self.constants[name] = array
        self._added.add(name)
        return name

    def put(self, op: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> None:
        """Add a node, in the place of those that wrote the same tensors."""
        for old in {id(node): node for name in outputs if (node := self._writers.get(name)) is not None}.values():
            for name in old.input:
                self._readers[name] = [node for node in self._readers[name] if node is not old]
            for name in old.output:
                self._writers.pop(name, None)
        added = helper.make_node(op, inputs, outputs, domain=domain, **attributes)
        for name in inputs:
            self._readers[name].append(added)
        self._writers.update({name: added for name in outputs if name})

    def as_int32(self, name: str) -> str:
        """Return a tensor's name as int32, as onnxruntime's own operators read masks."""
        if self.writer(name + ".int32", "Cast") is None:
            self.put("Cast", [name], [name + ".int32"], to=TensorProto.INT32)
        return name + ".int32"

    def save(self) -> None:
        """Write the nodes and weights that the outputs depend on back into the model, in an order that can be run."""
        ordered: list[onnx.NodeProto] = []
        done: set[str] = set()
        waiting = [self._writers[name] for name in self._outputs if name in self._writers]
        while waiting:
            node = waiting[-1]
            if node.output[0] in done:
                waiting.pop()
                continue
            before = [self._writers[name] for name in node.input if name in self._writers and name not in done]
            if before:
                waiting.extend(before)
                continue
            waiting.pop()
            ordered.append(node)
            done.update(node.output)
        graph = self.model.graph
        read = {name for node in ordered for name in node.input} | self._outputs
        del graph.node[:]
        graph.node.extend(ordered)
        keep_weights(graph, read - self._added)
        there = {tensor.name for tensor in graph.initializer}
        graph.initializer.extend(
            numpy_helper.from_array(a.copy(order="C"), name)
            for name, a in self.constants.items()
            if name in read and name not in there
        )
        if all(opset.domain != DOMAIN for opset in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid(DOMAIN, 1))

    def _distinct(self) -> list[onnx.NodeProto]:
        return list({id(node): node for node in self._writers.values()}.values())


def note_length(model: onnx.ModelProto, name: str, length: int) -> None:
    """Add a length to those that a property of the model lists, for those who run it."""
    noted = {entry.key: entry.value for entry in model.metadata_props}
    lengths = {*noted.get(name, "").split(), str(length)}
    helper.set_model_props(model, noted | {name: " ".join(sorted(lengths))})


class Part:
    """Nodes and constants of a graph that have a name in common.

    Args:
        graph: the graph.
        name: what theirs begin with.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self._name = name

    def put(self, op: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node of one output; return its name."""
        name = f"{self._name}.{output}"
        self.graph.put(op, inputs, [name], domain, **attributes)
        return name

    def constant(self, name: str, values: npt.ArrayLike, kind: npt.DTypeLike = np.int64) -> str:
        """Add a constant; return its name."""
        return self.graph.constant(f"{self._name}.{name}", np.array(values, kind))

    def range(self, first: str, end: str, step: str, output: str) -> str:
        """Count from one number to before another, each int64 [1]; return the name of the counts."""
        ends = {"first": first, "end": end, "step": step}
        scalars = [self.put("Squeeze", [number], f"{output}.{part}") for part, number in ends.items()]
        return self.put("Range", scalars, output)


def keep_weights(graph: onnx.GraphProto, names: Set[str]) -> None:
    """Drop all weights but these. What stays is not copied: a message gives back no memory before its end."""
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in names:
            del graph.initializer[place]


def known_constants(model: onnx.ModelProto) -> dict[str, Constant]:
    """Return the weights, and what is cut out of them or transposed, by name."""
    known: dict[str, Constant] = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in ("Slice", "Transpose") or any(name not in known for name in node.input):
            continue
        array, *rest = (known[name] for name in node.input)
        if node.op_type == "Transpose":
            array = array.transpose(attribute(node, "perm"))
        else:
            starts, ends, axes, *steps = (part.tolist() for part in rest)
            for start, end, axis, step in zip(starts, ends, axes, steps[0] if steps else [1] * len(axes), strict=True):
                array = array[(slice(None),) * (axis % array.ndim) + (slice(start, end, step),)]
        known[node.output[0]] = array
    return known


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """Return the value of a node's attribute."""
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
