"""Evidence about label sources, which no run gives: differences with their spread over images.

A label source has no seeds. What could have come out otherwise is which images were judged: they
are drawn again and again with replacement (the bootstrap), and both sources see the same draws.
Notebook 04 saves the table that is read here.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from itr_study.lab.ledger.paired import Part

TABLE = "04_relevance__settled.csv"  # among the figures of a data set
COLUMNS = ("arm_a", "arm_b", "metric", "data", "images", "difference", "error")
LABELS = "labels("  # how such an arm begins: "labels(sentence, max)"


class NoEvidence(ValueError):
    """A difference that a claim names has not been computed."""


class LabelArms:
    """The differences of a table of evidence, looked up by their arms and metric."""

    def __init__(self, evidence: pd.DataFrame | None) -> None:
        lines = () if evidence is None else evidence.itertuples()
        self.parts = {(line.arm_a, line.arm_b, line.metric): Part(
            line.arm_a, line.arm_b, line.metric, tuple(range(line.images)),
            np.full(line.images, line.difference), error=line.error, data=line.data)
            for line in lines}

    def part(self, arm_a: str, arm_b: str, metric: str, relative: bool = False) -> Part:
        """Look up the difference of two label sources.

        Raises: NoEvidence: nobody has computed it.
        """
        if relative or (arm_a, arm_b, metric) not in self.parts:
            raise NoEvidence(f"no evidence of {arm_a} - {arm_b} by {metric}")
        return self.parts[arm_a, arm_b, metric]


def read_evidence(folders: Iterable[Path]) -> pd.DataFrame:
    """Read the evidence of notebook 04 in the first of the folders that has it; else it is empty.

    Raises: ValueError: the table lacks columns.
    """
    path = kept_file(folders, TABLE)
    table = pd.read_csv(path) if path else pd.DataFrame(columns=list(COLUMNS))
    if missing := set(COLUMNS) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; execute notebook "
                         "04_relevance again")
    return table


def kept_file(folders: Iterable[Path], name: str) -> Path | None:
    """Find a file in the first of the folders that has it, such as `Study.kept_in`."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
