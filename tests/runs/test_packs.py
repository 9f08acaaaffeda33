"""A pack that is lost, damaged, newer or another project's is refused with what to do."""

import json

import numpy as np
import pandas as pd
import pytest

import itr_study as itr
from itr_study.lab.runs import published
from itr_study.lab.runs.published import Packs, Published

A, B = "a" * 16, "b" * 16
CURVES = {A: pd.DataFrame({"loss": [0.5, 0.25], "epoch": [1, 2], "topk": [np.nan, 1.0]}),
          B: pd.DataFrame({"epoch": [1], "dev_rsum": [100.5]})}


@pytest.fixture
def photos(evidence):
    """The folder of two published runs, one of them with ranks."""
    folder = evidence / "photos"
    Packs(folder).add(CURVES, {A: b"ranks"})
    (folder / "runs.csv").write_text(f"run,status\n{A},done\n{B},done\n")
    return folder


def pack(folder):
    (path,) = (folder / "packs").iterdir()
    return path


def test_curves_come_back_as_they_were_and_ranks_where_there_are_any(photos):
    for run, curve in CURVES.items():
        pd.testing.assert_frame_equal(itr.curve(run), curve, check_exact=True)
    assert Packs(photos).read(A)[1] == b"ranks" and Packs(photos).read(B)[1] is None
    assert Packs(photos).read("c" * 16) is None


def test_a_run_without_an_epoch_has_an_empty_curve(tmp_path):
    """It diverged in the first."""
    Packs(tmp_path).add({A: pd.DataFrame()}, {})
    assert Packs(tmp_path).read(A)[0].empty


def test_a_pack_is_read_once(photos, monkeypatch):
    reads, read = [], published.parquet.read_table
    monkeypatch.setattr(published.parquet, "read_table",
                        lambda *given: reads.append(1) or read(*given))
    for run in (A, B, A):
        itr.curve(run)
    assert len(reads) <= 1
    Packs(photos).add({A: CURVES[B]}, {})  # a run that is in the new one alone from now on
    assert len(itr.curve(A)) == 1 and len(itr.curve(B)) == 1 and len(list(
        (photos / "packs").iterdir())) == 2


def test_a_pack_that_would_be_too_large_is_written_as_several(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "LARGEST", 15_000)
    random = np.random.default_rng(0)
    curves = {f"{n:016d}": pd.DataFrame({"loss": random.normal(size=300)}) for n in range(16)}
    written = Packs(tmp_path).add(curves, {})
    assert len(written) > 1 and all(path.stat().st_size <= 15_000 for path in written)
    assert all(len(Packs(tmp_path).read(run)[0]) == 300 for run in curves)


@pytest.mark.parametrize("damage", ["truncated", "a flipped bit", "empty", "conflict"])
def test_a_damaged_pack_is_named_with_the_way_back(photos, damage):
    path = pack(photos)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes({"truncated": data[:len(data) // 2], "a flipped bit": data, "empty": b"",
                      "conflict": b"<<<<<<< ours\n"}[damage])
    with pytest.raises(ValueError, match=r"parquet is damaged: its checksum is not that of "
                       r"manifest.json; restore it: git checkout -- .*\.parquet$"):
        itr.curve(A)


def test_a_pack_that_is_missing_is_named_with_the_way_back(photos):
    pack(photos).unlink()
    with pytest.raises(ValueError, match=r"parquet is missing; restore it: git checkout -- "):
        itr.curve(A)


@pytest.mark.parametrize(("changed", "told"), [
    ({"format": 2}, r"has format 2, and this version of itr_study reads format 1: update it "
                    r"\(git pull\), or check out code and evidence of one commit$"),
    ({"project": "other"}, r"is of project 'other', not of itr_study; restore it: git checkout -- "
                           r".*photos, or set ITR_STUDY_EVIDENCE to a folder of itr_study$")])
def test_a_pack_of_another_version_or_project_is_refused(photos, changed, told):
    """Before its content is looked at."""
    manifest = json.loads((photos / "manifest.json").read_text())
    manifest[pack(photos).name] |= changed
    (photos / "manifest.json").write_text(json.dumps(manifest))
    pack(photos).write_bytes(b"in a format of the future")
    with pytest.raises(ValueError, match=told):
        itr.curve(A)


@pytest.mark.parametrize(("text", "told"), [
    ("<<<<<<< ours\n", "is no manifest of packs"), ("[1]", "is no manifest of packs"),
    ('{"a.parquet": {"sha256": "0"}}', "is no manifest of packs"),
    ('{"a.parquet": {"runs": [["1"]]}}', "is no manifest of packs"),
    ('{"a.parquet": {"runs": ["1"]}, "b.parquet": {"runs": ["1"]}}', "names a run in two packs")])
def test_a_damaged_manifest_is_named_with_the_way_back(photos, text, told):
    (photos / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=rf"manifest.json {told}; restore it: git checkout -- "):
        itr.curve(A)


def test_rows_that_are_lost_are_not_taken_for_none(photos):
    """All their runs would be trained again."""
    (photos / "runs.csv").unlink()
    with pytest.raises(ValueError, match="runs.csv is missing; restore it: git checkout -- "):
        Published("photos").complete(A)


def test_a_manifest_that_is_lost_is_not_taken_for_none(photos):
    """The next to publish would write one that names no run but its own."""
    (photos / "manifest.json").unlink()
    with pytest.raises(ValueError, match="manifest.json is missing; restore it: git checkout -- "):
        Published("photos").curve(A)


def test_a_manifest_without_a_checksum_vouches_for_nothing(photos):
    manifest = photos / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"sha256"', '"sha1"'))
    with pytest.raises(ValueError, match="is damaged: its checksum is not that of manifest.json"):
        itr.curve(A)


def test_evidence_that_is_a_file_is_not_taken_for_no_evidence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ITR_STUDY_EVIDENCE", str(tmp_path / "file"))
    with pytest.raises(NotADirectoryError, match="set ITR_STUDY_EVIDENCE to a folder, or unset it"):
        itr.rows("scenes")
