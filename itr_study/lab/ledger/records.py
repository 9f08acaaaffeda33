"""The ledger as data: `evidence/claims.json`, from which every claim can be judged again alone.

A record holds a claim, what is printed, and our numbers by arm and seed; `python -m tools.claims`
writes them, and `claims.schema.json`, which describes them. Nothing else is read to judge a claim.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field

from itr_study.checks import check_choice
from itr_study.files.atomic import read_json
from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.evidence import COLUMNS
from itr_study.lab.ledger.replication import Replication, replicate
from itr_study.lab.ledger.report import measured_span
from itr_study.lab.ledger.verdict import judge
from itr_study.training.settings import StrictModel

FILE, SCHEMA = "claims.json", "claims.schema.json"


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
    records = read_json(path or evidence_folder() / FILE)
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
