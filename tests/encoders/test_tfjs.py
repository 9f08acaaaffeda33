"""Graphs of TensorFlow.js, converted: small ones, written here, worked by hand."""

import base64
import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from itr_study.encoders.base import WeightsError
from itr_study.encoders.nanodet import OPERATIONS, Network
from tools.nanodet import STEPS, Graph


def text(value: str) -> dict:
    return {"s": base64.b64encode(value.encode()).decode()}


def numbers(*values: int) -> dict:
    return {"list": {"i": [str(value) for value in values]}}


WINDOW = {"padding": text("VALID"), "data_format": text("NHWC"), "strides": numbers(1, 1, 1, 1)}


def node(name: str, op: str, *inputs: str, **attributes: dict) -> dict:
    return {"name": name, "op": op, "input": list(inputs), "attr": attributes}


def write(folder, nodes: list[dict], weights: dict[str, np.ndarray], outputs=("out",)):
    """A graph as a converter writes it: floats as float16, whole numbers as int32."""
    about, raw = [], b""
    for name, values in weights.items():
        whole = np.issubdtype(values.dtype, np.integer)
        about.append({"name": name, "shape": list(values.shape),
                      "dtype": "int32" if whole else "float32"}
                     | ({} if whole else {"quantization": {"dtype": "float16"}}))
        raw += values.astype(np.int32 if whole else np.float16).tobytes()
    constants = [node(name, "Const") for name in weights]
    content = {"modelTopology": {"node": [node("in", "Placeholder"), *constants, *nodes]},
               "weightsManifest": [{"paths": ["tiny.bin"], "weights": about}],
               "signature": {"outputs": {f"{name}:0": {} for name in outputs}}}
    (folder / "tiny.json").write_text(json.dumps(content))
    (folder / "tiny.bin").write_bytes(raw)
    return folder / "tiny.json"


