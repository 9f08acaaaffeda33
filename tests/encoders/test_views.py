"""Views of a picture: what is cut, where, and what is mirrored."""

import numpy as np
import pytest
from PIL import Image

from itr_study.encoders.base import VIEWS, make_views
from itr_study.features.dataset import JoinedRegions, join_regions
from itr_study.features.specs import ImagePart, image_parts


def ramp(width, height):
    """Red grows to the right, green downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 0 * x], axis=-1).round().astype(np.uint8))


@pytest.mark.parametrize("views", VIEWS)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_shape_and_type(views, mode):
    pixels = make_views(ramp(50, 30).convert(mode), views, 32)
    count = {"one": 1, "flip": 2, "ten": 10}[views]
    assert pixels.shape == (count, 3, 32, 32) and pixels.dtype == np.uint8


def test_flip_is_the_whole_and_its_mirror():
    image = ramp(40, 20)
    whole, mirror = make_views(image, "flip", 32)
    np.testing.assert_array_equal(whole, make_views(image, "one", 32)[0])
    np.testing.assert_array_equal(mirror, whole[:, :, ::-1])
    assert whole[0, 0, 0] < 10 and whole[0, 0, -1] > 245  # nothing was cut off


def test_a_picture_of_the_native_size_is_left_alone():
    image = ramp(32, 32)
    np.testing.assert_array_equal(make_views(image, "one", 32)[0].transpose(1, 2, 0), image)


def test_ten_crops_are_centre_corners_and_mirrors():
    image = ramp(256, 256)  # 256 / 224 of the size: no resizing
    crops, pixels = make_views(image, "ten", 224), np.asarray(image).transpose(2, 0, 1)
    for crop, (y, x) in zip(crops, [(16, 16), (0, 0), (0, 32), (32, 0), (32, 32)], strict=False):
        np.testing.assert_array_equal(crop, pixels[:, y : y + 224, x : x + 224])
    np.testing.assert_array_equal(crops[5:], crops[:5, :, :, ::-1])


@pytest.mark.parametrize("size, large", [(224, 256), (240, 274), (260, 297)])
def test_ten_crops_scale_with_the_native_size(size, large):
    crops = make_views(ramp(large, large), "ten", size)
    assert crops.shape == (10, 3, size, size)
    assert crops[1, 0, 0, 0] == 0 and crops[4, 0, 0, -1] == 255  # first and last column are reached


@pytest.mark.parametrize("spec, expected", [
    ("lite0:grid:ten", [ImagePart("lite0", "", "grid", "ten")]),
    ("lite2:pooled:one:float32", [ImagePart("lite2", "", "pooled", "one", "float32")]),
    ("timm:resnet50.a1_in1k:grid:flip", [ImagePart("timm", "resnet50.a1_in1k", "grid", "flip")]),
    ("transformers:/a:b/c:pooled:one", [ImagePart("transformers", "/a:b/c", "pooled", "one")]),
    ("detector + lite0:pooled:one", [ImagePart("detector"), ImagePart("lite0", "", "pooled")]),
])
def test_specs_are_read(spec, expected):
    assert image_parts(spec, ("detector",)) == expected


def test_joined_regions_index_like_an_array(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(5, 2, 3, d)) for d in (4, 1)]
    joined, plain = JoinedRegions(parts), np.concatenate(parts, axis=-1)
    images, views = np.array([4, 0, 4]), np.array([1, 0, 0])
    assert joined.shape == plain.shape and len(joined) == 5 and joined.dtype == plain.dtype
    for index in [(images, views), images, (images, 0), slice(1, 3), 2]:
        np.testing.assert_array_equal(joined[index], plain[index])
    with pytest.raises(IndexError, match="last axis"):
        joined[0, 0, 0, 0]


def test_small_parts_are_joined_in_memory_and_large_ones_on_access(monkeypatch):
    parts = [np.ones((2, 1, 1, 3), np.float16), np.zeros((2, 1, 1, 2), np.float16)]
    assert isinstance(join_regions(parts), np.ndarray)
    monkeypatch.setattr("itr_study.features.dataset.IN_MEMORY", 10)
    assert isinstance(join_regions(parts), JoinedRegions)
    assert join_regions(parts[:1]) is parts[0]
