"""The ledger: every claim of a paper held against paired runs of ours.

The rule is written out in `rules.py`; a verdict names our data and model and never speaks of the
paper's own data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from itr_study.evaluation.measures import came_with
from itr_study.files.atomic import write_atomic
from itr_study.ledger.paired import MOST, Arms, Part, arms_in
from itr_study.ledger.reported import reported_differences, split_list
from itr_study.ledger.rules import CASES, decide

OUTCOMES = ("reproduced", "contradicted", "undecided", "not tested")


@dataclass(frozen=True)
class Verdict:
    """What our runs say about one claim, on our data and model, never on the paper's."""

    id: str
    outcome: str  # one of OUTCOMES
    dataset: str
    model: str  # of several: separated by semicolons
    pairs: int  # shared seeds, the fewest over the parts
    parts: tuple[Part, ...] = ()
    needed: int | None = None  # pairs that would decide; None: unknown or more than MOST
    missing: str = ""  # what a claim not tested waits for

    @property
    def sentence(self) -> str:
        """The verdict in words, naming data and model."""
        if self.outcome == "not tested":
            return f"not tested: {self.missing}"
        conditions = f"on {self.dataset} with {self.model}, n = {self.pairs} pairs"
        remedy = (f"about {self.needed} pairs would decide" if self.needed else
                  f"how many would decide is unknown, or more than {MOST}")
        return f"{self.outcome} {conditions}{f'; {remedy}' * (self.outcome == 'undecided')}"


def lacking(claim: Mapping[str, str], rows: pd.DataFrame) -> str:
    """What a claim needs and the rows do not have, in words; empty when it can be judged."""
    listed = split_list(claim["arm_a"]) + split_list(claim["arm_b"])
    if not listed:
        return claim["needs"]
    wanted = {inner for arm in listed for inner in arms_in(arm)}
    names = {name for metric in split_list(claim["metric"]) for name in metric.split("-")}
    arms = sorted(wanted - set(rows["arm"] if "arm" in rows else ()))
    columns = sorted(name for name in names if name not in rows or any(
        rows.loc[rows["arm"] == arm, name].isna().all() for arm in wanted))
    reasons = [f"no runs of {', '.join(arms)}"] * bool(arms)
    reasons += [f"no values of {', '.join(columns)}"] * bool(columns and not arms)
    reasons += _in_later_rows(columns, rows) if not arms else []
    return "; ".join(reasons + [claim["needs"]] * bool(reasons and claim["needs"]))


def _in_later_rows(columns: Sequence[str], rows: pd.DataFrame) -> list[str]:
    """What rows of a later edition hold of the columns that these rows lack, in words."""
    datasets = rows["dataset"].unique() if "dataset" in rows else ()
    editions = {name: came_with(dataset, name) or 1 for name in columns for dataset in datasets}
    latest = max(editions.values(), default=1)
    return [f"rows of edition {latest} hold it: train these runs again with edition={latest}"
            ] * (latest > 1)


def judge(claim: Mapping[str, str], rows: pd.DataFrame) -> Verdict:
    """Hold one claim against our runs on one data set, by the rule of `rules.py`.

    Args:    claim: a row of claims.csv.
             rows: tidy frame, one run per row: arm, seed, dataset, model, metrics in percent.
    A claim may span several models, such as the settings of a table: each pair of arms is of one
    model, and the verdict names all of them.

    Raises:  ValueError for more than one data set, repeated (arm, seed), missing values, a pair
             of arms without a shared seed or of different models.
    """
    datasets = sorted(rows["dataset"].unique()) if "dataset" in rows else []
    if len(datasets) > 1:
        raise ValueError(f"rows must be of one data set, got {', '.join(datasets)}; "
                         "use ledger() for several")
    dataset = datasets[0] if datasets else ""
    missing = lacking(claim, rows)
    if missing:
        return Verdict(claim["id"], "not tested", dataset, "", 0, missing=missing)
    arms = Arms(rows)
    case = CASES[claim["kind"]](claim, arms)
    outcome, needed = decide(case)
    used = {inner for part in case.shown for arm in part[:2] for inner in arms_in(arm)}
    pairs = min(len(part.seeds) for part in case.shown)
    return Verdict(claim["id"], outcome, dataset, arms.model(used), pairs, tuple(case.shown),
                   needed)


