"""Models of several heads: against loops written from the equations, masked, padded, and odd."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import evaluate
from itr_study.losses import OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.training.loop import Diverged, fit, forward
from itr_study.training.objective import Objective, Term
from itr_study.training.settings import Settings
from tests.oracles import dvse as slow
from tests.small import SmallData, with_regions

INPUTS = InputSpec(region_size=6, vocabulary=20)


def model(name="dvse", seed=0, **arguments):
    torch.manual_seed(seed)
    return MODELS[name](INPUTS, **{"size": 8, "word_size": 5, "heads": 3, "hidden": 4} | arguments)


def batch(regions=4, images=6):
    one = with_regions(SmallData().splits["train"], regions) if regions > 1 else \
        SmallData().splits["train"]
    return one.pair_batch(np.arange(0, 3 * images, 3))


def double(one):
    return replace(one, regions=one.regions.double())


@pytest.mark.parametrize("arguments", [
    {}, {"activation": "sigmoid"}, {"activation": "identity"}, {"mask": "off"}, {"mask": "loss"},
    {"heads": 0}, {"heads": 1}, {"heads": 9}])
def test_images_of_dvse_are_those_of_the_equations(arguments):
    net, one = model(**arguments).double().eval(), double(batch())
    vectors, residuals, mask, attention = net.encode_images(one)
    masked = arguments.get("mask", "residual") == "residual"
    for i in range(len(vectors)):
        exists = one.region_mask[i]
        found = slow.dvse_image(net, one.regions[i][exists].tolist(),
                                arguments.get("activation", "tanh"), masked)
        expected = [torch.tensor(part, dtype=torch.float64) for part in found]
        torch.testing.assert_close(vectors[i].double(), expected[0], atol=1e-6, rtol=0)
        if arguments.get("heads") == 0:
            assert residuals.shape[1] == mask.shape[1] == attention.shape[1] == 0
            continue
        torch.testing.assert_close(residuals[i], expected[1], atol=1e-6, rtol=0)
        assert mask[i].tolist() == ([1] * len(mask[i]) if arguments.get("mask") == "off"
                                    else found[2])
        torch.testing.assert_close(attention[i][:, exists].double(), expected[3], atol=1e-6,
                                   rtol=0)
        assert not attention[i][:, ~exists].any()


@pytest.mark.parametrize("text", ["gru", "bigru"])
@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_texts_are_those_of_the_equations_whatever_the_padding(name, text):
    net, one = model(name, text=text).double().eval(), batch()
    wider = replace(one, tokens=torch.nn.functional.pad(one.tokens, (0, 3)))
    for given in (one, wider):
        found = net.encode_texts(given)
        for j, length in enumerate(given.lengths.tolist()):
            tokens = given.tokens[j, :length].tolist()
            if name == "dvse":
                expected, ours = slow.dvse_text(net, tokens), found[j]
            else:
                expected, ours = slow.pvse_text(net, tokens)[0], found[0][j]
            torch.testing.assert_close(ours.double(), torch.tensor(expected, dtype=torch.float64),
                                       atol=1e-6, rtol=0)


@pytest.mark.parametrize("arguments", [{"activation": "sigmoid"}, {"activation": "identity"},
                                       {"text_attention": False}, {"heads": 0}])
def test_choices_of_dvse_are_those_of_its_texts_too(arguments):
    """s is that of the images; without w3's term a text is LN of the last state alone."""
    net, one = model(**arguments).double().eval(), batch()
    assert (net.text.heads.attention is None) == (arguments.get("text_attention") is False)
    for ours, tokens, length in zip(net.encode_texts(one), one.tokens.tolist(),
                                    one.lengths.tolist(), strict=True):
        expected = slow.dvse_text(net, tokens[:length], arguments.get("activation", "tanh"))
        torch.testing.assert_close(ours.double(), torch.tensor(expected, dtype=torch.float64),
                                   atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_attention_has_half_as_many_hidden_units_as_a_vector_features(name):
    net = model(name, hidden=None, size=10)
    assert {part.heads.attention.hidden.out_features for part in (net.image, net.text)} == {5}


@pytest.mark.parametrize("heads", [1, 3, 9])
def test_images_of_pvse_are_those_of_the_equations(heads):
    net, one = model("pvse", heads=heads).double().eval(), double(batch())
    vectors, residuals, mask, attention = net.encode_images(one)
    for i, exists in enumerate(one.region_mask):
        expected = slow.pvse_image(net, one.regions[i][exists].tolist())
        for ours, wanted in zip((vectors[i], residuals[i], attention[i][:, exists]), expected,
                                strict=True):
            torch.testing.assert_close(ours.double(), torch.tensor(wanted, dtype=torch.float64),
                                       atol=1e-6, rtol=0)
    assert mask.all()


def test_a_pair_of_pvse_scores_as_its_closest_two():
    with torch.no_grad():
        output = model("pvse").eval()(batch())
    for i, image in enumerate(output.subembeddings):
        for j, text in enumerate(output.text_subembeddings):
            cosines = [[float(v @ t) for t in text] for v in image]
            assert output.scores[i, j].item() == pytest.approx(max(map(max, cosines)), abs=1e-6)
            assert output.head_scores[:, i, j].tolist() == pytest.approx(
                [max(row) for row in cosines], abs=1e-6)


@pytest.mark.parametrize("aggregate", ["max", "mean"])
def test_a_pair_of_dvse_scores_as_its_best_head_or_as_their_mean(aggregate):
    net, one = model(aggregate=aggregate).eval(), batch()
    with torch.no_grad():
        output, texts = net(one), net.encode_texts(one)
    for i, image in enumerate(output.subembeddings):
        for j, text in enumerate(texts):
            cosines = [float(v @ text) for v in image]
            wanted = max(cosines) if aggregate == "max" else sum(cosines) / len(cosines)
            assert output.scores[i, j].item() == pytest.approx(wanted, abs=1e-6)


def test_a_text_with_several_embeddings_scores_by_the_closest_of_them():
    net, one = model(text_heads=3).double().eval(), double(batch())
    with torch.no_grad():
        output = net(one)
    texts = output.text_subembeddings
    assert texts.shape[1] == output.text_residuals.shape[1] == 3
    for ours, tokens, length in zip(texts, one.tokens.tolist(), one.lengths.tolist(), strict=True):
        expected = torch.tensor(slow.dvse_text(net, tokens[:length]), dtype=torch.float64)
        torch.testing.assert_close(ours.double(), expected, atol=1e-6, rtol=0)
    cosines = torch.einsum("ikd,tld->kitl", output.subembeddings, texts)
    torch.testing.assert_close(output.head_scores, cosines.amax(dim=3))
    torch.testing.assert_close(output.scores, output.head_scores.amax(dim=0))
    with pytest.raises(ValueError, match="text_heads = 2 needs text_attention = True"):
        model(text_attention=False, text_heads=2)


def test_the_fold_of_the_projection_keeps_the_gradient():
    """A model that maps every region before it looks has the same value and gradient."""
    one, grads = double(batch()), []
    for folded in (True, False):
        net = model().double()
        heads, g = net.image.heads, net.image.regions
        if folded:
            seen, attention = heads.look(one.regions, one.region_mask, g)
            seen = g(seen)
        else:
            seen, attention = heads.look(g(one.regions), one.region_mask)
        vectors, residuals = heads(seen[:, 0], seen[:, 1:])
        loss = vectors.pow(3).sum() + residuals.square().sum() + attention.square().sum()
        loss.backward()
        grads.append([loss.detach(), *(p.grad for p in net.image.parameters())])
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_mask_takes_residuals_away_in_training_and_test_and_is_frozen():
    net, one = model(), batch()
    assert "image.w2" in net.state_dict() and "image.w2" not in dict(net.named_parameters())
    before = net.image.w2.clone()
    settings = Settings(epochs=2, batch_size=16, learning_rate=0.01)
    fit(net, Objective("dvse"), SmallData(), settings)
    assert torch.equal(net.image.w2, before)
    for mode in (True, False):
        net.train(mode)
        with torch.no_grad():
            net.image.w2.fill_(0)  # sigmoid(0) = 0.5 rounds to 0: all heads off
            vectors, residuals, mask, _ = net.encode_images(one)
            assert not mask.any() and residuals.any()
            whole = net.image.regions(net.image.heads.look(one.regions, one.region_mask,
                                                           net.image.regions)[0][:, 0])
            alone = torch.nn.functional.normalize(net.image.heads.norm(whole), dim=1)
            torch.testing.assert_close(vectors, alone[:, None].expand_as(vectors))


def test_no_gradient_passes_the_mask():
    """What is left of v̂ where it is off has none; and the mask itself pulls at nothing."""
    net, one = model(), batch()
    vectors, residuals, mask, _ = net.encode_images(one)
    assert not mask.requires_grad
    assert 0 < mask.mean() < 1  # else the next two lines say nothing
    gradient = torch.autograd.grad(vectors.pow(3).sum(), residuals)[0]
    assert torch.equal(gradient.abs().sum(dim=2) > 0, mask.bool())


def test_masks_of_the_loss_alone_leave_the_vectors():
    one = batch()
    free, only_loss = model(mask="off").eval(), model(mask="loss").eval()
    assert torch.equal(free.encode_images(one)[0], only_loss.encode_images(one)[0])
    assert not torch.equal(free.encode_images(one)[2], only_loss.encode_images(one)[2])


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_padded_regions_change_nothing(name):
    net, one = model(name).eval(), batch()
    rubbish = torch.full((len(one.regions), 3, 6), 1e3)
    padded = replace(one, regions=torch.cat([one.regions, rubbish], dim=1),
                     region_mask=torch.cat([one.region_mask, torch.zeros(len(rubbish), 3,
                                                                         dtype=torch.bool)], 1))
    for ours, wider in zip(net.encode_images(one), net.encode_images(padded), strict=True):
        torch.testing.assert_close(ours, wider[..., :ours.shape[-1]])
    assert not net.encode_images(padded)[3][..., -3:].any()


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_one_region_gives_every_head_the_same(name):
    vectors, residuals, mask, attention = model(name, mask="off").eval().encode_images(batch(1)) \
        if name == "dvse" else model(name).eval().encode_images(batch(1))
    assert (attention == 1).all() and vectors.isfinite().all()
    torch.testing.assert_close(residuals, residuals[:, :1].expand_as(residuals))


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_blocks_of_images_and_texts_change_no_score(name):
    net, split = model(name).eval(), with_regions(SmallData().splits["test"])
    whole = evaluate(net, split)
    images = net.encode_images(split.image_batch(np.arange(split.n_images)))
    texts = net.encode_texts(split.text_batch(np.arange(split.n_texts)))
    torch.testing.assert_close(whole.images[0], images[0].detach())
    by_one = torch.cat([net.score(tuple(part[i:i + 1] for part in images), texts).scores
                        for i in range(split.n_images)])
    torch.testing.assert_close(net.score(whole.images, whole.texts).scores, by_one.detach())


@pytest.mark.parametrize(("name", "objective"), [
    ("dvse", "dvse"), ("pvse", [Term("triplet_sum"), Term("diversity", 0.1), Term("mmd", 0.01)])])
@pytest.mark.parametrize("heads", [1, 3])
def test_they_learn(name, objective, heads):
    data = SmallData()
    data.splits = {key: with_regions(split) for key, split in data.splits.items()}
    net = model(name, heads=heads, size=32, word_size=16, image_dropout=0.1, dropout=0.1)
    before = evaluate(net, data.splits["train"]).table["rsum"]
    history = fit(net, Objective(objective), data, Settings(epochs=8, batch_size=24,
                                                            learning_rate=0.01),
                  warmup_objective=None)
    assert evaluate(net, data.splits["train"]).table["rsum"] > before + 100
    if name == "dvse":
        assert {"orthogonality.correlation", "orthogonality.mask_rate",
                "variance_weighted.sigma"} <= set(history.rows[-1])


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_features_are_dropped_in_training_alone(name):
    one, free = batch(), model(name).eval().encode_images(batch())[0]
    net = model(name, image_dropout=0.5)
    assert torch.equal(net.eval().encode_images(one)[0], free)
    assert not torch.equal(net.train().encode_images(one)[0], free)


def test_the_gate_reads_in_full_precision_under_autocast():
    net, random = model(size=64, heads=6).eval(), torch.Generator().manual_seed(0)
    whole = torch.randn(4000, 64, generator=random)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = net.gate(whole)
    assert torch.equal(half, net.gate(whole))


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_an_image_without_regions_has_no_weights_and_a_finite_gradient(name):
    one, net = batch(), model(name)
    one.region_mask[1] = False
    vectors, _, _, attention = net.encode_images(one)
    vectors.pow(3).sum().backward()
    assert vectors.isfinite().all() and not attention[1].any() and attention[0].any()
    assert all(p.grad.isfinite().all() for p in net.image.parameters())


def test_half_precision_is_near():
    net, one = model(size=64, heads=4).eval(), batch()
    torch.testing.assert_close(forward(net, one, "bfloat16").scores, net(one).scores, atol=0.03,
                               rtol=0)
    assert forward(net, one, "bfloat16").scores.dtype == torch.float32


@pytest.mark.parametrize("name", ["dvse", "pvse"])
def test_a_feature_that_is_no_number_ends_the_run_by_name(name):
    data = SmallData()
    data.splits["train"].regions[3, :, 0, 2] = np.nan
    with pytest.raises(Diverged, match="epoch 1"):
        fit(model(name), Objective("triplet_hardest"), data,
            Settings(epochs=1, batch_size=16, learning_rate=0.01))


def test_features_of_an_image_are_dropped_in_all_heads_alike():
    from itr_study.models.drop import drop_features

    torch.manual_seed(0)
    dropped = drop_features(torch.ones(50, 3, 40), 0.25)
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)


