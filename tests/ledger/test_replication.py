"""The second base model: which verdict is the headline, why a claim has one, what is counted."""

import doctest

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.ledger import replication
from itr_study.lab.ledger.replication import (
    SECOND_BASE,
    both_verdicts,
    has_run,
    on_second,
)
from itr_study.lab.ledger.report import (
    FILE,
    kept_ledger,
    ledger,
    ledger_markdown,
    ledger_parts,
    summary,
)
from itr_study.lab.ledger.reported import load_claims
from tests.ledger.test_judge import fallen, runs

SENTENCE = "two_branch+sentence"

pytestmark = pytest.mark.usefixtures("no_margins")

SHAKEN = (0.3, -0.3, 0.1, -0.2, 0.1)  # sd 0.245, half width 2.776 * 0.1095 = 0.304
BASE, CLEAN = "Two-branch on lite0:pooled:flip, minilm", "VSE++ on lite0:pooled:flip, glove"
CLAIM = dict.fromkeys(load_claims().columns, "") | {
    "paper": "topk", "statement": "Higher", "kind": "difference", "metric": "test_rsum"}


def claims(*arms: tuple[str, str], **changes: str) -> pd.DataFrame:
    """A claim for each pair of arms, its id that of the first arm."""
    return pd.DataFrame([CLAIM | {"id": a, "arm_a": a, "arm_b": b} | changes for a, b in arms])


def on_both(first: dict, second: dict) -> pd.DataFrame:
    """Rows of arms lifted over the seeds' own values, on both base models."""
    judged = runs(model=CLEAN, dataset="flickr8k",
                  **{f"{SECOND_BASE}/{arm}": lift for arm, lift in second.items()})
    return pd.concat([runs(model=BASE, dataset="flickr8k", **first), judged], ignore_index=True)


# Of a, t, c, d and e beside z: the same, opposite, the first alone decides, the second, neither;
# g is a counter-check of ours, and n has no runs on the second base model.
LIFTS = ({"z": 0.0, "a": 1.0, "t": -1.0, "c": 1.0, "d": 0.0, "e": 0.0, "g": 1.0, "n": 1.0},
         {"z": 0.0, "a": 1.0, "t": 1.0, "c": 0.0, "d": -1.0, "e": 0.0, "g": 1.0})
PAIRS = tuple((arm, "z") for arm in LIFTS[0] if arm != "z")


@pytest.fixture
def rows():
    """Rows of both base models; the noise of every arm is that of another seed than zero's."""
    both = on_both(*LIFTS)
    shaken = ~both["arm"].str.endswith("z")
    noise = both["seed"].map(dict(enumerate(SHAKEN)))
    both["test_rsum"] += noise.where(shaken, 0.0)
    return fallen(both, f"{SECOND_BASE}/e", 2).assign(train_rsum=500.0)


@pytest.fixture
def table(rows):
    papers, ours = ([pair for pair in PAIRS if (pair[0] == "g") is check]
                    for check in (False, True))
    return ledger(pd.concat([claims(*papers), claims(*ours, place="ours")]), rows)


def test_examples():
    failed, tried = doctest.testmod(replication)
    assert tried and not failed


def test_the_headline_is_the_verdict_on_the_second_base_model(table):
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
        f"reproduced on flickr8k with {CLEAN}, n = 5 pairs; first base model: contradicted on "
        f"flickr8k with {BASE}, n = 5 pairs")


def test_the_pictures_draw_the_headlines(rows):
    parts = ledger_parts(claims(("t", "z"), ("n", "z")), rows)
    assert parts[["arm_a", "outcome", "standing"]].to_numpy().tolist() == [
        ["clean_gru/t", "reproduced", "for"], ["n", "reproduced", "for"]]


def test_a_claim_without_an_arm_on_the_second_base_model_says_so(table):
    line = table.set_index("id").loc["n"]
    assert line["verdict"] == (f"reproduced on flickr8k with {BASE}, n = 5 pairs; one base "
                               "model: no runs of clean_gru/n")
    assert (line["model"], line["second_outcome"], line["second_ours"]) == (BASE, "", "")


