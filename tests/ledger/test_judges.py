"""Two judges: whose verdict is the headline, why a claim has one, how often both agree."""

import doctest

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.ledger import judges
from itr_study.lab.ledger.judges import JUDGE, agreement, both_verdicts, has_run, on_judge
from itr_study.lab.ledger.models import FIRST, resting, twice_judged
from itr_study.lab.ledger.report import counted, ledger, ledger_markdown, ledger_parts
from itr_study.lab.ledger.reported import load_claims
from tests.ledger.test_judge import fallen, runs

SHAKEN = (0.3, -0.3, 0.1, -0.2, 0.1)  # sd 0.245, half width 2.776 * 0.1095 = 0.304
BASE, CLEAN = "Two-branch on lite0:pooled:flip, minilm", "VSE++ on lite0:pooled:flip, glove"
CLAIM = dict.fromkeys(load_claims().columns, "") | {
    "paper": "topk", "statement": "Higher", "kind": "difference", "metric": "test_rsum"}


def claims(*arms: tuple[str, str], **changes: str) -> pd.DataFrame:
    """A claim for each pair of arms, its id that of the first arm."""
    return pd.DataFrame([CLAIM | {"id": a, "arm_a": a, "arm_b": b} | changes for a, b in arms])


def on_both(first: dict, second: dict) -> pd.DataFrame:
    """Rows of arms lifted over the seeds' own values, on the first judge and on the second."""
    judged = runs(model=CLEAN, dataset="flickr8k",
                  **{f"{JUDGE}/{arm}": lift for arm, lift in second.items()})
    return pd.concat([runs(model=BASE, dataset="flickr8k", **first), judged], ignore_index=True)


# Of a, t, c, d and e beside z: the same, turned over, the first alone decides, the second, neither;
# g is a counter-check of ours, and n has no runs on the second judge.
LIFTS = ({"z": 0.0, "a": 1.0, "t": -1.0, "c": 1.0, "d": 0.0, "e": 0.0, "g": 1.0, "n": 1.0},
         {"z": 0.0, "a": 1.0, "t": 1.0, "c": 0.0, "d": -1.0, "e": 0.0, "g": 1.0})
PAIRS = tuple((arm, "z") for arm in LIFTS[0] if arm != "z")


@pytest.fixture
def rows():
    """Rows of both judges; the noise of every arm is that of another seed than zero's."""
    both = on_both(*LIFTS)
    shaken = ~both["arm"].str.endswith("z")
    noise = both["seed"].map(dict(enumerate(SHAKEN)))
    both["test_rsum"] += noise.where(shaken, 0.0)
    return fallen(both, f"{JUDGE}/e", 2).assign(train_rsum=500.0)


@pytest.fixture
def table(rows):
    papers, ours = ([pair for pair in PAIRS if (pair[0] == "g") is check]
                    for check in (False, True))
    return ledger(pd.concat([claims(*papers), claims(*ours, place="ours")]), rows)


def test_examples():
    failed, tried = doctest.testmod(judges)
    assert tried and not failed


def test_the_headline_is_the_second_judges_where_it_has_a_verdict(table):
    by_id = table.set_index("id")
    assert by_id["outcome"].to_dict() == {
        "a": "reproduced", "t": "reproduced", "c": "undecided", "d": "contradicted",
        "e": "collapsed", "n": "reproduced", "g": "reproduced"}
    assert by_id["first_outcome"].to_dict() == {
        "a": "reproduced", "t": "contradicted", "c": "reproduced", "d": "undecided",
        "e": "undecided", "n": "reproduced", "g": "reproduced"}
    assert by_id.loc["t", "model"] == CLEAN and by_id.loc["t", "first_model"] == BASE
    assert by_id.loc["t", "ours"] == by_id.loc["t", "second_ours"] == "+1.0 [+0.7, +1.3]"
    assert by_id.loc["t", "first_ours"].startswith("−1.0 [")
    assert by_id.loc["t", "verdict"] == (
        f"reproduced on flickr8k with {CLEAN}, n = 5 pairs; first judge: contradicted on flickr8k "
        f"with {BASE}, n = 5 pairs")
    assert counted(table, "claim").endswith(
        "3 reproduced, 1 contradicted, 1 undecided, 1 collapsed")