BAD = [("dvse", {"heads": -1}, "heads"), ("pvse", {"heads": 0}, "heads"),
       ("dvse", {"heads": 65}, "heads"), ("dvse", {"activation": "relu"}, "activation"),
       ("dvse", {"mask": "hard"}, "mask"), ("dvse", {"aggregate": "sum"}, "aggregate"),
       ("dvse", {"text": "minilm"}, "text of dvse.*gru, bigru"), ("dvse", {"size": 1}, "size"),
       ("dvse", {"image_dropout": 1.0}, "image_dropout"), ("pvse", {"hidden": 0.5}, "hidden"),
       ("dvse", {"text_attention": "no"}, "text_attention"),
       ("dvse", {"text_attention": 2}, "text_attention"),
       ("dvse", {"hidden": 0}, "hidden"), ("pvse", {"hidden": 0}, "hidden"),
       ("pvse", {"size": 1}, "size"), ("pvse", {"text": "bert"}, "text of pvse"),
       ("dvse", {"hidden": 0.5}, "hidden")]


@pytest.mark.parametrize(("name", "arguments", "message"), BAD)
def test_bad_arguments_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        model(name, **arguments)


@pytest.mark.parametrize("name", ["dvse", "pvse"])
@pytest.mark.parametrize(("inputs", "message"), [
    (InputSpec(vocabulary=20), "needs region features; set images"),
    (InputSpec(region_size=6), "reads tokens, but the data has none")])
def test_data_without_regions_or_words_is_refused(name, inputs, message):
    with pytest.raises(ValueError, match=message):
        MODELS[name](inputs)


def test_orthogonality_pushes_heads_apart():
    """Trained by it alone, residuals of heads end near right angles (0.09 to 0.10: how the last
    steps swing differs between processors)."""
    net, one = model(mask="off", size=16), batch()
    loss, optimizer = OUTPUT_LOSSES["orthogonality"](), torch.optim.Adam(net.parameters(), 0.01)
    labels, values = one.match.float(), []
    for _ in range(300):
        value, numbers = loss.diagnose(net(one), labels)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(numbers["correlation"].item())
    assert values[0] > 0.9 and values[-1] < 0.15
