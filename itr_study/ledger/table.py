"""The ledger: every claim of the papers with its verdict, as a table and counts."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from itr_study.checks import check_choice
from itr_study.digits import digits_for, number, signed, with_interval
from itr_study.ledger.evidence import LabelPart
from itr_study.ledger.judge import OUTCOMES, Verdict, judge, metrics_of
from itr_study.ledger.judges import Judgement, has_run, judged_again
from itr_study.ledger.models import DECIDED
from itr_study.ledger.paired import Part, arms_in
from itr_study.ledger.reported import reported_differences
from itr_study.ledger.rules import HELD
from itr_study.ledger.units import TIMES, units_of
from itr_study.metrics.intervals import student_interval

# What is counted apart: what a paper claims, what we ask beside it, what other rows add up to.
ORIGINS = ("claim", "counter-check", "composite")
WAITS = ("data", "model", "people")  # that are not here
TITLES = {"claim": "Claims of the papers", "counter-check": "Counter-checks of ours",
          "composite": "Composites, not counted: their parts are rows of their own"}


def origin(claim: dict[str, str]) -> str:
    """Which of ORIGINS a claim is. Counter-checks are marked by their place or statement."""
    if claim["parts"]:
        return "composite"
    ours = claim["place"].startswith("ours") or claim["statement"].startswith("Counter-check")
    return "counter-check" if ours else "claim"


def judgements(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
               elsewhere: Sequence[pd.DataFrame] = ()) -> list[tuple[dict, Judgement]]:
    """Every claim with its verdicts, on each data set of the rows (once where there are none): of
    the first judge, and of the second where it has run.

    Args:    elsewhere: other rows, such as those of generated data, where relevance is known
             exactly, or of a benchmark: a claim about what the rows do not hold is judged on the
             first of these that hold it.
    """
    frames = [frame for _, frame in rows.groupby("dataset")] if len(rows) else [rows]
    found, again = [], has_run(rows)
    for frame in frames:
        for claim in claims.to_dict("records"):
            first = judge(claim, with_metrics(claim, frame, elsewhere), evidence)
            found.append((claim, judged_again(claim, first, frame) if again else Judgement(first)))
    return found


def with_metrics(claim: dict[str, str], rows: pd.DataFrame,
                 elsewhere: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows, or the first of the others that hold a value of every metric of a claim where they
    do not: a column that is empty throughout holds none."""
    wanted = metrics_of(claim)
    return next((frame for frame in (rows, *elsewhere)
                 if wanted <= set(frame.columns[frame.notna().any()])), rows)


def reported_span(values: list[float]) -> str:
    """A printed difference, or the smallest and the largest of several."""
    if len(values) < 2:
        return "".join(map(signed, values))
    digits = digits_for(*values)
    return (f"{signed(min(values), digits)} to {signed(max(values), digits)} "
            f"({len(values)} differences)")


def measured_span(verdict: Verdict) -> str:
    """Our difference with its interval; of several the smallest, the largest, and how many of them
    are settled by their own 95 % intervals; of times how many times one is the other."""
    ends = sorted(verdict.parts, key=lambda part: part.mean)
    shown = ends if len(ends) < 2 else [ends[0], ends[-1]]
    ends_in_words = [with_interval(part.mean, *part.interval()) if part.n > 1
                     else f"{signed(part.mean)} (one pair)" for part in shown]
    counts = Counter(map(verdict.standing, ends))
    fallen = f", collapsed in {counts['collapsed']}" * bool(counts["collapsed"])
    settled = f"; settled for in {counts['for']}, against in {counts['against']}{fallen} of " \
              f"{len(ends)}"
    return " to ".join(ends_in_words) + settled * (len(ends) > 1) + "".join(map(factor, ends))


def factor(part: Part | LabelPart) -> str:
    """How many times as long one takes as another, where that is claimed; else nothing."""
    from itr_study.plots.names import name_of  # here: the ledger must not wait for matplotlib

    if part.metric not in TIMES or part.ratios is None or part.n < 2:
        return ""
    low, high = student_interval(part.ratios)
    other, = arms_in(part.arm_b)
    return (f"; {name_of(part.arm_a)} takes {number(part.ratios.mean(), 2)} [{number(low, 2)}, "
            f"{number(high, 2)}] times as long as {name_of(other)}")