def test_the_pictures_draw_the_headlines(rows):
    parts = ledger_parts(claims(("t", "z"), ("n", "z")), rows)
    assert parts[["arm_a", "outcome", "standing"]].to_numpy().tolist() == [
        ["clean_gru/t", "reproduced", "for"], ["n", "reproduced", "for"]]


def test_a_claim_without_an_arm_on_the_second_judge_keeps_one_and_says_so(table):
    line = table.set_index("id").loc["n"]
    assert line["verdict"] == (f"reproduced on flickr8k with {BASE}, n = 5 pairs; not judged a "
                               "second time: no runs of clean_gru/n")
    assert (line["model"], line["second_outcome"], line["second_ours"]) == (BASE, "", "")


@pytest.mark.parametrize("changes, once", [
    ({"arm_a": f"{FIRST}/a", "arm_b": f"{FIRST}/z"},
     "not judged a second time: it names its model"),
    ({"arm_a": f"times(2|{FIRST}/a)", "arm_b": "z"},  # one of its arms is enough
     "not judged a second time: it names its model"),
    ({"metric": "gone"}, "not judged a second time: no values of gone"),
    ({"kind": "definition", "test": "x"}, ""),
    ({"arm_a": "", "arm_b": "", "needs": "people"}, ""),
    ({"arm_a": "labels(a, max)", "arm_b": "labels(b, max)"}, "")])
def test_why_a_claim_has_one_judge(changes, once, rows):
    named = pd.concat([rows, rows[rows["arm"].isin(["a", "z"])].assign(
        arm=lambda some: f"{FIRST}/" + some["arm"])])
    (line,) = ledger(claims(("a", "z"), **changes), named).to_dict("records")
    assert line["verdict"].endswith(once) and line["second_outcome"] == ""
    assert ("second time" in line["verdict"]) == bool(once)


def test_what_a_benchmark_or_other_data_hold_is_not_judged_a_second_time(rows):
    timed = rows[~rows["arm"].str.contains("/")].assign(step_milliseconds=rows["test_rsum"],
                                                        dataset="benchmark")
    (line,) = ledger(claims(("a", "z"), metric="step_milliseconds", needs="execute it"), rows,
                     elsewhere=[timed]).to_dict("records")
    assert line["outcome"] == "reproduced" and line["verdict"].endswith(
        "; not judged a second time: no values of step_milliseconds")


def test_fewer_pairs_than_decide_anything_leave_the_headline_to_the_first_judge(rows):
    """One or four runs of the second judge once turned decided claims to undecided."""
    second = rows["arm"].str.startswith(JUDGE)
    named = claims(("a", "z"), ("t", "z"), ("e", "z"))
    for seeds in (1, 4):
        table = ledger(named, rows[~second | (rows["seed"] < seeds)])
        assert table["outcome"].tolist() == ["reproduced", "contradicted", "undecided"]
        assert (table["model"] == BASE).all() and (table["second_outcome"] == "").all()
        assert table["verdict"].str.endswith(
            f"; not judged a second time: {seeds} of 5 pairs that are needed").all()
        assert agreement(table) == ("The second judge has run, but no claim was judged by both; "
                                    "each says why.")
        assert ledger_markdown(table.assign(reported_difference="", levels="")).count(
            f"{seeds} of 5 pairs") == 3


def test_arms_that_fit_unlike_leave_the_headline_to_the_first_judge(rows):
    unlike = rows.assign(generalisation=rows["test_rsum"], train_rsum=np.where(
        rows["arm"] == f"{JUDGE}/a", 400.0, 500.0))
    (line,) = ledger(claims(("a", "z"), metric="generalisation"), unlike).to_dict("records")
    assert line["outcome"] == "reproduced" and line["model"] == BASE
    assert "not judged a second time: RSUM on training images must be within" in line["verdict"]
    other = rows.assign(generalisation=rows["test_rsum"], train_rsum=np.where(
        rows["arm"] == "a", 400.0, 500.0))
    alone = ledger(claims(("a", "z"), metric="generalisation"), other)
    assert alone["outcome"].tolist() == ["reproduced"] and alone["model"].tolist() == [CLEAN]
    assert both_verdicts(alone).empty and "no claim was judged by both" in agreement(alone)


