"""Curves and ranks that runs left, and intervals over images."""

import doctest

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.table import retrieval_table
from itr_study.files.paths import figures_folder
from itr_study.metrics import Ranks
from itr_study.runs.config import RunConfig
from itr_study.runs.data import encoded_data
from itr_study.runs.identity import identify, is_remembered
from itr_study.runs.rows import Rows
from itr_study.runs.store import RunStore
from itr_study.studies import results
from itr_study.studies.arms import TERMS, ArmRun, train_arms
from itr_study.studies.plans import ARMS
from itr_study.studies.profiles import choose
from itr_study.studies.results import (
    arrays_of,
    collapses,
    curves,
    endings,
    first_of,
    judged_of,
    over_images,
    ranks_of,
)
from tests.small_runs import SMALL


def test_ranks_come_from_beside_the_row_and_missing_ones_are_named(tmp_path, store):
    row = {"run": "a" * 16, "dataset": "flickr8k", "arm": "k=5", "seed": 0}
    with pytest.raises(ValueError, match="no ranks of run aaaa"):
        ranks_of(row, tmp_path)
    i2t, t2i = np.array([1, 3]), np.array([1, 2, 8])
    (tmp_path / "flickr8k" / "ranks").mkdir(parents=True)
    np.savez(tmp_path / "flickr8k" / "ranks" / f"{row['run']}.npz", test_i2t=i2t, test_t2i=t2i)
    assert ranks_of(row, tmp_path).t2i.tolist() == [1, 2, 8]
    table = over_images(pd.DataFrame([row]), np.array([0, 0, 1]), figures=tmp_path, n=200)
    assert table["value"][0] == pytest.approx(retrieval_table(Ranks(i2t, t2i))["rsum"])
    assert table["low"][0] < table["value"][0] < table["high"][0]


def as_damaged(good: bytes, damage: str, tmp_path) -> bytes:
    if damage == "truncated":
        return good[:len(good) // 2]
    if damage == "other arrays":
        np.savez(tmp_path / "other.npz", dev_i2t=np.arange(3))
        return (tmp_path / "other.npz").read_bytes()
    if damage == "one array":
        np.save(tmp_path / "other.npy", np.arange(3))
        return (tmp_path / "other.npy").read_bytes()
    return {"empty": b"", "conflict": b"<<<<<<< ours\n", "no zip": b"PK\x03\x04 and then"}[damage]


@pytest.mark.parametrize("damage", ["truncated", "other arrays", "one array", "empty", "conflict",
                                    "no zip"])
def test_damaged_ranks_are_named_with_the_way_back(tmp_path, damage):
    path = tmp_path / "flickr8k" / "ranks" / f"{'a' * 16}.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, test_i2t=np.array([1, 3]), test_t2i=np.array([1, 2, 8]))
    path.write_bytes(as_damaged(path.read_bytes(), damage, tmp_path))
    with pytest.raises(ValueError, match="aaaa.npz holds no ranks.*git checkout -- ") as caught:
        ranks_of({"run": "a" * 16, "dataset": "flickr8k"}, tmp_path)
    assert "pickle" not in str(caught.value)


def test_ranks_that_are_not_of_the_row_are_refused(tmp_path):
    path = tmp_path / "flickr8k" / "ranks" / f"{'a' * 16}.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, test_i2t=np.array([1, 3]), test_t2i=np.array([1, 2, 8]))
    row = {"run": "a" * 16, "dataset": "flickr8k", "arm": "k=5", "seed": 0, "test_i2t_r1": 50.0}
    assert ranks_of(row | {"test_t2i_r1": 100 / 3}, tmp_path).i2t.tolist() == [1, 3]
    with pytest.raises(ValueError, match="is not of this row: its t2i R@1 is 33.33, the row says"):
        ranks_of(row | {"test_t2i_r1": 40.0}, tmp_path)
    with pytest.raises(ValueError, match="ranks of 3 texts, the test split has 2"):
        over_images(pd.DataFrame([row]), np.array([0, 1]), figures=tmp_path, n=200)


def kept_run(tmp_path, edition=2, **changed):
    """A committed row with its arrays, of which some may be changed, or left out by None."""
    arrays = {"test_i2t": np.array([1, 3]), "test_t2i": np.array([1, 2, 8]),
              "test_judged_expert": np.array([0.25, -0.5], np.float16),
              "test_i2t_queries": np.array([1]), "test_i2t_first": np.array([[2, 0, 1]]),
              "test_t2i_queries": np.array([0, 2]), "test_t2i_first": np.array([[0, 1], [1, 0]])}
    path = tmp_path / "flickr8k" / "ranks" / f"{'a' * 16}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: array for name, array in (arrays | changed).items()
                      if array is not None})
    return {"run": "a" * 16, "dataset": "flickr8k", "edition": edition}


