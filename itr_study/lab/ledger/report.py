"""The ledger: every claim of the papers with its verdict, as a table and counts."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from itr_study.checks import check_choice
from itr_study.digits import digits_for, number, signed, with_interval
from itr_study.files.atomic import write_atomic
from itr_study.lab.ledger.evidence import LabelPart
from itr_study.lab.ledger.judges import Judgement, agreement, both_verdicts, has_run, judged_again
from itr_study.lab.ledger.models import DECIDED, resting, twice_judged
from itr_study.lab.ledger.paired import FEWEST, Part, arms_in
from itr_study.lab.ledger.reported import reported_differences, split_list
from itr_study.lab.ledger.verdict import HELD, OUTCOMES, TIMES, Verdict, judge, metrics_of, units_of
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


# The ledger as a page, claims.md: counts, how to read it, then every claim.

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
