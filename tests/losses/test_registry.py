"""What every loss on scores must do; a loss without an oracle is red here."""

import doctest
import importlib
import inspect
import pkgutil
import sys

import numpy as np
import pytest
import torch

import itr_study.losses
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses._batch import read_batch
from itr_study.losses._hinge import sum_by_sorting
from itr_study.losses.base import RankingLoss
from tests.losses.batches import graded_batch, random_batch, random_output

ALL = LOSSES | OUTPUT_LOSSES
# Edges at which a loss that compares matches with the rest is 0 without a gradient; an oracle whose
# loss differs says so by SILENT.
SILENT = {"one pair", "no negative", "all relevant", "no match"}
EDGES = {  # scores, relevance
    "one pair": ([[0.3]], [[1]]),
    "no negative": ([[0.4, 0.41]], [[1, 1]]),
    "all tied": ([[0.5] * 7] * 7, torch.eye(7).tolist()),
    "all relevant": ([[0.1, 0.2], [0.3, 0.4]], [[1, 1], [1, 1]]),
    "no match": ([[0.1, 0.2], [0.3, 0.4]], [[0, 0], [0, 0]]),
    "scores of 1e4": ([[1e4 * (-1) ** (i + t + 1) for t in range(7)] for i in range(7)],
                      torch.eye(7).tolist()),
}


def cases(name):
    return importlib.import_module(f"tests.oracles.{name}")


def tensors(scores, relevance, dtype=torch.float64):
    return torch.tensor(scores, dtype=dtype), torch.tensor(relevance, dtype=dtype)


def test_every_file_is_registered():
    files = {m.name for m in pkgutil.iter_modules(itr_study.losses.__path__)}
    assert {name for name in files if not name.startswith("_")} == set(ALL) | {"base"}


@pytest.mark.parametrize("name", ALL)
def test_class_tells_what_it_is(name):
    loss = ALL[name]
    assert issubclass(loss, RankingLoss) and loss.__name__.endswith("Loss")
    assert loss.name == name and loss.source and 3 <= len(loss.label) <= 20
    assert type(loss.version) is int and loss.version >= 1
    assert loss.labels in ("binary", "unit", "cosine")
    assert loss.takes == ("output" if name in OUTPUT_LOSSES else "scores")
    assert not list(loss().parameters()) and not list(loss().buffers())


def test_every_label_is_its_own():
    assert len({loss.label for loss in ALL.values()}) == len(ALL)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_without_numbers_of_its_own_is_diagnosed_by_its_value(name):
    scores, relevance = random_batch(0)
    loss = LOSSES[name]()
    value, numbers = loss.diagnose(scores, relevance)
    torch.testing.assert_close(value, loss(scores, relevance))
    assert all(number.shape == () for number in numbers.values())
    assert bool(numbers) == (name == "smooth_ndcg")


@pytest.mark.parametrize("name", LOSSES)
def test_example_in_docstring(name):
    result = doctest.testmod(sys.modules[LOSSES[name].__module__])
    assert result.attempted and not result.failed


# They order a list by its labels, also where its match is elsewhere.
ON_THE_LIST = {"smooth_ndcg", "listnet", "approx_ndcg", "kendall", "kendall_window", "ladder"}


@pytest.mark.parametrize("name", LOSSES)
def test_without_any_match_only_losses_on_the_list_have_something_to_say(name):
    """What compares matches with the rest is 0 there, and moves nothing."""
    scores, relevance = graded_batch(0)
    relevance = relevance.clamp(0 if LOSSES[name].labels == "unit" else -1, 0.8)
    value = LOSSES[name]()(scores.requires_grad_(), relevance)
    value.backward()
    assert (value != 0) == scores.grad.any() == (name in ON_THE_LIST)


@pytest.mark.parametrize("name", LOSSES)
def test_hand_worked_values(name):
    assert cases(name).HAND
    for arguments, scores, relevance, expected in cases(name).HAND:
        value = LOSSES[name](**arguments)(*tensors(scores, relevance))
        assert value.item() == pytest.approx(expected, abs=1e-9)
        slow = cases(name).oracle(scores, relevance, **arguments)
        assert slow == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("make", [random_batch, graded_batch])
def test_equals_slow_oracle(name, make):
    for seed in range(50):
        scores, relevance = make(seed)
        if LOSSES[name].labels == "unit":
            relevance = relevance.clamp(min=0)
        ours = LOSSES[name]()(scores, relevance)
        assert ours.shape == () and ours.dtype == torch.float64
        expected = cases(name).oracle(scores.tolist(), relevance.tolist())
        assert ours.item() == pytest.approx(expected, abs=1e-9), seed


