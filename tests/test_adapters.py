"""Losses in trainers of others: the value and gradient of `fit`, exact in parts, refusals."""

import copy
import csv
import doctest
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers  # noqa: F401  here, as it takes seconds
import torch
from torch import nn
from torch.nn.functional import normalize

import itr_study as itr
from itr_study import adapters
from itr_study.adapters import ImageTextEvaluator, RankingLoss, captions, contrastive
from itr_study.losses import LOSSES
from itr_study.models.base import ModelOutput
from itr_study.training.objective import Objective, Term
from tests.small import SmallData
from tests.tiny_clip import PROJECTED, SIZE, save_tiny_clip

ROOT = Path(__file__).resolve().parent.parent
NEAR = {"rtol": 0, "atol": 1e-6}


class Towers(nn.Module):
    """Two linear towers, which take and give what modules of sentence-transformers do."""

    def __init__(self, images=5, texts=7, size=6, text_size=None):
        super().__init__()
        self.image, self.text = nn.Linear(images, size), nn.Linear(texts, text_size or size)
        self.drop = nn.Dropout(0.2)

    def forward(self, features, **_):
        of_images = "pixel_values" in features
        given = features["pixel_values" if of_images else "input_ids"]
        return features | {"sentence_embedding": self.drop(
            (self.image if of_images else self.text)(given))}


def batch(rows=8, columns=1, seed=0):
    """Features of pictures and of columns of texts, as the trainer collates them."""
    draw = torch.Generator().manual_seed(seed)
    return [{"pixel_values": torch.randn(rows, 5, generator=draw)},
            *({"input_ids": torch.randn(rows, 7, generator=draw)} for _ in range(columns))]


def made(objective="info_nce", labels="ids", train=False, **options):
    torch.manual_seed(0)
    return RankingLoss(Towers().train(train), objective, labels, **options)


def gradients(loss):
    return [weight.grad for weight in loss.parameters() if weight.grad is not None]


def graded_split():
    """The training split of small.py with sentence vectors of MiniLM's width."""
    train = SmallData().splits["train"]
    vectors = np.random.default_rng(0).normal(size=(train.n_texts, 384)).astype(np.float32)
    return train, captions(train.image_of_text, minilm=vectors)


IDS = torch.tensor([3, 3, 1, 7, 1, 0, 4, 5])


@pytest.mark.parametrize("objective", [
    *LOSSES, "listwise", "bcls", [Term("topk", 0.5), Term("listnet", 2.0, "sentence")]],
    ids=lambda given: given if isinstance(given, str) else "terms")
def test_loss_and_gradient_are_those_of_fit(objective):
    """On one batch of `fit`: pairs of a split, five of one image among them, and its objective."""
    train, split = graded_split()
    texts = np.array([0, 1, 2, 9, 12, 15, 30, 31, 40, 50])
    given = train.pair_batch(texts)
    embeddings = torch.randn(2, len(texts), 6, dtype=torch.float64,
                             generator=torch.Generator().manual_seed(1))
    mine, theirs = (embeddings.clone().requires_grad_() for _ in range(2))
    named = objective if objective != "semantic_margin" else [Term(objective, labels="sentence")]
    output = ModelOutput(normalize(mine[0], dim=1) @ normalize(mine[1], dim=1).T)
    expected, _ = Objective(named)(output, given, split)
    expected.backward()
    value = made(named, split).of_embeddings(*theirs, torch.from_numpy(texts))
    value.backward()
    torch.testing.assert_close(value, expected, **NEAR)
    torch.testing.assert_close(theirs.grad, mine.grad, **NEAR)
    assert mine.grad.any()


def test_what_the_column_holds():
    """Ids, pairs, relevance and a function give the loss of the matrix that they mean."""
    features = batch()
    scores = compared(made(), features)
    matrix = (IDS[:, None] == IDS).float()
    graded = torch.linspace(0.3, 1, 8)
    for loss, labels, relevance in (
            (made("topk"), IDS, matrix), (made("topk", "pairs"), None, torch.eye(8)),
            (made("smooth_ndcg", "column"), graded, torch.diag(graded)),
            (made("smooth_ndcg", lambda ids: (ids[:, None] == ids).float()), IDS, matrix)):
        assert type(loss) is not RankingLoss and isinstance(loss, RankingLoss)
        loss = copy.deepcopy(loss)
        expected = LOSSES[loss.objective.names[0]]()(scores, relevance)
        torch.testing.assert_close(loss(features, labels), expected, **NEAR)


