"""Curves and ranks that runs left, and intervals over images."""

import doctest
from io import StringIO

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.table import retrieval_table
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import data_part, encoded_data
from itr_study.lab.runs.identity import digest, identify, remembered
from itr_study.lab.runs.published import Packs, Published, arrays
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.table import Table, cell
from itr_study.lab.studies import results
from itr_study.lab.studies.arms import TERMS, ArmRun, train_arms
from itr_study.lab.studies.nb03_topk import k_arms
from itr_study.lab.studies.nb05_listwise import term_arms
from itr_study.lab.studies.nb06_kendall import branch_arms
from itr_study.lab.studies.nb10_explorers import judged_arms
from itr_study.lab.studies.nb11_attention import looking_arms
from itr_study.lab.studies.nb12_claims import claimed_so, ledger_arms, second_base_arms
from itr_study.lab.studies.plans import STUDIES, choose
from itr_study.lab.studies.results import (
    collapses,
    curves,
    endings,
    judged_of,
    over_images,
    ranks_of,
)
from itr_study.metrics import Ranks
from tests.small_runs import SMALL

A = "a" * 16
ROW = {"run": A, "status": "done", "dataset": "flickr8k", "arm": "k=5", "seed": 0}


def publish(evidence, row: dict, curve: str | None = None, **arrays) -> dict:
    """Write a row, its curve and its arrays among the evidence; the row."""
    folder = evidence / row["dataset"]
    kept = {name: cell(value) for name, value in row.items()
            if name != "arm" and value == value}  # not NaN
    names, lines = (table := Table(folder / "runs.csv")).lines()
    table.write(list(dict.fromkeys([*names, *kept])), lines | {row["run"]: kept})
    if curve is not None:
        Packs(folder).add({row["run"]: pd.read_csv(StringIO(curve))}, {})
    if arrays:
        (folder / "ranks").mkdir(exist_ok=True)
        np.savez(folder / "ranks" / f"{row['run']}.npz", **arrays)
    return row


def test_published_ranks_are_read_and_missing_ones_are_named(evidence, store):
    with pytest.raises(ValueError, match="no ranks of run aaaa.* neither published nor in the sto"):
        ranks_of(ROW)
    publish(evidence, ROW)
    with pytest.raises(ValueError, match=f"it is kept without them; train it again: .*train {A}"):
        ranks_of(ROW)
    i2t, t2i = np.array([1, 3]), np.array([1, 2, 8])
    publish(evidence, ROW, test_i2t=i2t, test_t2i=t2i)
    assert ranks_of(ROW).t2i.tolist() == [1, 2, 8]
    table = over_images(pd.DataFrame([ROW]), np.array([0, 0, 1]), n=200)
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
@pytest.mark.parametrize("packed", [False, True], ids=["file", "pack"])
def test_damaged_ranks_are_named_with_the_way_back(evidence, tmp_path, damage, packed):
    publish(evidence, ROW, test_i2t=np.array([1, 3]), test_t2i=np.array([1, 2, 8]))
    path = evidence / "flickr8k" / "ranks" / f"{A}.npz"
    data = as_damaged(path.read_bytes(), damage, tmp_path)
    path.write_bytes(data)
    if packed:  # sealed as it was
        path.unlink()
        (path,) = Packs(evidence / "flickr8k").add({A: pd.DataFrame()}, {A: data})
    with pytest.raises(ValueError, match=rf"{path.name} holds no ranks of run a.*checkout -- "
                       ) as caught:
        ranks_of(ROW)
    assert "pickle" not in str(caught.value)


def test_ranks_that_are_not_of_the_row_are_refused(evidence):
    ranks = {"test_i2t": np.array([1, 3]), "test_t2i": np.array([1, 2, 8])}
    row = ROW | {"test_i2t_r1": 50.0}
    publish(evidence, row | {"test_t2i_r1": 100 / 3}, **ranks)
    assert ranks_of(row).i2t.tolist() == [1, 3]
    with pytest.raises(ValueError, match="ranks of 3 texts, the test split has 2"):
        over_images(pd.DataFrame([row]), np.array([0, 1]), n=200)
    publish(evidence, row | {"test_t2i_r1": 40.0})
    with pytest.raises(ValueError, match="is not of run a+: its t2i R@1 is 33.33, the row says 40"):
        ranks_of(row)


def kept_run(evidence, **changed):
    """A published row with its arrays, of which some may be changed, or left out by None."""
    arrays = {"test_i2t": np.array([1, 3]), "test_t2i": np.array([1, 2, 8]),
              "test_judged_expert": np.array([0.25, -0.5], np.float16),
              "test_i2t_queries": np.array([1]), "test_i2t_first": np.array([[2, 0, 1]]),
              "test_t2i_queries": np.array([0, 2]), "test_t2i_first": np.array([[0, 1], [1, 0]])}
    return publish(evidence, {"run": A, "dataset": "flickr8k"}, **{
        name: array for name, array in (arrays | changed).items() if array is not None})


