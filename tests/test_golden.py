"""Rows must not lie: other numbers under the same version of a part are red here.

`python -m tests.golden.simulate avx2` runs this with fewer instructions; `.ci/run` does. AMX
cannot be simulated: that the numbers hold with it is known only where a CPU that has it ran this.
"""

import json

import numpy as np
import pytest
import torch

from itr_study.losses import LOSSES
from tests.golden.cases import Part, loss_numbers, parts
from tests.golden.compare import NORM, TOLERANCES, fault
from tests.golden.make import FILE

PARTS = parts()


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("name", PARTS)
def test_numbers_are_those_of_the_version(name, golden):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    wrong = fault(name, PARTS[name], PARTS[name].compute(), golden)
    torch.set_num_threads(before)
    assert not wrong, wrong


def test_nothing_is_kept_of_parts_that_are_gone(golden):
    assert set(golden) <= set(PARTS), "run: python -m tests.golden.make"


def test_a_change_is_found(golden, monkeypatch):
    """A margin of 0.21 instead of 0.2 is seen; a part without numbers and a new version too."""
    part, real = PARTS["loss:topk"], LOSSES["topk"]
    assert fault("loss:topk", part, loss_numbers("topk"), golden) == ""
    monkeypatch.setitem(LOSSES, "topk", lambda: real(margin=0.21))
    changed = loss_numbers("topk")
    told = fault("loss:topk", part, changed, golden)
    assert "other numbers under the same version" in told and "Undo the change" in told
    assert "has version 2" in fault("loss:topk", part._replace(version=2), changed, golden)
    assert "has edition 2" in fault("loss:topk", part._replace(edition=2), changed, golden)
    assert "no golden numbers" in fault("loss:new", part, changed, golden)
    assert "other numbers" in fault("loss:topk", part, changed[:-1], golden)


@pytest.mark.parametrize("name, off", [("image:lite2", 2 * NORM), ("text:minilm", 2 * NORM),
                                       ("model:vsepp", 5 * TOLERANCES["model"])])
def test_rounding_of_another_cpu_is_called_that(name, off, golden):
    agreed = np.array(golden[name]["numbers"])
    part = PARTS[name]
    told = fault(name, part, (agreed * (1 + off)).tolist(), golden)
    assert "looks like the rounding of another CPU" in told and "itr-study doctor" in told
    assert "Undo the change" not in told
    assert "Undo the change" in fault(name, part, (agreed[::-1] * 1.1).tolist(), golden)


@pytest.mark.parametrize("name", [name for name in PARTS if name.startswith(("image", "text:"))])
@pytest.mark.parametrize("scale, noise, one, told", [
    (1.02, 0, 1, "Undo the change"), (1.001, 0, 1, "Undo the change"),
    (1, 0.02, 1, "Undo the change"),
    (1, 0.01, 1, "Undo the change"),  # as float16 in place of float32, which is no rounding
    (1, 0.001, 1, "Undo the change"), (1, 0, 1.1, "Undo the change"),
    (1, 2e-4, 1, "looks like the rounding"), (1, 1e-5, 1, "")])
def test_a_change_of_a_vector_is_not_called_rounding(name, scale, noise, one, told, golden):
    """However high its cosine, which is 0.9998 with noise of 2 %."""
    agreed = np.array(golden[name]["numbers"])
    moved = np.random.default_rng(0).normal(size=len(agreed))
    numbers = scale * agreed + noise * np.linalg.norm(agreed) / np.linalg.norm(moved) * moved
    numbers[np.abs(agreed).argmax()] *= one
    found = fault(name, PARTS[name], numbers.tolist(), golden)
    assert told in found and bool(told) == bool(found)


@pytest.mark.parametrize("factors, good", [
    ([1, 1, 1, 1.05], True),  # a small component, by less than an average one may
    ([1, 1, 1.002, 1], False),  # an average one
    ([1.0004, 0.9996, 1, 1], False),  # each a little, and as long as before: the cosine
    ([1.0004, 1.0004, 1.0004, 1], False)])  # all alike: the norm
def test_vectors_are_held_by_component_cosine_and_norm(factors, good):
    agreed = np.array([1, 1, 1, 1e-3])
    file = {kind: {"version": 1, "numbers": agreed.tolist()} for kind in ("image:x", "model:x")}
    wrong = {kind: fault(kind, Part(1, list), (agreed * factors).tolist(), file) for kind in file}
    assert (wrong["image:x"] == "") == good
    assert bool(wrong["model:x"]) == (max(factors) > 1.0005)  # number by number


def test_a_query_more_or_less_is_rounding_of_the_loop_and_a_loss_is_not(golden):
    numbers = np.array(golden["loop"]["numbers"])
    assert not fault("loop", PARTS["loop"], (numbers + [0, 0, 2] * 8).tolist(), golden)
    assert fault("loop", PARTS["loop"], (numbers + [0, 0, 6] * 8).tolist(), golden)
    assert fault("loop", PARTS["loop"], (numbers + [1e-4, 0, 0] * 8).tolist(), golden)
