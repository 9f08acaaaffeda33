"""Regions and words left out in training: by hand, by chance, and whatever the padding."""

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.models import MODELS
from itr_study.models.drop import drop_features, drop_words, keep_some
from tests.small import SmallData, with_regions

MASK = torch.tensor([[True] * 5, [True, True, False, False, False], [False] * 5])
TOKENS = torch.tensor([[7, 8, 9, 5], [6, 0, 0, 0], [3, 4, 0, 0]])
LENGTHS = torch.tensor([4, 1, 2])


def given(monkeypatch, draws):
    """The next numbers drawn, items down and places across."""
    monkeypatch.setattr(torch, "rand", lambda shape, device: torch.tensor(draws).T)


def test_what_is_drawn_below_the_share_is_left_out_and_never_all(monkeypatch):
    given(monkeypatch, [[0.9, 0.1, 0.5, 0.2, 0.19], [0.1, 0.15, 0.9, 0.9, 0.9], [0.5] * 5])
    assert keep_some(MASK, 0.2).tolist() == [
        [True, False, True, True, False],  # 0.2 is not below 0.2
        [False, True, False, False, False],  # both are below: the larger one stays
        [False] * 5]  # an image without a region stays one


def test_words_move_up_in_their_order(monkeypatch):
    given(monkeypatch, [[0.9, 0.1, 0.3, 0.4], [0.1, 0.9, 0.9, 0.9], [0.1, 0.9, 0.1, 0.1]])
    tokens, lengths = drop_words(TOKENS, LENGTHS, 0.2)
    assert tokens.tolist() == [[7, 9, 5, 0], [6, 0, 0, 0], [4, 0, 0, 0]]
    assert lengths.tolist() == [3, 1, 1]


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_about_the_share_is_left_out(share):
    torch.manual_seed(0)
    mask = torch.arange(30) < torch.tensor([[20]] * 2000)
    kept = keep_some(mask, share)
    assert not kept[:, 20:].any()
    assert kept[:, :20].float().mean() == pytest.approx(1 - share, abs=0.01)
    places = kept[:, :20].float().mean(dim=0)  # every place alike
    assert places.min() > 1 - share - 0.05 and places.max() < 1 - share + 0.05


def test_one_stays_however_large_the_share():
    torch.manual_seed(0)
    mask = torch.arange(9) < torch.randint(1, 10, (500, 1))
    kept = keep_some(mask, 0.9)
    assert (kept.sum(dim=1) >= 1).all() and not (kept & ~mask).any()
    tokens, lengths = drop_words(torch.arange(1, 10).expand(500, 9) * mask, mask.sum(dim=1), 0.9)
    assert torch.equal(lengths, (tokens > 0).sum(dim=1)) and lengths.min() == 1
    assert ((tokens[:, 1:] > tokens[:, :-1]) | (tokens[:, 1:] == 0)).all()  # in their order


def test_nothing_is_left_out_at_0():
    assert torch.equal(keep_some(MASK, 0.0), MASK)
    tokens, lengths = drop_words(TOKENS, LENGTHS, 0.0)
    assert torch.equal(tokens, TOKENS) and torch.equal(lengths, LENGTHS)


@pytest.mark.parametrize("wider", [1, 7, 60])
def test_padding_changes_nothing_of_what_is_drawn(wider):
    def drawn(function, *given):
        torch.manual_seed(3)
        return function(*given, 0.5)

    lengths = torch.randint(1, 9, (20,), generator=torch.Generator().manual_seed(0))
    mask, longer = (torch.arange(width) < lengths[:, None] for width in (8, 8 + wider))
    kept = drawn(keep_some, longer)
    assert torch.equal(kept[:, :8], drawn(keep_some, mask)) and not kept[:, 8:].any()
    (tokens, left), (padded, as_many) = (
        drawn(drop_words, torch.arange(1, exists.shape[1] + 1) * exists, lengths)
        for exists in (mask, longer))
    assert torch.equal(padded[:, :8], tokens) and torch.equal(as_many, left)
    assert not padded[:, 8:].any()


def test_features_are_left_out_of_all_vectors_of_an_item_alike():
    torch.manual_seed(0)
    dropped = drop_features(torch.ones(50, 4, 200), 0.2)
    assert dropped.unique().tolist() == [0.0, 1.25]
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert (dropped[:, 0] == 0).float().mean() == pytest.approx(0.2, abs=0.01)
    assert not torch.equal(dropped[0], dropped[1])


@pytest.mark.parametrize("name", ["saf", "sgr", "dan", "vse_infinity"])
def test_a_model_maps_regions_that_lack_the_same_features(name):
    """Of one image; and none when it is not trained. DAN reads their mean."""
    split = with_regions(SmallData().splits["train"])
    one = split.pair_batch(np.arange(0, 18, 3))
    one.regions.fill_(1.0)
    net = MODELS[name](InputSpec(region_size=6, vocabulary=20), size=8, word_size=5,
                       image_dropout=0.5)
    read = []
    first = next(part for part in net.image.modules() if getattr(part, "in_features", 0) == 6)
    first.register_forward_pre_hook(lambda _, given: read.append(given[0].detach()))
    torch.manual_seed(0)
    net.train().encode_images(one), net.eval().encode_images(one)
    trained, evaluated = (values.reshape(6, -1, 6) for values in read)
    assert (evaluated - 1).abs().max() < 1e-6
    assert set(trained.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(trained, trained[:, :1].expand_as(trained))
