"""Rows must not lie: other numbers under the same version of a part are red here."""

import json

import pytest
import torch

from itr_study.losses import LOSSES
from tests.golden.cases import loss_numbers, parts
from tests.golden.make import FILE, fault

PARTS = parts()


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("name", PARTS)
def test_numbers_are_those_of_the_version(name, golden):
    version, compute = PARTS[name]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    wrong = fault(name, version, compute(), golden)
    torch.set_num_threads(before)
    assert not wrong, wrong


def test_nothing_is_kept_of_parts_that_are_gone(golden):
    assert set(golden) <= set(PARTS), "run: python -m tests.golden.make"


def test_a_change_is_found(golden, monkeypatch):
    """A margin of 0.21 instead of 0.2 is seen; a part without numbers and a new version too."""
    numbers = loss_numbers("topk")
    assert fault("loss:topk", LOSSES["topk"].version, numbers, golden) == ""
    real = LOSSES["topk"]
    monkeypatch.setitem(LOSSES, "topk", lambda: real(margin=0.21))
    changed = loss_numbers("topk")
    assert "other numbers under the same version" in fault("loss:topk", 1, changed, golden)
    assert "has version 2" in fault("loss:topk", 2, changed, golden)
    assert "no golden numbers" in fault("loss:new", 1, changed, golden)
