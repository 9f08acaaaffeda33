"""What a batch drew is held against what is published: numbers, and never bytes."""

import pandas as pd
import pytest

from itr_study.data import DATASETS
from itr_study.files.paths import figures_folder
from itr_study.plots.figures import COMMON, inside, save_figure
from itr_study.plots.published import DRAWN_BY, PAGE, compare, table_difference
from tests.plots.test_figures import TABLE, common, save

ROWS = "arm,metric,value\na,test_rsum,100.5\nb,test_rsum,0.25\nb,minutes,7\n"


@pytest.mark.parametrize(("old", "new", "told"), [
    ("100.5", "100.50000009", ""), ("100.5", "100.5000002", "row 1, value: '100.5000002', publ"),
    ("0.25", "0.2500000009", ""), ("0.25", "0.250000002", "row 2, value: "),
    ("0.25", "2.5e-1", ""), ("0.25", "", "row 2, value: '', published '0.25'"),
    ("minutes,7", "minutes,9", ""), ("b,", "c,", "row 2, arm: 'c', published 'b', and 1 cell more"),
    ("value", "size", "columns of one of them alone: size, value"),
    ("b,minutes,7\n", "", "2 rows, published 3")])
def test_tables_differ_by_what_is_beyond_rounding(old, new, told):
    found = table_difference(ROWS.replace(old, new), ROWS)
    assert found.startswith(told) and bool(found) == bool(told), found


def test_an_empty_column_makes_no_difference():
    """A table of rows gains one with each measure that other rows have."""
    wider = "\n".join(f"{line}," for line in ROWS.splitlines()).replace("value,", "value,size", 1)
    assert table_difference(wider, ROWS) == table_difference(ROWS, wider) == ""
    assert table_difference(wider + "4", ROWS).startswith("columns of one of them alone: size")


def test_what_the_machine_took_is_left_out():
    table = "arm,minutes,rerank_seconds\na,{},{}\n"
    assert table_difference(table.format(1, 2), table.format(3, 4)) == ""


@pytest.mark.parametrize(("runs", "factor", "kept"), [
    ([], 1.009, True), ([], 1.02, False), (["a" * 16], 1.009, False)])
def test_what_a_machine_computes_anew_may_differ_a_little(two, runs, factor, kept):
    """Not what is made of published runs; and a publisher keeps what it would not tell apart."""
    for folder, times in zip(two, (factor, 1), strict=True):
        save(folder, "full", table=TABLE.assign(value=100.0 * times), name="03_topk__cca",
             dataset="flickr8k", run_ids=runs)
    found = told(two)
    assert (found.near == ["flickr8k/03_topk__cca"]) == kept
    assert ("flickr8k/03_topk__cca" in found.differing) != kept
    assert ("within 1% of the published numbers: flickr8k/03_topk__cca" in found.text()) == kept


@pytest.mark.parametrize("marked", [True, False])
def test_what_is_made_of_models_trained_here_is_told_apart(two, marked):
    """Rows are published, weights are not: another machine trains other ones."""
    for folder, times in zip(two, (2, 1), strict=True):
        save(folder, "full", table=TABLE.assign(value=100.0 * times), name="08_reranking__hubs",
             dataset="flickr8k", run_ids=["a" * 16], **{"from_models": True} if marked else {})
    found = told(two)
    assert found.retrained == ["flickr8k/08_reranking__hubs"] * marked
    assert ("flickr8k/08_reranking__hubs" in found.differing) != marked
    assert ("Made of models trained on this machine" in found.text()) == marked


@pytest.mark.parametrize("by", [DRAWN_BY, "four scenes"])
def test_only_drawings_that_no_notebook_draws_are_not_missed(two, by):
    save_figure(None, TABLE, "00_start_here__branches", COMMON, "Drawn.",
                {"seeds": [], "made_from": by}, two[1])
    assert told(two).missing == ["common/00_start_here__branches"] * (by != DRAWN_BY)


