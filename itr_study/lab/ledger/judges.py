"""Two judges: what a second model says of claims whose arms name none, by the same rule.

The first judge is the model of the sweeps; on photographs it reads MiniLM, which made the labels
and has seen the captions. The second, the base config `clean_gru`, reads no captions but those it
is trained on. Where it has run the arms of a claim with as many pairs as decide anything, and they
can be compared, its verdict is the headline, collapsed or not: what is counted and drawn. The first
verdict is kept beside it.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from itr_study.lab.ledger.evidence import LABELS
from itr_study.lab.ledger.models import DECIDED, judged_twice, most_frequent, plain
from itr_study.lab.ledger.paired import FEWEST, arms_in
from itr_study.lab.ledger.reported import split_list
from itr_study.lab.ledger.verdict import HELD, Verdict, judge, named_arms

JUDGE = "clean_gru"  # its arms are those of the sweeps behind this name: "clean_gru/sum"
ONCE = "not judged a second time"
# How two verdicts stand to each other, in the order in which claims are shown.
TURNED, FIRST_ALONE, SECOND_ALONE = "turned over", "only the first decides", \
    "only the second decides"
NEITHER, SAME = "neither decides", "the same"
STANDS = (TURNED, FIRST_ALONE, SECOND_ALONE, NEITHER, SAME)


class Judgement(NamedTuple):
    """What one or two judges say about a claim."""

    first: Verdict
    second: Verdict | None = None
    once: str = ""  # why there is no second verdict, where one could be missed

    @property
    def headline(self) -> Verdict:
        """The second judge's verdict, where it has one."""
        return self.second or self.first

    @property
    def sentence(self) -> str:
        """The headline in words, with what the other judge says or why none does."""
        other = f"first judge: {self.first.sentence}" if self.second else self.once
        return "; ".join(filter(None, [self.headline.sentence, other]))


def has_run(rows: pd.DataFrame) -> bool:
    """Whether runs of the second judge are among the rows."""
    return "arm" in rows and bool(rows["arm"].str.startswith(f"{JUDGE}/").any())


def judged_again(claim: Mapping[str, str], first: Verdict, rows: pd.DataFrame) -> Judgement:
    """A claim with its first verdict, held against the runs of the second judge too.

    Args:    claim, rows: as in `judge`.
    """
    arms = named_arms(claim["arm_a"], claim["arm_b"])
    if claim["kind"] in HELD or not arms or claim["arm_a"].startswith(LABELS):
        return Judgement(first)
    if any("/" in arm for arm in arms):
        return Judgement(first, once=f"{ONCE}: it names its model")
    renamed = {side: "; ".join(map(on_judge, split_list(claim[side])))
               for side in ("arm_a", "arm_b")}
    second = judge({**claim, **renamed, "needs": ""}, rows)
    if second.outcome == "not tested":
        return Judgement(first, once=f"{ONCE}: {second.missing}")
    if second.pairs < FEWEST:
        return Judgement(first, once=f"{ONCE}: {second.pairs} of {FEWEST} pairs that are needed")
    return Judgement(first, second)


def on_judge(arm: str) -> str:
    """An arm of the sweeps as the second judge has it.

    Example:
        >>> on_judge("hardest+listwise(cider)"), on_judge("times(2|sum)"), on_judge("zero")
        ('clean_gru/hardest+listwise(cider)', 'times(2|clean_gru/sum)', 'zero')
    """
    inner = arms_in(arm)
    if not inner:
        return arm
    before, _, after = arm.rpartition("|".join(inner))
    return before + "|".join(f"{JUDGE}/{name}" for name in inner) + after


def stand(first: str, second: str) -> str:
    """How two outcomes stand to each other: one of STANDS.

    Example:
        >>> stand("reproduced", "contradicted"), stand("undecided", "collapsed")
        ('turned over', 'neither decides')
    """
    if first == second:
        return SAME
    return {(True, True): TURNED, (True, False): FIRST_ALONE, (False, True): SECOND_ALONE,
            (False, False): NEITHER}[first in DECIDED, second in DECIDED]


def both_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Claims that both judges judged, side by side, those turned over first; composites are left
    out: their parts are here.

    Args:    table: a ledger of one data set, as `ledger` gives it.
    Returns: claim (its id), statement, unit, of each judge (its name) our difference and, under
             "verdict of …", its outcome; both (one of STANDS).
    """
    twice = _twice(table)
    first, second = _names(twice)
    columns = {"id": "claim", "statement": "statement", "unit": "unit", "first_ours": first,
               "first_outcome": f"verdict of {first}", "second_ours": second,
               "second_outcome": f"verdict of {second}", "both": "both"}
    ordered = twice.sort_values("both", key=lambda both: both.map(STANDS.index), kind="stable",
                                ignore_index=True)
    return ordered.reindex(columns=list(columns)).rename(columns=columns)


def agreement(table: pd.DataFrame) -> str:
    """How often both judges say the same, in words; claims of the papers and counter-checks of
    ours are never added up.

    Args:    table: a ledger of one data set, as `ledger` gives it.
    """
    if "second_outcome" not in table:
        return "No second judge has run here: every claim has one verdict."
    twice = _twice(table)
    first, second = _names(twice)
    said = []
    for kind, part in twice.groupby("origin"):
        ids = {name: list(part.loc[part["both"] == name, "id"]) for name in STANDS}
        counts = {name: len(found) for name, found in ids.items()}
        named = f" ({', '.join(ids[TURNED])})" * bool(ids[TURNED])
        said.append(
            f"Of {len(part)} {kind}s that were judged by {first} and again by {second}, "
            f"{counts[SAME]} have the same verdict twice and {counts[TURNED]} were turned over"
            f"{named}; {counts[FIRST_ALONE]} that the first decides are not decided by the second, "
            f"{counts[SECOND_ALONE]} the other way round"
            + f", and {counts[NEITHER]} are decided by neither" * bool(counts[NEITHER]) + ".")
    return " ".join(said) or (
        "The second judge has run, but no claim was judged by both; each says why.")


def _twice(table: pd.DataFrame) -> pd.DataFrame:
    """The claims judged twice that are counted, with how their verdicts stand (`both`)."""
    twice = table[judged_twice(table) & (table["origin"] != "composite")]
    pairs = zip(twice["first_outcome"], twice["second_outcome"], strict=True) if len(twice) else ()
    return twice.assign(both=[stand(*pair) for pair in pairs])


def _names(twice: pd.DataFrame) -> tuple[str, str]:
    """What the two judges of some claims are called."""
    from itr_study.plots.names import name_of  # here: the ledger must not wait for matplotlib

    first = plain(most_frequent(twice["first_model"])) if len(twice) else "the first judge"
    return first, name_of(JUDGE)
