"""What every loss on outputs must do; one without an oracle is red here."""

import importlib
import inspect
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models.base import ModelOutput
from itr_study.training.objective import Objective, Term
from tests.losses.batches import random_output

# Every switch that changes a number, beside the default.
SWITCHES = {"variance_weighted": [{"weights": "equal"}, {"spread": "softmax"}, {"margin": 0.5},
                                  {"reduction": "sum"}],
            "orthogonality": [{"masked": False}, {"over": "mean", "bound": 0.1},
                              {"over": "pair", "bound": 0.2}],
            "diversity": [], "mmd": [{"gamma": 2.0}, {"kernel": "square"}],
            "structure": [{"margin": 0.5, "texts": 0.3}, {"images": 0.0, "reduction": "sum"}],
            "dense_to_sparse": [{"margin": 0.5, "align": 0.3}]}
CASES = [(name, arguments) for name in OUTPUT_LOSSES for arguments in ({}, *SWITCHES[name])]
ALONE = {"variance_weighted"}  # those that read the scores
ON_VECTORS = {"mmd", "structure", "dense_to_sparse"}  # those that read what is compared


def oracle_of(name):
    return importlib.import_module(f"tests.oracles.{name}")


def read(name):
    """The field of an output whose gradient a loss gives."""
    return {"variance_weighted": "head_scores", "mmd": "subembeddings",
            "structure": "text_subembeddings", "dense_to_sparse": "joined_scores"}.get(
                name, "residuals")


def of_fields(given):
    values = {name: None if value is None else torch.tensor(value, dtype=torch.float64)
              for name, value in given.items()}
    first = next(value for value in values.values() if value is not None)
    texts = values.get("text_subembeddings")
    count = first.shape[-2:] if given.keys() & {"head_scores", "joined_scores"} else (
        len(first), len(first if texts is None else texts))
    return ModelOutput(torch.zeros(*count, dtype=torch.float64), **values)


@pytest.mark.parametrize("name", OUTPUT_LOSSES)
def test_hand_worked_values(name):
    assert oracle_of(name).HAND
    for arguments, given, relevance, expected in oracle_of(name).HAND:
        output, labels = of_fields(given), torch.tensor(relevance, dtype=torch.float64)
        value = OUTPUT_LOSSES[name](**arguments)(output, labels)
        assert value.item() == pytest.approx(expected, abs=1e-9), (arguments, given)
        slow = oracle_of(name).from_output(output, labels, **arguments)
        assert slow == pytest.approx(expected, abs=1e-9), (arguments, given)


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_equals_slow_oracle(name, arguments):
    for seed in range(20):
        output, relevance = random_output(seed)
        value = OUTPUT_LOSSES[name](**arguments)(output, relevance)
        assert value.shape == () and value.dtype == torch.float64
        slow = oracle_of(name).from_output(output, relevance, **arguments)
        assert value.item() == pytest.approx(slow, abs=1e-9), seed


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_gradient_is_right(name, arguments):
    if name == "variance_weighted" and arguments.get("weights") != "equal":
        arguments = arguments | {"detach": False}  # a detached sigma is no derivative
    output, relevance = random_output(1)
    field = read(name)
    values = getattr(output, field).clone().requires_grad_()

    def loss(given):
        return OUTPUT_LOSSES[name](**arguments)(replace(output, **{field: given}), relevance)

    assert torch.autograd.gradcheck(loss, (values,))


@pytest.mark.parametrize("name", OUTPUT_LOSSES)
def test_a_model_without_heads_is_refused_by_the_name_of_what_it_lacks(name):
    output = ModelOutput(torch.zeros(2, 2))
    if read(name) == "text_subembeddings":
        output = replace(output, subembeddings=torch.zeros(2, 1, 3))
    with pytest.raises(ValueError, match=f"{name} needs {read(name)} in the output.*'[dp]vse'"):
        OUTPUT_LOSSES[name]()(output, torch.eye(2))


@pytest.mark.parametrize("name", OUTPUT_LOSSES)
def test_one_head_and_no_head_are_finite(name):
    for heads in (1, 0):
        if name in ALONE | ON_VECTORS and not heads:
            continue  # a model without heads has one vector and its scores
        output, relevance = random_output(0, heads=max(heads, 1))
        given = {"residuals": output.residuals[:, :heads], "mask": output.mask[:, :heads],
                 "text_residuals": output.text_residuals[:, :heads]}
        output = replace(output, **given)
        field = read(name)
        values = getattr(output, field).clone().requires_grad_()
        loss = OUTPUT_LOSSES[name]()(replace(output, **{field: values}), relevance)
        loss.backward()
        assert loss.isfinite() and values.grad.isfinite().all()
        assert name in ALONE | ON_VECTORS or loss == 0