@pytest.fixture
def two(tmp_path):
    """Folders of the same four figures, one of them common, and the page of the ledger."""
    for name in ("own", "theirs"):
        folder = tmp_path / name
        for figure in ("k_sweep", "dimension"):
            save(folder, "full", name=f"03_topk__{figure}", dataset="flickr8k")
        save(folder, "full", name="12_claims__ledger", dataset="flickr8k")
        common(folder)
        (folder / "flickr8k" / PAGE).write_text("- 1 claim.\n")
    return tmp_path / "own", tmp_path / "theirs"


def told(two, **options):
    return compare(*two, ["flickr8k", COMMON], **options)


def test_equal_tables_are_counted_and_all_others_named(two):
    assert told(two).text() == "5 tables equal the published ones"
    own, theirs = (folder / "flickr8k" for folder in two)
    (theirs / "03_topk__dimension.csv").rename(theirs / "03_topk__other.csv")
    (theirs / "03_topk__dimension.json").rename(theirs / "03_topk__other.json")
    csv = own / "03_topk__k_sweep.csv"
    csv.write_text(csv.read_text().replace("topk", "sum"))
    (own / PAGE).write_text("- 2 claims.\n")
    lines = told(two).text().splitlines()
    assert lines[0].startswith("flickr8k/03_topk__k_sweep differs from the published one: row 1, ")
    assert lines[1:] == ["flickr8k/claims.md differs from the published one: another text",
                         "Published and not drawn here: flickr8k/03_topk__other",
                         "Drawn here and not published: flickr8k/03_topk__dimension",
                         "2 tables equal the published ones"]


def test_only_what_these_notebooks_drew_now_is_compared(two):
    assert told(two, notebooks=["12_claims"]).equal == ["flickr8k/12_claims__ledger",
                                                       "flickr8k/claims.md"]
    late = told(two, since=2e12)
    assert not late.equal and len(late.missing) == 4


def test_where_nothing_is_published_it_says_so(two):
    for path in (two[1] / "flickr8k").glob("*"):
        path.unlink()
    assert told(two).text() == ("No figure is published of flickr8k (where they were deleted: git "
                                "checkout -- figures)\n1 table equals the published one")


def test_another_profile_is_not_compared(two):
    for figure in ("k_sweep", "dimension"):
        (two[0] / "flickr8k" / f"03_topk__{figure}.json").unlink()
        save(two[0], "quick", name=f"03_topk__{figure}", dataset="flickr8k")
    assert told(two).text() == ("Not compared, as the published ones are of another profile: "
                                "2 tables\n3 tables equal the published ones")


def test_a_damaged_provenance_is_named(two):
    (two[0] / COMMON / "03_topk__drawn.json").write_text("{}")
    with pytest.raises(ValueError, match="drawn.json is not the provenance of a figure; delete it"):
        told(two)


def test_a_table_that_is_none_is_named(two):
    for folder in two:
        save(folder, "full", name="03_topk__cca", dataset="flickr8k")
    (path,) = two[1].rglob("03_topk__cca.csv")
    path.write_text(f"{path.read_text()}<<<<<<< ours, theirs, and, more, of, it\n")
    where = told(two).differing["flickr8k/03_topk__cca"]
    assert where.startswith("one of them is no table (")


@pytest.mark.evidence
def test_every_published_table_can_be_compared():
    """Each equals itself, and its provenance can be read."""
    names = [path.name for path in inside(figures_folder())
             if path.name not in DATASETS or not DATASETS[path.name].generated]
    found = compare(figures_folder(), figures_folder(), names)
    tables = [path for name in names for path in (figures_folder() / name).glob("*__*.csv")]
    assert len(found.equal) == len(tables) + 1 > 100 and not (
        found.differing or found.missing or found.additional or found.profiles)
    assert all(len(pd.read_csv(path)) for path in tables)