def test_agreement_is_counted_by_origin_and_composites_are_not(table):
    assert agreement(table) == (
        "Of 5 claims that were judged by Two-branch with MiniLM and again by Clean GRU, 1 have the "
        "same verdict twice and 1 were turned over (t); 1 that the first decides are not decided "
        "by the second, 1 the other way round, and 1 are decided by neither. Of 1 counter-checks "
        "that were judged by Two-branch with MiniLM and again by Clean GRU, 1 have the same "
        "verdict twice and 0 were turned over; 0 that the first decides are not decided by the "
        "second, 0 the other way round.")
    composite = table.assign(origin=table["origin"].mask(table["id"] == "t", "composite"))
    assert agreement(composite).startswith("Of 4 claims") and "(t)" not in agreement(composite)
    assert "t" not in set(both_verdicts(composite)["claim"])


def test_both_verdicts_stand_side_by_side_those_turned_over_first(table):
    both = both_verdicts(table)
    assert both["claim"].tolist() == ["t", "c", "d", "e", "a", "g"]
    assert list(both) == ["claim", "statement", "unit", "Two-branch with MiniLM",
                          "verdict of Two-branch with MiniLM", "Clean GRU",
                          "verdict of Clean GRU", "both"]
    assert both["both"].tolist() == ["turned over", "only the first decides",
                                     "only the second decides", "neither decides", "the same",
                                     "the same"]
    assert both.iloc[0, 4] == "contradicted" and both.iloc[0, 6] == "reproduced"


def test_what_was_judged_twice_rests_on_no_model_alone(table):
    assert resting(table) == (
        "1 of 4 decided claims and 0 of 1 decided counter-checks rest on one model alone, "
        "Two-branch with MiniLM; MiniLM made the labels, too, and has seen the captions.")
    assert resting(table[table["id"] != "n"]) == "Every decided verdict was judged on two models."


def test_nothing_changes_where_the_second_judge_has_not_run(rows):
    alone, named = rows[~rows["arm"].str.contains("/")], claims(*PAIRS)
    off = ledger(named, alone)
    assert not has_run(alone) and has_run(rows) and not has_run(pd.DataFrame())
    assert not [name for name in off if name.startswith(("first_", "second_"))]
    assert not off["verdict"].str.contains("judge").any()
    assert agreement(off) == "No second judge has run here: every claim has one verdict."
    assert both_verdicts(off).empty and "judge" not in ledger_markdown(off)
    on = ledger(named, rows).set_index("id")
    assert on["first_ours"].tolist() == off["ours"].tolist()
    assert on["first_outcome"].tolist() == off["outcome"].tolist()


def test_the_page_shows_both_and_counts_them(table):
    page = ledger_markdown(table.assign(reported_difference="", levels=""))
    assert f"\n{agreement(table)}\n" in page and "\n## Two judges\n" in page
    line = next(line for line in page.splitlines() if line.startswith("| t | Higher"))
    assert line.endswith("| reproduced | turned over |") and "| contradicted |" in line
    assert page.index("| t | Higher") < page.index("| c | Higher") < page.index("| a | Higher")


def test_claims_that_have_a_pair_of_their_own_keep_their_first_verdict():
    """A claim whose arms name no setting stands beside the one on VSE++ with a GRU."""
    named = load_claims()
    table = named[["id", "statement", "metric", "margin"]].assign(
        ours="+9.0", outcome="contradicted", model=CLEAN, first_ours="+1.0",
        first_outcome="reproduced", first_model=BASE, second_ours="+9.0",
        second_outcome="contradicted")
    line = twice_judged(table).set_index("claim").loc["dvse-fr-sum"]
    assert line["Two-branch, MiniLM"] == "+1.0"
    assert line["verdict of Two-branch, MiniLM"] == "reproduced"


def test_expressions_name_the_second_judge_inside():
    assert on_judge("mean(k=1|k=3)") == "mean(clean_gru/k=1|clean_gru/k=3)"
    assert on_judge("step(a|b|c)") == "step(clean_gru/a|clean_gru/b|clean_gru/c)"
    assert on_judge("hardest@fast(1<2)") == "clean_gru/hardest@fast(1<2)"
