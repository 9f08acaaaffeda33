"""Notebook 14: what learns of a text encoder, and weights between two models."""

import copy

import numpy as np
import pytest
import torch

import itr_study as itr
from itr_study.data.batches import InputSpec
from itr_study.lab.studies import nb14_fine_tuning as tuning
from itr_study.lab.studies.bases import base
from itr_study.lab.studies.plans import choose
from itr_study.models.text import build_text

WORDS, WIDTH = 30, 8


def small(tuned: int | None = None) -> torch.nn.Module:
    torch.manual_seed(0)
    return build_text("transformer", InputSpec(vocabulary=WORDS), 5, WIDTH, 0.0, tuned)


def stepped(net: torch.nn.Module) -> set[str]:
    """Which parameters one step changes, as "layer.0" or their first name."""
    before = copy.deepcopy(net.state_dict())
    tokens, lengths = torch.tensor([[3, 4, 5], [6, 7, 0]]), torch.tensor([3, 2])
    optimizer = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], 1.0)
    net.train()(tokens, lengths).square().sum().backward()
    optimizer.step()
    return {name for name, values in net.state_dict().items() if (values != before[name]).any()}


@pytest.mark.parametrize("tuned, layers, words", [(0, set(), False), (1, {"1"}, False),
                                                  (2, {"0", "1"}, False), (None, {"0", "1"}, True)])
def test_a_step_changes_the_layers_that_learn_and_no_other(tuned, layers, words):
    changed = stepped(small(tuned))
    assert {name.split("layer.")[1][0] for name in changed if "layer." in name} == layers
    assert any("embeddings" in name for name in changed) == words
    assert "linear.weight" in changed


def test_layers_that_do_not_learn_have_no_dropout():
    tokens, lengths = torch.tensor([[3, 4, 5]]), torch.tensor([3])
    for tuned, same in ((0, True), (None, False)):
        net = small(tuned).train()
        assert torch.equal(net(tokens, lengths), net(tokens, lengths)) == same


def test_padding_changes_no_vector():
    net = small().eval()
    alone = net(torch.tensor([[3, 4]]), torch.tensor([2]))
    padded = net(torch.tensor([[3, 4, 0, 0], [5, 6, 7, 8]]), torch.tensor([2, 4]))
    torch.testing.assert_close(alone[0], padded[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(padded[0], padded[1])


@pytest.mark.parametrize("more, expected", [
    ({"tuned": 3}, "at most 2"), ({"tuned": -1}, "tuned must be"), ({"tuned": 1.5}, "tuned must"),
    ({"text": "gru", "tuned": 1}, "tuned is for text = minilm"),
    ({"word_size": 6}, "a multiple of 4")])
def test_what_cannot_be_built_is_refused_in_words(more, expected):
    with pytest.raises(ValueError, match=expected):
        itr.MODELS["vsepp"](InputSpec(region_size=4, vocabulary=WORDS),
                            **{"size": 5, "text": "transformer", "word_size": WIDTH} | more)


def test_all_layers_are_the_setting_best_of_photographs():
    parameters = choose("14_fine_tuning", "full", dataset="flickr8k")
    first = tuning.way_config("flickr8k", tuning.ALL, "hardest", parameters)
    assert first == base("flickr8k", "best")


@pytest.mark.slow
def test_weights_between_two_models_are_measured_at_their_ends(tmp_path, store):
    study = itr.Study("14_fine_tuning", {
        "profile": "smoke", "losses": ["hardest", "info_nce"], "shares": [0.0, 0.5, 1.0],
        "figures": str(tmp_path), "workers": 1,
        "__annotations__": {}})
    runs = [run for run in study.arms(tuning.way_arms) if run.factors["loss"] == "hardest"]
    rows = study.train(runs).set_index("arm")
    table = tuning.mixed(study, tuning.mixtures(runs)).set_index("share")
    assert table.rsum[0.0] == pytest.approx(rows.test_rsum["text_frozen/hardest"], abs=1e-6)
    assert table.rsum[1.0] == pytest.approx(rows.test_rsum["text_all/hardest"], abs=1e-6)
    assert np.isfinite(table.agreement).all() and table.agreement.nunique() == 3


def test_losses_without_their_reference_are_refused():
    with pytest.raises(ValueError, match="losses must hold info_nce, with which the others"):
        choose("14_fine_tuning", "quick", losses=["top5", "hardest"])