def ledger(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
           elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """One row per claim and data set: what was reported, what we measured, the verdict.

    Args:    claims: rows of claims.csv.  rows: as in `judge`, of any number of data sets.
             evidence: as in `judge`.  elsewhere: as in `judgements`.
    Returns: id, paper, place, origin (one of ORIGINS), statement, kind, metric, margin, unit,
             reported_on, reported_difference, ours, levels, dataset, model, pairs, outcome, needed,
             missing, verdict (a sentence), parts (ids of those of a composite), note, waits_for
             (one of WAITS, else empty). Where the second judge has run, ours to missing are those
             of the headline, and more columns follow: first_ours, first_outcome, first_model,
             second_ours, second_outcome (empty where a claim has one judge).
    """
    records, again = [], has_run(rows)
    for claim, judgement in judgements(claims, rows, evidence, elsewhere):
        verdict = judgement.headline
        printed = list(reported_differences(claim)["difference"])
        records.append({
            **{name: claim[name] for name in ("id", "paper", "place")}, "origin": origin(claim),
            **{name: claim[name] for name in ("statement", "kind", "metric", "margin")},
            "unit": units_of(claim["metric"], claim["margin"]),
            "reported_on": claim["dataset_of_paper"], "reported_difference": reported_span(printed),
            "ours": measured_span(verdict), "levels": verdict.levels,
            "dataset": verdict.dataset, "model": verdict.model, "pairs": verdict.pairs,
            "outcome": verdict.outcome, "needed": verdict.needed, "missing": verdict.missing,
            "verdict": judgement.sentence, "parts": claim["parts"], "note": claim["note"],
            "waits_for": claim["waits_for"], **(of_both(judgement) if again else {})})
    return pd.DataFrame(records).astype({"needed": "Int64"})


def of_both(judgement: Judgement) -> dict[str, str]:
    """The columns of the ledger that hold what each of two judges says."""
    first, second = judgement.first, judgement.second
    return {"first_ours": measured_span(first), "first_outcome": first.outcome,
            "first_model": first.model, "second_ours": measured_span(second) if second else "",
            "second_outcome": second.outcome if second else ""}


def ledger_parts(claims: pd.DataFrame, rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
                 elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """One row per comparison behind the headlines of the ledger: the table of its figure. standing
    is what the comparison says by itself, outcome the verdict on its whole claim."""
    headlines = [judgement.headline for _, judgement in judgements(claims, rows, evidence,
                                                                   elsewhere)]
    records = [
        {"id": verdict.id, "outcome": verdict.outcome,
         "standing": verdict.standing(part), "dataset": verdict.dataset,
         "model": verdict.model, "arm_a": part.arm_a, "arm_b": part.arm_b,
         "metric": part.metric, "pairs": part.n, "difference": part.mean,
         "low": part.interval()[0], "high": part.interval()[1]}
        for verdict in headlines for part in verdict.parts]
    return pd.DataFrame(records, columns=["id", "outcome", "standing", "dataset", "model", "arm_a",
                                          "arm_b", "metric", "pairs", "difference", "low", "high"])


def outcome_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many claims have which outcome, one line per origin: (origin, outcome) -> count."""
    return pd.crosstab(table["origin"], table["outcome"]).reindex(
        index=list(ORIGINS), columns=list(OUTCOMES), fill_value=0)


def counted(table: pd.DataFrame, kind: str) -> str:
    """The counts of one origin in words: "172 claims of the papers: 32 reproduced, …"."""
    counts = outcome_counts(table).loc[kind]
    parts = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    title = TITLES[kind].partition(",")[0]
    return f"{counts.sum()} {title[0].lower()}{title[1:]}: {parts}" if counts.sum() else ""


def covered(table: pd.DataFrame) -> str:
    """How many claims of the papers that wait for nothing have a verdict, and how many of these
    verdicts decide, as a sentence; empty where there is none.

    Raises:  ValueError where a claim waits for what is none of WAITS: it would be counted nowhere.
    """
    for word in filter(None, table["waits_for"].unique()):
        check_choice("what a claim waits for (`waits_for` in claims.csv)", word, WAITS)
    here = table[(table["origin"] == "claim") & (table["waits_for"] == "")]
    tested = here[here["outcome"] != "not tested"]
    decided = tested[~tested["outcome"].isin(["undecided", "collapsed"])]
    measured = tested[~tested["outcome"].isin(HELD.values())]
    settled = measured["outcome"].isin(DECIDED).sum()
    if tested.empty:
        return ""
    alone = (f" Without the last two, {settled} of {len(measured)} are decided "
             f"({100 * settled / len(measured):.0f} %)." if len(measured) else "")
    return (f"Of the {len(here)} claims of the papers that wait for no other data, model or "
            f"people, {len(tested)} have a verdict ({100 * len(tested) / len(here):.0f} %; "
            f"undecided is one), and {len(decided)} of these are decided "
            f"({100 * len(decided) / len(tested):.0f} %): {', '.join(DECIDED)}, "
            f"{' or '.join(HELD.values())}.{alone}")
