"""The page of claims: counts, a legend that leaves nothing out, what a composite means."""

import re

import pandas as pd
import pytest

from itr_study.lab.ledger.report import (
    LEGEND,
    PAGE_COLUMNS,
    contradicted_parts,
    ledger,
    ledger_markdown,
    summary,
    write_ledger,
)
from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import OUTCOMES, units_of

pytestmark = pytest.mark.usefixtures("no_margins")


@pytest.fixture(scope="module")
def untested():
    """The ledger of one paper before anything has run."""
    return ledger(load_claims("topk"), pd.DataFrame())


def test_ledger_as_markdown_counts_each_origin_apart_and_keeps_its_columns(untested):
    text = ledger_markdown(untested)
    lines = text.splitlines()
    assert lines[6:9] == ["| Claims of the papers | 0 | 0 | 0 | 0 | 0 | 2 | 1 | 39 |",
                          "| Counter-checks of ours | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 9 |",
                          "| Composites | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 2 |"]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Counts", "## Outcomes", "## Columns", "## Base models",
        "## The verdict on a composite", "## Claims of the papers", "## Counter-checks of ours",
        "## Composites"]
    assert "+1.2 to +4.4 (24 differences)" in text and "| ± 1<br>2026-11-21 |" in text
    claims = text[text.index("## Claims of"):].splitlines()
    assert {line.replace("\\|", "").count("|") for line in claims if line.startswith("|")} == {10}


def test_the_ledger_is_written_beside_its_figure(untested, tmp_path):
    path = write_ledger(untested, tmp_path / "scenes")
    assert path == tmp_path / "scenes" / "claims.md"
    assert path.read_text(encoding="utf-8") == ledger_markdown(untested)


def test_the_legend_explains_every_outcome_and_every_column(untested):
    outcomes, columns, *_ = LEGEND.read_text(encoding="utf-8").split("\n## ")
    for words, text in ((OUTCOMES, outcomes), (PAGE_COLUMNS, columns)):
        assert re.findall(r"^- \*\*(.+)\*\*: ", text, re.M) == list(words)
    assert f"| {' | '.join(PAGE_COLUMNS)} |" in ledger_markdown(untested)


def test_the_note_of_a_claim_stands_below_its_statement(untested):
    lines = {line.split(" | ")[0][2:]: line for line in ledger_markdown(untested).splitlines()
             if line.startswith("| ")}
    for row in untested[untested["kind"] != "misprint"].itertuples():
        small = f"{row.statement}<br><small>{row.note}</small> |" if row.note else \
            f"{row.statement} |"
        assert small.replace("\n", " ") in lines[row.id].replace("\\|", "|"), row.id
    assert untested["note"].ne("").any() and untested["note"].eq("").any()
    wrong = untested.loc[untested["kind"] == "misprint", "id"]
    assert len(wrong) and not set(wrong) & set(lines)  # those are in docs/misprints.md


def test_every_number_has_its_unit_and_a_minus_sign(untested):
    assert all(map(units_of, load_claims().query("metric != ''")["metric"]))
    printed = untested[untested["reported_difference"] != ""].set_index("id")
    assert (printed["unit"] != "").all() and len(printed) > 5
    assert printed["reported_difference"].str.contains("−").any()
    assert not printed["reported_difference"].str.contains("-").any()
    unit = untested.set_index("id")["unit"]
    assert (unit["topk-eq12-cost"], unit["topk-order-r1"]) == ("% of the second variant",
                                                               "points of recall")


@pytest.fixture
def table():
    return pd.DataFrame({
        "id": ["a", "b", "c", "d", "all"],
        "origin": ["claim", "claim", "counter-check", "claim", "composite"],
        "outcome": ["undecided", "undecided", "undecided", "contradicted", "undecided"],
        "needed": pd.array([40, 41, None, None, 9], "Int64"),
        "parts": ["", "", "", "", "a;d"]})


def test_what_is_beyond_the_plan_is_counted_and_composites_are_not(table):
    counts = summary(table.assign(waits_for="", model=""))
    assert counts[-3:].to_numpy().tolist() == [[1, 0], [1, 0], [0, 1]]


def test_a_composite_left_open_names_the_part_that_is_contradicted(table):
    assert contradicted_parts(table).to_numpy().tolist() == [["all", "d"]]
    table.loc[table["id"] == "d", "outcome"] = "undecided"
    assert contradicted_parts(table).empty


def test_a_star_and_a_list_name_decided_claims_that_are_open_by_other_rules(untested):
    decided = untested[untested["kind"] != "misprint"].head(3).assign(
        outcome="reproduced", q=[0.06, 0.05, 0.01], images_ours=["", "", "+1.0 [−1.0, +3.0]"],
        images_outcome=["", "reproduced", "undecided"])
    first, second, third = decided["id"]
    text = ledger_markdown(decided)
    begin = text.index("## Decided, but open by q or by other images (*)")
    listed = text[begin:].split("\n## ")[0]
    assert first in listed and third in listed and second not in listed
    lines = {line.split(" | ")[0][2:]: line for line in text[text.index("## Claims"):].splitlines()}
    assert [" | \\* " in lines[name] for name in (first, second, third)] == [True, False, True]
    assert "<br>with other images: +1.0 [−1.0, +3.0]" in lines[third]
    assert lines[first].endswith("| 0.06 |")