@pytest.mark.parametrize("changes, once", [
    ({"arm_a": f"{SENTENCE}/a", "arm_b": f"{SENTENCE}/z"},
     "one base model: it names its model"),
    ({"arm_a": f"times(2|{SENTENCE}/a)", "arm_b": "z"},  # one of its arms is enough
     "one base model: it names its model"),
    ({"metric": "gone"}, "one base model: no values of gone"),
    ({"kind": "definition", "test": "x"}, ""),
    ({"arm_a": "", "arm_b": "", "needs": "people"}, ""),
    ({"metric": "gone", "needs": "COCO", "waits_for": "data"}, "not tested: COCO"),
    ({"arm_a": "labels(a, max)", "arm_b": "labels(b, max)"}, "")])
def test_why_a_claim_has_one_base_model(changes, once, rows):
    named = pd.concat([rows, rows[rows["arm"].isin(["a", "z"])].assign(
        arm=lambda some: f"{SENTENCE}/" + some["arm"])])
    (line,) = ledger(claims(("a", "z"), **changes), named).to_dict("records")
    assert line["verdict"].endswith(once) and line["second_outcome"] == ""
    assert ("one base model" in line["verdict"]) == once.startswith("one base model")


def test_what_a_benchmark_or_other_data_hold_is_not_judged_a_second_time(rows):
    timed = rows[~rows["arm"].str.contains("/")].assign(step_milliseconds=rows["test_rsum"],
                                                        dataset="benchmark")
    (line,) = ledger(claims(("a", "z"), metric="step_milliseconds", needs="execute it"), rows,
                     elsewhere=[timed]).to_dict("records")
    assert line["outcome"] == "reproduced" and line["verdict"].endswith(
        "; one base model: no values of step_milliseconds")


def test_fewer_pairs_than_decide_anything_leave_the_first_verdict(rows):
    """One or four runs of the second base model once turned decided claims to undecided."""
    second = rows["arm"].str.startswith(SECOND_BASE)
    named = claims(("a", "z"), ("t", "z"), ("e", "z"))
    for seeds in (1, 4):
        table = ledger(named, rows[~second | (rows["seed"] < seeds)])
        assert table["outcome"].tolist() == ["reproduced", "contradicted", "undecided"]
        assert (table["model"] == BASE).all() and (table["second_outcome"] == "").all()
        assert table["verdict"].str.endswith(
            f"; one base model: {seeds} of 5 pairs that are needed").all()
        assert both_verdicts(table).empty
        assert ledger_markdown(table).count(f"; one base model: {seeds} of 5 pairs") == 3


def test_arms_that_fit_unlike_leave_the_first_verdict(rows):
    unlike = rows.assign(generalisation=rows["test_rsum"], train_rsum=np.where(
        rows["arm"] == f"{SECOND_BASE}/a", 400.0, 500.0))
    (line,) = ledger(claims(("a", "z"), metric="generalisation"), unlike).to_dict("records")
    assert line["outcome"] == "reproduced" and line["model"] == BASE
    assert "one base model: RSUM on training images must be within" in line["verdict"]
    other = rows.assign(generalisation=rows["test_rsum"], train_rsum=np.where(
        rows["arm"] == "a", 400.0, 500.0))
    alone = ledger(claims(("a", "z"), metric="generalisation"), other)
    assert alone["outcome"].tolist() == ["reproduced"] and alone["model"].tolist() == [CLEAN]
    assert both_verdicts(alone).empty


def test_claims_and_counter_checks_are_counted_apart_and_composites_are_not(table):
    counts = summary(table)
    assert counts["Claims of the papers"].to_dict() == {
        "wait for no other data, model or people": 6,
        "of these with a verdict (undecided is one)": 6, "of these decided": 4,
        "with a verdict by measurement": 6, "of these decided (reproduced or contradicted)": 4,
        "of these decided on the first base model alone": 1, "tested on both base models": 5,
        "of these opposite": 1, "of these only the first decides": 1,
        "of these only the second decides": 1, "of these neither decides": 1,
        "of these one shows no effect": 0, "of these the same": 1,
        "no effect: all differences too small to matter": 0,
        "undecided, at most 40 pairs are planned": 0, "undecided, more pairs would be": 0,
        "undecided, no number is planned": 1}
    ours = counts["Counter-checks of ours"]
    assert ours[["tested on both base models", "of these the same", "of these opposite",
                 "of these decided on the first base model alone"]].tolist() == [1, 1, 0, 0]
    composite = table.assign(origin=table["origin"].mask(table["id"] == "t", "composite"))
    assert summary(composite)["Claims of the papers"]["tested on both base models"] == 4
    assert "t" not in set(both_verdicts(composite)["claim"])


