"""Compute a network in the format of TensorFlow.js, a graph in JSON beside its weights, by torch.

Only the operations that occur in the detector are there; another one is refused by name. What
depends on constants alone (shapes, paddings) is computed once, when the graph is read.
"""

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from itr_study.encoders.base import WeightsError

STORED = {"float32": np.float32, "int32": np.int32, "float16": np.float16}
Value = Tensor | tuple[Tensor, ...]


class Node(NamedTuple):
    """An operation of a graph: what it reads, as (node, number of its output), and attributes."""

    name: str
    op: str
    inputs: tuple[tuple[str, int], ...]
    attributes: dict

    def numbers(self, name: str) -> list[int]:
        """Read an attribute that is a list of whole numbers."""
        return [int(number) for number in self.attributes[name]["list"]["i"]]

    def text(self, name: str) -> str:
        """Read an attribute that is a text."""
        return base64.b64decode(self.attributes[name]["s"]).decode()


class Step(NamedTuple):
    """A node ready to be computed, and the values that nobody reads after it."""

    node: Node
    compute: Callable[..., Value]
    forget: tuple[str, ...]


class GraphModel:
    """A graph with one input, computed in float32 on the CPU.

    Args:    path: the JSON file; the weights lie beside it under the names that it gives.
    Shape:   called with the input as the graph takes it; gives its outputs by name.
    Raises:  WeightsError for a file that is missing or broken, an operation that is not known here.
    Differs: weights stored in float16 are computed with in float32. Pictures are laid out with the
             channels last in memory, twice as fast; that moves the last bits of the result.
    """

    def __init__(self, path: Path) -> None:
        content = read_json_graph(path)
        self.outputs = sorted(name.partition(":")[0] for name in content["signature"]["outputs"])
        self.known: dict[str, Value] = dict(read_weights(path, content["weightsManifest"]))
        nodes = {node["name"]: as_node(node) for node in content["modelTopology"]["node"]}
        self.input = next(name for name, node in nodes.items() if node.op == "Placeholder")
        self.steps: list[Step] = []
        for name in self._in_order(nodes):
            self._add(nodes[name])
        self._forget_early()

    @torch.inference_mode()
    def __call__(self, pixels: Tensor) -> dict[str, Tensor]:
        """Compute the outputs by name."""
        values = {self.input: pixels.contiguous(memory_format=torch.channels_last)}
        for node, compute, forget in self.steps:
            values[node.name] = compute(*(
                output(values.get(name, self.known.get(name)), i) for name, i in node.inputs))
            for name in forget:
                del values[name]
        return {name: values[name] for name in self.outputs}

    def _in_order(self, nodes: dict[str, Node]) -> list[str]:
        """Names of nodes that the outputs need, each after what it reads."""
        order, waiting, seen = [], [(name, False) for name in self.outputs], set()
        while waiting:
            name, ready = waiting.pop()
            if ready:
                order.append(name)
            elif name not in seen and name not in self.known and name != self.input:
                if name not in nodes:
                    raise WeightsError(f"the graph reads {name!r}, which it does not have; get the "
                                       "files again")
                seen.add(name)
                waiting.append((name, True))
                waiting += [(other, False) for other, _ in nodes[name].inputs]
        return order

    def _add(self, node: Node) -> None:
        """Compute a node now where all that it reads is known; else make a step of it."""
        if node.op not in OPERATIONS:
            raise WeightsError(f"the graph has the operation {node.op!r} at {node.name!r}, which "
                               f"is not among {', '.join(OPERATIONS)}; use the published files")
        known = [output(self.known.get(name), i) for name, i in node.inputs]
        compute = OPERATIONS[node.op](node, known)
        if all(value is not None for value in known):
            self.known[node.name] = compute(*known)
        else:
            self.steps.append(Step(node, compute, ()))

    def _forget_early(self) -> None:
        """Drop every value after the last step that reads it, so that its memory is used again."""
        kept, last = {*self.outputs, self.input, *self.known}, {}
        for i, step in enumerate(self.steps):
            last |= {name: i for name, _ in step.node.inputs if name not in kept}
        self.steps = [step._replace(forget=tuple(name for name, at in last.items() if at == i))
                      for i, step in enumerate(self.steps)]