def compared(loss, features):
    """Cosines of a batch, with the columns of texts side by side."""
    images, *texts = (normalize(loss.model(one)["sentence_embedding"], dim=1) for one in features)
    return images @ torch.cat(texts).T


def test_labels_of_a_function_come_to_the_scale_of_the_loss():
    def half(ids):
        return (ids[:, None] == ids).float().clamp(min=0.5)

    features, matrix = batch(), (IDS[:, None] == IDS).float()
    expected = LOSSES["kendall_window"]()(compared(made(), features), matrix)  # 2 × 0.5 - 1 is 0
    torch.testing.assert_close(made("kendall_window", half)(features, IDS), expected, **NEAR)
    half.scale = "cosine"
    cosine = LOSSES["kendall_window"]()(compared(made(), features), matrix.clamp(min=0.5))
    torch.testing.assert_close(made("kendall_window", half)(features, IDS), cosine, **NEAR)


def test_further_columns_are_negatives_or_have_relevance_of_their_own():
    features = batch(columns=3)
    scores, empty = compared(made(), features), torch.zeros(8, 8)
    expected = LOSSES["topk"]()(scores, torch.cat([(IDS[:, None] == IDS).float(), empty, empty], 1))
    torch.testing.assert_close(made("topk")(features, IDS), expected, **NEAR)
    labels = torch.tensor([[1.0, 0.6, 0.0]]).expand(8, 3)
    wide = torch.cat([torch.eye(8), 0.6 * torch.eye(8), empty], 1)
    torch.testing.assert_close(made("smooth_ndcg", "column")(features, labels),
                               LOSSES["smooth_ndcg"]()(scores, wide), **NEAR)


def test_pairs_that_are_forgiven_are_nobodys_negative():
    """The hardest negative of image 0 is forgiven: the loss is that of the next one."""
    relevance = torch.eye(3).clamp(min=0.2)
    relevance[0, 1] = 0.9
    vectors = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    texts = torch.tensor([[0.6, 0, 0.8], [0.8, 0.6, 0], [0.3, 0.1, 0.94]], requires_grad=True)
    options = {"objective": LOSSES["triplet_hardest"](margin=0.5), "labels": lambda _: relevance}
    hard = made(**options).of_embeddings(vectors, texts, IDS[:3])
    kind = made(**options, forgive=0.8).of_embeddings(vectors, texts, IDS[:3])
    scores = vectors @ normalize(texts, dim=1).T
    left = scores.detach().clone()
    left[0, 1] = -1
    expected = LOSSES["triplet_hardest"](margin=0.5)(left, torch.eye(3))
    assert kind.item() == pytest.approx(expected.item(), abs=1e-6) and kind < hard - 0.05
    kind.backward()
    assert texts.grad[1, 0] == pytest.approx(0, abs=0.3)
    train, split = graded_split()
    assert made("topk", split, forgive=0.5).grader.name == "sentence"
    assert train.n_texts == len(made("topk", split).owners)


