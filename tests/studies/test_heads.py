"""What is read of the heads of trained models: by hand, on a model that is not trained."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import normalize

from itr_study.lab.studies import nb07_sub_embeddings as module
from itr_study.lab.studies.nb07_sub_embeddings import (
    head_cosines,
    head_frames,
    image_precision,
    maps_of,
    mask_table,
    pointing_rows,
)
from itr_study.models.base import ModelOutput

OWNER = np.array([0, 0, 1, 1])


def searcher(heads, residuals=None, mask=None, vectors=None):
    """Stands in for a Searcher of 2 images and 4 texts whose heads score so: (K, 2, 4)."""
    scores = torch.tensor(heads)
    count = len(scores)
    output = ModelOutput(scores.amax(dim=0), head_scores=scores,
                         residuals=None if residuals is None else torch.tensor(residuals),
                         subembeddings=None if residuals is None
                         else torch.tensor(vectors or residuals),
                         mask=torch.ones(2, count) if mask is None else torch.tensor(mask))
    return SimpleNamespace(
        model=SimpleNamespace(score=lambda images, texts: output), images=None, texts=None,
        scores=output.scores.numpy(),
        split=SimpleNamespace(image_of_text=OWNER, image_ids=("a", "b")))


def test_cosines_are_of_the_first_image_and_their_mean_of_all_whose_heads_are_on():
    """Vectors are the residuals after a step that brings those of the second image together."""
    residuals = [[[1.0, 0.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]]
    vectors = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    table = head_cosines({"a": searcher([[[0.5] * 4] * 2] * 2, residuals, vectors=vectors)})
    assert table[["1", "2"]].to_numpy() == pytest.approx(np.array([[1, 0.6], [0.6, 1]]))
    assert table["head"].tolist() == [1, 2] and set(table["arm"]) == {"a"}
    assert table["residuals"].tolist() == pytest.approx([(0.6 + 0) / 2] * 2)
    assert table["finished"].tolist() == pytest.approx([(0 + 1) / 2] * 2)
    second_off = searcher([[[0.5] * 4] * 2] * 2, residuals, [[1.0, 1.0], [1.0, 0.0]])
    assert head_cosines({"a": second_off})["residuals"].tolist() == pytest.approx([0.6] * 2)


@pytest.mark.parametrize("mask", [[[0.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]]])
def test_a_model_that_has_no_two_heads_on_has_no_mean_and_the_others_keep_theirs(mask):
    residuals = [[[1.0, 0.0], [3.0, 4.0]]] * 2
    found = head_cosines({"off": searcher([[[0.5] * 4] * 2] * 2, residuals, mask),
                          "on": searcher([[[0.5] * 4] * 2] * 2, residuals)})
    means = found.groupby("arm")["residuals"].first()
    assert np.isnan(means["off"]) and means["on"] == pytest.approx(0.6)


def test_a_head_that_is_always_on_or_always_off_chooses_nothing():
    table = mask_table(searcher([[[0.5] * 4] * 2] * 3, mask=[[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    expected = pd.DataFrame({"head": [1, 2, 3], "on": [1, 0, 0.5],
                             "chooses": [False, False, True]})
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_a_head_that_is_on_or_off_once_in_a_hundred_images_chooses_nothing():
    mask = torch.zeros(100, 3)
    mask[0, 0], mask[1:, 1], mask[:6, 2] = 1, 1, 1
    table = mask_table(searcher([[[0.5] * 4] * 2] * 3, mask=mask.tolist()))
    assert table.on.tolist() == pytest.approx([0.01, 0.99, 0.06])
    assert table.chooses.tolist() == [False, False, True]


def test_precision_of_image_queries():
    """Image 0 has one of its two texts among its first two, image 1 both; of the texts all are
    right."""
    scores = normalize(torch.tensor([[0.9, 0.3, 0.5, 0.0], [0.1, 0.2, 0.8, 0.7]]), dim=1)
    assert image_precision(searcher([scores.tolist()])) == pytest.approx(75)


def test_a_frame_of_each_head_whose_inner_products_are_its_scores():
    vectors = normalize(torch.randn(2, 3, 5, generator=torch.manual_seed(0)), dim=2)
    texts = normalize(torch.randn(4, 5), dim=1)
    heads = torch.einsum("ikd,td->kit", vectors, texts)
    output = ModelOutput(heads.amax(dim=0), head_scores=heads, subembeddings=vectors)
    model = SimpleNamespace(score=lambda images, texts: output)
    frames = head_frames(SimpleNamespace(model=model, images=None, texts=texts))
    assert list(frames) == ["head 1", "head 2", "head 3"]
    for scores, (images, words) in zip(heads, frames.values(), strict=True):
        np.testing.assert_allclose(images @ words.T, scores.numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="such as dvse with text_heads = 1; got"):
        head_frames(searcher([[[0.5] * 4] * 2]))


def looking():
    """Stands in for a Searcher of one image with two heads and two regions beside a padded one.

    The projection swaps axes: head 1 is most alike to region 2, head 2 to region 1; their softmax
    lies on region 1 alone.
    """
    regions = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]])
    output = ModelOutput(torch.zeros(1, 1), subembeddings=torch.eye(2)[None],
                         residuals=torch.eye(2).flip(0)[None],
                         attention=torch.tensor([[[1.0, 0.0, 0.0]] * 2]))
    batch = SimpleNamespace(regions=regions, region_mask=torch.tensor([[True, True, False]]))
    model = SimpleNamespace(score=lambda images, texts: output,
                            image=SimpleNamespace(regions=lambda places: places.flip(-1)))
    return SimpleNamespace(model=model, images=None, texts=None, dataset=None, split=None,
                           encoded=SimpleNamespace(n_images=1, image_batch=lambda numbers: batch))


def test_maps_are_of_finished_vectors_and_projected_regions_without_padding():
    """Squares of 2 and 1 over their sum, 5."""
    maps = maps_of(looking())
    assert list(maps) == ["attention", "rank map"]
    assert maps["attention"].tolist() == [[[1, 0, 0]] * 2]
    assert maps["rank map"] == pytest.approx(np.array([[[0.2, 0.8, 0], [0.8, 0.2, 0]]]))


def test_focus_and_coverage_stand_in_their_columns_in_percent(monkeypatch):
    shown = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])  # an object in each region
    monkeypatch.setattr(module, "detected_objects", lambda dataset, split, mask: shown)
    rows = pointing_rows([looking()] * 2).set_index(["arm", "seed"])
    for seed in (0, 1):
        assert rows.loc[("attention", seed)].tolist() == pytest.approx([100, 50])
        assert rows.loc[("rank map", seed)].tolist() == pytest.approx([80, 100])


@pytest.mark.parametrize("read", [
    lambda one: head_cosines({"a": one}), mask_table])
def test_a_model_without_heads_is_refused_by_name(read):
    output = ModelOutput(torch.zeros(2, 4))
    one = SimpleNamespace(model=SimpleNamespace(score=lambda images, texts: output), images=None,
                          texts=None)
    with pytest.raises(ValueError, match="such as dvse or pvse; SimpleNamespace gives none"):
        read(one)


@pytest.mark.parametrize("change", [
    {"attention": None}, {"attention": torch.zeros(1, 0, 3)},
    {"text_subembeddings": torch.zeros(1, 2, 2)}])
def test_maps_of_models_without_such_heads_are_refused(change):
    one = looking()
    output = replace(one.model.score(None, None), **change)
    one.model.score = lambda images, texts: output
    with pytest.raises(ValueError, match="such as dvse's with heads >= 1 and text_heads = 1; got"):
        maps_of(one)