@pytest.mark.parametrize("make", [random_batch, graded_batch])
def test_sums_of_hinges_by_sorting_are_those_by_listing(make):
    for seed in range(20):
        scores, relevance = make(seed)
        match = relevance == 1
        raised = (scores + 0.2 * relevance).masked_fill(match, -torch.inf)
        for axis in ((raised, scores, match), (raised.T, scores.T, match.T)):
            listed = [sum((axis[0][q] - axis[1][q, t]).relu().sum()
                          for t in axis[2][q].nonzero()[:, 0]) for q in range(len(axis[0]))]
            assert sum_by_sorting(*axis).tolist() == pytest.approx(
                [float(value) for value in listed], abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_batch_order_does_not_matter(name, seed):
    scores, relevance = random_batch(seed)
    g = torch.Generator().manual_seed(seed)
    rows, columns = (torch.randperm(n, generator=g) for n in scores.shape)
    shuffled = LOSSES[name]()(scores[rows][:, columns], relevance[rows][:, columns])
    torch.testing.assert_close(shuffled, LOSSES[name]()(scores, relevance))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_both_directions_are_treated_alike(name, seed):
    scores, relevance = random_batch(seed)
    torch.testing.assert_close(LOSSES[name]()(scores.T, relevance.T),
                               LOSSES[name]()(scores, relevance))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_right_and_points_the_right_way(name, seed):
    scores, relevance = random_batch(seed)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: LOSSES[name]()(s, relevance), (scores,))
    LOSSES[name]()(scores, relevance).backward()
    match = relevance == 1
    assert scores.grad[match].sum() < 0
    assert scores.grad[~match].sum() > 0
    if vars(cases(name)).get("PULLS", True):
        assert (scores.grad[match] <= 0).all() and (scores.grad[~match] >= 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_edge_case(name, edge, dtype):
    scores, relevance = tensors(*EDGES[edge], dtype=dtype)
    scores.requires_grad_()
    value = LOSSES[name]()(scores, relevance)
    value.backward()
    assert value.isfinite() and scores.grad.isfinite().all()
    silent = vars(cases(name)).get("SILENT", SILENT)
    assert (value.item() == 0 and not scores.grad.any()) == (edge in silent)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("where", [(0, 0), (0, 1), (3, 6), (6, 6)])
def test_nan_is_not_hidden(name, where):
    scores = torch.rand(7, 7, generator=torch.Generator().manual_seed(0))
    scores[where] = torch.nan
    assert LOSSES[name]()(scores, torch.eye(7)).isnan()


@pytest.mark.parametrize("name", LOSSES)
def test_half_precision_scores_are_widened(name):
    scores, relevance = random_batch(0)
    scores, relevance = scores.bfloat16(), relevance.float()
    with torch.autocast("cpu", torch.bfloat16):
        value = LOSSES[name]()(scores, relevance)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), LOSSES[name]()(scores.double(), relevance.double()))


@pytest.mark.parametrize("name", LOSSES)
def test_a_bool_mask_serves_as_binary_labels(name):
    if LOSSES[name].labels == "binary":
        scores, relevance = random_batch(0)
        loss = LOSSES[name]()
        assert loss(scores, relevance == 1).item() == loss(scores, relevance).item()


@pytest.mark.parametrize("name", ALL)
def test_repr_shows_every_argument(name):
    shown = repr(ALL[name]())
    assert all(f"{argument}={parameter.default!r}" in shown
               for argument, parameter in inspect.signature(ALL[name]).parameters.items())


IDS = torch.tensor([0, 1, 2, 3, 0, 5, 1])  # of seven pairs
TAKES_MATCHES = [name for name in ALL if ALL[name].labels != "cosine"]


@pytest.mark.parametrize("name", TAKES_MATCHES)
def test_ids_and_nothing_stand_for_matches(name):
    output = random_output(0, images=7)[0]
    loss, given = ALL[name](), output if name in OUTPUT_LOSSES else output.scores
    for short, images, texts in (((), torch.arange(7), torch.arange(7)), ((IDS,), IDS, IDS),
                                 (((IDS, IDS + 1),), IDS, IDS + 1)):
        relevance = (images[:, None] == texts).double()
        assert loss(given, *short).item() == loss(given, relevance).item()