@pytest.mark.parametrize("name", OUTPUT_LOSSES)
def test_equal_heads_and_zeros_have_a_finite_gradient(name):
    output, relevance = random_output(0)
    for fill in (0.0, 1.0):
        values = torch.full_like(getattr(output, read(name)), fill).requires_grad_()
        loss = OUTPUT_LOSSES[name]()(replace(output, **{read(name): values}), relevance)
        loss.backward()
        assert loss.isfinite() and values.grad.isfinite().all()


def test_single_texts_move_to_joined_ones_and_joined_ones_by_their_scores_alone():
    output, relevance = random_output(2)
    texts, joined = (values.clone().requires_grad_() for values in (
        output.text_vectors, output.joined_vectors))
    loss = OUTPUT_LOSSES["dense_to_sparse"]()
    slopes = torch.autograd.grad(loss(replace(
        output, text_vectors=texts, joined_vectors=joined), relevance), (texts, joined),
        allow_unused=True)
    assert slopes[1] is None and ((slopes[0] * (joined - texts)).sum(dim=1) < 0).all()

    def apart(given):
        return loss(replace(output, text_vectors=given), relevance)

    assert torch.autograd.gradcheck(apart, (texts,))


def test_a_detached_sigma_gets_no_gradient():
    """The hinges' gradient over sigma squared, and nothing of the spread's own."""
    scores = torch.tensor([[[0.9, 0.8, 0.1]]], dtype=torch.float64, requires_grad=True)
    relevance = torch.tensor([[1.0, 0, 0]])
    for detach in (True, False):
        scores.grad = None
        loss = OUTPUT_LOSSES["variance_weighted"](detach=detach)
        loss(ModelOutput(scores[0], head_scores=scores), relevance).backward()
        far = scores.grad[0, 0, 2].item()  # no hinge reaches it, only the spread does
        assert (far == 0) == detach
    sigma = 1 + (2 * 0.35 ** 2) ** 0.5
    loss = OUTPUT_LOSSES["variance_weighted"]()
    scores.grad = None
    loss(ModelOutput(scores[0], head_scores=scores), relevance).backward()
    assert scores.grad[0, 0].tolist() == pytest.approx([-1 / sigma ** 2, 1 / sigma ** 2, 0])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("candidates", [3, 30, 1000])
def test_candidates_that_are_equal_but_for_rounding_do_not_spread(kind, candidates):
    """Around a mean that the match moves they are equal all the same."""
    scores = torch.full((1, 1, candidates), 0.3, dtype=kind)
    scores[..., 0] = 0.9
    scores.requires_grad_()
    spread = OUTPUT_LOSSES["variance_weighted"](detach=False).std(scores)
    assert spread[0, 0, 0] == 0
    spread[0, 0, 0].backward()
    assert not scores.grad.any()


def test_the_mask_passes_no_gradient_and_takes_pairs_away():
    output, relevance = random_output(3)
    residuals = output.residuals.clone().requires_grad_()
    mask = torch.ones_like(output.mask)
    mask[:, 0] = 0
    mask.requires_grad_()
    loss = OUTPUT_LOSSES["orthogonality"](bound=0.0)
    loss(replace(output, residuals=residuals, mask=mask), relevance).backward()
    assert mask.grad is None
    assert not residuals.grad[:, 0].any() and residuals.grad[:, 1:].any()


def test_diagnostics_say_what_the_heads_do():
    output, relevance = random_output(0)
    value, numbers = OUTPUT_LOSSES["orthogonality"]().diagnose(output, relevance)
    assert value == OUTPUT_LOSSES["orthogonality"]()(output, relevance)
    cosines = oracle_of("heads").cosine
    expected = [abs(cosines(image[a], image[b])) for image in output.residuals.tolist()
                for a in range(3) for b in range(3) if a != b]
    assert numbers["correlation"].item() == pytest.approx(sum(expected) / len(expected))
    assert numbers["mask_rate"].item() == pytest.approx(output.mask.mean().item())
    spread = oracle_of("variance_weighted").std
    numbers = OUTPUT_LOSSES["variance_weighted"]().diagnose(output, relevance)[1]
    means = []
    for turned in (False, True):
        sigmas = []
        for head in output.head_scores.tolist():
            rows = [*map(list, zip(*head, strict=True))] if turned else head
            labels = (relevance.T if turned else relevance).tolist()
            sigmas += [1 + spread(row[:t] + row[t + 1:]) for row, of in
                       zip(rows, labels, strict=True) for t, r in enumerate(of) if r == 1]
        means.append(sum(sigmas) / len(sigmas))
    assert numbers["sigma"].item() == pytest.approx(sum(means) / 2)
    equal = OUTPUT_LOSSES["variance_weighted"](weights="equal")
    assert equal.diagnose(output, relevance)[1] == {}


