"""Objectives: weighted sums, sources computed once, diagnostics, and wrong pairings refused."""

import copy
import doctest
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import itr_study.training.objective as module
from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.losses.base import RankingLoss
from itr_study.models.base import ModelOutput
from itr_study.relevance import RELEVANCE
from itr_study.training.objective import OBJECTIVES, Objective, Term
from tests.relevance.test_registry import small_split


class Labels:
    """A label source that counts its calls."""

    name, version = "counted", 3

    def __init__(self, scale="binary"):
        self.scale, self.calls = scale, 0

    def __call__(self, batch, split):
        self.calls += 1
        return batch.match.float()


class Reporting(nn.Module):
    """A user's own loss, with a weight to learn and diagnostics."""

    def __init__(self, labels="unit"):
        super().__init__()
        self.relevance_scale = labels
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, scores, relevance):
        return self.factor * (scores * relevance).sum()

    def diagnose(self, scores, relevance):
        return self(scores, relevance), {"best": scores.max(), "labels": relevance.sum()}


class OnOutput(nn.Module):
    takes = "output"

    def forward(self, output, relevance):
        return output.subembeddings.square().sum()


def setting(texts=(6, 0, 3, 8)):
    split = small_split()
    batch = split.pair_batch(np.array(texts))
    scores = torch.rand(batch.match.shape, generator=torch.Generator().manual_seed(0))
    return ModelOutput(scores.requires_grad_()), batch, split


def test_example_in_docstring():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("name", [*OBJECTIVES, *LOSSES, *OUTPUT_LOSSES])
def test_every_objective_and_every_loss_is_one_by_name(name):
    terms = Objective(name).terms
    labels = {"labels": "sentence", "label_arguments": {"scale": "cosine"}}
    if name in LOSSES and LOSSES[name].relevance_scale == "cosine":  # refuses binary labels
        assert terms == (Term(name, **labels),)
    else:
        assert terms == OBJECTIVES.get(name, (Term(name),))


def test_triplet_is_the_hardest():
    output, batch, split = setting()
    value, parts = Objective("triplet")(output, batch, split)
    assert list(parts) == ["triplet_hardest"]
    expected = LOSSES["triplet_hardest"]()(output.scores, batch.match)
    assert value.item() == expected.item() == parts["triplet_hardest"].item()


