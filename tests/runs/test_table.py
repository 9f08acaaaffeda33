"""A table of runs that is broken or contradicts itself is refused, never read in part."""

import pytest

from itr_study.lab.runs.table import Table, typed


def test_a_broken_table_is_refused(tmp_path):
    table = Table(tmp_path / "runs.csv")
    for text in ("id,x\n1,2\n", "run,x\n1\n", "run,x\n1,2,3\n"):
        table.path.write_text(text)
        with pytest.raises(ValueError, match="is not a whole table of runs"):
            table.read()


@pytest.mark.parametrize(("text", "told"), [
    ("", "is not a whole table of runs"),
    ("run,test_rsum\na,1.0\na,2.0\n", "has runs twice: a; which one holds"),
    ("run,test_rsum,test_rsum\na,1.0,2.0\n", "has columns twice: test_rsum"),
    ("run,test_rsum\na,NaN\n", "test_rsum of run a must be a finite number, found 'NaN'"),
    ("run,dev_i2t_r1\na,abc\n", "found 'abc'"), ("run,minutes\na,1e999\n", "found '1e999'"),
    ("run,seed\na,true\n", "found 'true'"), ("run,epochs\na,two\n", "found 'two'"),
    ("run,seconds_fast\na,NaN\n", "found 'NaN'"), ("run,reason\na,\xe9\n", "is not UTF-8")])
def test_a_table_that_contradicts_itself_is_refused(tmp_path, text, told):
    """By name, and with the way back; neither is anything added to it."""
    table = Table(tmp_path / "runs.csv")
    table.path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=told) as caught:
        table.read()
    assert str(table.path) in str(caught.value) and "git checkout" in str(caught.value)


def test_every_cell_has_the_value_that_was_written():
    """Also those that, read together, would be JSON of something else."""
    cells = ["1,2", "[1", "2]"]
    assert typed("k", cells) == {text: text for text in cells}
    values = {"1": 1, "0.5": 0.5, "true": True, "": None, "sum": "sum", '"1"': "1",
              "[1, 2]": [1, 2]}
    for chosen in (list(values), ["1", "0.5", ""], []):
        found = typed("k", chosen)
        assert found == {text: values[text] for text in chosen}
        assert all(type(found[text]) is type(values[text]) for text in chosen)
    assert typed("run", ["12", ""]) == {"12": "12", "": None} and typed("seen", [""]) == {"": ""}
