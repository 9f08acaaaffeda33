"""The page of claims: counts, a legend that leaves nothing out, what a composite means."""

import pandas as pd
import pytest

from itr_study.lab.ledger.report import (
    COLUMNS,
    MEANINGS,
    advice,
    composites,
    ledger,
    ledger_markdown,
    write_ledger,
)
from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import OUTCOMES, units_of


@pytest.fixture(scope="module")
def untested():
    """The ledger of one paper before anything has run."""
    return ledger(load_claims("topk"), pd.DataFrame())


def test_ledger_as_markdown_counts_each_origin_apart_and_keeps_its_columns(untested):
    text = ledger_markdown(untested)
    lines = text.splitlines()
    assert lines[:3] == ["- 42 claims of the papers: 2 held by a test, 1 not as printed, "
                         "39 not tested.",
                         "- 9 counter-checks of ours: 9 not tested.",
                         "- 2 composites: 2 not tested."]
    assert [line for line in lines if line.startswith("## ")] == [
        "## How to read this page", "## Claims of the papers", "## Counter-checks of ours",
        "## Composites, not counted: their parts are rows of their own"]
    assert "+1.2 to +4.4 (24 differences)" in text and "| ± 1 |" in text
    assert {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")} == {9}


def test_the_ledger_is_written_beside_its_figure(untested, tmp_path):
    path = write_ledger(untested, tmp_path / "scenes")
    assert path == tmp_path / "scenes" / "claims.md"
    assert path.read_text(encoding="utf-8") == ledger_markdown(untested)


def test_the_legend_explains_every_outcome_and_every_column(untested):
    text = ledger_markdown(untested)
    assert tuple(MEANINGS) == OUTCOMES
    assert all(f"- **{outcome}**: " in text for outcome in OUTCOMES)
    head = next(line for line in text.splitlines() if line.startswith("| claim | place"))
    assert head == f"| {' | '.join(COLUMNS)} |".replace(
        "claim, place, statement", "claim | place | statement")


def test_the_note_of_a_claim_stands_below_its_statement(untested):
    lines = {line.split(" | ")[0][2:]: line for line in ledger_markdown(untested).splitlines()
             if line.startswith("| ")}
    for row in untested.itertuples():
        small = f"{row.statement}<br><small>{row.note}</small> |" if row.note else \
            f"{row.statement} |"
        assert small.replace("\n", " ") in lines[row.id].replace("\\|", "|"), row.id
    assert untested["note"].ne("").any() and untested["note"].eq("").any()


def test_every_number_has_its_unit_and_a_minus_sign(untested):
    assert all(map(units_of, load_claims().query("metric != ''")["metric"]))
    printed = untested[untested["reported_difference"] != ""].set_index("id")
    assert (printed["unit"] != "").all() and len(printed) > 5
    assert printed["reported_difference"].str.contains("−").any()
    assert not printed["reported_difference"].str.contains("-").any()
    unit = untested.set_index("id")["unit"]
    assert (unit["topk-eq12-cost"], unit["topk-order-r1"]) == ("% of the second",
                                                               "points of recall")


@pytest.fixture
def table():
    return pd.DataFrame({
        "id": ["a", "b", "c", "d", "all"],
        "origin": ["claim", "claim", "counter-check", "claim", "composite"],
        "outcome": ["undecided", "undecided", "undecided", "contradicted", "undecided"],
        "needed": pd.array([40, 41, None, None, 9], "Int64"),
        "parts": ["", "", "", "", "a;d"]})


def test_what_is_beyond_the_plan_is_said_and_composites_are_not_counted(table):
    assert advice(table) == (
        "Of 3 undecided claims and counter-checks 1 would be decided by at most 40 pairs at the "
        "spread we see; 1 ask for more, which is beyond what is planned, and of 1 no number can be "
        "told.")
    assert advice(table.assign(outcome="reproduced")) == ""


def test_a_composite_left_open_names_the_part_that_is_contradicted(table):
    assert composites(table).endswith("leave the composite undecided: here `all` (`d`).")
    table.loc[table["id"] == "d", "outcome"] = "undecided"
    assert composites(table).endswith("leave the composite undecided.")