def test_matches_of_scores_that_are_not_square_and_of_losses_on_cosines_must_be_given():
    topk, scores, images = LOSSES["topk"](k=1), torch.rand(2, 3), torch.tensor([4, 7])
    texts = torch.tensor([7, 4, 4])
    assert topk(scores, (images, texts)) == topk(scores, torch.tensor([[0.0, 1, 1], [1, 0, 0]]))
    for ids, message in ((None, r"\(2, 3\) are not square.*\(image_ids, text_ids\)"),
                         (images, r"one for each image.*\(2, 3\); got \[\(2,\), \(2,\)\]; for"),
                         ((images,), "one for each image"), ((images, [7, 4, 4]), "whole.*list"),
                         ((images.float(), texts), "whole numbers, got torch.float32")):
        with pytest.raises(ValueError, match=message):
            topk(scores, ids)
    for name in set(ALL) - set(TAKES_MATCHES):
        with pytest.raises(ValueError, match=r"graded relevance in \[-1, 1\].*sentence vectors"):
            LOSSES[name]()(torch.rand(3, 3))


def test_matches_that_are_not_given_can_be_differentiated_mapped_and_compiled():
    loss, scores = LOSSES["triplet_hardest"](), torch.rand(3, 4, 4)
    relevance = torch.eye(4)
    torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(scores), torch.stack([
        torch.func.grad(loss)(one, relevance) for one in scores]))
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    assert compiled(scores[0]) == loss(scores[0], relevance)


@pytest.mark.parametrize(("scores", "relevance", "message"), [
    (torch.zeros(2, 3), torch.eye(2), r"n_images, n_texts.*\(2, 3\) and \(2, 2\)"),
    (torch.zeros(2), torch.ones(2), "n_images, n_texts"),
    (torch.zeros(0, 3), torch.zeros(0, 3), "at least 1 x 1"),
    (torch.zeros(2, 2, dtype=torch.int64), torch.eye(2), "floating point, got torch.int64"),
    (torch.zeros(2, 2), 2 * torch.eye(2), "exactly 1 for a match.*to 2.0"),
    (torch.zeros(2, 2), torch.full((2, 2), 0.99995), "some between"),
    (torch.zeros(2, 2), torch.tensor([[1, torch.nan], [0, 1]]), "exactly 1 for a match.*nan"),
    (torch.zeros(2, 2), torch.full((2, 2), -1.5), "exactly 1 for a match.*-1.5"),
    (np.zeros((2, 2)), torch.eye(2), "scores must be a torch tensor, got ndarray"),
    ([[0.0]], torch.eye(1), "scores must be a torch tensor, got list"),
    (torch.zeros(2, 2), np.eye(2), "relevance must be a torch tensor, got ndarray"),
    (torch.zeros(2, 2), torch.eye(2).half(), "float32 or float64.*float16"),
    (torch.zeros(2, 2), torch.eye(2).long(), "float32 or float64.*int64"),
])
@pytest.mark.parametrize("labels", ["binary", "unit", "cosine"])
def test_a_bad_batch_is_refused(labels, scores, relevance, message):
    with pytest.raises(ValueError, match=message):
        read_batch(scores, relevance, labels)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_refuses_a_bad_batch_as_read_batch_does(name):
    scores, relevance = random_batch(0)
    below = -0.5 if LOSSES[name].labels == "unit" else -1.5
    with pytest.raises(ValueError, match="n_images, n_texts"):
        LOSSES[name]()(scores[:, :-1], relevance)
    with pytest.raises(ValueError, match="exactly 1 for a match"):
        LOSSES[name]()(scores, relevance.where(relevance == 1, below))


BAD_ARGUMENTS = [("margin", -0.1), ("margin", True), ("margin", float("nan")),
                 ("reduction", "max"), ("k", 0), ("k", 2.0), ("k", True), ("scale", 0),
                 ("temperature", 0), ("temperature", "low"),
                 ("bias", float("inf")), ("alpha", 0), ("relevance_temperature", -1),
                 ("relaxation", -0.1), ("relaxation", 2.0), ("relaxation", float("nan")),
                 ("stride", 0), ("stride", -1), ("stride", 1.9), ("hard", "yes"),
                 ("negatives", "random"), ("thresholds", (0.5, 0.7)), ("thresholds", (-1,)),
                 ("margins", (-0.1, 0.2)), ("margins", (0.2,)), ("weights", (-1,))]


@pytest.mark.parametrize(("argument", "value"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_by_every_loss_that_has_them(argument, value):
    having = [loss for loss in LOSSES.values() if argument in loss.__init__.__annotations__]
    assert having
    for loss in having:
        with pytest.raises(ValueError, match=argument):
            loss(**{argument: value})
