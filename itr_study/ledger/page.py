"""The ledger as a page, claims.md: counts, how to read it, then every claim."""

from pathlib import Path

import pandas as pd

from itr_study.files.atomic import write_atomic
from itr_study.ledger.judges import agreement, both_verdicts
from itr_study.ledger.models import resting, twice_judged
from itr_study.ledger.paired import FEWEST
from itr_study.ledger.reported import split_list
from itr_study.ledger.table import ORIGINS, TITLES, counted, covered

PLANNED = 40  # pairs of runs for one claim; more are not planned
# What each outcome means, and each column of the page, in one line.
MEANINGS = {
    "reproduced": "the interval lies wholly on the claimed side (of an equivalence: within its "
                  "margin), for every part of the claim (each pair of arms, each metric)",
    "contradicted": "for some part it lies wholly on the other side, even at the stricter level "
                    "printed beside it (1 − 0.05 / m for m parts)",
    "undecided": "neither; the row says how many pairs of runs would decide at the spread we see",
    "collapsed": "runs of the claim have drawn all scores together: no verdict rests on them",
    "held by a test": "a definition or a theorem, nothing to measure: the test that is named holds "
                      "it",
    "not as printed": "the same, but the paper prints something else, and the test holds what is "
                      "right",
    "not tested": "there are no such runs, or none that can be compared; the row says what is "
                  "missing"}
TWO_JUDGES = (
    "The second judge has read no captions but those it is trained on. Where it judged a claim by "
    f"{FEWEST} pairs or more, its verdict is the headline, which is counted; other claims keep one "
    "judge, and say why.")
COLUMNS = {
    "claim, place, statement": "its id here, where the paper makes it, what it says; in small type "
                               "how it was read, and what the verdict does not say",
    "unit": "of the two columns behind it; but where a paper prints times, these are seconds, of "
            "an epoch or of a whole test",
    "reported": "the difference that the paper printed, on its own data; – where it prints none",
    "ours": "the mean of our paired differences [its 95 % interval]; of several parts the smallest "
            "and the largest, and how many of them are settled by themselves, at 95 % each and by "
            "five pairs or more; where one time is claimed to be so many times another, how many "
            "times it is",
    "margin, levels": "the margin within which an equivalence holds; the levels of confidence for "
                      "the claim and against it",
    "verdict": "the outcome, with the data, the model, its learning rates and the number of pairs "
               "that it rests on: the same two losses may stand in two rows, at two rates. Where "
               "few pairs left a claim open more were trained, in steps, and no interval corrects "
               "for having looked before"}


def ledger_markdown(table: pd.DataFrame) -> str:
    """The ledger as Markdown: counts first, on which models they rest, how to read it, then a table
    for each origin."""
    lines = [f"- {line}." for line in (counted(table, kind) for kind in ORIGINS) if line]
    both = both_verdicts(table)
    texts = (covered(table), resting(table), agreement(table) * bool(len(both)), advice(table))
    lines += [line for text in texts if text for line in ("", text)]
    lines += ["", "## How to read this page", "", "Outcomes:", "", *entries(MEANINGS), "",
              "Columns:", "", *entries(COLUMNS)]
    if len(both):
        lines += ["", "## Two judges", "", TWO_JUDGES, "",
                  *markdown_lines(list(both), both)]
    twice = twice_judged(table)
    if len(twice):
        lines += ["", "## Judged on two models", "", *markdown_lines(list(twice), twice)]
    for kind in ORIGINS:
        part = table[table["origin"] == kind]
        if len(part):
            above = [composites(table), ""] if kind == "composite" else []
            lines += ["", f"## {TITLES[kind]}", "", *above, *markdown_rows(part)]
    return "\n".join([*lines, ""])


def entries(words: dict[str, str]) -> list[str]:
    """A list of Markdown, a line for each word."""
    return [f"- **{word}**: {meaning}." for word, meaning in words.items()]


def advice(table: pd.DataFrame) -> str:
    """What would decide the undecided, and for how many of them that is out of reach, as a
    sentence; empty where nothing is undecided. Composites are left out: their parts are here."""
    open_ = table[(table["outcome"] == "undecided") & (table["origin"] != "composite")]
    if open_.empty:
        return ""
    needed = pd.to_numeric(open_["needed"], errors="coerce")
    within, known = int((needed <= PLANNED).sum()), int(needed.notna().sum())
    return (f"Of {len(open_)} undecided claims and counter-checks {within} would be decided by at "
            f"most {PLANNED} pairs at the spread we see; {known - within} ask for more, which is "
            f"beyond what is planned, and of {len(open_) - known} no number can be told.")


def composites(table: pd.DataFrame) -> str:
    """What the verdict of a composite means, and which of them is undecided though a claim that is
    one of its parts is contradicted."""
    outcomes = table.set_index("id")["outcome"]
    open_ = table[(table["origin"] == "composite") & (table["outcome"] == "undecided")]
    odd = {row.id: [part for part in split_list(row.parts) if
                    outcomes.get(part) == "contradicted"] for row in open_.itertuples()}
    here = ", ".join(f"`{name}` (`{'`, `'.join(parts)}`)" for name, parts in odd.items() if parts)
    why = ("A composite is judged anew, all comparisons of its parts together: reproduced if every "
           "one of them is settled for it, contradicted as soon as one is settled against it. The "
           "more there are, the likelier one fails by chance; so against it the level is "
           "1 − 0.05 / m for m comparisons. That is why a claim can be contradicted by itself, at "
           "its own level, and leave the composite undecided")
    return f"{why}: here {here}." if here else f"{why}."


def markdown_rows(table: pd.DataFrame) -> list[str]:
    """The lines of one table."""
    head = ["claim", "place", "statement", "unit", "reported", "ours", "margin, levels", "verdict"]
    rule = [", ".join(filter(None, [f"± {margin}" if margin else "", levels]))
            for margin, levels in zip(table["margin"], table["levels"], strict=True)]
    columns = table[["id", "place", "statement", "unit", "reported_difference", "ours"]].assign(
        statement=[f"{words}<br><small>{note}</small>" if note else words for words, note in
                   zip(table["statement"], table["note"], strict=True)],
        rule=rule, verdict=table["verdict"])
    return markdown_lines(head, columns)


def markdown_lines(head: list[str], columns: pd.DataFrame) -> list[str]:
    """A frame as a table of Markdown."""
    cells = [[str(value).replace("|", "\\|").replace("\n", " ") or "–" for value in row]
             for row in columns.itertuples(index=False)]
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *cells]]


def write_ledger(table: pd.DataFrame, folder: Path | str) -> Path:
    """Write `claims.md` into a folder, such as that of its figure: whole, or not at all."""
    path = Path(folder) / "claims.md"
    write_atomic(path, ledger_markdown(table).encode())
    return path
