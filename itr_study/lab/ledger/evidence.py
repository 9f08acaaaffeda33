"""Evidence about label sources, which no run gives: differences with their spread over images.

A label source is not trained and has no seeds. What could have come out otherwise is which images
were judged: images are drawn anew with replacement (the bootstrap), and both sources of a
difference see the same draws. Notebook 04 computes it and saves the table that is read here.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from itr_study.metrics.intervals import LEVEL

TABLE = "04_relevance__settled.csv"  # among the figures of a data set
COLUMNS = ("arm_a", "arm_b", "metric", "data", "images", "difference", "error")
LABELS = "labels("  # how such an arm begins: "labels(sentence, max)"


class Estimate(NamedTuple):
    """A difference that a rule wants above zero, its standard error over images, and a level."""

    mean: float
    error: float
    level: float

    def above(self) -> bool:
        """Whether the interval, mean -+ quantile of the normal distribution x error, is above 0."""
        return self.mean - quantile(self.level) * self.error > 0

    def pairs_needed(self) -> None:
        """More runs decide nothing here."""
        return


class LabelPart(NamedTuple):
    """arm_a - arm_b on a metric, its standard error, and the images and data it was judged on."""

    arm_a: str
    arm_b: str
    metric: str
    mean: float
    error: float
    n: int
    data: str

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference over images."""
        half = quantile(LEVEL) * self.error
        return self.mean - half, self.mean + half

    def sample(self, level: float, sign: int = 1, shift: float = 0.0) -> Estimate:
        """shift + sign x the difference, which a rule wants above zero at a level."""
        return Estimate(shift + sign * self.mean, self.error, level)


class NoEvidence(ValueError):
    """Nobody has computed a difference that a claim names."""


class LabelArms:
    """The differences of a table of evidence, looked up by their arms and metric."""

    def __init__(self, evidence: pd.DataFrame) -> None:
        self.parts = {(line.arm_a, line.arm_b, line.metric): LabelPart(
            line.arm_a, line.arm_b, line.metric, line.difference, line.error, line.images,
            line.data) for line in evidence.itertuples()}

    def part(self, arm_a: str, arm_b: str, metric: str, relative: bool = False) -> LabelPart:
        """The difference of two label sources. Raises: NoEvidence."""
        if relative or (arm_a, arm_b, metric) not in self.parts:
            raise NoEvidence(f"no evidence of {arm_a} - {arm_b} by {metric}")
        return self.parts[arm_a, arm_b, metric]


def read_evidence(folders: Iterable[Path]) -> pd.DataFrame:
    """The evidence as notebook 04 left it in the first of the folders that has it, such as
    `Study.kept_in`; empty where none has."""
    path = next((folder / TABLE for folder in folders if (folder / TABLE).is_file()), None)
    table = pd.DataFrame(columns=list(COLUMNS)) if path is None else pd.read_csv(path)
    if missing := set(COLUMNS) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; execute notebook "
                         "04_relevance again")
    return table


def quantile(level: float) -> float:
    """The two-sided quantile of the normal distribution, 1.96 at 95 %."""
    from scipy import stats

    return float(stats.norm.ppf((1 + level) / 2))
