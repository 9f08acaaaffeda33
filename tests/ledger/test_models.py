"""On which model verdicts rest, and claims judged on two of them."""

import doctest

import pandas as pd

from itr_study.lab.ledger import models
from itr_study.lab.ledger.models import FIRST, SECOND, kept_ledger, model_of, resting, twice_judged
from itr_study.lab.ledger.report import ledger_markdown
from itr_study.lab.ledger.reported import load_claims

MINILM, GRU = "Two-branch on lite0:pooled:flip, minilm", "VSE++ on lite0:pooled:flip, words"
LEDGER = pd.DataFrame([
    ("a", "claim", "reproduced", MINILM), ("b", "claim", "contradicted", MINILM),
    ("c", "claim", "reproduced", GRU), ("d", "claim", "undecided", MINILM),
    ("e", "counter-check", "reproduced", f"{MINILM}; {GRU}"),
    ("f", "composite", "contradicted", MINILM)], columns=["id", "origin", "outcome", "model"])


def test_examples():
    failed, tried = doctest.testmod(models)
    assert tried and not failed


def test_decided_verdicts_of_one_model_alone_are_counted():
    """Not undecided ones, composites, or those that rest on several models."""
    assert resting(LEDGER) == (
        "2 of 3 decided claims and 0 of 1 decided counter-checks rest on one model alone, "
        "Two-branch with MiniLM; MiniLM made the labels, too, and has seen the captions.")
    assert "MiniLM" not in resting(LEDGER[LEDGER["model"] == GRU])
    assert resting(LEDGER.assign(outcome="undecided")) == "No measured verdict is decided here."
    held = LEDGER.assign(outcome=["not as printed", "held by a test", "undecided", "undecided",
                                  "held by a test", "held by a test"])
    assert resting(held).endswith("decided here; 2 claims and 1 counter-checks are held by a test "
                                  "or not as printed.")


def test_the_same_arms_on_two_models_stand_side_by_side():
    claims = load_claims()
    table = claims[["id", "statement"]].assign(ours="+1.0", outcome="undecided", model=MINILM)
    both = twice_judged(table).set_index("claim")
    names = ["statement", "unit", "Two-branch, MiniLM", "verdict of Two-branch, MiniLM",
             "VSE++, GRU", "verdict of VSE++, GRU"]
    assert list(both) == names
    by_id = claims.set_index("id")
    second = claims[claims["arm_a"].map(model_of) == SECOND].set_index("id")
    assert len(both) >= 10 and {model_of(by_id.loc[name, "arm_a"]) for name in both.index} == {
        FIRST}
    table.loc[table["id"] == "bcls-tab3-vsepp-gru", "outcome"] = "contradicted"
    line = twice_judged(table).set_index("claim").loc["bcls-tab3-two_branch-sentence"]
    assert (line[names[3]], line[names[5]]) == ("undecided", "contradicted")
    assert twice_judged(table[table["id"].isin(second.index)]).empty
    assert twice_judged(table.assign(outcome="not tested")).empty
    other = twice_judged(table.assign(model="Two-branch on detector, fisher"))  # on scenes
    assert "dvse-fr-sum" in both.index and "dvse-fr-sum" not in set(other["claim"])
    assert "bcls-tab3-two_branch-sentence" in set(other["claim"])
    assert not twice_judged(table)["statement"].str.contains("two_branch").any()


def test_claims_with_other_margins_or_on_several_models_are_not_the_same_claim(monkeypatch):
    same = {"paper": "topk", "kind": "equivalence", "metric": "test_rsum", "margin": "1"}
    claims = pd.DataFrame([
        same | {"id": "a", "arm_a": f"{FIRST}/top5", "arm_b": f"{FIRST}/sum"},
        same | {"id": "b", "arm_a": f"{SECOND}/top5", "arm_b": f"{SECOND}/sum"}])
    table = pd.DataFrame({"id": ["a", "b"], "statement": "", "ours": "+1.0",
                          "outcome": "undecided", "model": [MINILM, GRU]})
    monkeypatch.setattr(models, "load_claims", lambda: claims.assign(statement=""))
    assert twice_judged(table.drop(columns="statement"))["claim"].tolist() == ["a"]
    claims.loc[1, "margin"] = "2"
    assert twice_judged(table.drop(columns="statement")).empty
    assert model_of(f"{FIRST}/top5; {SECOND}/top5") == "" and model_of("top5") == FIRST


def test_the_page_has_both(tmp_path):
    assert kept_ledger([tmp_path]).empty and resting(kept_ledger([tmp_path])).startswith(
        "No measured")
    assert twice_judged(kept_ledger([tmp_path])).empty
    for name in ("published", "own"):
        (tmp_path / name).mkdir()
        pd.DataFrame({"id": [name]}).to_csv(tmp_path / name / models.FILE, index=False)
    assert [kept_ledger([tmp_path, tmp_path / first, tmp_path / "published"])["id"].item()
            for first in ("own", "published")] == ["own", "published"]
    named = ["unit", "reported_difference", "ours", "levels", "verdict"]
    table = load_claims().assign(origin="claim", outcome="reproduced", model=GRU,
                                 **dict.fromkeys(named, ""))
    page = ledger_markdown(table)
    assert f"\n{resting(table)}\n" in page and "## Judged on two models" in page
    assert f"| verdict of VSE++, GRU |\n| {' | '.join(['---'] * 7)} |" in page
