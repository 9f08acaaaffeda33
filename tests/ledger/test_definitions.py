"""Definitions and theorems of the papers that no test of a part holds as they are worded.

claims.csv names the test of each claim of kind "definition" or "misprint"; the last test here
checks that every name is one.
"""

import ast
import heapq
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from itr_study.data.batches import EncodedSplit
from itr_study.data.scenes import load as scenes
from itr_study.encoders.ngrams import Ngrams
from itr_study.encoders.sentences import MiniLM
from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.ledger.verdict import HELD
from itr_study.losses import LOSSES
from itr_study.losses._ranks import smooth_rank
from itr_study.metrics import first
from itr_study.models import MODELS
from itr_study.plots import active_width
from itr_study.relevance import RELEVANCE
from itr_study.rerank import RERANKERS
from itr_study.training.objective import Objective, Term
from tests.losses.batches import graded_batch, random_batch
from tests.relevance.test_sentence import small_split
from tests.small import SmallData

ROOT = Path(__file__).parents[2]


def true_rank(scores: torch.Tensor) -> torch.Tensor:
    """1 + how many of the row score higher (listwise Eq. 10)."""
    return 1 + (scores[:, None, :] > scores[:, :, None]).sum(dim=2)


def shares_and_bounds(first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """dvse Eq. 14 on cosines above 0: the share of every pair in its column, and its bound."""
    scores = np.random.default_rng(0).uniform(0, 1, (6, 8))
    share = np.exp(second * scores) / np.exp(first * scores).sum(axis=0)
    largest = np.array([np.delete(scores, image, axis=0).max(axis=0) for image in range(6)])
    return share, 1 / (1 + np.exp(first * largest - second * scores))


def test_a_share_is_at_most_what_the_largest_other_score_allows():
    """dvse Eq. 13; the pair's own column, without the pair."""
    share, bound = shares_and_bounds(1, 1)
    assert (share <= bound).all() and (share < bound).any()


def test_the_bound_of_two_scales_holds_where_the_first_is_at_least_the_second():
    """dvse Eq. 14 states it for any two."""
    share, bound = shares_and_bounds(9, 8)
    assert (share <= bound).all()
    share, bound = shares_and_bounds(8, 17)
    assert (share > bound).any() and share.max() > 1


def test_a_match_inside_the_top_k_pays_the_loss_that_is_trained():
    """topk Eqs. 7-10 promise that it does not; by Eq. 8 it does not, even by the surrogate it does,
    without any margin."""
    scores, relevance = torch.tensor([[0.5, 0.9, 0.4]]), torch.tensor([[1.0, 0, 0]])
    assert true_rank(scores)[0, 0] == 2  # the second of the list, k = 2
    initial, trained = (LOSSES[name](k=2, margin=0.0) for name in ("kth", "topk"))
    assert initial(scores, relevance).item() == 0
    assert trained(scores, relevance).item() == pytest.approx((0.9 + 0.4) / 2 - 0.5)


@pytest.mark.parametrize("name", list(MODELS))
def test_a_loss_leaves_nothing_in_the_model_that_a_test_would_compute(name):
    """listwise Table VIII: a model trained beside Smooth-NDCG scores by the same weights and steps
    as one trained without."""
    inputs = replace(SmallData().inputs, sentence_size=12)
    batch = replace(SmallData().splits["train"].pair_batch(range(16)),
                    sentences=torch.ones(16, 12))
    modules = []
    for terms in (["triplet_hardest"], ["triplet_hardest", "smooth_ndcg"]):
        torch.manual_seed(0)
        model = MODELS[name](inputs, size=8)
        relevance = torch.where(batch.match, 1.0, 0.5)
        sum(LOSSES[term]()(model(batch).scores, relevance) for term in terms).backward()
        modules.append({path: type(module) for path, module in model.named_modules()})
        assert not any(module._forward_hooks for module in model.modules())
        modules.append({path: value.shape for path, value in model.state_dict().items()})
    assert modules[:2] == modules[2:]


def test_with_k_2_the_match_must_exceed_the_third_score_of_the_list():
    """topk Fig. 2, of the original loss: the match is one of the list, second or better."""
    pays = LOSSES["kth"](k=2, margin=0.2)
    relevance = torch.tensor([[1.0, 0, 0, 0]])
    for match, others in itertools.product((0.61, 0.59), ([0.7, 0.4, 0.1], [0.2, 0.4, 0.7])):
        scores = torch.tensor([[match, *others]])
        third = scores.sort(descending=True).values[0, 2]  # 0.4: the match is second
        assert bool(pays(scores, relevance) > 0) == bool(match < third + 0.2)


def test_the_smaller_tau_the_closer_is_the_sigmoid_to_the_step():
    """listwise Eq. 15: the error of a pair, and with it of a rank, falls to 0."""
    scores = random_batch(0)[0].double()
    errors = [(smooth_rank(scores, tau) - true_rank(scores)).abs().max().item()
              for tau in (1.0, 0.1, 0.01, 1e-3, 1e-6)]
    assert errors == sorted(errors, reverse=True) and errors[0] > 0.5 and errors[-1] < 1e-6
    apart = torch.tensor([[0.0, 0.3]]).double()  # one pair: 1 / (1 + exp(0.3 / tau))
    for tau in (1.0, 0.1):
        assert smooth_rank(apart, tau)[0, 1].item() == pytest.approx(
            1 + 1 / (1 + np.exp(0.3 / tau)))


def test_the_sign_of_eq_16_puts_the_list_upside_down():
    """listwise Eq. 16 as printed, at tau = 1: every place is N + 1 - the right one."""
    scores = random_batch(1)[0].double()
    n = scores.shape[1]
    apart = scores[:, None, :] - scores[:, :, None]  # (I, j, k): s_k - s_j
    off_diagonal = 1 - torch.eye(n)
    right, printed = (1 + (torch.sigmoid(sign * apart) * off_diagonal).sum(dim=2)
                      for sign in (1, -1))
    torch.testing.assert_close(smooth_rank(scores, 1.0), right)
    torch.testing.assert_close(printed, n + 1 - right)


def test_a_larger_tau_activates_more_and_errs_more():
    """listwise Fig. 4."""
    taus = (0.003, 0.01, 0.03, 0.1, 0.3)
    scores = random_batch(2)[0].double()
    widths = [active_width(tau) for tau in taus]
    errors = [(smooth_rank(scores, tau) - true_rank(scores)).abs().mean().item() for tau in taus]
    assert widths == sorted(widths) and errors == sorted(errors)
    assert widths[-1] > 10 * widths[0] and errors[-1] > 10 * errors[0]


@pytest.mark.parametrize("loss", ["smooth_ndcg", "kendall_window"])
@pytest.mark.parametrize("name", MODELS)
def test_a_branch_on_lists_goes_with_every_model(name, loss):
    """listwise Fig. 2, bcls Fig. 2: it reads scores and labels, and its gradient reaches all."""
    data, sentences = SmallData(), torch.randn(16, 12)
    torch.manual_seed(0)
    model = MODELS[name](replace(data.inputs, sentence_size=12), size=8)
    batch = replace(data.splits["train"].pair_batch(range(16)), sentences=sentences)
    graded = torch.rand(16, 16) * 0.9
    relevance = torch.where(batch.match, 1.0, graded)
    LOSSES[loss]()(model(batch).scores, relevance).backward()
    gradients = [p.grad for p in model.parameters() if p.requires_grad]
    assert gradients and all(grad is not None and grad.isfinite().all() for grad in gradients)
    assert all(grad.abs().sum() > 0 for grad in (gradients[0], gradients[-1]))
    assert Objective([Term("triplet_hardest"), Term(LOSSES[loss](), labels="sentence",
                          label_arguments={"scale": LOSSES[loss].relevance_scale})
                      ]).names == ["triplet_hardest", loss]


@pytest.mark.parametrize("name", ["kendall", "kendall_window"])
def test_equal_scores_are_a_flat_minimum_of_the_kendall_loss(name):
    """bcls Eqs. 4 and 17-19 have no margin: value and gradient 0, though no order is learnt."""
    _, relevance = graded_batch(3)
    scores = torch.full_like(relevance, 0.3, requires_grad=True)
    value = LOSSES[name]()(scores, relevance)
    value.backward()
    assert value.item() == 0 and (scores.grad == 0).all()
    wrong = LOSSES[name]()(-relevance, relevance)
    assert wrong.item() > 0.1  # it is no loss that is always 0


def test_kendall_on_binary_labels_is_the_triplet_loss_of_margin_0():
    """bcls Eqs. 10-11, for alpha = 0: the only pairs left hold the match."""
    for seed in range(5):
        scores, _ = random_batch(seed)
        relevance = torch.eye(*scores.shape, dtype=scores.dtype)
        kendall = LOSSES["kendall"](relaxation=0.0, reduction="sum")(scores, relevance)
        triplet = LOSSES["triplet_sum"](margin=0.0, reduction="sum")(scores, relevance)
        assert kendall.item() == pytest.approx(triplet.item()) and triplet.item() > 0


@pytest.mark.parametrize("scale", ["unit", "cosine"])
def test_negatives_are_the_pairs_whose_label_is_below_1(scale):
    """bcls Eqs. 10 and 13: captions of the same image have label 1, and only they."""
    split = small_split()
    relevance = RELEVANCE["sentence"](scale=scale).block(split, slice(None))
    own = split.image_of_text == np.arange(split.n_images)[:, None]
    assert ((relevance < 1) == ~own).all() and own.sum() > split.n_images


def counted_losses(scores, relevance, margin=0.2, tau=0.1):
    """The sum over negatives and Smooth-NDCG by loops, of pairs on the diagonal, and how many
    differences of scores each takes: [(value, count), (value, count)]."""
    counts = {"hinges": 0, "ranks": 0}

    def apart(which, a, b):
        counts[which] += 1
        return a - b

    n, hinges, errors = len(scores), 0.0, 0.0
    for s, r in ((scores, relevance), (scores.T, relevance.T)):
        for i in range(n):
            hinges += sum(max(0.0, margin + apart("hinges", s[i, j], s[i, i]))
                          for j in range(n) if j != i)
            ranks = [1 + sum(1 / (1 + np.exp(-apart("ranks", s[i, k], s[i, j]) / tau))
                             for k in range(n) if k != j) for j in range(n)]
            gains, ideal = 2 ** r[i] - 1, np.sort(2 ** r[i] - 1)[::-1]
            errors += 1 - (gains / np.log2(1 + np.array(ranks))).sum() / (
                ideal / np.log2(2 + np.arange(n))).sum()
    return [(hinges, counts["hinges"]), (errors, counts["ranks"])]


def test_smooth_ndcg_takes_a_batch_times_as_many_differences_as_the_triplet_loss():
    """listwise Sec. III-E: N^3 against N^2, of a batch of N pairs, in both directions."""
    for n in (4, 8, 16):
        scores = np.random.default_rng(n).uniform(-1, 1, (n, n))
        relevance = np.random.default_rng(n + 1).uniform(0, 0.9, (n, n))
        np.fill_diagonal(relevance, 1)
        found = counted_losses(scores, relevance)
        given = torch.from_numpy(scores), torch.from_numpy(relevance)
        losses = (LOSSES["triplet_sum"](margin=0.2, reduction="sum"),
                  LOSSES["smooth_ndcg"](temperature=0.1, reduction="sum"))
        assert [value for value, _ in found] == pytest.approx(
            [loss(*given).item() for loss in losses])
        assert [count for _, count in found] == [2 * n * (n - 1), 2 * n * n * (n - 1)]


class Counted:
    """Scores (queries, candidates) that count how many of them are read."""

    def __init__(self, scores):
        self.scores, self.reads, self.shape = scores, 0, scores.shape

    def __getitem__(self, at):
        part = self.scores[at]
        self.reads += part.size
        return part


def fast_by_reading(scores, scale):
    """dvse Eq. 13: of each query its first 10."""
    total = [np.exp(scale * scores[:, j]).sum() for j in range(scores.shape[1])]
    return [heapq.nlargest(10, range(len(total)), (scale * scores[i] - np.log(total)).__getitem__)
            for i in range(scores.shape[0])]


def lists_by_reading(scores, k, multi):
    """RR, or MR with w1 = 1 and w2 = 0.7, without a sort: of each query its first k."""
    if multi:
        total = [(1 + scores[:, j].astype(float)).sum() for j in range(scores.shape[1])]
    lists = []
    for i in range(scores.shape[0]):
        row = scores[i].astype(float)
        found = heapq.nlargest(k, range(len(row)), row.__getitem__)  # log k comparisons a score
        better = [(scores[:, j] > row[j]).sum() for j in found]  # candidate j's other queries
        new = sorted(range(k), key=better.__getitem__)
        if multi:
            value = {place: (1 + row[found[place]]) / total[found[place]]
                     + np.exp(-0.05 * (place + 1)) + 0.7 * np.exp(-0.05 * (new.index(place) + 1))
                     for place in new}
            new = sorted(value, key=lambda place, value=value: (-value[place], place))
        lists.append([found[place] for place in new])
    return lists


@pytest.mark.parametrize("name", RERANKERS)
def test_a_reranker_reads_each_score_so_many_times_whatever_their_number(name):
    """dvse Sec. IV-B, "all O(n)": so in the number of scores, at five texts an image, and no sort
    is needed. In the number of images the work is quadratic."""
    by_pair = []
    for images in (30, 60, 90):
        scores = np.random.default_rng(images).uniform(-1, 1, (images, 5 * images))
        reads = 0
        for way, matrix, k, scale in zip(("i2t", "t2i"), (scores, scores.T), (15, 20), (25, 20),
                                         strict=True):
            k = {"fast": 10, "reciprocal": k, "multi": 30}[name]
            counted = Counted(matrix)
            lists = fast_by_reading(counted, scale) if name == "fast" else \
                lists_by_reading(counted, k, name == "multi")
            reads += counted.reads
            assert lists == first(RERANKERS[name](scores), k)[way].tolist()
        by_pair.append(reads / scores.size)
    # Both ways: a row each; of FR a column each, of MR too; and k columns of each row, 1 / 5 or 5
    # times as many scores as the matrix has.
    assert by_pair == [{"fast": 4, "reciprocal": 2 + 15 / 5 + 20 * 5,
                        "multi": 4 + 30 / 5 + 30 * 5}[name]] * 3


def described(maker, images=24):
    """Pictures of scenes with their captions, and what a maker of labels reads of these."""
    texts = scenes.load(train=1, dev=1, test=images).splits["test"]
    if maker == "sentence":
        pytest.importorskip("all_minilm_l6_v2")
        vectors = {"minilm": MiniLM().encode(texts.texts)}
    else:
        vectors = {"cider": Ngrams().fit(texts.texts, texts.image_of_text).encode(texts.texts)}
    return EncodedSplit("test", texts.image_of_text, np.zeros((images, 1, 1, 2), np.float32),
                        label_vectors=vectors)


@pytest.mark.parametrize("maker", ["cider", "sentence"])
def test_labels_are_binary_or_continuous_and_the_ladder_reads_levels(maker):
    """bcls Table I, Sec. II: two values, or of an image nearly as many as texts. The ladder loss
    is the same if these are rounded to the levels between its thresholds; SAM's and ours differ."""
    split = described(maker)
    others = split.image_of_text != np.arange(split.n_images)[:, None]
    binary = RELEVANCE["binary"]().block(split, slice(None))
    assert set(binary[others]) == {0} and set(binary[~others]) == {1}
    graded = RELEVANCE[maker]().block(split, slice(None))  # in [0, 1]
    counts = [len(set(row[other])) for row, other in zip(graded, others, strict=True)]
    assert min(counts) > 0.8 * others[0].sum()
    thresholds = np.quantile(graded[others], (0.5, 0.9))
    level = np.searchsorted(thresholds, graded, "right")
    places = np.array([graded.min(), thresholds.mean(), (thresholds[1] + 1) / 2], np.float32)
    levels = np.where(others, places[level], np.float32(1))
    assert len(set(levels[others])) == 3
    ladder = {"thresholds": [2 * at - 1 for at in thresholds[::-1].tolist()],
              "margins": (0.2, 0.1, 0.1), "weights": (1, 1)}
    scores = torch.rand(graded.shape, generator=torch.Generator().manual_seed(0))
    same = {}
    for name, arguments in {"ladder": ladder, "semantic_margin": {}, "kendall_window": {}}.items():
        loss = LOSSES[name](**arguments)
        one, other = (loss(scores, torch.from_numpy(
            labels if loss.relevance_scale == "unit" else 2 * labels - 1)).item()
            for labels in (graded, levels))
        assert one > 0
        same[name] = one == other
    assert same == {"ladder": True, "semantic_margin": False, "kendall_window": False}


def test_every_test_that_claims_name_exists():
    """A definition names the tests that hold it as file::function, each of them there."""
    named = 0
    for claim in load_claims().to_dict("records"):
        assert bool(claim["test"]) == (claim["kind"] in HELD), claim["id"]
        for name in split_list(claim["test"]):
            file, _, function = name.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body
                                if isinstance(node, ast.FunctionDef)}, f"{claim['id']}: {name}"
            assert function.startswith("test_") and file.startswith("tests/"), claim["id"]
            named += 1
    assert named > 20