@pytest.mark.parametrize("over", ["sum", "mean", "pair"])
@pytest.mark.parametrize("on", [1.0, 0.0])
def test_one_head_and_heads_that_are_all_off_leave_finite_numbers_in_the_log(over, on):
    """No pair counts: no loss, and no correlation where there is no pair at all."""
    for heads in (1, 3):
        output, relevance = random_output(0, heads=heads)
        output = replace(output, mask=torch.full_like(output.mask, on if heads == 1 else 0.0))
        value, numbers = OUTPUT_LOSSES["orthogonality"](bound=0.0, over=over).diagnose(
            output, relevance)
        assert value == 0 and numbers["mask_rate"] == output.mask.mean()
        assert all(number.isfinite() for number in numbers.values())
        assert (numbers["correlation"] > 0) == (heads > 1)


def test_spreads_are_over_what_they_say():
    """The mask's over images, by head; sigma's over heads, by match."""
    output, relevance = random_output(0)
    for masked in (True, False):
        numbers = OUTPUT_LOSSES["orthogonality"](masked=masked).diagnose(output, relevance)[1]
        assert numbers["mask_std"].item() == pytest.approx(output.mask.numpy().std(axis=0).mean())
        assert numbers["mask_rate"].item() == pytest.approx(output.mask.mean().item())
    loss = OUTPUT_LOSSES["variance_weighted"]()
    means = []
    for scores, match in ((output.head_scores, relevance == 1),
                          (output.head_scores.mT, relevance.T == 1)):
        means.append((1 + loss.std(scores)).numpy().std(axis=0)[match.numpy()].mean())
    assert loss.diagnose(output, relevance)[1]["sigma_std"].item() == pytest.approx(
        sum(means) / 2)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_vector_is_at_distance_0_from_itself_whatever_its_length_was_rounded_to(kind):
    """And has no gradient there; the root of 1e-7 would be 0.0003, and its gradient 1,600."""
    loss = OUTPUT_LOSSES["mmd"]()
    for seed in range(30):
        random = torch.Generator().manual_seed(seed)
        vector = normalize(torch.randn(1, 100, generator=random, dtype=kind), dim=1)
        vector.requires_grad_()
        value = loss.mean_kernel(vector, vector)
        value.backward()
        assert value == 1 and not vector.grad.any()


def test_losses_on_texts_name_the_model_that_has_several_of_them():
    output, labels = random_output(0)
    with pytest.raises(ValueError, match="mmd needs text_subembeddings.*'two_branch', 'pvse'"):
        OUTPUT_LOSSES["mmd"]()(replace(output, text_subembeddings=None), labels)


def test_masks_of_another_size_and_no_heads_are_refused():
    output, labels = random_output(0)
    with pytest.raises(ValueError, match=r"mask must be .* = \(5, 3\), got \(5, 2\)"):
        OUTPUT_LOSSES["orthogonality"]()(replace(output, mask=output.mask[:, :2]), labels)
    free = OUTPUT_LOSSES["orthogonality"](masked=False)
    assert free(replace(output, mask=None), labels) == free(output, labels)
    with pytest.raises(ValueError, match="one head at least"):
        OUTPUT_LOSSES["variance_weighted"]()(
            replace(output, head_scores=output.head_scores[:0]), labels)


def test_a_function_that_says_so_is_given_outputs():
    def own(output, relevance):
        return output.head_scores.square().mean()

    own.takes = "output"
    assert Objective([Term(own)]).ranking_losses[0].takes == "output"


BAD = [("margin", -0.1), ("weights", "none"), ("spread", "std"), ("detach", "no"),
       ("reduction", "max"), ("bound", -1), ("masked", 2), ("over", "all"), ("gamma", 0),
       ("kernel", "cosine"), ("images", -1), ("texts", -0.1), ("align", -1)]


@pytest.mark.parametrize(("argument", "value"), BAD)
def test_bad_arguments_are_refused_by_every_loss_that_has_them(argument, value):
    having = [loss for loss in OUTPUT_LOSSES.values()
              if argument in inspect.signature(loss).parameters]
    assert having
    for loss in having:
        with pytest.raises(ValueError, match=argument):
            loss(**{argument: value})


def test_no_name_is_used_twice():
    assert not set(LOSSES) & set(OUTPUT_LOSSES)