def read_json_graph(path: Path) -> dict:
    """Read the graph's file; WeightsError where it is missing or no such graph."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(f"{path} is missing; put the network's files there") from error
    except ValueError as error:
        raise WeightsError(f"{path} is not JSON ({error}); get the file again") from error
    expected = {"modelTopology", "weightsManifest", "signature"}
    if not (isinstance(content, dict) and expected <= content.keys()):
        raise WeightsError(f"{path} is no graph of TensorFlow.js: expected {sorted(expected)}, "
                           "get the file again")
    return content


def read_weights(path: Path, manifest: list[dict]) -> dict[str, Tensor]:
    """Read weights by name, float32 or int64, from the files beside the graph's."""
    weights = {}
    for group in manifest:
        files = [path.parent / name for name in group["paths"]]
        if missing := [file for file in files if not file.is_file()]:
            raise WeightsError(f"{missing[0]} is missing; it holds weights of {path.name}")
        raw = b"".join(file.read_bytes() for file in files)
        stored = [w.get("quantization", w)["dtype"] for w in group["weights"]]
        if other := sorted(set(stored) - set(STORED)):
            raise WeightsError(f"{path.name} has weights stored as {', '.join(other)}, which are "
                               f"not read here; those stored as {', '.join(STORED)} are")
        kinds = [np.dtype(STORED[dtype]) for dtype in stored]
        counts = [math.prod(w["shape"]) for w in group["weights"]]
        ends = np.cumsum([0, *(n * kind.itemsize for n, kind in zip(counts, kinds, strict=True))])
        if ends[-1] != len(raw):
            raise WeightsError(f"{files[0]} holds {len(raw)} bytes, {path.name} asks for "
                               f"{ends[-1]}; get both files again")
        for about, kind, count, start in zip(group["weights"], kinds, counts, ends, strict=False):
            values = np.frombuffer(raw, kind, count, start).reshape(about["shape"])
            wide = np.float32 if about["dtype"] == "float32" else np.int64
            weights[about["name"]] = torch.from_numpy(values.astype(wide))
    return weights


def as_node(about: dict) -> Node:
    """Read a node of the file; inputs that only order the steps are left out."""
    inputs = [name.partition(":") for name in about.get("input", []) if name[:1] != "^"]
    return Node(about["name"], about["op"], tuple((name, int(i or 0)) for name, _, i in inputs),
                about.get("attr", {}))


def output(value: Value | None, i: int) -> Tensor | None:
    """Take output i of a node of several outputs; the only one of any other."""
    return value[i] if isinstance(value, tuple) else value


def _convolution(node: Node, known: list[Tensor | None]) -> Callable[..., Tensor]:
    check_plain(node)
    weight = known[1].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    strides = node.numbers("strides")[1:3]
    return lambda maps, _: last(functional.conv2d(first(maps), weight, stride=strides))


def _max_pool(node: Node, known: list[Tensor | None]) -> Callable[..., Tensor]:
    check_plain(node)
    size, strides = node.numbers("ksize")[1:3], node.numbers("strides")[1:3]
    return lambda maps: last(functional.max_pool2d(first(maps), size, strides))


def _resize(node: Node, known: list[Tensor | None]) -> Callable[..., Tensor]:
    corners, centres = (node.attributes.get(name, {}).get("b", False)
                        for name in ("align_corners", "half_pixel_centers"))
    if corners or not centres:
        raise WeightsError(f"{node.name!r} resizes in a way that is not known here: expected "
                           "half_pixel_centers without align_corners; use the published files")
    return lambda maps, size: last(functional.interpolate(
        first(maps), size.tolist(), mode="bilinear", align_corners=False))


def check_plain(node: Node) -> None:
    """Raise WeightsError unless windows are those of the detector: within the map, not dilated."""
    padding, layout = node.text("padding"), node.text("data_format")
    dilated = "dilations" in node.attributes and set(node.numbers("dilations")) != {1}
    if padding != "VALID" or layout != "NHWC" or dilated:
        raise WeightsError(f"{node.name!r} has padding {padding}, layout {layout}, "
                           f"{'dilated' if dilated else 'not dilated'}; only VALID, NHWC, not "
                           "dilated is known here; use the published files")


def sparse_to_dense(places: Tensor, shape: Tensor, values: Tensor, default: Tensor) -> Tensor:
    """Make a vector of one number, with others at some places."""
    dense = default.expand(shape.tolist()).clone()
    dense[places.reshape(-1)] = values
    return dense


def padded(maps: Tensor, widths: Tensor, value: Tensor | float = 0.0) -> Tensor:
    """Pad by widths (axes, 2)."""
    return functional.pad(maps, widths.flip(0).reshape(-1).tolist(), value=float(value))


def first(maps: Tensor) -> Tensor:
    """View (N, H, W, C) as (N, C, H, W)."""
    return maps.permute(0, 3, 1, 2)


def last(maps: Tensor) -> Tensor:
    """View (N, C, H, W) as (N, H, W, C)."""
    return maps.permute(0, 2, 3, 1)


def plain(function: Callable[..., Value]) -> Callable[..., Callable[..., Value]]:
    """Make an operation that reads nothing but its inputs."""
    return lambda node, known: function


OPERATIONS: dict[str, Callable[[Node, list[Tensor | None]], Callable[..., Value]]] = {
    "Conv2D": _convolution, "MaxPool": _max_pool, "ResizeBilinear": _resize,
    "LeakyRelu": lambda node, known: lambda maps: functional.leaky_relu(
        maps, node.attributes["alpha"]["f"]),
    "Add": plain(torch.add), "AddV2": plain(torch.add), "Sigmoid": plain(torch.sigmoid),
    "Identity": plain(lambda value: value), "Pad": plain(padded), "PadV2": plain(padded),
    "Transpose": plain(lambda value, axes: value.permute(axes.tolist())),
    "Reshape": plain(lambda value, shape: value.reshape(shape.tolist())),
    "ConcatV2": plain(lambda *values: torch.cat(values[:-1], int(values[-1]))),
    "SplitV": plain(lambda value, sizes, axis: torch.split(value, sizes.tolist(), int(axis))),
    "SparseToDense": plain(sparse_to_dense),
}
