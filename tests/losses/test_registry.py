"""What every loss on scores must do; a loss without an oracle is red here."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import torch

import itr_study.losses
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses._batch import read_batch
from itr_study.losses._hinge import sum_by_sorting
from itr_study.losses.check import EDGES, check_loss
from tests.losses.batches import graded_batch, random_batch, random_output

ALL = LOSSES | OUTPUT_LOSSES
# Edges at which a loss that compares matches with the rest is 0 without a gradient; an oracle whose
# loss differs says so by SILENT.
SILENT = {"one pair", "no negative", "all relevant", "no match"}


def cases(name):
    return importlib.import_module(f"tests.oracles.{name}")


def tensors(scores, relevance, dtype=torch.float64):
    return torch.tensor(scores, dtype=dtype), torch.tensor(relevance, dtype=dtype)


def test_every_file_is_registered():
    files = {m.name for m in pkgutil.iter_modules(itr_study.losses.__path__)}
    assert {name for name in files if not name.startswith("_")} == set(ALL) | {"base", "check"}


@pytest.mark.parametrize("name", ALL)
def test_a_registered_loss_keeps_the_rules(name):
    assert check_loss(ALL[name]) == ([], [])
    assert ALL[name].takes == ("output" if name in OUTPUT_LOSSES else "scores")
    assert ALL[name].__name__.endswith("Loss")
    assert not list(ALL[name]().parameters()) and not list(ALL[name]().buffers())


def test_every_label_is_its_own():
    assert len({loss.display_name for loss in ALL.values()}) == len(ALL)


# They order a list by its labels, also where its match is elsewhere.
ON_THE_LIST = {"smooth_ndcg", "listnet", "approx_ndcg", "kendall", "kendall_window", "ladder",
               "soft_labels"}


@pytest.mark.parametrize("name", LOSSES)
def test_without_any_match_only_losses_on_the_list_have_something_to_say(name):
    """What compares matches with the rest is 0 there, and moves nothing."""
    scores, relevance = graded_batch(0)
    relevance = relevance.clamp(0 if LOSSES[name].relevance_scale == "unit" else -1, 0.8)
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
        if LOSSES[name].relevance_scale == "unit":
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
def test_gradient_is_right_and_points_the_right_way(name):
    for seed in range(4):
        scores, relevance = random_batch(seed)
        assert torch.autograd.gradcheck(LOSSES[name](), (scores.requires_grad_(), relevance))
        LOSSES[name]()(scores, relevance).backward()
        assert not vars(cases(name)).get("PULLS", True) or (
            scores.grad * (2 * relevance - 1) <= 0).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("edge", EDGES)
def test_edges_at_which_nothing_is_left_to_learn(name, edge):
    scores, relevance = tensors(*EDGES[edge])
    value = LOSSES[name]()(scores.requires_grad_(), relevance)
    value.backward()
    silent = vars(cases(name)).get("SILENT", SILENT)
    assert (value.item() == 0 and not scores.grad.any()) == (edge in silent)


@pytest.mark.parametrize("name", ALL)
def test_repr_shows_every_argument(name):
    shown = repr(ALL[name]())
    assert all(f"{argument}={parameter.default!r}" in shown
               for argument, parameter in inspect.signature(ALL[name]).parameters.items())


IDS = torch.tensor([0, 1, 2, 3, 0, 5, 1])  # of seven pairs
TAKES_MATCHES = [name for name in ALL if ALL[name].relevance_scale != "cosine"]


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


BAD_ARGUMENTS = [("margin", -0.1), ("margin", True), ("margin", float("nan")),
                 ("reduction", "max"), ("k", 0), ("k", 2.0), ("k", True), ("scale", 0),
                 ("temperature", 0), ("temperature", "low"),
                 ("bias", float("inf")), ("alpha", 0), ("relevance_temperature", -1),
                 ("relaxation", -0.1), ("relaxation", 2.0), ("relaxation", float("nan")),
                 ("stride", 0), ("stride", -1), ("stride", 1.9), ("hard", "yes"),
                 ("negatives", "random"), ("thresholds", (0.5, 0.7)), ("thresholds", (-1,)),
                 ("margins", (-0.1, 0.2)), ("margins", (0.2,)), ("weights", (-1,)),
                 ("rank_temperature", 0), ("ks", ()), ("ks", 5), ("ks", (0,)), ("ks", (1.5,))]


@pytest.mark.parametrize(("argument", "value"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_by_every_loss_that_has_them(argument, value):
    having = [loss for loss in LOSSES.values() if argument in loss.__init__.__annotations__]
    assert having
    for loss in having:
        with pytest.raises(ValueError, match=argument):
            loss(**{argument: value})
