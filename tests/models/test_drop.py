"""Regions and words left out in training: by hand, by chance, and whatever the padding."""

import pytest
import torch

from itr_study.models.drop import drop_words, keep_some

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
    def drawn(mask):
        torch.manual_seed(3)
        return keep_some(mask, 0.5)

    padded = torch.cat((MASK, torch.zeros(3, wider, dtype=torch.bool)), dim=1)
    assert torch.equal(drawn(padded), torch.cat((drawn(MASK), padded[:, 5:]), dim=1))
    torch.manual_seed(4)
    tokens, lengths = drop_words(TOKENS, LENGTHS, 0.5)
    torch.manual_seed(4)
    more = torch.cat((TOKENS, torch.zeros(3, wider, dtype=torch.int64)), dim=1)
    again, as_long = drop_words(more, LENGTHS, 0.5)
    assert torch.equal(again[:, :4], tokens) and torch.equal(as_long, lengths)
    assert not again[:, 4:].any()
