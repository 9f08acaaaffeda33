"""The ledger: every claim of the papers with its verdict, as a table, counts and a page."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field

from itr_study.checks import check_choice
from itr_study.digits import digits_for, number, signed, with_interval
from itr_study.files.atomic import read_json, write_atomic
from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.evidence import COLUMNS, kept_file
from itr_study.lab.ledger.paired import ImageError, Part, arms_in
from itr_study.lab.ledger.replication import (
    ORDER,
    Replication,
    both_verdicts,
    has_run,
    replicate,
    replicated,
)
from itr_study.lab.ledger.reported import reported_differences, split_list
from itr_study.lab.ledger.verdict import (
    DECIDED,
    HELD,
    OUTCOMES,
    TIMES,
    Verdict,
    judge,
    metrics_of,
    q_values,
    units_of,
)
from itr_study.metrics.intervals import LEVEL, student_interval
from itr_study.training.settings import StrictModel

# What is counted apart: what a paper claims, what we ask beside it, what other rows add up to.
TITLES = {"claim": "Claims of the papers", "counter-check": "Counter-checks of ours",
          "composite": "Composites"}
ORIGINS = tuple(TITLES)


def origin(claim: dict[str, str]) -> str:
    """Tell which of ORIGINS a claim is. Counter-checks are marked by their place or statement."""
    if claim["parts"]:
        return "composite"
    ours = claim["place"].startswith("ours") or claim["statement"].startswith("Counter-check")
    return "counter-check" if ours else "claim"


def verdicts(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
             elsewhere: Sequence[pd.DataFrame] = (), error_of: ImageError | None = None
             ) -> list[tuple[dict, Replication]]:
    """Judge every claim on each data set of the rows (once if there are none), as in `ledger`."""
    frames = [frame for _, frame in rows.groupby("dataset")] if len(rows) else [rows]
    found, again = [], has_run(rows)
    for frame in frames:
        for claim in claims.to_dict("records"):
            first = judge(claim, with_metrics(claim, frame, elsewhere), evidence, error_of)
            found.append((claim, replicate(claim, first, frame, error_of) if again
                          else Replication(first)))
    return found


def with_metrics(claim: dict[str, str], rows: pd.DataFrame,
                 elsewhere: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Choose the rows, or else the first others with a value of every metric of a claim."""
    wanted = metrics_of(claim)
    return next((frame for frame in (rows, *elsewhere) if all(
        name in frame and frame[name].notna().any() for name in wanted)), rows)


def reported_span(values: list[float]) -> str:
    """Write a printed difference, or the smallest and the largest of several."""
    if len(values) < 2:
        return "".join(map(signed, values))
    digits = digits_for(*values)
    return (f"{signed(min(values), digits)} to {signed(max(values), digits)} "
            f"({len(values)} differences)")


def measured_span(verdict: Verdict, parts: Sequence[Part] | None = None) -> str:
    """Write our difference with its interval; parts: those of the verdict, or its `crossed`.

    Of several, the smallest, the largest, and how many are settled by their own 95 % intervals; of
    times, how many times one is the other.
    """
    ends = sorted(verdict.parts if parts is None else parts, key=lambda part: part.mean)
    shown = ends if len(ends) < 2 else [ends[0], ends[-1]]
    ends_in_words = [with_interval(part.mean, *part.interval()) if part.n > 1
                     else f"{signed(part.mean)} (one pair)" for part in shown]
    counts = Counter(map(verdict.standing, ends))
    fallen = f", collapsed in {counts['collapsed']}" * bool(counts["collapsed"])
    settled = f"; settled for in {counts['for']}, against in {counts['against']}{fallen} of " \
              f"{len(ends)}"
    return " to ".join(ends_in_words) + settled * (len(ends) > 1) + "".join(map(factor, ends))


def printed_above(claim: dict[str, str], verdict: Verdict) -> str:
    """Say that the paper prints more than where there is no effect here; else nothing."""
    printed = list(reported_differences(claim)["difference"])
    if verdict.outcome != "no effect" or not printed or min(printed) <= max(
            part.interval()[1] for part in verdict.parts):
        return ""
    return f"; the paper prints {reported_span(printed)}, above our upper end"


def factor(part: Part) -> str:
    """Write how many times as long one takes as another, if that is claimed; else nothing."""
    if part.metric not in TIMES or part.ratios is None or part.n < 2:
        return ""
    from itr_study.plots.names import name_of  # here: the ledger must not wait for matplotlib

    low, high = student_interval(part.ratios)
    other, = arms_in(part.arm_b)
    return (f"; {name_of(part.arm_a)} takes {number(part.ratios.mean(), 2)} [{number(low, 2)}, "
            f"{number(high, 2)}] times as long as {name_of(other)}")


