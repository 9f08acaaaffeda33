"""Argument checks: messages name what was expected, what was found, and the choices."""

import doctest
import subprocess
import sys

import numpy as np
import pytest
import torch

import itr_study.checks as module
from itr_study.checks import (
    Gathered,
    Registry,
    check_arguments,
    check_choice,
    check_count,
    check_number,
    check_relevance,
    check_scores,
    check_values,
    gathered,
)


def test_numbers():
    check_number("x", 1, above=0, most=1)
    for value, bounds, message in [
            (0, dict(above=0), "x must be > 0, got 0"), (2, dict(least=0, most=1), ">= 0 and <= 1"),
            (float("nan"), {}, "finite"), ("1", {}, "finite number, got '1'"),
            (None, {}, "finite"), (True, {}, "finite number, got True"),
            (float("-inf"), {}, "finite"), (10 ** 400, {}, "finite"), (-10 ** 400, {}, "finite")]:
        with pytest.raises(ValueError, match=message):
            check_number("x", value, **bounds)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, True, "2", None])
def test_counts(value):
    check_count("x", 1)
    check_count("x", np.int64(3), least=3)
    with pytest.raises(ValueError, match=f"x must be an integer >= 1, got {value!r}"):
        check_count("x", value)


def test_choices():
    check_choice("x", "a", ("a", "b"))
    with pytest.raises(ValueError, match="x must be one of a, b; got 'c'"):
        check_choice("x", "c", {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="x must be one of 1, 2; got 3$"):
        check_choice("x", 3, (1, 2))
    with pytest.raises(ValueError, match="got 'losss'; did you mean 'loss'"):
        check_choice("x", "losss", ["else", "loss"])


def test_arguments_that_are_not_for_users_are_no_choice():
    def load(root, images=3): ...

    check_arguments("it", load, {"images": 2}, skip=1)
    with pytest.raises(ValueError, match="argument of it must be one of images; got 'root'"):
        check_arguments("it", load, {"root": 2}, skip=1)


def test_a_wrong_name_is_refused_without_waiting_for_torch():
    code = """if True:
        import sys
        from itr_study.checks import check_choice
        try:
            check_choice("x", "c", ("a", "b"))
        except ValueError:
            assert "torch" not in sys.modules
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_scores():
    check_scores(torch.zeros(1, 1), torch.zeros(1, 1))
    with pytest.raises(ValueError, match="scores must be a torch tensor, got ndarray; torch.as_te"):
        check_scores(np.zeros((1, 1)), torch.zeros(1, 1))
    with pytest.raises(ValueError, match="relevance must be a torch tensor, got list"):
        check_scores(torch.zeros(1, 1), [[0.0]])
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 2\)"):
        check_scores(torch.zeros(2, 3), torch.zeros(3, 2))


@pytest.mark.parametrize(("labels", "value", "allowed"), [
    ("binary", -1.0, True), ("cosine", -1.0, True), ("unit", -0.01, False), ("unit", 0.0, True),
    ("cosine", -1.01, False), ("unit", 1.0, True), ("unit", 1 - 1e-4, True),
    ("unit", 1 - 1e-5, False), ("cosine", 1.00001, False), ("binary", float("nan"), False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_range_of_relevance(labels, value, allowed, dtype):
    relevance = torch.eye(3, dtype=dtype)
    relevance[0, 1] = value
    if allowed:
        check_relevance(relevance, labels)
        return
    with pytest.raises(ValueError, match="exactly 1 for a match"):
        check_relevance(relevance, labels)


def test_a_bool_mask_is_binary_only():
    check_relevance(torch.eye(2) == 1, "binary")
    with pytest.raises(ValueError, match="torch.bool"):
        check_relevance(torch.eye(2) == 1, "unit")


def test_a_registry_names_the_choices():
    registry = Registry("thing", {"range": lambda start, stop=3: range(start, stop)})
    registry |= {"none": lambda: 0}
    assert registry.create("range", {"start": 1}) == range(1, 3)
    for kind in (KeyError, ValueError):
        with pytest.raises(kind, match="^thing must be one of range, none; got 'rnage'; did you"):
            (registry | {})["rnage"]
    assert "rnage" not in registry and registry.get("rnage") is None
    with pytest.raises(ValueError, match="'rnage'"):
        registry.create("rnage", {})
    with pytest.raises(ValueError, match="argument of thing 'range' must be one of start, stop; "
                                         "got 'stp'; did you mean 'stop'?"):
        registry.create("range", {"start": 1, "stp": 2})
    with pytest.raises(ValueError, match="argument of thing 'none': there is none to choose"):
        registry.create("none", {"a": 2})


@pytest.mark.parametrize(("parts", "message"), [
    ([type("Nameless", (), {"name": None})], "Nameless.*cannot be registered as a thing without"),
    ([type("Bare", (), {})], "without a name; give it one: name = \"my_thing\""),
    ([type("A", (), {"name": "a"})] * 2, "thing 'a' is registered twice")])
def test_a_registry_refuses_a_part_without_a_name_of_its_own(parts, message):
    with pytest.raises(ValueError, match=message):
        Registry("thing", parts)


def test_example_in_docstring():
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted and not result.failed


def complaint(found):
    return f"too large: {found}" if max(found) > 3 else None


def test_values_are_checked_at_once_unless_gathered():
    check_values(torch.tensor([1, 3]), complaint)
    with pytest.raises(ValueError, match=r"too large: \[4.0\]"):
        check_values(torch.tensor([4.0]), complaint)
    with gathered() as checks:
        check_values(torch.tensor([1.0, 2.0]), complaint)
        check_values(torch.tensor([5, 2]), complaint)
    with pytest.raises(ValueError, match=r"\[5.0, 2.0\]"):
        checks.read([torch.tensor(1.0)])
    with pytest.raises(ValueError, match="too large"):
        check_values(torch.tensor([4.0]), complaint)  # gathering has ended


def test_what_is_gathered_inside_and_not_read_there_waits_outside():
    with gathered() as checks:
        with gathered():
            check_values(torch.tensor(6), complaint)  # no axis is as good as one
        check_values(torch.tensor([[1, 2]]), complaint)
    with pytest.raises(ValueError, match=r"\[6.0\]"):
        checks.read()


def test_numbers_read_with_the_checks_are_what_they_were():
    given = [torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64, requires_grad=True),
             torch.tensor(2**40 + 1), torch.tensor(True), torch.tensor(float("nan"))]
    with gathered() as checks:
        check_values(torch.tensor([1.0]), complaint)
    found = checks.read(given)
    assert found[:-1] == [float(torch.tensor(0.1)), 0.1, 2**40 + 1, 1] and found[-1] != found[-1]
    assert Gathered().read() == []
    with pytest.raises(RuntimeError, match="size 2"):
        checks.read([torch.zeros(2)])


def test_a_failing_block_is_explained_by_its_checks():
    with pytest.raises(ValueError, match="too large") as caught, gathered():
        check_values(torch.tensor([4]), complaint)
        raise IndexError("somewhere below")
    assert isinstance(caught.value.__context__, IndexError)
    with pytest.raises(IndexError), gathered():
        check_values(torch.tensor([1]), complaint)
        raise IndexError("somewhere below")
