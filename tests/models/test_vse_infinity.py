"""VSE∞: against loops written from the equations; masked, padded, and odd."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import evaluate
from itr_study.losses import LOSSES
from itr_study.models import MODELS
from itr_study.training.loop import Diverged, fit, forward
from itr_study.training.objective import Objective
from itr_study.training.settings import Settings
from tests.oracles import vse_infinity as slow
from tests.small import SmallData, with_regions

INPUTS = InputSpec(region_size=6, vocabulary=20)
OPTIONS = [{}, {"image_hidden": 7}, {"text": "gru"}, {"text_size": 12, "image_hidden": 3}]


def model(seed=0, **arguments):
    torch.manual_seed(seed)
    return MODELS["vse_infinity"](INPUTS, **{"size": 8, "word_size": 5} | arguments)


def batch(regions=5, images=6):
    split = SmallData().splits["train"]
    split = with_regions(split, regions) if regions > 1 else split
    return split.pair_batch(np.arange(0, 3 * images, 3))


def both(net, one):
    return torch.cat((net.encode_images(one), net.encode_texts(one)))


@pytest.mark.parametrize("arguments", OPTIONS)
def test_values_and_gradients_are_those_of_the_equations(arguments):
    one, found = batch(), []
    one = replace(one, regions=one.regions.double())

    def by_loops(net, one):
        images = [slow.image(net, list(regions[exists])) for regions, exists
                  in zip(one.regions, one.region_mask, strict=True)]
        texts = [slow.text(net, tokens[:length].tolist())
                 for tokens, length in zip(one.tokens, one.lengths, strict=True)]
        return torch.stack(images + texts)

    for version in (both, by_loops):
        net = model(**arguments).double().eval()
        vectors = version(net, one).double()
        (vectors * torch.linspace(-1, 2, vectors.numel()).view_as(vectors)).sum().backward()
        found.append([vectors.detach(), *(p.grad for p in net.parameters())])
    assert all(part.abs().sum() > 0 for part in found[0])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_padded_regions_and_words_and_the_order_of_regions_change_nothing():
    one, net = batch(), model(image_hidden=4, text_size=12).eval()
    rubbish = torch.full((len(one.regions), 3, 6), 1e3)
    order = torch.randperm(8)
    wider = replace(one, tokens=pad(one.tokens, (0, 4)),
                    regions=torch.cat((one.regions, rubbish), dim=1)[:, order],
                    region_mask=pad(one.region_mask, (0, 3))[:, order])
    torch.testing.assert_close(both(net, wider), both(net, one))


def test_padding_changes_nothing_of_what_is_left_out_in_training():
    one, net = batch(), model(region_dropout=0.5, word_dropout=0.5).train()
    wider = replace(one, tokens=pad(one.tokens, (0, 4)), regions=pad(one.regions, (0, 0, 0, 3)),
                    region_mask=pad(one.region_mask, (0, 3)))
    for side in ("images", "texts"):
        encode = {"images": net.encode_images, "texts": net.encode_texts}[side]
        codes = []
        for given in (one, wider):
            torch.manual_seed(3)
            codes.append(encode(given))
        torch.testing.assert_close(*codes)


def test_order_of_words_counts():
    """They are read in turn, though pooling is by size."""
    one, net = batch(), model().eval()
    turned = replace(one, tokens=one.tokens.flip(1), lengths=torch.full((6,), one.tokens.shape[1]))
    straight = replace(one, lengths=turned.lengths)
    assert (net.encode_texts(turned) - net.encode_texts(straight)).abs().max() > 1e-3


def test_one_region_and_one_word_are_mapped_and_nothing_else():
    one = batch(1)
    assert one.regions.shape[1] == 1
    one, net = replace(one, tokens=one.tokens[:, :1], lengths=torch.ones(6).long()), model().eval()
    torch.testing.assert_close(net.encode_images(one), torch.nn.functional.normalize(
        net.image.map(one.regions)[:, 0], dim=1))
    torch.testing.assert_close(net.encode_texts(one), torch.nn.functional.normalize(
        net.text.states(one.tokens, one.lengths)[1], dim=1))


def test_regions_and_words_are_left_out_in_training_alone():
    one = batch()
    free = both(model(region_dropout=0.0, word_dropout=0.0).train(), one)
    net = model()  # 0.2 of both
    assert net.region_dropout == net.text.word_dropout == 0.2
    assert torch.equal(both(net.eval(), one), free)
    net.train()
    images, texts = net.encode_images(one), net.encode_texts(one)
    assert not torch.equal(images, free[:6]) and not torch.equal(texts, free[6:])


@pytest.mark.parametrize(("option", "side"), [("image_dropout", slice(6)),
                                              ("dropout", slice(6, None))])
def test_features_and_word_vectors_are_dropped_in_training_alone(option, side):
    """Of its own side, and of that alone."""
    one, rest = batch(), {"region_dropout": 0.0, "word_dropout": 0.0}
    free, net = both(model(**rest), one), model(**rest, **{option: 0.5})
    assert torch.equal(both(net.eval(), one), free)
    apart = (both(net.train(), one) - free).abs().amax(dim=1) > 1e-3
    assert apart[side].all() and apart.sum() == 6


def test_words_that_are_left_out_are_as_if_they_had_not_been_written():
    net, one = model(word_dropout=0.5), batch()
    one = replace(one, tokens=torch.tensor([[5, 7, 9]] * 6), lengths=torch.full((6,), 3))
    parts = [[5], [7], [9], [5, 7], [5, 9], [7, 9], [5, 7, 9]]
    net.eval()
    known = torch.cat([net.encode_texts(replace(one, tokens=torch.tensor([part]),
                                                lengths=torch.tensor([len(part)])))
                       for part in parts])
    found = torch.cat([net.train().encode_texts(one) for _ in range(20)])
    apart = (found[:, None] - known).abs().amax(dim=2)
    assert apart.amin(dim=1).max() < 1e-6 and (apart.amin(dim=0) < 1e-6).all()


def test_half_precision_is_near():
    net, one = model(size=64, image_hidden=32).eval(), batch()
    near = forward(net, one, "bfloat16").scores
    torch.testing.assert_close(near, net(one).scores, atol=0.03, rtol=0)
    assert near.dtype == torch.float32 and not torch.equal(near, net(one).scores)


@pytest.mark.parametrize("seed", range(2))
def test_it_learns_a_tiny_set_by_heart(seed):
    """One text an image, so that the one right answer can be learnt in both directions; warmed up
    by all negatives, with regions and words left out."""
    random = np.random.default_rng(seed)
    train = replace(SmallData().splits["train"], image_of_text=np.arange(16),
                    regions=random.normal(size=(16, 1, 4, 6)).astype(np.float32),
                    tokens=[random.integers(2, 20, 3 + i % 5) for i in range(16)])
    net, one = model(seed, size=32, word_size=16, image_hidden=32), train.pair_batch(np.arange(16))
    before, optimizer = evaluate(net, train).table, torch.optim.Adam(net.parameters(), 0.01)
    for step in range(100):
        loss = LOSSES["triplet_sum" if step < 50 else "triplet_hardest"]()
        optimizer.zero_grad()
        loss(net.train()(one).scores, one.match.float()).backward()
        optimizer.step()
    after = evaluate(net, train).table
    assert before["i2t_r1"] < 50 and before["t2i_r1"] < 50
    assert after["i2t_r1"] == after["t2i_r1"] == 100


def test_an_image_without_regions_harms_no_gradient():
    one, net = batch(), model()
    one.region_mask[1] = False
    vectors = net.encode_images(one)
    vectors.pow(3).sum().backward()
    assert not vectors[1].any() and vectors[0].any()
    assert all(p.grad.isfinite().all() for p in net.image.parameters())


def test_a_feature_that_is_no_number_ends_the_run_by_name():
    data = SmallData()
    data.splits = {name: with_regions(split) for name, split in data.splits.items()}
    data.splits["train"].regions[1:, :, 0, 2] = np.nan
    with pytest.raises(Diverged, match="epoch 1"):
        fit(model(), Objective("triplet_hardest"), data,
            Settings(epochs=1, batch_size=16, learning_rate=0.01))


@pytest.mark.parametrize(("arguments", "told"), [
    ({"size": 0}, "size must be an integer >= 1"), ({"word_size": 0.5}, "word_size must be an int"),
    ({"region_dropout": 0.95}, "region_dropout must be >= 0 and <= 0.9"),
    ({"word_dropout": -0.1}, "word_dropout must be >= 0"),
    ({"dropout": 1.0}, "dropout must be >= 0 and <= 0.9"),
    ({"image_dropout": 1}, "image_dropout must be >= 0 and <= 0.9"),
    ({"image_hidden": 0}, "image_hidden must be an integer >= 1"),
    ({"text_size": 2.5}, "text_size must be an integer"),
    ({"text": "minilm"}, "text of vse_infinity.*gru, bigru")])
def test_what_cannot_be_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        model(**arguments)


@pytest.mark.parametrize(("inputs", "told"), [
    (InputSpec(vocabulary=20), "needs region features; set images"),
    (InputSpec(region_size=6), "reads tokens, but the data has none")])
def test_data_without_regions_or_words_is_refused(inputs, told):
    with pytest.raises(ValueError, match=told):
        MODELS["vse_infinity"](inputs)
