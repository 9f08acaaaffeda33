"""The structure within a view, on models with one vector an item."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.losses import OUTPUT_LOSSES
from itr_study.models import MODELS
from itr_study.models.base import ModelOutput
from itr_study.training.objective import Objective, Term
from tests.small import SmallData, with_regions


def batch():
    """Two texts of each of six images."""
    split = with_regions(SmallData().splits["train"])
    texts = np.arange(12) // 2 * 3 + np.arange(12) % 2
    sentences = np.random.default_rng(0).normal(size=(split.n_texts, 5)).astype(np.float32)
    return replace(split, sentences=sentences).pair_batch(texts)


@pytest.mark.parametrize("name", ["two_branch", "vsepp", "vse_infinity"])
def test_texts_of_an_image_move_together_and_from_the_others(name):
    torch.manual_seed(0)
    net, one = MODELS[name](InputSpec(6, 20, 5), size=8), batch()
    loss, optimizer = OUTPUT_LOSSES["structure"](), torch.optim.Adam(net.parameters(), 0.01)
    related = one.text_images[:, None] == one.text_images
    neighbour = related & ~torch.eye(12, dtype=torch.bool)
    values, gaps = [], []
    for _ in range(30):
        output = net.train()(one)
        texts = output.text_subembeddings[:, 0].detach()
        distances = torch.cdist(texts, texts)
        gaps.append((distances[~related].mean() - distances[neighbour].mean()).item())
        value = loss(output, one.match.float())
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < 0.5 * values[0] and gaps[-1] > gaps[0] + 0.2


def test_it_is_a_term_beside_a_ranking_loss():
    net, one = MODELS["two_branch"](InputSpec(6, 20, 5), size=8), batch()
    objective = Objective([Term("triplet_sum"), Term("structure", 0.2)])
    total, report = objective(net(one), one, SmallData().splits["train"])
    expected = report["triplet_sum"] + 0.2 * report["structure"]
    torch.testing.assert_close(total.detach(), expected)
    assert report["structure"] > 0


def test_texts_of_one_image_are_told_by_their_matches_alone():
    """Two rows of a batch may be the same image: its texts are neighbours all the same."""
    texts, loss = torch.randn(4, 1, 3), OUTPUT_LOSSES["structure"](images=0.0)
    drawn = torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    found = [loss(ModelOutput(torch.zeros(match.shape), text_subembeddings=texts,
                              subembeddings=torch.zeros(len(match), 1, 3)), match)
             for match in (drawn, drawn[::2])]
    assert found[0] > 0
    torch.testing.assert_close(*found)


def test_vectors_that_nearly_agree_keep_their_distances():
    """In float32 as in float64; squares and a product would lose all digits of 0.0003."""
    torch.manual_seed(0)
    texts = torch.nn.functional.normalize(
        torch.ones(30, 1, 16, dtype=torch.float64)
        + 1e-4 * torch.randn(30, 1, 16, dtype=torch.float64), dim=2)
    match = torch.eye(15).repeat_interleave(2, dim=1)
    fine, found = (OUTPUT_LOSSES["structure"](margin=0.0)(ModelOutput(
        torch.zeros(15, 30), subembeddings=given[:15], text_subembeddings=given), match)
        for given in (texts, texts.float()))
    assert 1e-5 < fine < 1e-3 and found.item() == pytest.approx(fine.item(), rel=1e-3)


def test_of_a_model_that_lacks_both_vectors_the_remedy_has_both():
    with pytest.raises(ValueError, match="structure needs text_subemb.*'two_branch', 'pvse'"):
        OUTPUT_LOSSES["structure"]()(ModelOutput(torch.zeros(2, 2)), torch.eye(2))


def test_vectors_of_another_number_are_refused():
    output = ModelOutput(torch.zeros(2, 3), subembeddings=torch.zeros(2, 1, 4),
                         text_subembeddings=torch.zeros(2, 1, 4))
    with pytest.raises(ValueError, match=r"of every image.*\(2, 3\) by the labels, got 2 and 2"):
        OUTPUT_LOSSES["structure"]()(output, torch.tensor([[1.0, 1, 0], [0, 0, 1]]))
