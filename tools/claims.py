"""Write evidence/claims.json and its schema: python -m tools.claims [--data FOLDER].

All is read from published runs and tables, as notebook 12 does, but for one thing: which captions
are near duplicates is read from the texts of Flickr8k, in FOLDER.
"""

import argparse
import json
from collections.abc import Mapping

import pandas as pd
from pydantic import TypeAdapter

from itr_study.files.atomic import write_atomic, write_json
from itr_study.files.paths import evidence_folder, figures_folder
from itr_study.lab.label_quality.judges import caption_split
from itr_study.lab.ledger.evidence import LABELS, read_evidence
from itr_study.lab.ledger.paired import arms_in
from itr_study.lab.ledger.replication import has_run, on_second
from itr_study.lab.ledger.report import (
    RECORDS,
    SCHEMA,
    ArmRecord,
    ClaimRecord,
    judged_again,
    measured_span,
    with_metrics,
)
from itr_study.lab.ledger.reported import load_claims, reported_differences
from itr_study.lab.ledger.verdict import metrics_of, named_arms, units_of
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.studies.arms import base_config, ended_arms
from itr_study.lab.studies.ensembles import ledger_rows
from itr_study.lab.studies.nb12_claims import (
    ambiguous_queries,
    by_ambiguity,
    exact_arms,
    ledger_arms,
    milestones,
    second_base_arms,
)
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.timing import TIMES, timed_rows

DATASET = "flickr8k"
DIGITS = 6  # of numbers, behind the point


def arm_records(rows: pd.DataFrame, arms: set[str], metrics: set[str]) -> list[ArmRecord]:
    """Write the runs of some arms, with some metrics, as records."""
    records = []
    known = rows[rows["arm"].isin(arms)] if "arm" in rows else rows.head(0)
    for (arm, dataset, model), part in known.groupby(["arm", "dataset", "model"], sort=False):
        texts = {name: part[name].fillna("").astype(str).tolist() if name in part else
                 [""] * len(part) for name in ("collapsed", "flattened", "arithmetic", "seen")}
        configs = part["config"].dropna() if "config" in part else ()
        rates = {json.loads(config)["settings"]["learning_rate"] for config in configs}
        records.append(ArmRecord(
            arm=arm, dataset=dataset, model=model, rate=rates.pop() if rates else None,
            seeds=part["seed"].astype(int).tolist(),
            values={name: [None if pd.isna(value) else round(float(value), DIGITS)
                           for value in part[name]] for name in sorted(metrics) if name in part},
            states_arithmetic=[bool(text) for text in texts["arithmetic"]],
            collapsed=texts["collapsed"], flattened=texts["flattened"],
            contamination=", ".join(sorted(set(" ".join(texts["seen"]).split())))))
    return records


def record_of(claim: Mapping[str, str], rows: pd.DataFrame, evidence: pd.DataFrame,
              elsewhere: list[pd.DataFrame], replicated: bool) -> ClaimRecord:
    """Write a claim, and all that its verdict rests on; arguments as of `report.ledger`."""
    named, metrics = named_arms(claim["arm_a"], claim["arm_b"]), metrics_of(claim)
    metrics |= {"train_rsum"} if "generalisation" in metrics else set()  # that runs are compared by
    chosen = with_metrics(claim, rows, elsewhere)
    labels = evidence[evidence["arm_a"].isin(named)] if claim["arm_a"].startswith(LABELS) \
        else evidence.head(0)
    used = named or {"zero"}
    second = {on_second(arm) for arm in used if arms_in(arm)}
    record = ClaimRecord(
        claim=dict(claim), unit=units_of(claim["metric"], claim["margin"]),
        printed=reported_differences(claim).to_dict("records"),
        runs=arm_records(chosen, used, metrics), second=arm_records(rows, second, metrics),
        replicated=replicated, labels=labels.to_dict("records"), interval="", verdict="",
        outcome="")
    both = judged_again(record)
    return record.model_copy(update={
        "interval": measured_span(both.headline), "verdict": both.sentence,
        "outcome": both.headline.outcome})


def frames(data: str | None) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Read the rows that the ledger judges, and those from elsewhere."""
    parameters = choose("12_claims", "full", dataset=DATASET)
    ended = ended_arms([*ledger_arms(DATASET, parameters), *second_base_arms(DATASET, parameters)])
    rows = milestones(ended[ended["status"] == "done"])
    if data is not None:
        absent: dict[str, str] = {}
        dataset = dataset_of(base_config(DATASET, "two_branch", parameters), data)
        split = caption_split(dataset, ["minilm"], absent)
        rows = by_ambiguity(rows, ambiguous_queries(split))
    exact = milestones(ended_arms(exact_arms(DATASET, parameters)))
    return ledger_rows(None, DATASET, rows), [exact, *map(timed_rows, TIMES)]


def main(data: str | None) -> None:
    """Write both files."""
    rows, elsewhere = frames(data)
    evidence = read_evidence([figures_folder() / DATASET])
    records = {claim["id"]: record_of(claim, rows, evidence, elsewhere, has_run(rows))
               for claim in load_claims().to_dict("records")}
    lines = [f"{json.dumps(name)}: {record.model_dump_json()}" for name, record in records.items()]
    write_atomic(evidence_folder() / RECORDS, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    write_json(evidence_folder() / SCHEMA, TypeAdapter(dict[str, ClaimRecord]).json_schema())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    main(parser.parse_args().data)
