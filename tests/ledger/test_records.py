"""claims.json: judged again from its records alone, each verdict is that of the ledger."""

import json
import time

import jsonschema
import pandas as pd
import pytest
from pydantic import TypeAdapter

from itr_study.files.paths import evidence_folder, figures_folder
from itr_study.lab.ledger.report import (
    RECORDS,
    SCHEMA,
    ClaimRecord,
    claim_report,
    judged_again,
    read_record,
)
from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import judge
from tools.claims import record_of

EVIDENCE = pd.DataFrame(columns=["arm_a", "arm_b", "metric", "data", "images", "difference",
                                 "error"])


def rows_of(values: dict[str, list[float]], **more) -> pd.DataFrame:
    config = json.dumps({"settings": {"learning_rate": 0.001}})
    return pd.DataFrame([{"arm": arm, "seed": seed, "dataset": "flickr8k", "model": "Two-branch",
                          "config": config, "test_rsum": value, "seen": "minilm", **more}
                         for arm, of_arm in values.items() for seed, value in enumerate(of_arm)])


def claim() -> dict[str, str]:
    return load_claims().set_index("id", drop=False).loc["topk-eq8-overstrict"].to_dict()


def test_a_record_has_all_that_the_verdict_rests_on():
    """Through JSON and back, the verdict is that of the rows it was made of."""
    rows = rows_of({"k=5": [3, 5, 4, 6, 7.5], "k=1": [1, 2, 3, 4, 5], "other": [0] * 5})
    record = record_of(claim(), rows, EVIDENCE, [], False)
    assert [one.arm for one in record.runs] == ["k=5", "k=1"] and record.second == []
    again = ClaimRecord.model_validate_json(record.model_dump_json())
    expected = judge(claim(), rows)
    assert judged_again(again).sentence == expected.sentence == record.verdict
    assert record.outcome == "reproduced" and record.runs[0].contamination == "minilm"
    assert record.runs[0].rate == 0.001


def test_the_second_base_model_and_collapses_count_too():
    values = {"k=5": [3, 5, 4, 6, 7], "k=1": [1, 2, 3, 4, 5]}
    rows = pd.concat([rows_of(values), rows_of({f"clean_gru/{k}": v[::-1] if k == "k=1" else v
                                                for k, v in values.items()})])
    record = record_of(claim(), rows, EVIDENCE, [], True)
    assert {one.arm for one in record.second} == {"clean_gru/k=5", "clean_gru/k=1"}
    assert judged_again(record).second is not None and "first base model" in record.verdict
    fallen = record_of(claim(), rows_of(values, collapsed="yes"), EVIDENCE, [], False)
    assert fallen.outcome == "collapsed"


@pytest.mark.evidence
def test_every_verdict_of_the_ledger_is_found_again_from_the_records_alone():
    kept = pd.read_csv(figures_folder() / "flickr8k" / "12_claims__ledger.csv",
                       keep_default_na=False).set_index("id")
    records = json.loads((evidence_folder() / RECORDS).read_text(encoding="utf-8"))
    assert list(records) == list(load_claims()["id"])
    differing = {}
    for name, values in records.items():
        record = ClaimRecord.model_validate(values)
        assert judged_again(record).sentence == record.verdict, name
        if kept.loc[name, "outcome"] != record.outcome:
            differing[name] = (kept.loc[name, "outcome"], record.outcome)
    assert not differing


@pytest.mark.evidence
def test_the_records_are_as_their_schema_says():
    schema = json.loads((evidence_folder() / SCHEMA).read_text(encoding="utf-8"))
    assert schema == TypeAdapter(dict[str, ClaimRecord]).json_schema()
    records = json.loads((evidence_folder() / RECORDS).read_text(encoding="utf-8"))
    jsonschema.validate(records, schema)


@pytest.mark.evidence
def test_a_claim_is_judged_again_within_seconds():
    start = time.process_time()
    told = claim_report("topk-eq8-overstrict")
    assert "the same verdict as published" in told and time.process_time() - start < 5
    with pytest.raises(ValueError, match="did you mean 'topk-eq8-overstrict'"):
        read_record("topk-eq8-overstict")