def sentence_setting():
    """As setting, with sentence vectors of every text."""
    output, batch, split = setting()
    vectors = np.random.default_rng(0).normal(size=(split.n_texts, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return output, batch, replace(split, label_vectors={"mine": vectors})


@pytest.mark.parametrize(("name", "first", "second", "scale"), [
    ("listwise", "triplet_hardest", "smooth_ndcg", "unit"),
    ("bcls", "triplet_soft", "kendall_window", "cosine")])
def test_objectives_of_the_papers(name, first, second, scale):
    """Two terms of weight 1: matches alone, and sentence labels on the scale of the paper."""
    output, batch, split = sentence_setting()
    terms = OBJECTIVES[name]
    assert [(t.loss, t.labels, t.weight) for t in terms] == [(first, "binary", 1.0),
                                                             (second, "sentence", 1.0)]
    own = {**terms[1].label_arguments, "vectors": "mine"}
    value, parts = Objective([terms[0], replace(terms[1], label_arguments=own)])(
        output, batch, split)
    labels = RELEVANCE["sentence"]("mine", scale=scale)(batch, split)
    assert labels.min() < (0.5 if scale == "unit" else 0)
    expected = (LOSSES[first]()(output.scores, batch.match).item(),
                LOSSES[second]()(output.scores, labels).item())
    assert (parts[first].item(), parts[second].item()) == expected
    assert value.item() == pytest.approx(sum(expected)) and value.item() > 0
    assert ("smooth_ndcg.error" in parts) == (name == "listwise")


def test_weighted_sum_of_terms_with_their_arguments_and_labels():
    output, batch, split = setting((0, 1, 2, 5))  # two texts of image 0
    negative = {"same_image": "negative"}
    objective = Objective([Term("topk", 0.5, arguments={"k": 2, "margin": 0.1}),
                           Term("topk", 3, arguments={"k": 2}, label_arguments=negative)])
    value, parts = objective(output, batch, split)
    first = LOSSES["topk"](k=2, margin=0.1)(output.scores, batch.match)
    second = LOSSES["topk"](k=2)(output.scores, torch.eye(4))
    assert value.item() == pytest.approx(0.5 * first.item() + 3 * second.item())
    assert list(parts) == ["topk", "topk#2"]
    assert parts["topk"].item() == first.item() and parts["topk#2"].item() == second.item()
    assert not any(part.requires_grad for part in parts.values())
    value.backward()
    assert output.scores.grad.any()


def test_each_distinct_source_is_computed_once():
    output, batch, split = setting()
    labels, other = Labels(), Labels()
    objective = Objective([Term("triplet_hardest", labels=labels), Term("info_nce", labels=labels),
                           Term("triplet_sum", labels=other)])
    objective(output, batch, split)
    assert (labels.calls, other.calls) == (1, 1)
    named = Objective([Term("triplet_hardest"), Term("triplet_sum"),
                       Term("info_nce", label_arguments={"same_image": "negative"})])
    assert len(named.sources) == 2


def test_labels_are_brought_to_a_scale_once():
    given, terms, labels = [], [], Labels("unit")
    for scale in ("cosine", "cosine", "unit"):
        terms.append(Term(Reporting(scale), labels=labels))
        terms[-1].loss.register_forward_pre_hook(lambda _, inputs: given.append(inputs[1]))
    Objective(terms)(*setting())
    assert given[0] is given[1] and given[0].min() == -1 and given[2].min() == 0


def test_own_losses_learn_and_report():
    output, batch, split = setting()
    objective = Objective([Term(Reporting(), 0.5), Term("triplet_sum")])
    value, parts = objective(output, batch, split)
    assert list(parts) == ["Reporting", "Reporting.best", "Reporting.labels", "triplet_sum"]
    assert parts["Reporting.best"].item() == output.scores.max().item()
    assert not parts["Reporting.best"].requires_grad
    assert [tuple(p.shape) for p in objective.parameters()] == [()]
    value.backward()
    assert objective.losses[0].factor.grad is not None


class Unmarked(Labels):
    """Labels of pairs alone: nobody has set the matches to 1."""

    def __call__(self, batch, split):
        return 0.9 * batch.match.float()


@pytest.mark.parametrize("loss", ["triplet_hardest", "listnet", "smooth_ndcg", "approx_ndcg"])
def test_a_batch_without_a_match_is_refused(loss):
    output, batch, split = setting()
    objective = Objective([Term(loss, labels=Unmarked("unit"))])
    with pytest.raises(ValueError, match="exactly 1 for a match, and this batch has none: the "
                                         "largest of its 16 values is 0.9"):
        objective(output, batch, split)


def test_weights_of_own_losses_keep_their_names_and_are_copied_with_the_objective():
    output, batch, split = setting()
    objective = Objective([Term(Reporting()), Term("triplet_sum")])
    assert list(objective.state_dict()) == ["losses.0.factor"]
    other = copy.deepcopy(objective)
    other.losses[0].factor.data.fill_(3.0)
    before, after = objective(output, batch, split)[1], other(output, batch, split)[1]
    assert before["Reporting"].item() * 1.5 == pytest.approx(after["Reporting"].item())


class Halved(RankingLoss):
    """A user's own class of ours: no name, no version, any labels."""

    def forward(self, scores, relevance):
        return scores.sum() / 2


def test_own_classes_leave_out_what_they_do_not_need():
    output, batch, split = setting()
    objective = Objective([Term(Halved(), labels=Labels("unit")), Term(Halved())])
    value, parts = objective(output, batch, split)
    assert value.item() == pytest.approx(output.scores.sum().item())
    assert list(parts) == ["Halved", "Halved#2"]


class Mistaken(OnOutput):
    takes = "outputs"


def test_losses_on_outputs_get_the_output():
    _, batch, split = setting()
    output = ModelOutput(torch.zeros(4, 4), subembeddings=torch.ones(4, 2, 3))
    value, _ = Objective([Term(OnOutput(), 2)])(output, batch, split)
    assert value.item() == 2 * 24


def test_losses_run_in_float32_inside_autocast():
    output, batch, split = setting()
    with torch.autocast("cpu", torch.bfloat16):
        objective = Objective([Term(Multiplying())])
        value, parts = objective(output, batch, split)
    assert value.dtype == parts["Multiplying"].dtype == torch.float32


class Multiplying(nn.Module):
    def forward(self, scores, relevance):
        return (scores @ relevance).sum()  # autocast would do this in bfloat16


@pytest.mark.parametrize(("labels", "scale", "allowed"), [
    ("binary", "binary", True), ("binary", "unit", True), ("binary", "cosine", True),
    ("unit", "binary", True), ("unit", "unit", True), ("unit", "cosine", True),
    ("cosine", "binary", False), ("cosine", "unit", True), ("cosine", "cosine", True)])
def test_pairing_of_scales(labels, scale, allowed):
    terms = [Term(Reporting(labels), labels=Labels(scale))]
    if allowed:
        Objective(terms)
        return
    with pytest.raises(ValueError, match="Reporting compares graded labels, and this source gives "
                       'binary ones; choose one of exact, sentence, .* such as labels="sentence"'):
        Objective(terms)


class Graded(Labels):
    """Labels of a scale that fall from 1, for a match, to its lower end."""

    def __call__(self, batch, split):
        low = -1.0 if self.scale == "cosine" else 0.0
        steps = torch.linspace(1 - 1e-4, low, batch.match.numel() - 1)  # the first pair is a match
        return torch.where(batch.match, 1.0, torch.cat((steps[:1], steps)).view(batch.match.shape))


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items()
                                  if loss.relevance_scale in ("unit", "cosine")])