def test_scores_of_judged_pairs_and_first_results_are_read(tmp_path):
    row = kept_run(tmp_path)
    scores = judged_of(row, tmp_path)
    assert scores.dtype == np.float64 and scores.tolist() == [0.25, -0.5]
    first = first_of(row, tmp_path)
    assert first["i2t"].queries.tolist() == [1] and first["i2t"].results.tolist() == [[2, 0, 1]]
    assert first["t2i"].results.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ValueError, match="judgements kept of flickr8k must be one of expert; got"):
        judged_of(row, tmp_path, "crowdflower")
    with pytest.raises(ValueError, match="collection of judgements kept of scenes"):
        judged_of(row | {"dataset": "scenes"}, tmp_path)


@pytest.mark.parametrize("edition", [None, 1, np.nan])
def test_a_row_of_edition_1_says_how_to_get_what_it_lacks(tmp_path, edition):
    """In a table beside rows of edition 2 its empty cell is NaN."""
    row = kept_run(tmp_path, edition)
    for read in (judged_of, first_of):
        with pytest.raises(ValueError, match="run a{16} has no test_.*: it was made in edition 1; "
                           "train it again with edition=2"):
            read(row, tmp_path)
    assert ranks_of(row, tmp_path).i2t.tolist() == [1, 3]


@pytest.mark.parametrize("changed", [
    {"test_judged_expert": None, "test_t2i_first": None},
    {"test_judged_expert": np.array([np.nan]), "test_i2t_queries": np.array([1, 2])},
    {"test_judged_expert": np.array([np.inf]), "test_i2t_first": None}])
def test_arrays_that_are_lost_or_damaged_are_named_with_the_way_back(tmp_path, changed):
    row = kept_run(tmp_path, **changed)
    for read in (judged_of, first_of):
        with pytest.raises(ValueError, match="aaaa.npz lacks test_.*it is damaged; restore it: "
                           "git checkout -- "):
            read(row, tmp_path)


