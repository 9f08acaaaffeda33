"""CCA: by hand, against a slow search for each pair of directions, and what it must not heed."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch

import itr_study.models.cca
from itr_study.evaluation.evaluate import evaluate
from itr_study.models.cca import cca, fit_cca
from tests.oracles.cca import oracle
from tests.small import SmallData, with_regions

# At right angles, of variance 1: what correlates is what is shared.
A, B, C = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], float)


def tensor(*columns):
    return torch.tensor(np.stack(columns, axis=1))


def pairs(seed=0, rows=60, image_size=5, text_size=4, shared=3):
    """Two views of a few hidden causes, each with noise and a mean of its own."""
    random = np.random.default_rng(seed)
    causes = random.normal(size=(rows, shared)) * [3, 2, 1]
    return [torch.tensor(causes @ random.normal(size=(shared, size)) + 5
                         + random.normal(size=(rows, size))) for size in (image_size, text_size)]


@pytest.mark.parametrize(("regularisation", "expected"), [
    (0.0, [1, 3 / 5]),  # b with itself; a with 3a + 4c, of standard deviation 5
    # the features of the images vary by 1, those of the texts by 25 and by 1, 13 in the mean
    (0.1, [3 / (1.1 * 26.3) ** 0.5, 1 / (1.1 * 2.3) ** 0.5])])
def test_two_variables_by_hand(regularisation, expected):
    images, texts = tensor(A, B), tensor(3 * A + 4 * C, B + 7)
    model = cca(images, texts, 2, regularisation)
    assert model.correlations.tolist() == pytest.approx(sorted(expected, reverse=True))
    if not regularisation:  # the first pair of directions is b and b, the second a and 3a + 4c
        assert model.image_map.abs().flatten().tolist() == pytest.approx([0, 1, 1, 0])
        assert model.text_map.abs().flatten().tolist() == pytest.approx([0, 1 / 5, 1, 0])


@pytest.mark.parametrize("regularisation", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_slow_search(seed, regularisation):
    images, texts = pairs(seed)
    model = cca(images, texts, 3, regularisation)
    values, left, right = oracle(images.numpy(), texts.numpy(), 3, regularisation)
    assert model.correlations.tolist() == pytest.approx(values.tolist(), abs=1e-9)
    for ours, slow in ((model.image_map, left), (model.text_map, right)):
        signs = np.sign((ours.numpy() * slow).sum(axis=0))
        np.testing.assert_allclose(ours.numpy(), slow * signs, atol=1e-6)
    same = np.sign((model.image_map.numpy() * left).sum(axis=0))  # both views turn together
    assert (same == np.sign((model.text_map.numpy() * right).sum(axis=0))).all()


def test_on_its_pairs_projections_are_uncorrelated_but_for_partners():
    images, texts = pairs()
    model = cca(images, texts, 4)
    x = (images - model.image_mean) @ model.image_map
    y = (texts - model.text_mean) @ model.text_map
    torch.testing.assert_close(x.T @ x / len(x), torch.eye(4, dtype=torch.float64))
    torch.testing.assert_close(y.T @ y / len(y), torch.eye(4, dtype=torch.float64))
    torch.testing.assert_close(x.T @ y / len(x), model.correlations.diag())


def test_without_regularisation_neither_scale_nor_mixing_of_features_counts():
    images, texts = pairs()
    mixed = images @ torch.randn(5, 5, dtype=torch.float64) * 1000 - 3
    torch.testing.assert_close(cca(mixed, texts, 4).correlations,
                               cca(images, texts, 4).correlations)


def test_the_unit_of_regularisation_is_the_mean_variance():
    images, texts = pairs()
    torch.testing.assert_close(cca(1000 * images, texts, 3, 0.3).correlations,
                               cca(images, texts, 3, 0.3).correlations)


def test_a_feature_that_never_varies_counts_in_the_mean_variance():
    """Of a and a constant the mean variance is 1/2, of 3a + 4c it is 25."""
    found = cca(tensor(A, 0 * A), tensor(3 * A + 4 * C), 1, 0.1).correlations
    assert found.tolist() == pytest.approx([3 / (1.05 * 27.5) ** 0.5])


def test_blocks_change_nothing(monkeypatch):
    images, texts = pairs()
    whole = cca(images, texts, 3, 0.1).correlations
    monkeypatch.setattr(itr_study.models.cca, "BLOCK", 7)
    torch.testing.assert_close(cca(images, texts, 3, 0.1).correlations, whole)


def splits():
    """Sentence vectors that are a noisy linear map of the topics that pictures show."""
    random, made = np.random.default_rng(3), {}
    turn = random.normal(size=(6, 9))
    for name, split in SmallData().splits.items():
        split = with_regions(split)
        seen = split.regions[:, 0].mean(axis=1)[split.image_of_text]
        vectors = seen @ turn + 0.3 * random.normal(size=(split.n_texts, 9))
        made[name] = replace(split, sentences=vectors.astype(np.float32))
    return made


def test_it_retrieves_what_it_has_not_seen():
    made = splits()
    chosen = max((0.0, 0.1, 1.0), key=lambda r: evaluate(
        fit_cca(made["train"], 5, r), made["dev"]).table["rsum"])
    found = evaluate(fit_cca(made["train"], 5, chosen), made["test"])
    assert found.table["rsum"] > 400  # by chance 6 + 28 + 56 both ways: 180
    assert found.images.dtype == torch.float32
    torch.testing.assert_close(found.images.norm(dim=1), torch.ones(18))


def test_the_first_directions_are_those_of_a_fit_with_fewer():
    train, test = (splits()[name] for name in ("train", "test"))
    whole = fit_cca(train, regularisation=0.1)
    assert whole.size == 6  # features of a region are fewer than those of a text
    for size in (1, 3, 6):
        one, other = (evaluate(model, test) for model in (
            whole.first(size), fit_cca(train, size, 0.1)))
        torch.testing.assert_close(one.images @ one.texts.T, other.images @ other.texts.T,
                                   atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="size must be an integer >= 1 and <= 6, got 7"):
        whole.first(7)


def test_an_image_counts_once_for_each_of_its_texts():
    train = splits()["train"]
    images = torch.stack([torch.tensor(train.regions[i, 0][train.region_mask[i]].mean(axis=0))
                          for i in train.image_of_text])
    expected = cca(images, torch.tensor(train.sentences), 4, 0.1)
    torch.testing.assert_close(fit_cca(train, 4, 0.1).image_map.abs(), expected.image_map.abs(),
                               atol=1e-5, rtol=1e-5)


def test_vectors_are_projections_around_the_mean_of_the_training_pairs():
    made = splits()
    found, moved = (evaluate(fit_cca(by["train"], 4, 0.1), by["test"]) for by in (made, {
        name: replace(split, regions=split.regions + 10, sentences=split.sentences - 7)
        for name, split in made.items()}))
    for name in ("images", "texts"):
        ours, after = vars(found)[name], vars(moved)[name]
        torch.testing.assert_close(ours @ ours.T, after @ after.T, atol=1e-4, rtol=0)
    model, test = fit_cca(made["train"], 4, 0.1), made["test"]
    row = (torch.tensor(test.sentences[5]) - model.text_mean) @ model.text_map
    torch.testing.assert_close(found.texts[5], (row / row.norm()).float())


def test_it_is_kept_and_read_as_weights():
    model = cca(*pairs(), 3, 0.1)
    other = cca(*pairs(1), 3)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.image_map, model.image_map) and not list(model.parameters())


def nothing_varies():
    images, texts = pairs()
    return images, torch.ones_like(texts)


@pytest.mark.parametrize(("given", "size", "told"), [
    ([torch.ones(1, 3), torch.ones(1, 2)], 1, "at least 2 pairs.*of fewer nothing varies"),
    ([torch.ones(4, 0), torch.ones(4, 2)], 1, "a feature of each"),
    ([torch.ones(4, 3), torch.ones(5, 2)], 1, r"a row for each pair, got \(4, 3\) and \(5, 2\)"),
    ([torch.ones(4), torch.ones(4, 2)], 1, "must be matrices"),
    (pairs(), 5, "size must be at most 4, got 5: images vary in 5 directions and texts in 4"),
    (pairs(rows=4), 4, "size must be at most 3, got 4: images vary in 3"),
    (nothing_varies(), 1, "size must be at most 0"),
    (pairs(), 0, "size must be an integer >= 1")])
def test_what_cannot_be_fitted_is_refused(given, size, told):
    with pytest.raises(ValueError, match=told):
        cca(*given, size)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_is_refused_by_its_row(value):
    images, texts = pairs()
    texts[7, 1] = value
    with pytest.raises(ValueError, match=r"texts must be finite.*row 7 is not \(1 rows of 60\)"):
        cca(images, texts, 2)


def test_values_whose_products_leave_float64_are_refused():
    images, texts = pairs()
    big = torch.where(texts == texts[3, 0], 1e200, texts)
    with pytest.raises(ValueError, match="texts must lie within .*1e.150, got a value of .*1e.200"):
        cca(images, big, 2)
    torch.testing.assert_close(cca(images * 1e100, texts, 2).correlations,
                               cca(images, texts, 2).correlations)


def test_less_than_no_regularisation_is_refused():
    with pytest.raises(ValueError, match="regularisation must be >= 0"):
        cca(*pairs(), 2, -0.1)


def test_data_without_sentence_vectors_or_regions_is_refused():
    with pytest.raises(ValueError, match="cca needs sentence vectors.*sentences='fisher'"):
        fit_cca(SmallData().splits["train"], 2)
    train = splits()["train"]
    with pytest.raises(ValueError, match="cca needs region features"):
        fit_cca(replace(train, regions=train.regions[..., :0]), 2)


def test_example_in_docstring():
    found = doctest.testmod(itr_study.models.cca)
    assert found.attempted and not found.failed
