"""The text tower of a CLIP or SigLIP in VSE++: where it begins, what learns, a whole run."""

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import itr_study as itr
from itr_study.lab.runs import data
from itr_study.lab.runs.data import data_key, dataset_of
from itr_study.training.loop import forward
from tests.small_runs import SMALL
from tests.tiny_clip import PROJECTED, save_tiny_clip, save_tiny_siglip

pytest.importorskip("transformers", reason="the extra 'offline'")
MODELS = {"clip": (save_tiny_clip, PROJECTED), "siglip": (save_tiny_siglip, 32)}


@pytest.fixture(scope="module", params=MODELS)
def made(request, tmp_path_factory):
    """A folder, the size of its vectors, and scenes encoded for a frozen image tower."""
    save, size = MODELS[request.param]
    root = tmp_path_factory.mktemp("towers")
    folder = save(root / request.param)
    encoded = itr.encode_dataset(
        itr.load_dataset("scenes", train=30, dev=10, test=10), f"clip:{folder}:pooled:one",
        f"wordpiece:clip:{folder}", f"clip:{folder}", store=root)
    return folder, size, encoded


def vsepp(made, **more):
    folder, size, encoded = made
    torch.manual_seed(0)
    return itr.MODELS["vsepp"](encoded.inputs, **{"text": f"clip:{folder}", "size": size} | more)


def test_training_begins_with_the_scores_of_the_model(made):
    test = made[2].splits["test"]
    scores = test.regions[:, 0, 0].astype(np.float32) @ test.sentences.T
    assert scores.std() > 0.01
    for size, same in ((made[1], True), (made[1] + 1, False)):
        net = vsepp(made, size=size).eval()
        with torch.no_grad():
            ours = (net.encode_images(test.image_batch(np.arange(test.n_images)))
                    @ net.encode_texts(test.text_batch(np.arange(test.n_texts))).T).numpy()
        assert np.allclose(ours, scores, atol=2e-3) == same  # features are kept in float16


@pytest.mark.parametrize("tuned, layers", [(0, set()), (1, {"1"}), (None, {"0", "1"})])
def test_a_step_changes_the_layers_that_learn_and_no_other(made, tuned, layers):
    net = vsepp(made, tuned=tuned)
    before, batch = copy.deepcopy(net.state_dict()), made[2].splits["train"].pair_batch(range(9))
    optimizer = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], 10.0)
    net.train()
    itr.LOSSES["info_nce"]()(net(batch).scores, batch.match.float()).backward()
    optimizer.step()
    changed = {name for name, values in net.state_dict().items() if (values != before[name]).any()}
    assert {name.split("layers.")[1][0] for name in changed if "layers." in name} == layers
    assert not any("embeddings" in name for name in changed)
    assert any("final_layer_norm" in name for name in changed)
    assert {"text.linear.weight", "image.linear.weight"} <= changed


def test_joined_texts_are_none_of_a_tower_which_reads_the_first_alone(made):
    batch = made[2].splits["train"].pair_batch(range(9))
    with pytest.raises(ValueError, match="no tower of a CLIP, which reads the first text alone"):
        forward(vsepp(made), batch, joins=True)


def test_a_copy_and_its_weights_compute_the_same(made):
    net, batch = vsepp(made).eval(), made[2].splits["test"].pair_batch(range(4))
    other = vsepp(made, tuned=1).eval()
    other.load_state_dict(net.state_dict())
    clone = copy.deepcopy(net)
    with torch.no_grad():
        expected = net(batch).scores
        torch.testing.assert_close(clone(batch).scores, expected)
        torch.testing.assert_close(other(batch).scores, expected)
        for part in net.parameters():
            part.mul_(1.5)
        torch.testing.assert_close(clone(batch).scores, expected)


@pytest.mark.parametrize("more, told", [
    ({"tuned": 3}, "at most 2"), ({"word_dropout": 0.1}, "word_dropout"),
    ({"text": "clip:"}, "no usable weights|needs the name"), ({"text": 3}, "text must be one of")])
def test_what_cannot_be_is_refused(made, more, told):
    with pytest.raises(ValueError, match=told):
        vsepp(made, **more)


def test_tokens_of_another_kind_are_refused(made):
    words = itr.encode_dataset(itr.load_dataset("scenes", train=30, dev=10, test=10))
    with pytest.raises(ValueError, match="needs tokens='wordpiece:clip:"):
        vsepp((*made[:2], words))


@pytest.mark.slow
@pytest.mark.parametrize("images", ["clip:mine:pooled:one", "pixels:clip:mine"])
def test_a_run_from_end_to_end_is_another_with_other_weights(images, store, monkeypatch):
    file = save_tiny_clip(store / "weights" / "mine") / "model.safetensors"
    config = SMALL.with_(images=images, tokens="wordpiece:clip:mine", sentences=None, model="vsepp",
                         model_arguments={"text": "clip:mine", "size": PROJECTED, "tuned": 1},
                         **{"settings.learning_rate": 1e-3})
    (row,) = itr.sweep([config], workers=0).to_dict("records")
    assert row["status"] == "done" and 0 < row["test_rsum"] <= 600
    key = data_key(config, dataset_of(config))
    save_file({name: values * 1.5 for name, values in load_file(file).items()}, file,
              {"format": "pt"})
    monkeypatch.setattr(data, "_keys", {})  # of this process, in which folders stay as they are
    assert data_key(config, dataset_of(config)) != key