def test_scores_of_judged_pairs_are_read(evidence):
    row = kept_run(evidence)
    scores = judged_of(row)
    assert scores.dtype == np.float64 and scores.tolist() == [0.25, -0.5]
    with pytest.raises(ValueError, match="judgements kept of flickr8k must be one of expert; got"):
        judged_of(row, "crowdflower")
    with pytest.raises(ValueError, match="collection of judgements kept of scenes"):
        judged_of(row | {"dataset": "scenes"})


def test_ranks_may_be_kept_without_the_other_arrays(evidence, store):
    row = kept_run(evidence, test_judged_expert=None)
    with pytest.raises(ValueError, match=f"no test_judged_expert.* of run {A}: it is kept without "
                       f"them; train it again: itr-study train {A}"):
        judged_of(row)
    assert ranks_of(row).i2t.tolist() == [1, 3]


@pytest.mark.parametrize("damaged", [np.nan, np.inf])
def test_an_array_that_is_damaged_is_named_with_the_way_back(evidence, damaged):
    with pytest.raises(ValueError, match=f"test_.* of run {A} must be finite: it is "
                       "damaged; restore it: git checkout -- "):
        judged_of(kept_run(evidence, test_judged_expert=np.array([damaged])))


def test_a_flipped_bit_is_seen(evidence):
    row = kept_run(evidence)
    path = evidence / "flickr8k" / "ranks" / f"{A}.npz"
    for compressed in (False, True):
        arrays = {"test_i2t": np.arange(1000), "test_t2i": np.arange(1000)}
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
        data = bytearray(path.read_bytes())
        data[len(data) // 4] ^= 16
        path.write_bytes(data)
        with pytest.raises(ValueError, match="it is damaged; restore it"):
            ranks_of(row)


@pytest.mark.evidence
def test_the_published_ranks_are_those_that_figures_and_verdicts_over_images_read():
    """Of flickr8k and scenes in profile `full`: notebooks 03, 05, 06, 11 and 12, and the judged
    pairs of 10. All are read, and are those of their rows."""
    by_arm = {"03_topk": (k_arms, {"k=5"}), "05_listwise": (term_arms, {"hardest"}),
              "06_kendall": (branch_arms, {"hardest"}), "10_explorers": (judged_arms, None),
              "11_attention_maps": (looking_arms, None),
              "12_claims": (ledger_arms, {"k=1", "k=5", "sum", "hardest+listwise", "bcls"})}
    for dataset in ("flickr8k", "scenes"):
        claims, read = choose("12_claims", "full"), []
        for notebook, (make, labels) in by_arm.items():
            read += [run for run in make(dataset, choose(notebook, "full"))
                     if run.config.seed == 0 and (labels is None or run.label in labels)]
        read += [run for make in (ledger_arms, second_base_arms) for run in make(dataset, claims)
                 if run.label in claimed_so()]
        published = Published(dataset)
        rows = {run: row for run in {identify(run.config).id for run in read}
                if (row := published.table.row(run))}
        kept = {path.stem for path in (published.folder / "ranks").iterdir()}
        assert kept <= set(rows) and all(map(published.arrays, rows))  # newer ones are in packs
        for row in rows.values():
            assert len(ranks_of(row).i2t) == {"flickr8k": 1000, "scenes": 500}[dataset]
        for row in map(published.table.row, {identify(run.config).id for run in judged_arms(
                dataset, choose("10_explorers", "full"))}):
            assert len(judged_of(row)) > 5000


@pytest.fixture(scope="module")
def rows():
    arms = [ArmRun("a", SMALL), ArmRun("a", SMALL.with_(seed=1))]
    return train_arms(arms, workers=0)


def test_generated_runs_leave_the_same_in_the_store(rows):
    row = rows.to_dict("records")[0]
    texts = len(encoded_data(SMALL).splits["test"].image_of_text)
    kept = arrays(row["run"])
    assert kept["test_i2t_first"].shape == (10, 10) and kept["test_t2i_queries"].tolist() == list(
        range(texts))
    ranks, owner = ranks_of(row), encoded_data(SMALL).splits["test"].image_of_text
    for query, listed in zip(kept["test_t2i_queries"], kept["test_t2i_first"], strict=True):
        place = listed.tolist().index(owner[query]) + 1
        assert place <= ranks.t2i[query]


def test_published_arrays_come_before_the_store(rows, evidence):
    """In the order of the queries; only where none are published, the store is asked, or where
    what is asked for is not among them."""
    row = rows.to_dict("records")[0]
    kept = RunStore().result(row["run"]).arrays()
    assert {name: array.tolist() for name, array in arrays(row["run"]).items()} == {
        name: array.tolist() for name, array in kept.items()}
    other = kept | {name: np.where(kept[name] > 1, 100 + np.arange(len(kept[name])), 1)
                    for name in ("test_i2t", "test_t2i")}  # of the same R@1, which is checked
    publish(evidence, row, "epoch,loss\n7,0.5\n", **other)
    assert arrays(row["run"])["test_t2i"].tolist() == other["test_t2i"].tolist()
    assert other["test_t2i"].max() > 100 and kept["test_t2i"].max() <= 10
    assert curves(rows.iloc[:1])["epoch"].tolist() == [7]
    publish(evidence, row, **{name: other[name] for name in ("test_i2t", "test_t2i")})
    assert ranks_of(row).t2i.max() > 100 and arrays(
        row["run"], "test_t2i_first")["test_t2i_first"].max() < 10


def test_curves_have_a_line_per_epoch_and_know_their_arm(rows):
    found = curves(rows)
    assert list(zip(found.arm, found.seed, found.epoch, strict=True)) == [
        ("a", 0, 1), ("a", 0, 2), ("a", 1, 1), ("a", 1, 2)]
    last = found[found.seed == 1].iloc[int(rows.best_epoch[1]) - 1]
    assert last.dev_rsum == pytest.approx(rows.dev_rsum[1])


def test_a_run_that_failed_has_no_curve(rows):
    assert set(curves(rows.assign(status=["done", "failed"])).seed) == {0}


def test_a_collapse_is_read_off_the_curve_of_a_run(rows, evidence):
    """SMALL has the hinge of two directions at margin 0.2: 0.4 for equal scores."""
    real = rows.iloc[[0, 0, 0]].assign(dataset="flickr8k", run=list("abc"),
                                       status=["done", "done", "failed"]).reset_index(drop=True)
    for row, last in zip(real.to_dict("records"), (0.41, 0.37), strict=False):
        publish(evidence, row, f"epoch,score_std,topk\n1,0.2,0.5\n2,0.08,{last}\n")
    found = collapses(real)
    assert found[0].startswith("collapsed: in the last epoch the loss stands at 0.41, 0.4 being")
    assert found[1:].tolist() == ["", ""]
    assert collapses(rows).tolist() == ["", ""]  # generated data: from the store
    assert (endings(real)["flattened"] == "").all()


def test_a_run_whose_loss_asks_for_equal_scores_is_no_collapse_but_flat(rows, evidence):
    windows = RunConfig.model_validate_json(rows.config[0]).with_(objective=[TERMS["windows"]])
    real = rows.iloc[[0, 0]].assign(dataset="flickr8k", run=list("ab"), status="done",
                                    config=windows.model_dump_json()).reset_index(drop=True)
    for row, last in zip(real.to_dict("records"), (0.005, 0.05), strict=True):
        publish(evidence, row, f"epoch,score_std\n1,0.2\n2,{last}\n")
    found = endings(real)
    assert found["collapsed"].tolist() == ["", ""] and found["flattened"][1] == ""
    assert found["flattened"][0].startswith("in the last epoch the scores spread by 0.005, at")


@pytest.mark.evidence
def test_of_all_published_runs_only_those_are_accused_that_collapsed():
    """Every arm of every notebook; the ledger's arms among them are whole or not at all."""
    known = remembered("flickr8k")
    arms = {(run.label, identify(run.config).id)
            for notebook, (_, makers) in STUDIES.items() for make in makers
            for run in make("flickr8k", choose(notebook, "full"))
            if run.config.dataset == "flickr8k" and digest(data_part(run.config)) in known}
    table = Published("flickr8k").table.read()
    rows = pd.DataFrame([table[run] | {"arm": arm} for arm, run in sorted(arms) if run in table])
    ended = endings(rows)
    flat = rows.loc[ended["flattened"] != "", "arm"]
    # at several learning rates, and in the second base model
    assert set(flat.str.extract(r"^(?:clean_gru/)?([^@/]+)")[0]) == {"windows"}
    rows["accused"] = ended["collapsed"] != ""
    accused = rows.groupby("arm")["accused"].agg(["sum", "size"])
    assert len(accused) > 140
    both_ways = {"hardest": (3, 15), "top5": (3, 15)}  # 02 shows them collapsing, and sound
    assert {arm: (line["sum"], line["size"]) for arm, line in accused.iterrows() if line["sum"]} \
        == both_ways | {arm: (n, n) for arm, n in {
            "a tenth of the rate": 3, "hardest, rate=very_high": 5, "hardest@batch=512": 5,
            "hardest, noise=0.2": 5, "hardest, noise=0.4": 5, "top5, noise=0.4": 5,
            "vsepp+gru/hardest/0.0005": 1, "vsepp+gru/hardest/0.001": 1,
            "dvse/sigma=gradient": 3}.items()}  # of the last the loss has log sigma in it


def test_examples():
    failed, tried = doctest.testmod(results)
    assert tried and not failed