def test_a_scale_multiplies_cosines_and_is_learnt():
    features = batch()
    loss = made(LOSSES["info_nce"](temperature=1.0), scale=20.0, learn_scale=True)
    expected = LOSSES["info_nce"](temperature=0.05)(compared(loss, features),
                                                    (IDS[:, None] == IDS).float())
    value = loss(features, IDS)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    value.backward()
    assert loss.log_scale.grad.abs() > 1e-3
    loss.zero_grad()
    found = []
    for learnt in (100.0, 1e4):  # no more than 100, as in CLIP
        torch.nn.init.constant_(loss.log_scale, np.log(learnt))
        found.append(loss(features, IDS).item())
    assert found[0] == pytest.approx(found[1], rel=1e-4) and found[0] != pytest.approx(value.item())
    loss(features, IDS).backward()  # and it can fall again
    assert loss.log_scale.grad.abs() > 1e-3
    assert [name for name, weight in made().named_parameters() if not weight.requires_grad] == [
        "log_scale"]


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("columns", [1, 2])
def test_gradients_in_parts_are_those_of_one_pass(size, columns):
    """Of the scale, too, and if the trainer takes a third of the loss."""
    objective = [Term(LOSSES["info_nce"](temperature=1.0)), Term("smooth_ndcg", 0.3)]
    found, features = [], [{name: one.double() for name, one in column.items()}
                           for column in batch(columns=columns)]
    for options in ({}, {"mini_batch_size": size}):
        loss = made(objective, scale=10.0, learn_scale=True, **options).double()
        assert loss.uses_gradient_cache == bool(options)
        value = loss([dict(one) for one in features], IDS)
        (value / 3).backward()
        found.append([value.detach(), *gradients(loss)])
        with torch.no_grad():
            assert loss([dict(one) for one in features], IDS).item() == pytest.approx(value.item())
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    assert len(found[0]) == 6 and all(part.abs().sum() > 0 for part in found[0])


def test_dropout_is_the_same_in_both_passes_of_the_cache():
    features = batch()
    loss = made(train=True, mini_batch_size=8)
    torch.manual_seed(5)
    loss([dict(one) for one in features], IDS).backward()
    plain = made(train=True)
    torch.manual_seed(5)
    plain([dict(one) for one in features], IDS).backward()
    for one, other in zip(gradients(loss), gradients(plain), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [None, 3])
def test_what_a_loss_does_not_use_has_no_gradient(size):
    """A weight of a loss of one's own; all scores, where a batch has no pairs to order."""
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.spare = nn.Parameter(torch.ones(()))

        def forward(self, scores, relevance):
            return -(scores * relevance).sum()

    for own in (Spare(), lambda scores, relevance: torch.zeros(())):
        loss = made(own, mini_batch_size=size)
        loss(batch(), IDS).backward()
        assert bool(loss.model.text.weight.grad.any()) == isinstance(own, Spare)


def test_half_precision_is_scored_in_float32():
    loss, features = made("smooth_ndcg", "pairs"), batch()
    with torch.autocast("cpu", torch.bfloat16):
        value = loss(features)
        images, texts = (loss.model(one)["sentence_embedding"].float() for one in features)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, contrastive(images, texts, "smooth_ndcg"), **NEAR)


def swapped():
    return batch()[::-1]


@pytest.mark.parametrize("loss, features, labels, told", [
    (made, lambda: batch()[:1], IDS, r"column of pictures.*has 1.*select_columns"),
    (made, swapped, IDS, "column of pictures, then one of texts"),
    (made, lambda: batch(columns=2)[1:], IDS, "pictures in 0.*names no picture file"),
    (made, batch, None, r'no column "label".*add_column\("label", image_ids\).*labels="pairs"'),
    (lambda: made(labels="pairs"), batch, IDS, r'has a column "label".*remove_columns\('),
    (made, batch, IDS[:4], r"must hold 8 whole numbers, and has \(4,\)"),
    (made, batch, IDS.float(), r'torch.float32.*labels="column"'),
    (made, batch, IDS > 2, "whole numbers, and has .* of torch.bool"),
    (made, batch, IDS.tolist(), "whole numbers, and has a list"),
    (made, lambda: [*batch(), batch()[0]], IDS, "pictures in 2"),
    (made, lambda: [batch()[0], batch(12)[1]], IDS, "12 texts are no whole number of columns of 8"),
    (made, lambda: [{"pixel_values": torch.full((8, 5), torch.nan)}, batch()[1]], IDS,
     "not finite: training has diverged"),
    (lambda: made("topk", "column"), batch, IDS, r"relevance in \[0, 1\], has 0 to 7; .*\"ids\""),
    (lambda: made("topk", graded_split()[1]), batch, IDS.float(), r'torch.float32.*"column"$'),
    (made, batch, torch.zeros(8, dtype=torch.int64), "batch of 8 has no negative.*drop_last"),
    (made, lambda: batch(1), IDS[:1], "batch of 1 has no negative.*per_device_train_batch_size"),
    (lambda: made("listnet", "column"), batch, torch.rand(8, 2), r"a number for each of its texts"),
    (lambda: made("listnet", "column"), batch, torch.full((8,), 0.5), "this batch has none"),
    (lambda: made("listnet", "column"), batch, torch.ones(8).half(), "float32 or float64.*16"),
    (lambda: made("listnet", lambda _: torch.ones(3)), batch, IDS, r"\(8, 8\), and comes \(3,\)"),
    (lambda: made("listnet", lambda _: np.ones(3)), batch, IDS, "and comes a ndarray"),
    (lambda: made("topk", graded_split()[1]), batch, IDS + 900, "numbers of texts, 0 to 71; has 9"),
    (lambda: made("topk", graded_split()[1]), lambda: batch(columns=2), IDS,
     "one column of texts, not 2"),
    (lambda: RankingLoss(Towers(text_size=4)), batch, IDS, "images have 6 numbers, texts 4"),
    (lambda: made("topk", captions([0, 0, 1]), forgive=0.5), lambda: batch(3),
     torch.tensor([0, 1, 2]), r'label_vectors\["minilm"\].*captions\(image_of_text, minilm=')])
