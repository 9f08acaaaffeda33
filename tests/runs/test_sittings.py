"""A run that several machines took part in says so, and so is held to no bits of one."""

import json

import pytest

from itr_study.lab.runs import run
from itr_study.lab.runs.audit import compare
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.rows import make_row
from itr_study.lab.runs.run import execute, merged
from itr_study.lab.runs.store import RunStore
from tests.small_runs import SMALL

SITTINGS = "checkpoints/sittings.json"


def begin(monkeypatch, instructions: str):
    """Stop a run after its first epoch, on a machine with these instructions; its folder."""
    def stop(self, run_id, history):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "instructions", lambda: instructions)
        patch.setattr(RunStore, "write_history", stop)
        with pytest.raises(KeyboardInterrupt):
            execute(identify(SMALL), save_seconds=0)
    return RunStore().path(identify(SMALL).id)


def go_on(monkeypatch, instructions: str) -> dict:
    monkeypatch.setattr(run, "instructions", lambda: instructions)
    return make_row(identify(SMALL), execute(identify(SMALL)))


def test_a_run_resumed_elsewhere_states_both(store, monkeypatch):
    begin(monkeypatch, "amx")
    begin(monkeypatch, "amx")
    begin(monkeypatch, "avx512")
    mixed = go_on(monkeypatch, "avx2")
    assert mixed["instructions"] == "amx + avx512 + avx2"
    here = mixed | {"instructions": "avx2", "test_rsum": mixed["test_rsum"] + 1}
    audited = compare(mixed, here)
    assert audited.good
    assert "instructions amx + avx512 + avx2, here avx2" in audited.reason
    assert not compare(mixed | {"instructions": "avx2"}, here).good


def test_a_run_resumed_where_it_began_states_that_alone(store, monkeypatch):
    folder = begin(monkeypatch, "amx")
    assert (folder / SITTINGS).exists()
    assert go_on(monkeypatch, "amx")["instructions"] == "amx"
    assert not (folder / SITTINGS).exists()


@pytest.mark.parametrize("text", [None, "", "[{"])
def test_what_a_checkpoint_of_old_was_made_with_is_unknown(store, monkeypatch, text):
    folder = begin(monkeypatch, "amx")
    (folder / SITTINGS).unlink()
    if text is not None:
        (folder / SITTINGS).write_text(text)
    row = go_on(monkeypatch, "amx")
    assert row["instructions"] == "unknown + amx"
    assert json.loads(row["arithmetic"])["optimizer"] == "unknown + fused"


def test_without_a_checkpoint_a_run_begins_anew(store, monkeypatch):
    folder = begin(monkeypatch, "amx")
    for checkpoint in (folder / "checkpoints").glob("0*"):
        checkpoint.rename(checkpoint.with_suffix(".corrupt"))
    assert go_on(monkeypatch, "avx2")["instructions"] == "avx2"


def test_a_run_evaluated_again_elsewhere_states_both(store, monkeypatch):
    assert go_on(monkeypatch, "amx")["instructions"] == "amx"
    monkeypatch.setattr(run, "is_complete", lambda result, needs: False)
    assert go_on(monkeypatch, "avx2")["instructions"] == "amx + avx2"


def test_what_agrees_is_stated_once_and_within_facts_too():
    one, two = {"device": "cpu", "software": {"torch": "2"}}, {"software": {"torch": "3"}}
    assert merged([one, one]) == one
    assert merged([two, one]) == {"device": "unknown + cpu", "software": {"torch": "3 + 2"}}
    assert merged([{}, one])["software"] == {"torch": "unknown + 2"}
