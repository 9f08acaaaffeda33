"""One name for every arm, wherever it is shown."""

import pytest

from itr_study.lab.studies.arms import TERMS
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.losses import LOSSES
from itr_study.plots.names import name_of
from itr_study.plots.style import look


@pytest.mark.parametrize("arm,name", [
    ("triplet_hardest", "hardest"), ("hardest", "hardest"), ("k=1", "hardest (k = 1)"),
    ("k=5", "top-5"), ("top5", "top-5"), ("kth=5", "k-th, k = 5"), ("bcls", "soft + windows"),
    ("hardest+listwise(cider)", "hardest + Smooth-NDCG (cider)"), ("d=64", "d = 64"),
    ("k=5, without three_quarters", "top-5, without three quarters"),
    ("hardest, rate=very_high", "hardest, rate very high"),
    ("two_branch+fisher", "Two-branch, Fisher"), ("vsepp+gru/bcls", "VSE++, GRU: soft + windows"),
    ("two_branch+sentence/top5", "Two-branch, MiniLM: top-5"),
    ("tau=0.01 − hardest", "τ = 0.01 − hardest"), ("tau=0.1", "τ = 0.1 (= ApproxNDCG)"),
    ("vsepp+gru/hardest@reciprocal", "VSE++, GRU: hardest, RR"), ("sum@2", "sum@2"),
    ("hardest@fast_bank − hardest", "hardest, FR with a bank − hardest"),
    ("fast", "FR"), ("reciprocal − fast", "RR − FR"),
    ("hardest+approx_ndcg − hardest", "τ = 0.1 (= ApproxNDCG) − hardest"),
    ("VSE++†, + Listwise", "VSE++†, + Listwise"), ("i→t/t→i", "i→t/t→i"), ("best", "best")])
def test_a_name_says_what_a_reader_knows(arm, name):
    assert name_of(arm) == name


def test_every_loss_of_a_study_has_the_name_of_its_loss_and_no_two_share_one():
    for arm, term in TERMS.items():
        if not term.get("arguments"):
            assert name_of(arm) == LOSSES[term["loss"]].display_name
    names = [name_of(arm) for arm in COMPARED]
    assert len(set(names)) == len(names)


def test_an_arm_is_drawn_as_its_loss_and_called_by_its_name():
    for arm, loss in (("hardest", "triplet_hardest"), ("listwise", "smooth_ndcg")):
        assert look(arm) == look(loss)
    assert look("soft+windows") == look("bcls") and look("bcls").label == "soft + windows"
