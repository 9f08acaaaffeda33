"""Models whose words look at regions: by hand, against loops, and whatever the padding, the blocks
and the order."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import encode, evaluate, score, take
from itr_study.losses import LOSSES
from itr_study.models import MODELS, cross_attention
from itr_study.models.cross_attention import (
    NodeNorm,
    Places,
    Similarities,
    WholePool,
    word_attention,
    words_at,
)
from itr_study.training.loop import fit, forward
from itr_study.training.objective import Objective
from itr_study.training.settings import Settings
from tests.oracles import sgraf as slow
from tests.small import SmallData, with_regions

INPUTS = InputSpec(region_size=6, vocabulary=20)
NAMES = ["saf", "sgr"]


def model(name, seed=0, **arguments):
    torch.manual_seed(seed)
    return MODELS[name](INPUTS, **{"size": 8, "similarity": 5, "word_size": 5} | arguments)


def batch(regions=4, images=5):
    """As many texts as images, of 1 to 5 words; every third image has a region less."""
    split = SmallData().splits["train"]
    one = with_regions(split, regions) if regions > 1 else split
    return one.pair_batch(np.arange(0, 3 * images, 3))


def rectangle(images=(0, 1, 2), texts=(0, 4, 5, 8, 20)):
    """(batch of images, batch of texts)."""
    split = with_regions(SmallData().splits["train"])
    return split.image_batch(np.array(images)), split.text_batch(np.array(texts))


def tokens_of(texts):
    return [row[:length].tolist() for row, length in
            zip(texts.tokens, texts.lengths.tolist(), strict=True)]


def value_and_gradients(name, training, images, texts):
    """Scores of a new model, and what the sum of their squares asks of every weight."""
    net = model(name).train(training)
    scores = net.score(net.encode_images(images), net.encode_texts(texts)).scores
    scores.square().sum().backward()
    return [scores.detach(), *(p.grad for p in net.parameters())]


# By hand

def test_attention_by_hand():
    """One word beside another: cosines (0.6, 0.8) and (0.8, -0.6 -> -0.06) over words have lengths
    1 and sqrt(0.64 + 0.0036); λ = 2."""
    cosines = torch.tensor([[[0.6, 0.8], [0.8, -0.6]]])  # a pair, two regions, two words
    found = word_attention(cosines, torch.tensor([[True, True]]), 2.0)
    length = math.sqrt(0.8**2 + 0.06**2)
    for word, logits in enumerate(((2 * 0.6, 2 * 0.8 / length), (2 * 0.8, 2 * -0.06 / length))):
        exps = [math.exp(logit) for logit in logits]
        assert found[0, :, word].tolist() == pytest.approx([e / sum(exps) for e in exps])
    one = word_attention(cosines, torch.tensor([[True, False]]), 2.0)
    assert one.tolist() == [[[1, 1], [0, 0]]]
    assert word_attention(cosines, torch.tensor([[False, False]]), 2.0).isfinite().all()


def test_similarity_vectors_by_hand():
    """One region, so that a word sees it whole: |(1, 0) - (0.6, 0.8)|² = (0.16, 0.64)."""
    net = Similarities(2, 2, 9.0)
    with torch.no_grad():
        net.words.weight.copy_(torch.tensor([[1.0, 0], [1, 1]]))
        net.wholes.weight.copy_(torch.tensor([[3.0, 0], [0, 1]]))
    images = Places(torch.tensor([[[1.0, 0]]]), torch.tensor([[True]]),
                                    torch.tensor([[1.0, 0]]))
    texts = Places(torch.tensor([[[0.6, 0.8]]]), torch.tensor([[True]]),
                                   torch.tensor([[0.0, 1]]))
    found = net(images, texts)[0, 0]
    assert found[0].tolist() == pytest.approx([3 / math.sqrt(10), 1 / math.sqrt(10)])
    assert found[1].tolist() == pytest.approx([0.16 / math.hypot(0.16, 0.8),
                                               0.8 / math.hypot(0.16, 0.8)])


def test_pooling_by_hand():
    """The mean (1/2, 1/2) asks (1, 0) and (0, 1) by K = (2, 0; 0, 0): sqrt(2) against 0."""
    pool = WholePool(2)
    with torch.no_grad():
        pool.key.weight.copy_(torch.tensor([[2.0, 0], [0, 0]]))
        pool.query.weight.copy_(torch.eye(2))
    vectors = torch.tensor([[[1.0, 0], [0, 1], [9, 9]]])
    found = pool(vectors, torch.tensor([[True, True, False]]))[0]
    first = math.exp(math.sqrt(2)) / (1 + math.exp(math.sqrt(2)))
    length = math.hypot(first, 1 - first)
    assert found.tolist() == pytest.approx([first / length, (1 - first) / length])


def test_batch_norm_by_hand_leaves_padding_out():
    """1, 3 and 5 exist: mean 3, variance 8/3, unbiased 4; a tenth of them is kept."""
    norm = NodeNorm()
    values = torch.tensor([[[1.0, 3], [5, 99]]])
    exists = torch.tensor([[True, True], [True, False]])
    found = norm(values, exists)[0]
    assert found[exists].tolist() == pytest.approx([-2 / math.sqrt(8 / 3), 0, 2 / math.sqrt(8 / 3)],
                                                   abs=1e-5)
    assert norm.mean.item() == pytest.approx(0.3)
    assert norm.variance.item() == pytest.approx(0.9 + 0.1 * 4)
    norm.eval()
    assert norm(torch.tensor([[[2.3]]]), torch.tensor([[True]])).item() == pytest.approx(
        2 / math.sqrt(1.3), abs=1e-4)


# Against the slow version

@pytest.mark.parametrize("text", ["gru", "bigru"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_value_and_gradient_are_those_of_the_equations(name, training, text):
    images, texts = rectangle()
    images = replace(images, regions=images.regions.double())
    results = []
    for version in ("fast", "slow"):
        net = model(name, text=text).double().train(training)
        if version == "fast":
            found = net.score(net.encode_images(images), net.encode_texts(texts)).scores
        else:
            found = slow.scores(net, [one[exists] for one, exists in
                                      zip(images.regions, images.region_mask, strict=True)],
                                tokens_of(texts))
        weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
        (found * weights).sum().backward()
        results.append([found.detach(), *(p.grad for p in net.parameters())])
    assert results[0][0].std() > 1e-4 and all(grad.any() for grad in results[0][1:])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-9)


# What must change nothing

@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [True, False])
def test_padded_regions_and_words_change_nothing(name, training):
    images, texts = rectangle()
    net, found = model(name).train(training), []
    rubbish, none = torch.full((3, 2, 6), 1e3), torch.zeros(3, 2, dtype=torch.bool)
    wider = (replace(images, regions=torch.cat([images.regions, rubbish], dim=1),
                     region_mask=torch.cat([images.region_mask, none], dim=1)),
             replace(texts, tokens=pad(texts.tokens, (0, 3))))
    for one, other in ((images, texts), wider):
        net.zero_grad()
        scores = net.score(net.encode_images(one), net.encode_texts(other)).scores
        scores[0, 0].backward()
        found.append([scores.detach(), *(p.grad.clone() for p in net.parameters())])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_on_a_cpu_words_that_exist_are_compared_and_no_padding():
    """Texts of 2, 0 and 3 words in 3 places each; another device is given all nine."""
    exists = torch.arange(3) < torch.tensor([2, 0, 3])[:, None]
    assert words_at(exists).tolist() == [0, 1, 6, 7, 8]
    net, images = Similarities(2, 2, 9.0), torch.eye(2).view(1, 2, 2)
    texts = Places(torch.ones(3, 3, 2), exists, torch.ones(3, 2))
    found = net(Places(images, torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 2)), texts)
    assert found[0, :, 1:].any(dim=2).tolist() == exists.tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [True, False])
def test_all_places_are_compared_to_the_same_scores(monkeypatch, name, training):
    """As on a device that is not to stop and count: there padding is compared, too."""
    images, texts = rectangle()
    found = []
    for places in (words_at, lambda exists: torch.arange(exists.numel())):
        monkeypatch.setattr(cross_attention, "words_at", places)
        found.append(value_and_gradients(name, training, images, texts))
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_codes_made_apart_and_joined_score_as_pairs_alone(name):
    """Padded by the joiner to the longest of the split, cut into blocks of any size."""
    net, split = model(name).eval(), with_regions(SmallData().splits["test"])
    whole = score(net, *encode(net, split))
    with torch.no_grad():
        alone = torch.tensor([[
            net.score(net.encode_images(split.image_batch(np.array([i]))),
                      net.encode_texts(split.text_batch(np.array([t])))).scores.item()
            for t in range(0, split.n_texts, 5)] for i in range(0, split.n_images, 3)])
    torch.testing.assert_close(whole[::3, ::5], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cells", [1, 300, 2**30])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_block_size_changes_neither_value_nor_gradient(monkeypatch, name, training, cells):
    """Nor does it where what lies between is made again for the gradient (cells = 1)."""
    images, texts = rectangle()
    results = []
    for size in (None, cells):
        if size:
            monkeypatch.setattr(cross_attention, "CPU_CELLS", size)
            monkeypatch.setattr(cross_attention, "KEPT_CELLS", size)
        results.append(value_and_gradients(name, training, images, texts))
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_texts_are_cut_to_their_own_length(monkeypatch):
    """Blocks of like length, every text once, none wider than its longest."""
    monkeypatch.setattr(cross_attention, "CPU_CELLS", 8 * 8 * 6)  # six words at a time
    lengths = [1, 1, 2, 2, 3, 7]
    exists = torch.arange(9) < torch.tensor(lengths)[:, None]
    texts = Places(torch.zeros(6, 9, 8), exists, torch.zeros(6, 8))
    found = [tuple(block.exists.shape) for block in cross_attention.text_blocks(texts, lengths)]
    assert found == [(3, 2), (2, 3), (1, 7)]
    assert all(block.exists.any(dim=0).all() for block in
               cross_attention.text_blocks(texts, lengths))


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_regions_and_of_items_changes_nothing(name):
    images, texts = rectangle()
    net = model(name).eval()
    codes, words = net.encode_images(images), net.encode_texts(texts)
    scores = net.score(codes, words).scores
    places = torch.tensor([3, 0, 4, 1, 2])
    turned = replace(images, regions=images.regions[:, places],
                     region_mask=images.region_mask[:, places])
    torch.testing.assert_close(net.score(net.encode_images(turned), words).scores, scores)
    i, t = torch.tensor([2, 0, 1]), torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(net.score(take(codes, i), take(words, t)).scores, scores[i][:, t])
    torch.testing.assert_close(forward(net, batch()).scores, net(batch()).scores)


# Odd input

@pytest.mark.parametrize("name", NAMES)
def test_one_region_and_one_word(name):
    images, texts = batch(1), batch(1)
    texts = replace(texts, tokens=texts.tokens[:, :1], lengths=torch.ones_like(texts.lengths))
    net = model(name)
    codes, words = net.encode_images(images), net.encode_texts(texts)
    scores = net.score(codes, words).scores
    scores.sum().backward()
    assert scores.isfinite().all() and all(p.grad.isfinite().all() for p in net.parameters())
    torch.testing.assert_close(codes.whole, codes.vectors[:, 0])
    torch.testing.assert_close(words.whole, words.vectors[:, 0])
    assert (net.attend(codes, words) == 1).all()


@pytest.mark.parametrize("name", NAMES)
def test_an_image_without_regions_is_finite(name):
    images, texts = rectangle()
    images.region_mask[1] = False
    net = model(name)
    codes, words = net.encode_images(images), net.encode_texts(texts)
    scores = net.score(codes, words).scores
    scores.sum().backward()
    assert scores.isfinite().all() and all(p.grad.isfinite().all() for p in net.parameters())
    assert not net.attend(take(codes, torch.ones(5, dtype=torch.int64)), words).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_as_long_as_a_page(name):
    net, images = model(name).eval(), rectangle()[0]
    tokens = torch.full((2, 400), 3)
    tokens[0, 1:] = 0
    texts = replace(rectangle()[1], tokens=tokens, lengths=torch.tensor([1, 400]))
    scores = net.score(net.encode_images(images), net.encode_texts(texts)).scores
    assert scores.shape == (3, 2) and scores.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_near(name):
    """Encoders alone compute in it; scores are float32."""
    net, one = model(name, size=32, similarity=16).eval(), batch()
    half = forward(net, one, "bfloat16").scores
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, net(one).scores, atol=0.02, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert net(one).scores.isfinite().all()
    forward(net.train(), one, "bfloat16").scores.sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())


@pytest.mark.parametrize("name", [*NAMES, "dan"])
def test_lengths_are_1_in_float32_in_half_precision_too(name):
    net, one = MODELS[name](INPUTS, size=64), batch()
    with torch.autocast("cpu", torch.bfloat16):
        codes = [net.encode_images(one), net.encode_texts(one)]
    for code in codes:
        vectors = code[-1] if name in NAMES else code if torch.is_tensor(code) else code[0]
        assert vectors.dtype == torch.float32
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)))


@pytest.mark.parametrize("steps", [1, 2])
def test_sgr_reads_the_node_of_the_wholes(steps):
    """With maps so wide that nodes stay apart: as they begin, two steps make all of them equal to
    six digits, so that any node would do."""
    images, texts = rectangle()
    images = replace(images, regions=images.regions.double())
    net = model("sgr", steps=steps).double().eval().requires_grad_(False)
    for step in net.pair.steps:
        step.inward.weight *= 30
    found = net.score(net.encode_images(images), net.encode_texts(texts)).scores
    there = [one[exists] for one, exists in zip(images.regions, images.region_mask, strict=True)]
    expected = slow.scores(net, there, tokens_of(texts))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_first_maps_keep_lengths(name):
    """Of a uniform distribution of variance 2 / (in + out)."""
    net = model(name, size=64, similarity=48)
    maps = [part for part in net.pair.modules() if isinstance(part, torch.nn.Linear)]
    assert len(maps) == {"saf": 4, "sgr": 3 + 3 * 3}[name]
    for part in maps:
        expected = (2 / (part.in_features + part.out_features)) ** 0.5
        assert part.weight.std().item() == pytest.approx(expected, rel=0.25)
        assert part.weight.abs().max() <= expected * 3**0.5


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_evaluation_do_not_depend_on_the_rest_of_the_batch(name):
    net, (images, texts) = model(name), rectangle()
    for _ in range(3):  # the running mean of SAF is no longer 0
        net.score(net.encode_images(images), net.encode_texts(texts))
    net.eval()
    codes, words = net.encode_images(images), net.encode_texts(texts)
    scores = net.score(codes, words).scores
    one = net.score(take(codes, torch.tensor([1])), take(words, torch.tensor([3]))).scores
    torch.testing.assert_close(one[0, 0], scores[1, 3])


@pytest.mark.parametrize("name", NAMES)
def test_regions_words_and_features_are_dropped_in_training_alone(name):
    free, one = model(name).eval()(batch()).scores, batch()
    for option in ("dropout", "image_dropout", "region_dropout", "word_dropout"):
        net = model(name, **{option: 0.5})
        assert torch.equal(net.eval()(one).scores, free)
        first, second = net.train()(one).scores, net(one).scores
        assert not torch.equal(first, second)


# Attention

@pytest.mark.parametrize("name", NAMES)
def test_attention_of_pairs_is_that_of_the_equations(name):
    images, texts = rectangle((0, 1, 2, 3, 4))
    net = model(name).eval().requires_grad_(False)
    codes, words = net.encode_images(images), net.encode_texts(texts)
    found = net.attend(codes, words)
    assert found.shape == (5, texts.tokens.shape[1], 5)
    tokens = tokens_of(texts)
    for p, weights in enumerate(found):
        exists = images.region_mask[p]
        places, _ = slow.image_of(net, images.regions[p][exists])
        expected = torch.tensor(slow.looks(slow.text_of(net, tokens[p])[0], places, 9.0))
        torch.testing.assert_close(weights[:len(tokens[p])][:, exists], expected)
        assert weights[:len(tokens[p])].sum(dim=1).tolist() == pytest.approx([1] * len(tokens[p]))
        assert not weights[len(tokens[p]):].any() and not weights[:, ~exists].any()
    assert found[2].sum(dim=1).unique().tolist() != [1]  # some word is padding
    with pytest.raises(ValueError, match="5 images and 4 texts"):
        net.attend(codes, take(words, torch.arange(4)))


# Learning

@pytest.mark.parametrize("name", NAMES)
def test_they_learn_a_few_pairs_by_heart(name):
    """R@1 of 100 % both ways: every text and image of ten finds its own. The rate falls: at the
    first one the last steps throw SGR back, on one processor and not on another."""
    torch.manual_seed(0)
    net, split = model(name, size=32, similarity=16), with_regions(SmallData().splits["train"])
    one = split.pair_batch(np.arange(0, 30, 3))
    optimizer, loss = torch.optim.Adam(net.parameters(), 0.005), LOSSES["triplet_sum"]()
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.01, 120)
    for _ in range(120):
        value = loss(net(one).scores, one.match.float())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        slower.step()
    scores = net.eval()(one).scores
    assert value < 0.05
    assert (scores.argmax(dim=1) == torch.arange(10)).all()
    assert (scores.argmax(dim=0) == torch.arange(10)).all()


@pytest.mark.parametrize("name", NAMES)
def test_they_train_in_the_loop(name):
    data = SmallData()
    data.splits = {key: with_regions(split) for key, split in data.splits.items()}
    net = model(name, size=32, similarity=16, dropout=0.1, region_dropout=0.1)
    before = evaluate(net, data.splits["train"]).table["rsum"]
    fit(net, Objective("triplet_sum"), data,
        Settings(epochs=12, batch_size=24, learning_rate=0.01))
    assert evaluate(net, data.splits["train"]).table["rsum"] > before + 80


@pytest.mark.parametrize("average", [1, 2])
def test_a_training_that_broke_off_goes_on_bit_equal(tmp_path, average):
    """With the running mean and variance of SAF, in the middle of the second epoch."""
    data, asked = SmallData(), []
    data.splits = {key: with_regions(split) for key, split in data.splits.items()}
    settings = Settings(epochs=3, batch_size=8, average=average)

    def breaks(scores, relevance):
        asked.append(1)
        if len(asked) == 13:  # of 9 steps an epoch
            raise RuntimeError("the machine is gone")
        return LOSSES["triplet_sum"]()(scores, relevance)

    nets = [model("saf", seed, dropout=0.1, region_dropout=0.2) for seed in (0, 0, 9)]
    fit(nets[0], LOSSES["triplet_sum"](), data, settings, seed=3)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        fit(nets[1], breaks, data, settings, seed=3, folder=tmp_path, save_seconds=0)
    fit(nets[2], breaks, data, settings, seed=3, folder=tmp_path)
    assert len(asked) == 13 + 15
    for name, value in nets[0].state_dict().items():
        assert torch.equal(nets[2].state_dict()[name], value), name


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("saf", {"size": 0}, "size"), ("sgr", {"similarity": 0}, "similarity"),
    ("sgr", {"steps": 0}, "steps"), ("sgr", {"steps": 17}, "steps"), ("saf", {"scale": 0}, "scale"),
    ("saf", {"text": "minilm"}, "text of saf.*gru, bigru"), ("sgr", {"word_size": 0}, "word_size"),
    ("saf", {"word_dropout": 0.95}, "word_dropout"), ("sgr", {"dropout": -1}, "dropout"),
    ("saf", {"image_dropout": 1.0}, "image_dropout"),
    ("sgr", {"region_dropout": 1.0}, "region_dropout")])
def test_bad_arguments_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        model(name, **arguments)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("inputs", "message"), [
    (InputSpec(vocabulary=20), "needs region features; set images"),
    (InputSpec(region_size=6), "reads tokens, but the data has none")])
def test_data_without_regions_or_words_is_refused(name, inputs, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name](inputs)