def test_a_graded_loss_takes_graded_labels_of_either_scale(name):
    """By hand: 2 r - 1 of labels in [0, 1], (1 + r) / 2 of cosines; a match alone is 1."""
    output, batch, split = setting()
    shares, cosines = (Graded(scale)(batch, split) for scale in ("unit", "cosine"))
    own, other = ((cosines, 2 * shares - 1) if LOSSES[name].relevance_scale == "cosine"
                  else (shares, torch.where(batch.match, 1.0,
                                            ((1 + cosines) / 2).clamp(max=1 - 1e-4))))
    assert cosines[0, 1] == shares[0, 1] == torch.tensor(1 - 1e-4)  # as near to a match as may be
    for scale in ("unit", "cosine"):
        value, _ = Objective([Term(name, labels=Graded(scale))])(output, batch, split)
        expected = LOSSES[name]()(output.scores,
                                  own if scale == LOSSES[name].relevance_scale else other)
        assert value.item() == pytest.approx(expected.item(), abs=1e-6)


def test_sentence_labels_need_no_argument_for_a_loss_of_cosines():
    output, batch, split = sentence_setting()
    plain, cosine = (Objective([Term("kendall", labels="sentence", label_arguments={
        "vectors": "mine"} | more)])(output, batch, split)[0] for more in ({}, {"scale": "cosine"}))
    assert plain.item() == pytest.approx(cosine.item(), rel=1e-5) and plain.item() > 0


@pytest.mark.parametrize(("terms", "message"), [
    ("tripelt", "objective must be one of triplet, listwise, bcls, .*got 'tripelt'"),
    ([], r"takes the name of one, such as .*; got \[\]"),
    (torch.tensor(1.0), r"takes the name of one, such as .*; got tensor\(1"),
    ([Term("nothing")], "loss must be one of triplet_sum, .*got 'nothing'"),
    ([Term("topk", arguments={"n": 3})],
     "argument of loss 'topk' must be one of margin, k, red.*'n'"),
    ([Term("topk", labels="sentences")], "label source must be one of binary.*'sentences'"),
    ([Term("topk", label_arguments={"same_images": 1})],
     "argument of label source 'binary' must.*did you mean 'same_image'"),
    ([Term("topk", labels="exact", label_arguments={"a": 1})],
     "argument of label source 'exact': there is none to choose; got 'a'"),
    ([Term("topk", -1.0)], "weight must be >= 0, got -1"),
    ([Term("topk", float("nan"))], "weight must be a finite number"),
    ([Term(Reporting(), arguments={"a": 1})], "an nn.Module or a function without"),
    ([Term(3)], "loss must be a name"),
    ([Term(nn.Module)], "loss must be a name"),
    ([Term(Mistaken())], "what Mistaken takes must be one of scores, output; got 'outputs'"),
    ([Term("topk", labels=len)], "a callable with a scale"),
    ([Term("topk", labels=Labels("percent"))], "scale of a label source must be one of binary"),
])
def test_bad_terms_are_refused(terms, message):
    with pytest.raises(ValueError, match=message):
        Objective(terms)