def computed(path, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
    """The outputs of a graph, converted, by name."""
    graph, target = Graph(path), path.with_suffix(".safetensors")
    graph.save(target, {})
    names = sorted(json.loads(path.read_text())["signature"]["outputs"])
    return {name[:-2]: value for name, value in zip(names, Network(target)(pixels), strict=True)}


def one(folder, op: str, inputs: list, pixels, **attributes) -> torch.Tensor:
    """What one operation makes of the picture; None among the inputs stands for it."""
    weights = {f"w{i}": np.asarray(value) for i, value in enumerate(inputs) if value is not None}
    names = ["in" if value is None else f"w{i}" for i, value in enumerate(inputs)]
    path = write(folder, [node("out", op, *names, **attributes)], weights)
    return computed(path, torch.as_tensor(pixels, dtype=torch.float32))["out"]


def test_a_small_network_by_hand(tmp_path):
    """A 2 x 2 picture, padded by 1 on the right, through a 1 x 2 convolution with two outputs."""
    weight = np.zeros((1, 2, 1, 2))  # height, width, in, out
    weight[0, :, 0, 0], weight[0, :, 0, 1] = (1, 10), (0, -1)
    path = write(tmp_path, [
        node("pad", "Pad", "in", "widths"), node("conv", "Conv2D", "pad", "weight", **WINDOW),
        node("sum", "AddV2", "conv", "bias"), node("out", "LeakyRelu", "sum", alpha={"f": 0.5})],
        {"widths": np.array([[0, 0], [0, 0], [0, 1], [0, 0]]), "weight": weight,
         "bias": np.array([0.5, 1.0])})
    picture = torch.tensor([[1.0, 2.0], [3.0, 4.0]])[None, :, :, None]  # NHWC
    out = computed(path, picture)["out"]
    assert out.shape == (1, 2, 2, 2)
    assert out[0, :, :, 0].tolist() == [[21.5, 2.5], [43.5, 4.5]]  # x + 10 x', then the bias
    assert out[0, :, :, 1].tolist() == [[-0.5, 1.0], [-1.5, 1.0]]  # 1 - x', halved below 0


def test_operations_by_hand(tmp_path):
    square = np.arange(4.0).reshape(1, 2, 2, 1)
    assert one(tmp_path, "Transpose", [None, np.array([0, 3, 1, 2])], square).shape == (1, 1, 2, 2)
    assert one(tmp_path, "Reshape", [None, np.array([1, -1])], square).tolist() == [[0, 1, 2, 3]]
    assert one(tmp_path, "Identity", [None], square).flatten().tolist() == [0, 1, 2, 3]
    assert one(tmp_path, "Sigmoid", [None], square * 0).flatten().tolist() == [0.5] * 4
    assert one(tmp_path, "Add", [None, np.array(2.0)], square).flatten().tolist() == [2, 3, 4, 5]
    assert one(tmp_path, "ConcatV2", [None, None, np.array(2)], square).shape == (1, 2, 4, 1)
    padded = one(tmp_path, "PadV2", [None, np.array([[0, 0], [1, 0], [0, 0], [0, 0]]),
                                     np.array(9.0)], square)
    assert padded[0, :, :, 0].tolist() == [[9, 9], [0, 1], [2, 3]]
    pooled = one(tmp_path, "MaxPool", [None], square, ksize=numbers(1, 2, 2, 1), **WINDOW)
    assert pooled.flatten().tolist() == [3]
    doubled = one(tmp_path, "ResizeBilinear", [None, np.array([4, 4])], square,
                  half_pixel_centers={"b": True}, align_corners={"b": False})
    assert doubled[0, 0, :, 0].tolist() == [0, 0.25, 0.75, 1]


def test_parts_of_a_split_are_read_by_their_number(tmp_path):
    path = write(tmp_path, [node("split", "SplitV", "in", "sizes", "axis"),
                            node("out", "Identity", "split:1"), node("other", "Identity", "split")],
                 {"sizes": np.array([1, 3]), "axis": np.array(3)}, ("out", "other"))
    found = computed(path, torch.arange(4.0).reshape(1, 1, 1, 4))
    assert found["out"].flatten().tolist() == [1, 2, 3]
    assert found["other"].flatten().tolist() == [0]


def test_what_depends_on_constants_alone_is_computed_when_the_graph_is_read(tmp_path):
    """Widths of padding come as a sum of two vectors, one made from a sparse one."""
    path = write(tmp_path, [
        node("dense", "SparseToDense", "places", "length", "ones", "zero"),
        node("both", "AddV2", "dense", "dense"), node("rows", "Reshape", "both", "shape"),
        node("out", "Pad", "in", "rows")],
        {"places": np.array([[3], [4]]), "length": np.array([8]), "ones": np.array([1, 1]),
         "zero": np.array(0), "shape": np.array([4, 2])})
    assert [name for name, *_ in Graph(path).steps] == ["out"]
    out = computed(path, torch.ones(1, 1, 1, 1))["out"]  # 2 rows after, 2 columns before
    assert out.shape == (1, 3, 3, 1) and out[0, :, :, 0].tolist() == [[0, 0, 1], [0] * 3, [0] * 3]


def test_a_convolution_is_that_of_torch(tmp_path):
    rng = np.random.default_rng(0)
    weight = rng.integers(-8, 8, (3, 3, 5, 4)) / 8.0  # exact in float16
    pixels = rng.normal(size=(1, 9, 7, 5)).astype(np.float32)
    strided = WINDOW | {"strides": numbers(1, 2, 2, 1)}
    found = one(tmp_path, "Conv2D", [None, weight], pixels, **strided)
    expected = functional.conv2d(torch.from_numpy(pixels).permute(0, 3, 1, 2),
                                 torch.from_numpy(weight).permute(3, 2, 0, 1).float(), stride=2)
    np.testing.assert_allclose(found, expected.permute(0, 2, 3, 1), atol=1e-5)


def test_results_do_not_stay_in_memory_and_do_not_change(tmp_path):
    path = write(tmp_path, [node("a", "Add", "in", "one"), node("b", "Add", "a", "in"),
                            node("c", "Add", "b", "a"), node("out", "Add", "c", "one")],
                 {"one": np.array(1.0)})
    Graph(path).save(target := tmp_path / "tiny.safetensors", {})
    network = Network(target)
    assert {name: set(forget) for name, *_, forget in network.steps} == {
        "a": set(), "b": {"input:0"}, "c": {"a:0", "b:0"}, "out": {"c:0"}}
    picture = torch.full((1, 1, 1, 1), 3.0)
    assert [network(picture)[0].item() for _ in range(2)] == [12.0, 12.0]


@pytest.mark.parametrize("op, attributes, message", [
    ("Conv2D", WINDOW | {"padding": text("SAME")}, "padding SAME"),
    ("Conv2D", WINDOW | {"data_format": text("NCHW")}, "layout NCHW"),
    ("Conv2D", WINDOW | {"dilations": numbers(1, 2, 2, 1)}, ", dilated; only VALID"),
    ("ResizeBilinear", {"align_corners": {"b": True}}, "expected half_pixel_centers"),
    ("Softmax", {}, "operation 'Softmax' at 'out'.* among Conv2D"),
])
def test_what_is_not_known_is_refused(tmp_path, op, attributes, message):
    path = write(tmp_path, [node("out", op, "in", "w", **attributes)], {"w": np.ones((1, 1, 1, 1))})
    with pytest.raises(WeightsError, match=message):
        Graph(path)


@pytest.mark.parametrize("spoil, message", [
    (lambda path: path.unlink(), "tiny.json is missing; put"),
    (lambda path: path.write_text("{"), "tiny.json is not JSON"),
    (lambda path: path.write_text("[]"), "no graph of TensorFlow.js"),
    (lambda path: path.with_suffix(".bin").unlink(), "tiny.bin is missing"),
    (lambda path: path.with_suffix(".bin").write_bytes(b"123"), "holds 3 bytes"),
    (lambda path: path.with_suffix(".bin").write_bytes(b"1" * 99), "holds 99 bytes"),
    (lambda path: path.write_text(path.read_text().replace('"float16"', '"uint8"')),
     "weights stored as uint8, which are not read here; those stored as float32, int32, float16"),
    (lambda path: path.write_text(path.read_text().replace('"in", "w"', '"in", "x"')),
     "reads 'x', which it does not have"),
])
def test_broken_files_are_refused(tmp_path, spoil, message):
    path = write(tmp_path, [node("out", "Add", "in", "w")], {"w": np.ones(4)})
    spoil(path)
    with pytest.raises(WeightsError, match=message):
        Graph(path)


def test_the_order_of_nodes_in_the_file_does_not_matter(tmp_path):
    nodes = [node("out", "Add", "a", "w"), node("a", "Add", "in", "w", "^w")]
    path = write(tmp_path, nodes, {"w": np.array(1.0)})
    assert computed(path, torch.zeros(1, 1, 1, 1))["out"].item() == 2
    assert set(STEPS) > {"Conv2D", "Add"} and set(OPERATIONS) > {"conv2d", "add"}
