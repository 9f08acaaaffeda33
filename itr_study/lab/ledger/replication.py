"""The second base model: claims whose arms name no model are judged on it too, by the same rule.

The first base model is that of the sweeps; see "Base models" in reported/legend.md. A verdict on
the second is the headline, collapsed or not: it is counted and drawn. The first is kept.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from itr_study.lab.ledger.evidence import LABELS
from itr_study.lab.ledger.paired import FEWEST, ImageError, arms_in
from itr_study.lab.ledger.reported import split_list
from itr_study.lab.ledger.verdict import DECIDED, HELD, SECOND_BASE, Verdict, judge, named_arms

SAME = "the same"
# How two verdicts compare, by whether the first and the second decide.
STANDS = {(True, True): "opposite", (True, False): "only the first decides",
          (False, True): "only the second decides", (False, False): "neither decides"}
ONE_FLAT = "one shows no effect"
ORDER = (*STANDS.values(), ONE_FLAT, SAME)


class Replication(NamedTuple):
    """A claim's verdicts on one or two base models."""

    first: Verdict
    second: Verdict | None = None
    once: str = ""  # why there is no second verdict, if one could be missed

    @property
    def headline(self) -> Verdict:
        """The verdict on the second base model, if there is one."""
        return self.second or self.first

    @property
    def sentence(self) -> str:
        """The headline in words, with the other verdict or why there is none."""
        other = (f"first base model: {self.first.sentence}" if self.second
                 else self.once and f"one base model: {self.once}")
        return "; ".join(filter(None, [self.headline.sentence, other]))


def has_run(rows: pd.DataFrame) -> bool:
    """Whether runs of the second base model are among the rows."""
    return "arm" in rows and bool(rows["arm"].str.startswith(f"{SECOND_BASE}/").any())


def replicate(claim: Mapping[str, str], first: Verdict, rows: pd.DataFrame,
              error_of: ImageError | None = None) -> Replication:
    """Judge a claim on the second base model too; claim, rows and error_of as in `judge`."""
    arms = named_arms(claim["arm_a"], claim["arm_b"])
    if claim["kind"] in HELD or not arms or claim["arm_a"].startswith(LABELS):
        return Replication(first)
    if any("/" in arm for arm in arms):
        return Replication(first, once="it names its model")
    if first.outcome == "not tested" and claim.get("waits_for"):
        return Replication(first)
    renamed = {side: "; ".join(map(on_second, split_list(claim[side])))
               for side in ("arm_a", "arm_b")}
    second = judge({**claim, **renamed, "needs": ""}, rows, error_of=error_of)
    if second.outcome == "not tested":
        return Replication(first, once=second.missing)
    if second.pairs < FEWEST:
        return Replication(first, once=f"{second.pairs} of {FEWEST} pairs that are needed")
    return Replication(first, second)


def on_second(arm: str) -> str:
    """Name an arm of the sweeps as the second base model has it.

    Example:
        >>> on_second("hardest+listwise(cider)"), on_second("times(2|sum)"), on_second("zero")
        ('clean_gru/hardest+listwise(cider)', 'times(2|clean_gru/sum)', 'zero')
    """
    inner = arms_in(arm)
    if not inner:
        return arm
    before, _, after = arm.rpartition("|".join(inner))
    return before + "|".join(f"{SECOND_BASE}/{name}" for name in inner) + after


def replicated(table: pd.DataFrame) -> pd.DataFrame:
    """Select the claims with a verdict on both base models, not composites; both is of ORDER."""
    if "second_outcome" not in table:
        return table.head(0).assign(both="")
    twice = table[(table["second_outcome"] != "") & (table["first_outcome"] != "not tested")
                  & (table["origin"] != "composite")]
    outcomes = zip(twice["first_outcome"], twice["second_outcome"], strict=True)
    return twice.assign(both=[
        SAME if first == second else ONE_FLAT if "no effect" in (first, second)
        else STANDS[first in DECIDED, second in DECIDED] for first, second in outcomes])


def both_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """List the claims judged on both base models, opposite verdicts first.

    Args: table: a ledger of one data set, as `ledger` gives it.
    Returns: Frame of claim (its id), statement, unit, of each base model our difference and its
        verdict, and both (one of ORDER).
    """
    twice = replicated(table).sort_values("both", key=lambda both: both.map(ORDER.index),
                                          kind="stable", ignore_index=True)
    columns = {"id": "claim", "statement": "statement", "unit": "unit",
               "first_ours": "first base model", "first_outcome": "verdict of first base model",
               "second_ours": "second base model",
               "second_outcome": "verdict of second base model", "both": "both"}
    return twice.reindex(columns=list(columns)).rename(columns=columns)
