"""timm and transformers models: tiny random ones, saved to a folder and found again."""

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from itr_study.encoders import IMAGE_ENCODERS, WeightsError, trainable_image_encoder
from itr_study.encoders.base import working_dtype
from itr_study.encoders.vision import extra_tokens, places
from itr_study.features.images import FrozenImages
from itr_study.features.specs import image_parts
from tests.encoders.fakes import picture

needs_timm = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")
PICTURES = [picture(f"v{i}") for i in range(3)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of models; those of timm only where it is installed (the extra "vision")."""
    root = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    if find_spec("timm"):
        save_timm(root / "timm-cnn", "test_resnet", 64)
        save_timm(root / "timm-vit", "test_vit", 64)
    save_transformers(root)
    return root


def save_timm(folder, name, size):
    import timm

    extra = {"img_size": size} if "vit" in name else {}
    model = timm.create_model(name, pretrained=False, **extra)
    model.pretrained_cfg["input_size"] = (3, size, size)
    timm.models.save_for_hf(model, folder, safe_serialization=True,
                            model_args=extra or None)


def save_transformers(root):
    from transformers import ResNetConfig, ResNetModel, ViTConfig, ViTImageProcessor, ViTModel

    processor = ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.5] * 3,
                                  image_std=[0.25] * 3)
    cnn = ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1],
                                   layer_type="basic"))
    vit = ViTModel(ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                             intermediate_size=16, image_size=32, patch_size=8))
    for name, model in (("hf-cnn", cnn), ("hf-vit", vit)):
        model.save_pretrained(root / name)
        processor.save_pretrained(root / name)


def test_a_folder_is_read_without_a_bar(folders, capfd):
    IMAGE_ENCODERS["transformers"](f"{folders}/hf-cnn")
    trainable_image_encoder(f"transformers:{folders}/hf-cnn")
    assert "Loading weights" not in capfd.readouterr().err


@pytest.mark.parametrize("name, regions, width", [
    pytest.param("timm:{}/timm-cnn", 4, None, marks=needs_timm),
    pytest.param("timm:{}/timm-vit", 16, 64, marks=needs_timm),
    ("transformers:{}/hf-cnn", 16, 12), ("transformers:{}/hf-vit", 16, 16)])
def test_a_folder_gives_grid_and_pooled(folders, name, regions, width):
    name = name.format(folders)
    grid = FrozenImages(image_parts(f"{name}:grid:flip")[0]).encode(PICTURES)
    pooled = FrozenImages(image_parts(f"{name}:pooled:flip")[0]).encode(PICTURES)
    width = width or grid.shape[-1]
    assert grid.shape == (3, 2, regions, width) and pooled.shape == (3, 2, 1, width)
    assert np.isfinite(grid).all() and len({p.tobytes() for p in pooled.reshape(6, -1)}) == 6


def test_transformers_grid_is_the_last_state_without_the_class_token(folders):
    from transformers import ViTModel

    encoder = IMAGE_ENCODERS["transformers"](f"{folders}/hf-vit")
    assert encoder.size == 32
    pixels = torch.randint(0, 256, (2, 3, 32, 32))
    model = ViTModel.from_pretrained(folders / "hf-vit").eval()
    with torch.inference_mode():
        states = model(pixel_values=(pixels / 255 - 0.5) / 0.25).last_hidden_state
        network = encoder.network()
        torch.testing.assert_close(network(pixels), states[:, 1:])
        torch.testing.assert_close(network.pooled(pixels), states[:, 0])


def test_lower_precision_agrees(folders):
    spec = f"transformers:{folders}/hf-cnn:pooled:one"
    exact = FrozenImages(image_parts(spec)[0]).encode(PICTURES)
    fast = FrozenImages(image_parts(spec + ":bfloat16")[0]).encode(PICTURES)
    taken = working_dtype("bfloat16", "cpu")  # float32 where the CPU would emulate it
    assert fast.dtype == np.float32 and np.array_equal(exact, fast) == (taken == torch.float32)
    np.testing.assert_allclose(exact, fast, atol=0.05 * np.abs(exact).max())


def test_trainable_has_gradients(folders):
    network = trainable_image_encoder(f"transformers:{folders}/hf-cnn")
    regions = network(torch.zeros(2, 3, 32, 32))
    assert regions.shape == (2, 16, network.width)
    regions.mean().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())
    with torch.autocast("cpu", torch.bfloat16):  # as `training.loop.forward` does
        assert network(torch.zeros(2, 3, 32, 32)).dtype == torch.bfloat16


def test_weights_are_found_under_home(folders, monkeypatch, tmp_path):
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path))
    (tmp_path / "weights").mkdir()
    os.symlink(folders / "hf-cnn", tmp_path / "weights" / "my-net")
    assert IMAGE_ENCODERS["transformers"]("my-net").size == 32


def test_other_weights_have_another_key(folders, tmp_path):
    import shutil

    copy = shutil.copytree(folders / "hf-cnn", tmp_path / "copy")
    same = IMAGE_ENCODERS["transformers"](str(copy)).settings
    assert same == IMAGE_ENCODERS["transformers"](f"{folders}/hf-cnn").settings
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\x01")
    assert IMAGE_ENCODERS["transformers"](str(copy)).settings != same


@pytest.mark.parametrize("name", [
    pytest.param("timm", marks=needs_timm), "transformers"])
def test_absent_weights_say_where_was_looked(name, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path))
    with pytest.raises(WeightsError, match="no usable weights for 'resnet10t'.*weights.*hub.*"
                                           "give a folder"):
        IMAGE_ENCODERS[name]("resnet10t").network()


def test_missing_package_gives_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(WeightsError, match="pip install timm"):
        IMAGE_ENCODERS["timm"]("resnet10t").network()


def test_a_name_is_required():
    with pytest.raises(ValueError, match="needs the name of a model"):
        IMAGE_ENCODERS["timm"]()


def test_places_of_each_layout():
    maps = torch.arange(2 * 5 * 3 * 3.0).view(2, 5, 3, 3)
    expected = maps.flatten(2).transpose(1, 2)
    torch.testing.assert_close(places(maps, 5), expected)
    torch.testing.assert_close(places(maps.permute(0, 2, 3, 1), 5), expected)
    tokens = torch.cat([torch.zeros(2, 2, 5), expected], dim=1)
    torch.testing.assert_close(places(tokens, 5), expected)
    assert [extra_tokens(n) for n in (49, 50, 261)] == [0, 1, 5]
    with pytest.raises(WeightsError, match="last map"):
        places(torch.zeros(2, 7, 3, 4), 5)
