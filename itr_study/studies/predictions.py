"""What became of predictions that were written before: as predicted, against it, or not settled."""

from collections.abc import Sequence

import pandas as pd

from itr_study.ledger.paired import FEWEST

HELD, FAILED, OPEN, UNTRAINED = "held", "failed", "not settled", "not trained"


def outcome(settled: Sequence[bool], of: int, what: str = "losses") -> str:
    """What became of a prediction about several losses, or several models.

    Args:    settled: of each that is settled, whether as predicted; of: how many there
             are; what: their name.
    Example:
        >>> outcome([True, True], 2), outcome([False, False], 2), outcome([], 2)
        ('held', 'failed', 'not settled')
        >>> outcome([True], 2), outcome([True, False], 3)
        ('held for 1 of 2 losses', 'held for 1 of 3 losses and failed for 1')
    """
    held, failed = sum(settled), len(settled) - sum(settled)
    if not settled or of in (held, failed):
        return HELD if settled and held else FAILED if settled else OPEN
    parts = [f"{name} for {count}" for name, count in ((HELD, held), (FAILED, failed)) if count]
    first, *rest = parts
    return " and ".join([f"{first} of {of} {what}", *rest])


def of_differences(differences: pd.DataFrame, predicted: str, what: str = "losses") -> str:
    """The outcome of a prediction that these differences all have one verdict.

    Args:    differences: as `Study.compare` gives them; predicted: "higher" or "lower";
             what: they are differences of.
    """
    sides = differences["verdict"][differences["verdict"].isin(["higher", "lower"])]
    return outcome([*sides.eq(predicted)], len(differences), what)


def of_crossings(found: pd.DataFrame, losses: int, seeds: int) -> str:
    """The outcome of a prediction that every loss's curve rises above the reference.

    Args:    found: of one metric, as `crossings.crossing_table` gives them; losses: how many.
    """
    return outcome([*found["rising"]] if seeds >= FEWEST else [], losses)


def summary(answers: pd.DataFrame) -> str:
    """Which predictions held, as a title.

    Args:    answers: prediction ("1a. ..."), measure, judge, outcome; a line per measurement.
    Example:
        >>> summary(pd.DataFrame({"prediction": ["1a. more", "1a. more", "2. noise"],
        ...     "measure": ["RSUM", "NDCG", "none"], "judge": ["first", "first", "none"],
        ...     "outcome": ["held", "not settled", "not trained"]}))
        'Held: 1a by RSUM; not settled: 1a by NDCG; not trained: 2'
    """
    judges = answers.loc[answers["judge"] != "none", "judge"].nunique()
    parts: dict[str, list[str]] = {}
    for line in answers.itertuples():
        by = "" if line.measure == "none" else f" by {line.measure}"
        whose = f" ({line.judge})" if by and judges > 1 else ""
        parts.setdefault(line.outcome, []).append(line.prediction.partition(".")[0] + by + whose)
    order = sorted(parts, key=lambda name: (name == UNTRAINED, name == OPEN))  # settled ones first
    said = "; ".join(f"{name}: {', '.join(parts[name])}" for name in order)
    return said[:1].upper() + said[1:]