def ledger(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
           elsewhere: Sequence[pd.DataFrame] = (), error_of: ImageError | None = None
           ) -> pd.DataFrame:
    """List every claim and data set: what was reported, what we measured, the verdict.

    Args:
        claims: rows of claims.csv.
        rows: as in `judge`, of any number of data sets.
        evidence: as in `judge`.
        elsewhere: other rows, such as those of generated data, where relevance is known exactly, or
            of a benchmark: a claim about what the rows do not hold is judged on the first of these
            that hold it.
        error_of: as in `judge`.
    Returns: Frame of id, paper, place, origin (one of ORIGINS), statement, kind, metric, margin,
        unit, reported_on, reported_difference, ours, levels, dataset, model, pairs, outcome,
        needed, missing, verdict (a sentence), parts (ids of those of a composite), note, waits_for
        (data, model, people or empty), fixed_on, p and q (of the outcome, by origin), and
        images_ours and images_outcome (over seeds and images, of decided claims with ranks). If the
        second base model has run, ours to missing are those of the headline, and more columns
        follow: first_ours, first_outcome, first_model, second_ours, second_outcome (empty if a
        claim has one base model).
    """
    records, again = [], has_run(rows)
    for claim, both in verdicts(claims, rows, evidence, elsewhere, error_of):
        verdict, first, second = both.headline, both.first, both.second
        of_both = {
            "first_ours": measured_span(first), "first_outcome": first.outcome,
            "first_model": first.model, "second_ours": measured_span(second) if second else "",
            "second_outcome": second.outcome if second else ""} if again else {}
        records.append({
            **{name: claim[name] for name in ("id", "paper", "place")}, "origin": origin(claim),
            **{name: claim[name] for name in ("statement", "kind", "metric", "margin")},
            "unit": units_of(claim["metric"], claim["margin"]),
            "reported_on": claim["dataset_of_paper"],
            "reported_difference": reported_span(list(reported_differences(claim)["difference"])),
            "ours": measured_span(verdict),
            "levels": verdict.levels, "dataset": verdict.dataset, "model": verdict.model,
            "pairs": verdict.pairs, "outcome": verdict.outcome, "needed": verdict.needed,
            "missing": verdict.missing, "verdict": both.sentence + printed_above(claim, verdict),
            **{name: claim[name] for name in ("parts", "note", "waits_for", "fixed_on")},
            "p": verdict.p, "q": None, "images_ours": measured_span(verdict, verdict.crossed),
            "images_outcome": verdict.crossed_outcome, **of_both})
    table = pd.DataFrame(records).astype({"needed": "Int64", "p": float})
    table["q"] = q_values(table, "origin")
    digits = {name: table[name].map("{:.4g}".format).astype(float) for name in ("p", "q")}
    return table.assign(**digits)  # so few digits are the same on every processor


def fragile(table: pd.DataFrame) -> pd.DataFrame:
    """List decided claims that are open by q > 0.05, or by other images beside other seeds."""
    q, images = pd.to_numeric(table["q"], errors="coerce"), table["images_outcome"]
    loose, moved = q > 1 - LEVEL, (images != "") & (images != table["outcome"])
    decided = table["outcome"].isin((*DECIDED, "no effect"))
    chosen = table[decided & (loose | moved)].sort_values("origin", kind="stable")
    return chosen[["id", "outcome", "q", "ours", "images_ours", "images_outcome"]].rename(columns={
        "id": "claim", "images_ours": "ours, with other images",
        "images_outcome": "verdict, with other images"})


