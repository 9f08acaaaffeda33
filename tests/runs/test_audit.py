"""A published row that lies is found out."""

import json

import pytest

from itr_study.arithmetic import OPTIMIZER, SEQUENCES, instructions
from itr_study.evaluation.measures import MEASURES, measure_of
from itr_study.lab.runs.audit import MACHINE, audit, compare
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.rows import make_row
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.table import Table
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A row as a finished run leaves it."""
    from itr_study.lab.runs.store import RunStore

    result = execute(identify(SMALL), store=RunStore(tmp_path_factory.mktemp("runs")))
    return make_row(identify(SMALL), result)


def kept(monkeypatch, *rows: dict) -> None:
    monkeypatch.setattr(Table, "read", lambda self: {r["run"]: r for r in rows})


@pytest.mark.parametrize("column", ["test_fast_rsum", "test_multi_i2t_hubness",
                                    "dev_t2i_rel10_exact", "test_fast_bank_t2i_r5"])
def test_measures_that_are_asked_for_are_compared_too(honest, column):
    audited = compare(honest | {column: honest[column] + 0.5}, honest)
    assert not audited.good and f"0.5 in {column}" in audited.reason


def test_what_a_run_cost_is_not_compared(honest):
    slower = {name: value + 60 for name, value in honest.items()
              if name.startswith(("seconds_", "minutes"))}
    assert len(slower) == 4 and compare(honest | slower, honest).good


def test_a_row_is_held_against_what_it_has(honest):
    first = {name: value for name, value in honest.items()
             if not (of := measure_of("scenes", name)) or not MEASURES[of].asked}
    assert len(first) < len(honest) and compare(first, honest).good
    assert not compare(first | {"test_rsum": honest["test_rsum"] + 1}, honest).good


def test_an_honest_row_is_repeated_to_the_last_bit(honest, monkeypatch, store):
    kept(monkeypatch, honest)
    lines = []
    (result,) = audit("scenes", None, 5, say=lines.append)
    assert result.good and "equal (same device, software, instr" in result.reason, result
    assert "difference is 0 in" in result.reason and len(lines) == 2
    assert not (store / "runs").exists()  # an empty store of its own


def test_a_row_that_lies_is_different(honest, monkeypatch, store):
    kept(monkeypatch, honest | {"test_i2t_r1": honest["test_i2t_r1"] + 0.5})
    (result,) = audit("scenes", None, 1, say=lambda line: None)
    assert not result.good
    assert "DIFFERENT" in result.reason and "0.5 in test_i2t_r1" in result.reason


def test_another_machine_may_differ_a_little(honest):
    other = honest | {"device": "cuda Some GPU", "test_rsum": honest["test_rsum"] + 3}
    audited = compare(other, honest)
    assert audited.good and "cuda Some GPU, here cpu" in audited.reason
    assert not compare(other | {"test_rsum": honest["test_rsum"] + 30}, honest).good


@pytest.mark.parametrize("name", MACHINE)
def test_bit_equality_is_asked_only_where_all_agree(honest, name):
    """What a row of old does not say is unknown, and so not the same."""
    moved = honest | {"test_rsum": honest["test_rsum"] + 3.3}
    assert not compare(moved, honest).good
    for other, said in ((moved | {name: "another"}, f"{name} another"),
                        (moved | {name: None}, f"{name} unknown"),
                        ({k: v for k, v in moved.items() if k != name}, f"{name} unknown")):
        audited = compare(other, honest)
        assert audited.good and "other machine" in audited.reason and said in audited.reason


def test_a_row_states_its_instructions_and_arithmetic(honest):
    assert honest["instructions"] == instructions()
    assert json.loads(honest["arithmetic"]) == {
        "features": "", "optimizer": OPTIMIZER, "precision": "float32", "sequences": SEQUENCES}


@pytest.mark.parametrize("left", [("dev_i2t_r1", "test_i2t_r1"), ()])
def test_a_row_without_what_is_compared_is_not_good(honest, left):
    """Elsewhere only RSUM is compared; a row without it is not equal, whatever else it holds."""
    few = {n: v for n, v in honest.items() if n in left or not n.startswith(("dev_", "test_"))}
    elsewhere = compare(few | {"device": "cuda Some GPU"}, honest)
    assert not elsewhere.good
    assert elsewhere.reason.startswith("nothing to compare (other machine: device")
    same = compare(few, honest)
    assert same.good == bool(left) and same.reason.startswith("equal" if left else "nothing to")


def test_a_metric_that_is_lost_or_a_run_that_diverged_is_not_good(honest):
    assert not compare(honest | {"test_new": 1.0}, honest).good
    assert not compare(honest, honest | {"status": "diverged"}).good


def test_a_row_of_an_older_part_is_stale_and_not_trained(honest, monkeypatch, store):
    kept(monkeypatch, honest | {"run": "0" * 16})
    (result,) = audit("scenes", None, 1, say=lambda line: None)
    assert result.good and result.reason.startswith("stale")
    assert not (store / "runs").exists()


def test_without_rows_there_is_nothing_to_audit(monkeypatch):
    kept(monkeypatch)
    with pytest.raises(ValueError, match="no runs are published in"):
        audit("scenes", None, 1)