def test_both_verdicts_stand_side_by_side_those_turned_over_first(table):
    both = both_verdicts(table)
    assert both["claim"].tolist() == ["t", "c", "d", "e", "a", "g"]
    assert list(both) == ["claim", "statement", "unit", "first base model",
                          "verdict of first base model", "second base model",
                          "verdict of second base model", "both"]
    assert both["both"].tolist() == ["opposite", "only the first decides",
                                     "only the second decides", "neither decides", "the same",
                                     "the same"]
    assert both.iloc[0, 4] == "contradicted" and both.iloc[0, 6] == "reproduced"


def test_verdicts_on_one_base_model_alone_are_counted():
    """Neither undecided ones, nor composites, nor those on several models."""
    minilm, gru = BASE, "VSE++ on lite0:pooled:flip, words"
    table = pd.DataFrame([
        ("a", "claim", "reproduced", minilm), ("b", "claim", "contradicted", minilm),
        ("c", "claim", "reproduced", gru), ("d", "claim", "undecided", minilm),
        ("e", "counter-check", "reproduced", f"{minilm}; {gru}"),
        ("f", "composite", "contradicted", minilm)],
        columns=["id", "origin", "outcome", "model"]).assign(waits_for="", needed=None)
    facts = ["of these decided (reproduced or contradicted)",
             "of these decided on the first base model alone"]
    assert summary(table).loc[facts].to_numpy().tolist() == [[3, 1], [2, 0]]
    assert (summary(table.assign(outcome="undecided")).loc[facts] == 0).all(axis=None)


def test_nothing_changes_if_the_second_base_model_has_not_run(rows):
    alone, named = rows[~rows["arm"].str.contains("/")], claims(*PAIRS)
    off = ledger(named, alone)
    assert not has_run(alone) and has_run(rows) and not has_run(pd.DataFrame())
    assert not [name for name in off if name.startswith(("first_", "second_"))]
    assert not off["verdict"].str.contains("judge").any()
    assert both_verdicts(off).empty and "Judged on both" not in ledger_markdown(off)
    assert summary(off)["Claims of the papers"]["tested on both base models"] == 0
    on = ledger(named, rows).set_index("id")
    assert on["first_ours"].tolist() == off["ours"].tolist()
    assert on["first_outcome"].tolist() == off["outcome"].tolist()


def test_the_page_shows_both(table):
    page = ledger_markdown(table)
    assert "\n## Tested on both base models\n" in page and "judge:" not in page
    assert f"; first base model: contradicted on flickr8k with {BASE}" in page
    line = next(line for line in page.splitlines() if line.startswith("| t | Higher"))
    assert line.endswith("| reproduced | opposite |") and "| contradicted |" in line
    assert page.index("| t | Higher") < page.index("| c | Higher") < page.index("| a | Higher")


def test_expressions_name_the_second_base_model_inside():
    assert on_second("mean(k=1|k=3)") == "mean(clean_gru/k=1|clean_gru/k=3)"
    assert on_second("step(a|b|c)") == "step(clean_gru/a|clean_gru/b|clean_gru/c)"
    assert on_second("hardest@fast(1<2)") == "clean_gru/hardest@fast(1<2)"


def test_the_first_folder_that_has_a_ledger_is_read(tmp_path):
    nothing = kept_ledger([tmp_path])
    assert (summary(nothing) == 0).all(axis=None)
    for name in ("published", "own"):
        (tmp_path / name).mkdir()
        pd.DataFrame({"id": [name]}).to_csv(tmp_path / name / FILE, index=False)
    assert [kept_ledger([tmp_path, tmp_path / first, tmp_path / "published"])["id"].item()
            for first in ("own", "published")] == ["own", "published"]
