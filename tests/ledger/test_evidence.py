"""Claims about label sources: judged over images, by the rule of the ledger."""

import pandas as pd
import pytest

from itr_study.lab.ledger.evidence import COLUMNS, TABLE, LabelArms, read_evidence
from itr_study.lab.ledger.report import ledger
from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import judge

LINES = pd.DataFrame([
    ("labels(a)", "labels(b)", "people", "experts", 900, 5.0, 1.0),
    ("labels(b)", "labels(c)", "people", "experts", 900, -1.0, 1.0),
    ("labels(a)", "labels(b)", "crowd", "a crowd", 800, 2.1, 1.0),
    ("labels(a)", "labels(b)", "raters", "raters", 700, -2.5, 1.0)], columns=list(COLUMNS))


def claim(kind="difference", arm_a="labels(a)", arm_b="labels(b)", metric="people", margin=""):
    return {"id": "x", "kind": kind, "arm_a": arm_a, "arm_b": arm_b, "metric": metric,
            "margin": margin, "needs": "notebook 04", "test": "", "parts": ""}


@pytest.mark.parametrize("claimed, expected", [
    (claim(), "reproduced"),  # 5 -+ 1.96
    (claim(metric="crowd"), "reproduced"),  # 2.1 - 1.96 > 0
    (claim(metric="people;crowd"), "reproduced"),
    (claim(metric="raters"), "contradicted"),  # -2.5 + 1.96 < 0
    (claim(metric="people;raters"), "contradicted"),  # at 97.5 %: 2.24
    (claim(metric="people;crowd;people;raters"), "contradicted"),  # at 98.75 %: 2.4977
    (claim(metric="people;crowd;people;people;raters"), "undecided"),  # at 99 %: 2.576
    (claim("order", "labels(a);labels(b);labels(c)", ""), "undecided"),  # -1 -+ 1.96
    (claim("equivalence", margin="7"), "reproduced"),  # 5 + 1.96 < 7
    (claim("equivalence", margin="6.9"), "undecided"),
    (claim("equivalence", margin="3.1"), "undecided"),  # 5 - 1.96 < 3.1
    (claim("equivalence", margin="3"), "contradicted")])
def test_by_hand(claimed, expected):
    assert judge(claimed, pd.DataFrame(), LINES).outcome == expected


def test_a_verdict_names_the_judges_and_the_images():
    verdict = judge(claim(metric="people;crowd"), pd.DataFrame(), LINES)
    assert verdict.sentence == ("reproduced on experts; a crowd with label sources alone, "
                                "n = 800 images")
    assert verdict.parts[0].interval() == pytest.approx((5 - 1.95996, 5 + 1.95996), abs=1e-4)
    assert verdict.levels == "95 %; against 97.5 %"
    open_one = judge(claim("equivalence", margin="6"), pd.DataFrame(), LINES)
    assert open_one.sentence.endswith("n = 900 images; only more judged images would decide")


def test_without_evidence_a_claim_is_not_tested():
    for evidence in (None, LINES[:0], LINES[1:2]):
        verdict = judge(claim(), pd.DataFrame(), evidence)
        assert verdict.outcome == "not tested"
        assert verdict.missing == "no evidence of labels(a) - labels(b) by people; notebook 04"
    with pytest.raises(ValueError, match="no evidence of labels"):
        LabelArms(LINES).part("labels(a)", "labels(b)", "people", relative=True)


def test_evidence_is_read_beside_the_figures(tmp_path):
    assert read_evidence([tmp_path]).empty
    LINES.to_csv(tmp_path / TABLE, index=False)
    own = tmp_path / "own"
    assert read_evidence([own, tmp_path]).to_dict("records") == LINES.to_dict("records")
    own.mkdir()
    LINES[:1].to_csv(own / TABLE, index=False)
    assert len(read_evidence([own, tmp_path])) == 1 < len(LINES)
    LINES.drop(columns="error").to_csv(tmp_path / TABLE, index=False)
    with pytest.raises(ValueError, match="lacks the columns error; execute notebook 04_relevance"):
        read_evidence([tmp_path])


def test_the_ledger_shows_a_verdict_over_images_beside_those_over_runs():
    claims = load_claims("listwise")
    claims = claims[claims["id"].isin(["listwise-fig1-rsc-people", "listwise-fig8-drop"])]
    lines = pd.DataFrame([("labels(sentence, max)", "labels(binary)", metric, "experts", 900, 5.0,
                           1.0) for metric in ("agreement_experts", "agreement_crowd")],
                         columns=list(COLUMNS))
    table = ledger(claims, pd.DataFrame(), lines).set_index("id")
    assert table["outcome"].to_dict() == {"listwise-fig1-rsc-people": "reproduced",
                                          "listwise-fig8-drop": "not tested"}
    assert table.loc["listwise-fig1-rsc-people", "ours"] == (
        "+5.0 [+3.0, +7.0] to +5.0 [+3.0, +7.0]; settled for in 2, against in 0 of 2")
