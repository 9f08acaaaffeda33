"""What became of predictions."""

import doctest

import pandas as pd
import pytest

import itr_study.lab.studies.nb13_forgive as predictions
from itr_study.lab.ledger.paired import FEWEST


def test_examples():
    failed, tried = doctest.testmod(predictions)
    assert tried and not failed


@pytest.mark.parametrize("verdicts,found", [
    (["higher", "higher"], predictions.HELD), (["higher", "undecided"], "held for 1 of 2 losses"),
    (["lower", "lower"], predictions.FAILED),
    (["undecided", "collapsed"], predictions.OPEN), (["undecided (3 seeds)"], predictions.OPEN)])
def test_only_settled_differences_hold_or_fail(verdicts, found):
    differences = pd.DataFrame({"verdict": verdicts})
    assert predictions.of_differences(differences, "higher") == found
    swapped = found.replace("held", "x").replace("failed", "held")
    assert predictions.of_differences(differences, "lower") == swapped.replace("x", "failed")


def test_crossings_of_few_seeds_settle_nothing():
    rising = pd.DataFrame({"rising": [True, True]})
    assert predictions.of_crossings(rising, 2, FEWEST) == predictions.HELD
    assert predictions.of_crossings(rising, 2, FEWEST - 1) == predictions.OPEN
    assert predictions.of_crossings(rising.head(0), 2, FEWEST) == predictions.OPEN