def ledger_parts(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
                 elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """List every comparison behind the headlines, its own standing and its claim's outcome."""
    records = [
        (verdict.id, verdict.outcome, verdict.standing(part), verdict.dataset, verdict.model,
         part.arm_a, part.arm_b, part.metric, part.n, part.mean, *part.interval())
        for _, both in verdicts(claims, rows, evidence, elsewhere)
        for verdict in [both.headline] for part in verdict.parts]
    return pd.DataFrame(records, columns=["id", "outcome", "standing", "dataset", "model", "arm_a",
                                          "arm_b", "metric", "pairs", "difference", "low", "high"])


def outcome_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count the claims of each outcome, one line per origin: (origin, outcome) -> count."""
    return pd.crosstab(table["origin"], table["outcome"]).reindex(
        index=list(ORIGINS), columns=list(OUTCOMES), fill_value=0)


# The ledger as a page, claims.md: counts, what its words mean, then every claim.

FILE, PAGE = "12_claims__ledger.csv", "claims.md"
LEGEND = files("itr_study.lab.ledger.reported") / "legend.md"  # what the words of the page mean
PLANNED = 40  # pairs of runs for one claim; more are not planned
PAGE_COLUMNS = ("claim", "place", "statement", "unit", "reported", "ours", "margin, levels, date",
                "verdict", "q")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Count what is decided, on which base models, and what would decide the rest.

    Args: table: a ledger of one data set, as `ledger` gives it.
    Returns: A line per fact, a column for the claims of the papers and one for counter-checks of
        ours: the two are never added up. Composites are left out: their parts are rows of their
        own.
    """
    table = table[table["origin"] != "composite"]
    here = table[table["waits_for"] == ""]
    tested = here[here["outcome"] != "not tested"]
    decided, twice = table[table["outcome"].isin(DECIDED)], replicated(table)
    alone = decided.drop(twice.index, errors="ignore")
    open_ = table[table["outcome"] == "undecided"]
    needed = pd.to_numeric(open_["needed"], errors="coerce")
    facts = {
        "wait for no other data, model or people": here,
        "of these with a verdict (undecided is one)": tested,
        "of these decided": tested[~tested["outcome"].isin(["undecided", "collapsed"])],
        "with a verdict by measurement": tested[~tested["outcome"].isin(HELD.values())],
        "of these decided (reproduced or contradicted)": decided,
        "of these decided on the first base model alone": alone[
            alone["model"] == alone["model"].mode().get(0)],
        "tested on both base models": twice,
        **{f"of these {words}": twice[twice["both"] == words] for words in ORDER},
        "no effect: all differences too small to matter": table[table["outcome"] == "no effect"],
        f"undecided, at most {PLANNED} pairs are planned": open_[needed <= PLANNED],
        "undecided, more pairs would be": open_[needed > PLANNED],
        "undecided, no number is planned": open_[needed.isna()]}
    counts = pd.DataFrame({fact: part["origin"].value_counts() for fact, part in facts.items()})
    return counts.reindex(ORIGINS[:2]).fillna(0).astype(int).rename(TITLES).T.rename_axis(
        index="how many", columns=None)


def contradicted_parts(table: pd.DataFrame) -> pd.DataFrame:
    """List the composites that are undecided and those of their parts that are contradicted."""
    outcomes = table.set_index("id")["outcome"]
    open_ = table[(table["origin"] == "composite") & (table["outcome"] == "undecided")]
    pairs = [(row.id, part) for row in open_.itertuples() for part in split_list(row.parts)
             if outcomes.get(part) == "contradicted"]
    return pd.DataFrame(pairs, columns=["undecided composite", "contradicted part"])


def ledger_markdown(table: pd.DataFrame) -> str:
    """Write the ledger as Markdown: counts, what the words mean, then a table for each origin."""
    counts = outcome_counts(table).rename(TITLES).rename_axis("").reset_index()
    tables = {"Tested on both base models": both_verdicts(table),
              "Undecided composites with a contradicted part": contradicted_parts(table),
              "Decided, but open by q or by other images (*)": fragile(table)}
    listed = table[table["kind"] != "misprint"]  # docs/misprints.md has the others
    tables |= {title: page_columns(listed[listed["origin"] == kind])
               for kind, title in TITLES.items()}
    blocks = [("Counts", [*markdown_lines(counts), "",
                          *markdown_lines(summary(table).reset_index())])]
    blocks += [(title, markdown_lines(part)) for title, part in tables.items() if len(part)]
    first, *others = ["\n".join([f"## {title}", "", *lines, ""]) for title, lines in blocks]
    return "\n".join(["# Claims of the four papers\n", first, LEGEND.read_text(encoding="utf-8"),
                      *others])


def page_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Arrange claims in the columns of the page."""
    small = ("<br><small>" + table["note"] + "</small>").where(table["note"] != "", "")
    margin = ("± " + table["margin"]).where(table["margin"] != "", "")
    rule = (margin + ", " + table["levels"]).str.strip(", ") + "<br>" + table["fixed_on"]
    rule = rule.str.removeprefix("<br>").str.removesuffix("<br>")
    images = ("<br>with other images: " + table["images_ours"]).where(
        table["images_ours"] != "", "")
    stars = table["id"].isin(fragile(table)["claim"]).map({True: "\\* ", False: ""})
    columns = [table["id"], table["place"], table["statement"] + small, table["unit"],
               table["reported_difference"], table["ours"] + images, rule,
               stars + table["verdict"], pd.to_numeric(table["q"], errors="coerce").map(
                   "{:g}".format, na_action="ignore")]
    return pd.DataFrame(dict(zip(PAGE_COLUMNS, columns, strict=True)))


def markdown_lines(table: pd.DataFrame) -> list[str]:
    """Write a frame as a table of Markdown."""
    cells = [["–" if pd.isna(value) or value == "" else str(value).replace("|", "\\|").replace(
        "\n", " ") for value in row]
             for row in table.itertuples(index=False)]
    return [f"| {' | '.join(row)} |" for row in [list(table), ["---"] * table.shape[1], *cells]]


def write_ledger(table: pd.DataFrame, folder: Path) -> Path:
    """Write claims.md into a folder, such as that of its figure: whole, or not at all."""
    path = folder / PAGE
    write_atomic(path, ledger_markdown(table).encode())
    return path


def kept_ledger(folders: Iterable[Path]) -> pd.DataFrame:
    """Read the ledger of notebook 12 in the first of the folders that has it; else it is empty."""
    path = kept_file(folders, FILE)
    return pd.read_csv(path, keep_default_na=False) if path else pd.DataFrame(
        columns=["id", "origin", "outcome", "model", "ours", "needed", "statement", "waits_for"])


# The ledger as data: `evidence/claims.json`, from which a claim can be judged again alone. A record
# holds a claim, what is printed, and our numbers by arm and seed; `python -m tools.claims` writes
# them, and `claims.schema.json`, which describes them.

RECORDS, SCHEMA = "claims.json", "claims.schema.json"


class ArmRecord(StrictModel):
    """The runs of one arm: parallel lists, one entry a seed."""

    arm: str
    dataset: str
    model: str = Field(description="in words")
    rate: float | None = Field(description="learning rate")
    seeds: list[int]
    values: dict[str, list[float | None]] = Field(description="by metric")
    states_arithmetic: list[bool] = Field(description="whether a run says how it was computed")
    collapsed: list[str] = Field(description="why the scores of a run have, empty if not")
    flattened: list[str] = Field(description="that they drew together as the loss asks")
    contamination: str = Field(description="encoders that have seen captions of the test set")


class ClaimRecord(StrictModel):
    """One claim of a paper with the evidence for and against it."""

    claim: dict[str, str] = Field(description="the row of claims.csv: id, paper, place, statement, "
                                  "kind (the test), arms, metric, margin")
    unit: str
    printed: list[dict[str, str | float]] = Field(description="differences that the paper prints")
    runs: list[ArmRecord] = Field(description="that the first verdict rests on")
    second: list[ArmRecord] = Field(description="of the second base model, if it has run")
    replicated: bool = Field(description="whether the second base model has run at all")
    labels: list[dict[str, str | float]] = Field(description="differences between label sources")
    interval: str = Field(description="our difference with its 95 % interval")
    verdict: str
    outcome: str


def frame_of(records: list[ArmRecord]) -> pd.DataFrame:
    """Make the rows that `judge` reads of some records."""
    parts = [pd.DataFrame({
        "arm": one.arm, "dataset": one.dataset, "model": one.model, "seed": one.seeds,
        "config": None if one.rate is None else json.dumps(
            {"settings": {"learning_rate": one.rate}}), **one.values,
        "arithmetic": np.where(one.states_arithmetic, "stated", ""),
        "collapsed": one.collapsed, "flattened": one.flattened}) for one in records]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def judged_again(record: ClaimRecord) -> Replication:
    """Judge a claim from its record alone, by the rule of the ledger."""
    labels = pd.DataFrame(record.labels, columns=list(COLUMNS)).astype({"images": int})
    first = judge(record.claim, frame_of(record.runs), labels)
    return replicate(record.claim, first, frame_of(record.second)) if record.replicated else \
        Replication(first)


def read_record(claim_id: str, path: Path | None = None) -> ClaimRecord:
    """Read a claim of evidence/claims.json. Raises: ValueError naming the nearest of its ids."""
    records = read_json(path or evidence_folder() / RECORDS)
    check_choice("id of a claim", claim_id, list(records))
    return ClaimRecord.model_validate(records[claim_id])


def claim_report(claim_id: str) -> str:
    """Judge one claim again, and say what was printed, what we measured, and the verdict."""
    record = read_record(claim_id)
    both = judged_again(record)
    same = both.sentence == record.verdict
    printed = [f"{line['table']} {line['metric']}: {line['first']} − {line['second']} = "
               f"{line['difference']:+g}" for line in record.printed]
    contaminated = sorted({one.contamination for one in record.runs + record.second} - {""})
    lines = [record.claim["statement"], f"{record.claim['paper']}, {record.claim['place']}",
             f"verdict: {both.sentence}", f"ours: {measured_span(both.headline)} {record.unit}",
             *(f"printed: {line}" for line in printed),
             *[f"contamination: {'; '.join(contaminated)} has seen captions"] * bool(contaminated),
             "the same verdict as published" if same else f"published: {record.verdict}"]
    return "\n".join(line for line in lines if line.strip(": "))