def test_a_bad_batch_is_refused_with_column_and_remedy(loss, features, labels, told):
    with pytest.raises(ValueError, match=told):
        loss()(features(), labels)


@pytest.mark.parametrize("options, told", [
    ({"objective": "listwise"}, r"smooth_ndcg needs graded labels.*captions\(image_of_text"),
    ({"objective": "topk", "forgive": 0.9}, "forgive=0.9 needs graded labels"),
    ({"objective": "top_k"}, "did you mean 'topk'"), ({"labels": "id"}, "did you mean 'ids'"),
    ({"labels": np.arange(4)}, r"labels \(or captions.*one of ids, pairs, column; got array\(\["),
    ({"scale": 0}, "scale must be > 0"), ({"learn_scale": "yes"}, "must be one of True, False"),
    ({"objective": LOSSES["kendall"]()}, "kendall needs graded labels.*captions")])
def test_bad_arguments_are_refused(options, told):
    with pytest.raises(ValueError, match=told):
        made(**options)


def test_numbers_of_images_where_those_of_texts_belong_are_warned_of():
    loss = made("triplet_hardest", graded_split()[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(batch(), torch.arange(8) * 6)
    with pytest.warns(UserWarning, match="must number texts, not images"):
        loss(batch(), IDS)


def test_accumulation_is_warned_of():
    loss = made()
    optimizer = torch.optim.AdamW(loss.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):  # a step after each batch
            loss(batch(), IDS).backward()
            optimizer.step()
            optimizer.zero_grad()
        for _ in range(3):  # gradients of a step that was made, in a plain loop
            value = loss(batch(), IDS)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        optimizer.zero_grad()
        loss(batch(), IDS).backward()
        with torch.no_grad():
            loss(batch(), IDS)
    with pytest.warns(UserWarning, match="gradient_accumulation_steps=1.*mini_batch_size=32"):
        loss(batch(), IDS)
    other = RankingLoss(loss.model, "topk")  # of another data set of the same model
    with pytest.warns(UserWarning, match="gradient_accumulation_steps=1"):
        other(batch(), IDS)


def test_the_example_of_the_docstring():
    assert doctest.testmod(adapters) == (0, 3)


def test_contrastive_takes_losses_objectives_and_ids(monkeypatch):
    reads = []
    images, texts = torch.randn(2, 8, 6, generator=torch.Generator().manual_seed(0))
    scores = normalize(images, dim=1) @ normalize(texts, dim=1).T
    matrix = (IDS[:, None] == IDS).float()
    hardest, ndcg = LOSSES["triplet_hardest"](), LOSSES["smooth_ndcg"]()
    both = Objective([Term("triplet_hardest"), Term("smooth_ndcg", 0.5, "sentence")])
    for objective, relevance, expected in (
            ("info_nce", None, LOSSES["info_nce"]()(scores)), (hardest, IDS, hardest(scores, IDS)),
            (both, matrix, hardest(scores, IDS) + 0.5 * ndcg(scores, matrix)),
            ("listwise", matrix, hardest(scores, IDS) + ndcg(scores, matrix)),
            (lambda s, r: (s * r).sum(), matrix, (scores * matrix).sum())):
        torch.testing.assert_close(contrastive(images, texts, objective, relevance), expected,
                                   **NEAR)
    torch.testing.assert_close(contrastive(images, texts, hardest, IDS, scale=torch.tensor(2.0)),
                               hardest(2 * scores, IDS), **NEAR)
    with monkeypatch.context() as patch:  # each read makes a card finish its work first
        patch.setattr(torch.Tensor, "tolist", lambda tensor, own=torch.Tensor.tolist: (
            reads.append(tensor), own(tensor))[1])
        patch.setattr(torch.Tensor, "item", None, raising=False)
        contrastive(images, texts, [Term("triplet_hardest"), Term("topk")], matrix)
    assert len(reads) == 1
    assert contrastive(images, texts, "structure", matrix).isfinite()
    graded = matrix.clamp(min=0.3)
    for objective in ("bcls", [Term("info_nce"), Term("kendall_window", labels="cider")]):
        torch.testing.assert_close(contrastive(images, texts, objective, graded), made(
            objective, lambda _: graded).of_embeddings(images, texts, IDS))
    for objective in ("bcls", lambda scores, relevance: (scores * relevance).sum()):
        for least in (-0.4, torch.nan):
            with pytest.raises(ValueError, match=r"in \[0, 1\].*found (-0.4|nan) .*\(1 \+ c\) / 2"):
                contrastive(images, texts, objective, matrix + least * (1 - matrix))
    with pytest.raises(ValueError, match="image_ids and text_ids share no number"):
        contrastive(images, texts, hardest, (IDS, IDS + 9))
    for given, told in ((matrix.tolist(), "relevance must be a torch tensor, got list"),
                        (matrix[:3], r"got \(8, 8\) and \(3, 8\)")):
        with pytest.raises(ValueError, match=told):
            contrastive(images, texts, hardest, given)
    torch.testing.assert_close(contrastive(images, texts, "bcls", matrix > 0),
                               contrastive(images, texts, "bcls", matrix))
    idle = images.clone().requires_grad_()
    contrastive(idle, texts, lambda s, r: torch.zeros(())).backward()
    assert not idle.grad.any()
    assert contrastive(images, texts, scale=np.float32(2.0)).isfinite()
    for objective in ("listwise", "kendall", [Term("listnet", 1.0, "cider")]):
        with pytest.raises(ValueError, match="needs graded labels.*n_images, n_texts"):
            contrastive(images, texts, objective, IDS)
    with pytest.raises(ValueError, match="not finite: training has diverged"):
        contrastive(images * torch.nan, texts, hardest, IDS)
    with pytest.raises(ValueError, match="scale must be a finite number, got nan"):
        contrastive(images, texts, hardest, IDS, scale=float("nan"))
    for scale in (0.0, torch.tensor(-1.0)):
        with pytest.raises(ValueError, match="scale must be > 0"):
            contrastive(images, texts, hardest, IDS, scale=scale)
    assert contrastive(images, texts, hardest, [IDS, IDS]) == contrastive(
        images, texts, hardest, IDS)
    assert contrastive(images.double(), texts).dtype == torch.float64
    with pytest.raises(ValueError, match="joined_scores.*'vsepp' or 'dvse', and let `fit` train"):
        contrastive(images, texts, "dense_to_sparse")
    with pytest.raises(ValueError, match="exactly 1 for a match, and this batch has none"):
        contrastive(images, texts, hardest, 0.5 * matrix)
    with pytest.raises(ValueError, match=r'LOSSES\["topk"\]\(\), no class'):
        contrastive(images, texts, LOSSES["info_nce"], IDS)
    for ids in (torch.ones(8, dtype=torch.int64), torch.ones(8, 8)):
        with pytest.raises(ValueError, match="this batch has no negatives.*set drop_last=True"):
            contrastive(images, texts, hardest, ids)
    with pytest.raises(ValueError, match="this batch has no negatives"):
        contrastive(images[:1], texts[:1])
    with pytest.raises(ValueError, match=r"such as \[Term.*; got tensor"):
        contrastive(images, texts, torch.tensor(100.0), IDS)
    with pytest.raises(ValueError, match="images have 6 numbers, texts 5"):
        contrastive(images, texts[:, :5])
    with pytest.raises(ValueError, match="got a CLIPOutput; give a CLIPModel's image_embeds"):
        contrastive(type("CLIPOutput", (), {})(), texts)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return save_tiny_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def scenes():
    return itr.load_dataset("scenes", train=8, dev=2, test=6)


def test_the_evaluator_measures_as_evaluate_does(clip, scenes, tmp_path):
    from sentence_transformers import SentenceTransformer

    model, test = SentenceTransformer(str(clip)), scenes.splits["test"]
    pictures = [scenes.open_image(image) for image in test.image_ids]
    evaluator = ImageTextEvaluator(pictures, test.texts, test.image_of_text, name="mine")
    first, second = (evaluator(model, str(tmp_path), epoch, 10 * epoch) for epoch in (1, 2))
    images, texts = model.encode(pictures), model.encode(list(test.texts))
    assert images.shape == (6, PROJECTED)
    expected = itr.score(images=images, texts=texts, image_of_text=test.image_of_text,
                         similarity="cosine").table
    assert first == second == {f"mine_{name}": pytest.approx(expected[name]) for name in
                               itr.retrieval_table(itr.ranks(images @ texts.T, test.image_of_text))}
    assert evaluator.primary_metric == "mine_rsum" and evaluator.greater_is_better
    with (tmp_path / "image_text_evaluation_mine_results.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0][:3] == ["epoch", "steps", "i2t_r1"] and [line[0] for line in lines[1:]] == [
        "1", "2"]
    graded = ImageTextEvaluator(pictures, test.texts, test.image_of_text, primary="i2t_ndcg",
                                relevance=scenes.relevance(test))(model)
    assert 0 < graded["i2t_ndcg"] < 100 and graded["rsum"] == pytest.approx(first["mine_rsum"])


@pytest.mark.parametrize("objective", ["listnet", "soft_labels", "kendall", "kendall_window"])
def test_losses_of_graded_labels_forgive_nothing(objective):
    """With the score of a pair labelled 0.9 held at the least, no order of scores was right, and
    matches were pushed apart: their cosine fell from 0.6 to -0.7 in 300 steps."""
    labels, split = torch.arange(8), graded_split()[1]
    graded, hardest = Term(objective, labels="sentence"), Term("triplet_hardest")
    for terms, given in ([graded], split), (objective, lambda _: torch.eye(8).clamp(min=0.9)):
        kind, plain = (made(terms, given, forgive=share)(batch(), labels) for share in (0.01, None))
        torch.testing.assert_close(kind, plain, **NEAR)
    alone, of_matches, both = (made(terms, split, forgive=0.01)(batch(), labels) for terms in (
        [graded], [hardest], [graded, hardest]))
    torch.testing.assert_close(both, alone + of_matches, **NEAR)
    assert of_matches < made([hardest], split)(batch(), labels)


def test_an_evaluator_knows_that_a_smaller_rank_is_better():
    three, six = [np.zeros((3, 8, 8))] * 3, ["text"] * 6
    for primary in ("t2i_medr", "i2t_meanr", "rsum"):
        evaluator = ImageTextEvaluator(three, six, primary=primary, name="dev")
        assert evaluator.greater_is_better == (primary == "rsum")


def test_an_evaluator_refuses_what_does_not_fit():
    three, six = [np.zeros((3, 8, 8))] * 3, ["text"] * 6
    for owners, told in (([0, 0, 0, 1, 1, 1], "1 have none, the first is image 2"),
                         ([0, 1, 2], "one entry per text: expected 6"),
                         ([0, 1, 2, 3, 0, 1], r"must lie in \[0, 3\).*found 0 to 3")):
        with pytest.raises(ValueError, match=told):
            ImageTextEvaluator(three, six, owners)
    with pytest.raises(ValueError, match="primary must be one of .*; did you mean 'rsum'"):
        ImageTextEvaluator(three, six, primary="rsumm")
    for wrong, told in ((np.ones((6, 3)), r"\(6, 3\)"),
                        (7 * np.ones((3, 6)), r"\(3, 6\) of float"),
                        (np.zeros((3, 6)), r"\(3, 6\) of float")):
        with pytest.raises(ValueError, match=r"relevance must be \(3, 6\).*got " + told):
            ImageTextEvaluator(three, six, relevance=wrong)
    assert ImageTextEvaluator(three, six, name="i2t", primary="i2t_r1").primary_metric == \
        "i2t_i2t_r1"
    for absent in ("absent.png", Path("absent.png"), None):
        with pytest.raises(ValueError, match=f"{absent}'? is no file here .* names no picture fi"):
            ImageTextEvaluator(["https://web.site/a.png", absent], ["text"] * 2)
    for texts in ("abcdef", [*six[:5], None]):
        with pytest.raises(ValueError, match="texts must be a list of strings"):
            ImageTextEvaluator(three, texts)
    with pytest.raises(ValueError, match="batch_size must be an integer >= 1"):
        ImageTextEvaluator(three, six, batch_size=0)


@pytest.mark.slow
def test_a_random_clip_learns_in_the_trainer(clip, scenes, tmp_path):
    """Also in parts; the scale is learnt, the best checkpoint is chosen by RSUM."""
    pytest.importorskip("accelerate")
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )

    train = scenes.splits["train"]
    pictures = [scenes.open_image(image) for image in train.image_ids]
    rows = Dataset.from_dict({"image": [pictures[image] for image in train.image_of_text],
                              "text": list(train.texts), "label": train.image_of_text.tolist()})
    model = SentenceTransformer(str(clip))
    loss = RankingLoss(model, LOSSES["info_nce"](temperature=1.0), scale=10.0, learn_scale=True,
                       mini_batch_size=16)
    evaluator = ImageTextEvaluator(pictures, train.texts, train.image_of_text)
    trainer = SentenceTransformerTrainer(
        model, SentenceTransformerTrainingArguments(
            str(tmp_path), num_train_epochs=4, per_device_train_batch_size=40, learning_rate=3e-3,
            eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
            metric_for_best_model="eval_rsum", logging_steps=1, report_to="none", use_cpu=True),
        train_dataset=rows, loss=loss, evaluator=evaluator)
    before = evaluator(model)["rsum"]
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert losses[-1] < losses[0] and evaluator(model)["rsum"] > before
    assert loss.log_scale.exp().item() != pytest.approx(10.0, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["sentence_transformers_trainer", "clip_loop"])
def test_an_example_script_without_a_folder_says_what_to_type(script):
    done = subprocess.run([sys.executable, ROOT / "docs" / "examples" / f"{script}.py"],
                          capture_output=True, text=True, timeout=300)
    assert f"python docs/examples/{script}.py FOLDER" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", ["sentence_transformers_trainer", "clip_loop"])
def test_the_example_scripts_run(script, clip, tmp_path):
    path = ROOT / "docs" / "examples" / f"{script}.py"
    assert path.read_text(encoding="utf-8").count("\n") <= 60
    done = subprocess.run([sys.executable, path, clip], cwd=tmp_path, capture_output=True,
                          text=True, timeout=300, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rsum" in done.stdout.splitlines()[-1]


def test_without_sentence_transformers_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers.base.evaluation", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs sentence-transformers: pip .*adapters\]"):
        type("Fresh", (ImageTextEvaluator,), {})([], [])


def test_the_tiny_clip_is_tiny(clip):
    from transformers import CLIPModel

    model = CLIPModel.from_pretrained(clip)
    assert sum(weight.numel() for weight in model.parameters()) < 80_000
    assert model.config.vision_config.image_size == SIZE