def verdicts(claims: pd.DataFrame, rows: pd.DataFrame) -> list[tuple[dict, Verdict]]:
    """Every claim with its verdict, on each data set of the rows (once where there are none)."""
    frames = [frame for _, frame in rows.groupby("dataset")] if len(rows) else [rows]
    return [(claim, judge(claim, frame)) for frame in frames
            for claim in claims.to_dict("records")]


def reported_span(values: list[float]) -> str:
    """A printed difference, or the smallest and the largest of several."""
    if len(values) < 2:
        return "".join(f"{value:+.1f}" for value in values)
    return f"{min(values):+.1f} to {max(values):+.1f} ({len(values)} differences)"


def measured_span(parts: tuple[Part, ...]) -> str:
    """Our difference with its interval, or the smallest and the largest of several."""
    ends = sorted(parts, key=lambda part: part.mean)
    shown = ends if len(ends) < 2 else [ends[0], ends[-1]]
    ends_in_words = ["{:+.1f} [{:+.1f}, {:+.1f}]".format(part.mean, *part.interval())
                     if len(part.seeds) > 1 else f"{part.mean:+.1f} (one pair)" for part in shown]
    return " to ".join(ends_in_words) + (f" ({len(parts)} differences)" if len(parts) > 1 else "")


def ledger(claims: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """One row per claim and data set: what was reported, what we measured, the verdict.

    Args:    claims: rows of claims.csv.  rows: as in `judge`, of any number of data sets.
    Returns: id, paper, place, statement, kind, metric, reported_on, reported_difference, ours,
             dataset, model, pairs, outcome, needed, missing, verdict (a sentence), note.
    """
    records = []
    for claim, verdict in verdicts(claims, rows):
        printed = list(reported_differences(claim)["difference"])
        records.append({
            **{name: claim[name] for name in ("id", "paper", "place", "statement", "kind",
                                              "metric")},
            "reported_on": claim["dataset_of_paper"], "reported_difference": reported_span(printed),
            "ours": measured_span(verdict.parts),
            "dataset": verdict.dataset, "model": verdict.model, "pairs": verdict.pairs,
            "outcome": verdict.outcome, "needed": verdict.needed, "missing": verdict.missing,
            "verdict": verdict.sentence, "note": claim["note"]})
    return pd.DataFrame(records).astype({"needed": "Int64"})


def ledger_parts(claims: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """One row per paired comparison behind the ledger: the table of its figure."""
    records = [
        {"id": verdict.id, "outcome": verdict.outcome, "dataset": verdict.dataset,
         "model": verdict.model, "arm_a": part.arm_a, "arm_b": part.arm_b,
         "metric": part.metric, "pairs": len(part.seeds), "difference": part.mean,
         "low": part.interval()[0], "high": part.interval()[1]}
        for _, verdict in verdicts(claims, rows) for part in verdict.parts]
    return pd.DataFrame(records, columns=["id", "outcome", "dataset", "model", "arm_a", "arm_b",
                                          "metric", "pairs", "difference", "low", "high"])


def ledger_markdown(table: pd.DataFrame) -> str:
    """The ledger as a Markdown table, with a first line that counts the outcomes."""
    counts = ", ".join(f"{(table['outcome'] == outcome).sum()} {outcome}" for outcome in OUTCOMES)
    head = ["claim", "place", "statement", "reported", "ours (95 % interval)", "verdict"]
    columns = ["id", "place", "statement", "reported_difference", "ours", "verdict"]
    cells = [[str(value).replace("|", "\\|").replace("\n", " ") or "–" for value in row]
             for row in table[columns].itertuples(index=False)]
    lines = [" | ".join(row) for row in [head, ["---"] * len(head), *cells]]
    return "\n".join([f"{len(table)} claims: {counts}.", "",
                      *(f"| {line} |" for line in lines), ""])


def write_ledger(table: pd.DataFrame, folder: Path | str) -> Path:
    """Write `claims.md` into a folder, such as that of its figure: whole, or not at all."""
    path = Path(folder) / "claims.md"
    write_atomic(path, ledger_markdown(table).encode())
    return path
