"""Crisscrossed Captions: what is read, and what is refused."""

import pytest

from itr_study.data.base import DataError
from itr_study.data.cxc import KINDS, read_cxc

A, B = "COCO_val2014:sentid:732091", "COCO_val2014:sentid:38"
X, Y = "COCO_val2014_000000365325.jpg", "COCO_val2014_000000000042.jpg"
ROWS = {"sits": [(A, X, "2.2", "c2i_intrasim"), (B, X, "5.0", "c2i_original")],
        "sts": [(A, B, "0.0", "c2c_cocaption"), (B, A, "1.25", "c2c_isim")],
        "sis": [(X, Y, "3", "i2i_csim")]}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "cxc"
    folder.mkdir()
    for kind, rows in ROWS.items():
        write(folder / f"{kind}_test.csv", KINDS[kind][0], rows)
    return folder


def write(path, columns, rows):
    lines = [",".join([*columns, "agg_score", "sampling_method"]), *map(",".join, rows)]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("kind", "first", "second", "ratings", "own"), [
    ("sits", [732091, 38], [365325, 365325], [2.2, 5], [False, True]),
    ("sts", [732091, 38], [38, 732091], [0, 1.25], [True, False]),
    ("sis", [365325], [42], [3], [False]),
])
def test_reads_what_is_there(folder, kind, first, second, ratings, own):
    read = read_cxc(folder.parent, kind)
    assert (read.kind, read.split, len(read)) == (kind, "test", len(first))
    assert read.first.tolist() == first and read.second.tolist() == second
    assert read.ratings.tolist() == ratings and read.own.tolist() == own
    assert read_cxc(folder, kind).ratings.tolist() == ratings and "Parekh" in read.terms


@pytest.mark.parametrize(("row", "message"), [
    ((A, X, "5.1", "m"), "malformed row: sits_test.csv:4"),
    ((A, X, "nan", "m"), "malformed row"),
    ((A, X, "", "m"), "a rating from 0 to 5"),
    ((A, B, "1", "m"), "malformed row"),
    ((X, A, "1", "m"), "malformed row"),
    ((A, X, "1"), "malformed row"),
    (ROWS["sits"][0], "rated twice: 732091, 365325: 2 lines"),
])
def test_bad_rows_are_refused(folder, row, message):
    write(folder / "sits_test.csv", KINDS["sits"][0], [*ROWS["sits"], row])
    with pytest.raises(DataError, match=message):
        read_cxc(folder)


def test_other_files_are_refused(folder):
    with pytest.raises(ValueError, match="kind must be one of sits, sts, sis"):
        read_cxc(folder, "cis")
    with pytest.raises(ValueError, match="split must be one of val, test"):
        read_cxc(folder, "sits", "dev")
    with pytest.raises(DataError, match="there is no .*sits_val.csv.*Crisscrossed-Captions"):
        read_cxc(folder.parent, "sits", "val")
    (folder / "sts_test.csv").write_text((folder / "sits_test.csv").read_text())
    with pytest.raises(DataError, match="expected the columns caption1, caption2"):
        read_cxc(folder, "sts")
    (folder / "sis_test.csv").write_text("")
    with pytest.raises(DataError, match="found none"):
        read_cxc(folder, "sis")
    write(folder / "sis_test.csv", KINDS["sis"][0], [])
    with pytest.raises(DataError, match="no ratings"):
        read_cxc(folder, "sis")


def test_real_counts(real_data):
    sizes = {kind: (len(read), int(read.own.sum()))
             for kind in KINDS for read in [read_cxc(real_data, kind)]}
    assert sizes == {"sits": (44833, 25000), "sts": (44045, 25000), "sis": (46719, 0)}