def test_a_flipped_bit_is_seen(tmp_path):
    row = kept_run(tmp_path)
    path = tmp_path / "flickr8k" / "ranks" / f"{'a' * 16}.npz"
    for compressed in (False, True):
        arrays = {"test_i2t": np.arange(1000), "test_t2i": np.arange(1000)}
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
        data = bytearray(path.read_bytes())
        data[len(data) // 4] ^= 16
        path.write_bytes(data)
        with pytest.raises(ValueError, match="it is damaged; restore it"):
            first_of(row, tmp_path)


def test_a_row_that_was_set_aside_says_why_it_has_no_ranks(tmp_path, store):
    row = {"run": "a" * 16, "dataset": "flickr8k", "arm": "k=5", "seed": 0, "status": "done"}
    table = tmp_path / "flickr8k" / "edition1.csv"
    table.parent.mkdir()
    table.write_text(f"run,status,dataset,model\n{'a' * 16},done,flickr8k,two_branch\n")
    for read in (ranks_of, lambda row, figures: curves(pd.DataFrame([row]), figures)):
        with pytest.raises(ValueError, match="set aside in edition1.csv, .*with edition=2"):
            read(row, tmp_path)


@pytest.mark.evidence
def test_all_committed_ranks_are_those_of_their_rows():
    table = Rows(figures_folder() / "flickr8k").read()
    for run_id in sorted(table)[::20]:
        ranks_of(table[run_id])


@pytest.fixture(scope="module")
def rows():
    arms = [ArmRun("a", SMALL), ArmRun("a", SMALL.with_(seed=1))]
    return train_arms(arms, workers=0)


def test_generated_runs_leave_the_same_in_the_store(rows):
    row = rows.to_dict("records")[0]
    texts = len(encoded_data(SMALL).splits["test"].image_of_text)
    first = first_of(row)
    assert first["i2t"].results.shape == (10, 10) and first["t2i"].queries.tolist() == list(
        range(texts))
    ranks, owner = ranks_of(row), encoded_data(SMALL).splits["test"].image_of_text
    for query, listed in zip(*first["t2i"], strict=True):  # ten images: every list holds its own
        place = listed.tolist().index(owner[query]) + 1
        assert place <= ranks.t2i[query]


def test_arrays_beside_the_row_come_before_the_store(rows, tmp_path):
    """In the order of the queries; only where no file lies there, the store is asked."""
    row = rows.to_dict("records")[0]
    kept = RunStore().result(row["run"]).arrays()
    assert {name: array.tolist() for name, array in arrays_of(row, tmp_path).items()} == {
        name: array.tolist() for name, array in kept.items()}
    other = kept | {name: np.where(kept[name] > 1, 100 + np.arange(len(kept[name])), 1)
                    for name in ("test_i2t", "test_t2i")}  # of the same R@1, which is checked
    path = tmp_path / "scenes" / "ranks" / f"{row['run']}.npz"
    path.parent.mkdir(parents=True)
    np.savez(path, **other)
    assert arrays_of(row, tmp_path)["test_t2i"].tolist() == other["test_t2i"].tolist()
    assert other["test_t2i"].max() > 100 and kept["test_t2i"].max() <= 10


def test_curves_have_a_line_per_epoch_and_know_their_arm(rows):
    found = curves(rows)
    assert list(zip(found.arm, found.seed, found.epoch, strict=True)) == [
        ("a", 0, 1), ("a", 0, 2), ("a", 1, 1), ("a", 1, 2)]
    last = found[found.seed == 1].iloc[int(rows.best_epoch[1]) - 1]
    assert last.dev_rsum == pytest.approx(rows.dev_rsum[1])


def test_curves_of_real_data_are_read_beside_the_rows(rows, tmp_path):
    real = rows.iloc[:1].assign(dataset="flickr8k")
    with pytest.raises(ValueError, match="no curve of run"):
        curves(real, tmp_path)
    folder = tmp_path / "flickr8k" / "curves"
    folder.mkdir(parents=True)
    (folder / f"{real.run[0]}.csv").write_text("epoch,loss\n1,0.5\n")
    assert curves(real, tmp_path).to_dict("records") == [
        {"epoch": 1, "loss": 0.5, "arm": "a", "seed": 0}]


def test_a_curve_beside_the_row_of_generated_data_comes_before_the_store(rows, tmp_path):
    folder = tmp_path / "scenes" / "curves"
    folder.mkdir(parents=True)
    (folder / f"{rows.run[0]}.csv").write_text("epoch,loss\n7,0.5\n")
    assert curves(rows.iloc[:1], tmp_path)["epoch"].tolist() == [7]


def test_a_run_that_failed_has_no_curve(rows):
    assert set(curves(rows.assign(status=["done", "failed"])).seed) == {0}


def test_a_collapse_is_read_off_the_curve_of_a_run(rows, tmp_path):
    """SMALL has the hinge of two directions at margin 0.2: 0.4 for equal scores."""
    real = rows.iloc[[0, 0, 0]].assign(dataset="flickr8k", run=list("abc"),
                                       status=["done", "done", "failed"]).reset_index(drop=True)
    folder = tmp_path / "flickr8k" / "curves"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("epoch,score_std,topk\n1,0.2,0.5\n2,0.08,0.41\n")
    (folder / "b.csv").write_text("epoch,score_std,topk\n1,0.2,0.5\n2,0.08,0.37\n")
    found = collapses(real, tmp_path)
    assert found[0].startswith("collapsed: in the last epoch the loss stands at 0.41, 0.4 being")
    assert found[1:].tolist() == ["", ""]
    assert collapses(rows).tolist() == ["", ""]  # generated data: from the store
    assert (endings(real, tmp_path)["flattened"] == "").all()


def test_a_run_whose_loss_asks_for_equal_scores_is_no_collapse_but_flat(rows, tmp_path):
    windows = RunConfig.model_validate_json(rows.config[0]).with_(objective=[TERMS["windows"]])
    real = rows.iloc[[0, 0]].assign(dataset="flickr8k", run=list("ab"), status="done",
                                    config=windows.model_dump_json()).reset_index(drop=True)
    folder = tmp_path / "flickr8k" / "curves"
    folder.mkdir(parents=True)
    for run, last in (("a", 0.005), ("b", 0.05)):
        (folder / f"{run}.csv").write_text(f"epoch,score_std\n1,0.2\n2,{last}\n")
    found = endings(real, tmp_path)
    assert found["collapsed"].tolist() == ["", ""] and found["flattened"][1] == ""
    assert found["flattened"][0].startswith("in the last epoch the scores spread by 0.005, at")


@pytest.mark.evidence
def test_of_all_committed_runs_only_those_are_accused_that_collapsed():
    """Every arm of every notebook; the ledger's arms among them are whole or not at all."""
    arms = {(run.label, identify(run.config, figures=figures_folder()).id)
            for notebook, makers in ARMS.items() for make in makers
            for run in make("flickr8k", choose(notebook, "full"))
            if is_remembered(run.config, figures_folder() / "flickr8k")}
    table = Rows(figures_folder() / "flickr8k").read()
    rows = pd.DataFrame([table[run] | {"arm": arm} for arm, run in sorted(arms) if run in table])
    ended = endings(rows)
    flat = rows.loc[ended["flattened"] != "", "arm"]
    # at several learning rates, and in the second judge's model
    assert set(flat.str.extract(r"^(?:clean_gru/)?([^@/]+)")[0]) == {"windows"}
    rows["accused"] = ended["collapsed"] != ""
    accused = rows.groupby("arm")["accused"].agg(["sum", "size"])
    assert len(accused) > 140
    both_ways = {"hardest": (3, 15), "top5": (3, 15)}  # 02 shows them collapsing, and sound
    assert {arm: (line["sum"], line["size"]) for arm, line in accused.iterrows() if line["sum"]} \
        == both_ways | {arm: (n, n) for arm, n in {
            "a tenth of the rate": 3, "hardest@batch=512": 5, "hardest, noise=0.2": 5,
            "hardest, noise=0.4": 5, "top5, noise=0.4": 5,
            "vsepp+gru/hardest/0.0005": 1, "vsepp+gru/hardest/0.001": 1,
            "dvse/sigma=gradient": 3}.items()}  # of the last the loss has log sigma in it


def test_examples():
    failed, tried = doctest.testmod(results)
    assert tried and not failed
