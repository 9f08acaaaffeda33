"""DAN: by hand, against loops, and whatever the padding; its attention."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import encode, evaluate, score
from itr_study.losses import LOSSES
from itr_study.models import MODELS
from itr_study.models.dan import Glimpses, MemoryAttention
from itr_study.training.loop import fit, forward
from itr_study.training.objective import Objective
from itr_study.training.settings import Settings
from tests.models.test_cross_attention import rectangle, tokens_of
from tests.oracles import dan as slow
from tests.small import SmallData, with_regions

INPUTS = InputSpec(region_size=6, vocabulary=20)


def model(seed=0, **arguments):
    torch.manual_seed(seed)
    return MODELS["dan"](INPUTS, **{"size": 8, "word_size": 5} | arguments)


def test_attention_by_hand():
    """What is remembered, tanh(1) and tanh(0), lets the first entry of a place count alone."""
    look = MemoryAttention(2, 2)
    with torch.no_grad():
        for linear in (look.place, look.memory):
            linear.weight.copy_(torch.eye(2))
        look.weight.weight.copy_(torch.tensor([[2.0, 5]]))
    places = torch.tensor([[[1.0, 3], [0, 7], [9, 9]]])
    found = look(places, torch.tensor([[True, True, False]]), torch.tensor([[1.0, 0]]))
    first = math.exp(2 * math.tanh(1) ** 2)
    assert found[0].tolist() == pytest.approx([first / (first + 1), 1 / (first + 1), 0])


def test_each_look_remembers_what_was_seen_before():
    """Two steps: the memory is v_0, then v_0 + v_1."""
    asked = []

    class Remembers(torch.nn.Module):
        def forward(self, places, exists, memory):
            asked.append(memory[0].tolist())
            return torch.tensor([[0.25, 0.75]])

    net = Glimpses(2, 2, 2, mapped=False)
    net.looks = torch.nn.ModuleList([Remembers(), Remembers()])
    seen, weights = net(torch.tensor([[[4.0, 0], [0, 4]]]), torch.tensor([[True, True]]))
    assert seen[0].tolist() == [[2, 2], [1, 3], [1, 3]] and weights.shape == (1, 2, 2)
    assert asked == [[2, 2], [3, 5]]


@pytest.mark.parametrize("arguments", [{}, {"text": "gru"}, {"steps": 0}, {"steps": 3}])
def test_value_and_gradient_are_those_of_the_equations(arguments):
    images, texts = rectangle()
    images = replace(images, regions=images.regions.double())
    results, there = [], [one[exists] for one, exists in
                          zip(images.regions, images.region_mask, strict=True)]
    for version in ("fast", "slow"):
        net = model(**arguments).double()
        if version == "fast":
            found = net.score(net.encode_images(images), net.encode_texts(texts)).scores
        else:
            found = slow.scores(net, there, tokens_of(texts))
        weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
        (found * weights).sum().backward()
        results.append([found.detach(), *(p.grad for p in net.parameters())])
    assert results[0][0].std() > 1e-2 and all(grad.any() for grad in results[0][1:])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-9)


def test_padding_changes_nothing():
    images, texts = rectangle()
    rubbish, none = torch.full((3, 2, 6), 1e3), torch.zeros(3, 2, dtype=torch.bool)
    wider = (replace(images, regions=torch.cat([images.regions, rubbish], dim=1),
                     region_mask=torch.cat([images.region_mask, none], dim=1)),
             replace(texts, tokens=pad(texts.tokens, (0, 3))))
    net, found = model(), []
    for one, other in ((images, texts), wider):
        net.zero_grad()
        scores = net.score(net.encode_images(one), net.encode_texts(other)).scores
        scores[0, 0].backward()
        found.append([scores.detach(), *(p.grad.clone() for p in net.parameters())])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)
    split = with_regions(SmallData().splits["test"])
    whole = score(net, *encode(net, split))
    one = net.eval().score(net.encode_images(split.image_batch(np.array([4]))),
                           net.encode_texts(split.text_batch(np.array([7])))).scores
    torch.testing.assert_close(whole[4, 7], one[0, 0])


def test_attention_is_a_map_of_each_step():
    images, texts = rectangle()
    net = model().eval()
    attention = net.score(net.encode_images(images), net.encode_texts(texts)).attention
    assert attention.shape == (3, 2, 5) and not attention[0, :, 1].any()  # it has a region less
    torch.testing.assert_close(attention.sum(dim=2), torch.ones(3, 2))
    for i, exists in enumerate(images.region_mask):
        expected = torch.tensor(slow.image_of(net.requires_grad_(False),
                                              images.regions[i][exists])[1])
        torch.testing.assert_close(attention[i][:, exists], expected)


def test_odd_items_are_finite():
    """One region and one word, a page, no region at all, half precision."""
    split, net = SmallData().splits["train"], model()
    one = split.pair_batch(np.arange(0, 9, 3))
    one = replace(one, tokens=one.tokens[:, :1], lengths=torch.ones_like(one.lengths))
    assert (net(one).attention == 1).all()
    images, texts = rectangle()
    images.region_mask[1] = False
    texts = replace(texts, tokens=torch.full((1, 300), 3), lengths=torch.tensor([300]))
    scores = net.score(net.encode_images(images), net.encode_texts(texts)).scores
    scores.sum().backward()
    assert scores.isfinite().all() and all(p.grad.isfinite().all() for p in net.parameters())
    assert not net.encode_images(images)[1][1].any()  # nothing is looked at
    half = forward(net.eval(), one, "bfloat16").scores
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, net(one).scores, atol=0.03, rtol=0)


def test_regions_words_and_features_are_dropped_in_training_alone():
    one = with_regions(SmallData().splits["train"]).pair_batch(np.arange(0, 15, 3))
    free = model().eval()(one).scores
    for option in ("dropout", "image_dropout", "region_dropout", "word_dropout"):
        net = model(**{option: 0.5})
        assert torch.equal(net.eval()(one).scores, free)
        assert not torch.equal(net.train()(one).scores, net(one).scores)


def test_it_learns_a_few_pairs_by_heart():
    torch.manual_seed(0)
    net, split = model(size=32), with_regions(SmallData().splits["train"])
    one = split.pair_batch(np.arange(0, 30, 3))
    optimizer, loss = torch.optim.Adam(net.parameters(), 0.01), LOSSES["triplet_sum"]()
    for _ in range(60):
        value = loss(net(one).scores, one.match.float())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    scores = net.eval()(one).scores
    assert value < 0.05
    assert (scores.argmax(dim=1) == torch.arange(10)).all()
    assert (scores.argmax(dim=0) == torch.arange(10)).all()


def test_it_trains_in_the_loop():
    data = SmallData()
    data.splits = {key: with_regions(split) for key, split in data.splits.items()}
    net = model(size=32, dropout=0.1)
    before = evaluate(net, data.splits["train"]).table["rsum"]
    fit(net, Objective("triplet_sum"), data, Settings(epochs=8, batch_size=24, learning_rate=0.01))
    assert evaluate(net, data.splits["train"]).table["rsum"] > before + 100


@pytest.mark.parametrize(("arguments", "message"), [
    ({"size": 0}, "size"), ({"steps": -1}, "steps"), ({"steps": 17}, "steps"),
    ({"text": "minilm"}, "text of dan.*gru, bigru"), ({"word_size": 0}, "word_size"),
    ({"region_dropout": 0.95}, "region_dropout")])
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        model(**arguments)


@pytest.mark.parametrize(("inputs", "message"), [
    (InputSpec(vocabulary=20), "needs region features; set images"),
    (InputSpec(region_size=6), "reads tokens, but the data has none")])
def test_data_without_regions_or_words_is_refused(inputs, message):
    with pytest.raises(ValueError, match=message):
        MODELS["dan"](inputs)
