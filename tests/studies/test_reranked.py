"""Re-ranked rows and the grid of scales as arms, against numbers worked by hand."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.measures import reranked_columns
from itr_study.files.atomic import write_json
from itr_study.lab.ledger.verdict import judge
from itr_study.lab.studies.nb08_reranking import (
    KEPT,
    MEASURED,
    METHODS,
    best_scales,
    kept_grid,
    scale_grid,
    scale_rows,
    tuned_scales,
    with_rerankers,
)
from itr_study.metrics import ranks
from itr_study.plots.published import NEEDED
from itr_study.rerank import RERANKERS

SCALES = [5.0, 10.0, 25.0]


def runs() -> pd.DataFrame:
    """Two runs with and one without what re-ranking gives."""
    known = {"dataset": "scenes", "model": "m", "status": "done", "seen": "", "data": "d"}
    rows = [{"arm": arm, "loss": arm, "seed": seed, "run": f"{arm}{seed}",
             "test_rsum": 200.0 + seed, "test_i2t_r1": 20.0, "dev_rsum": 190.0} | known
            for arm, seed in (("hardest", 0), ("hardest", 1), ("old", 0))]
    for row in rows[:2]:
        row |= {"test_fast_rsum": 220.0 + 3 * row["seed"], "test_fast_i2t_r1": 25.0,
                "test_i2t_hubness": 1.5, "test_fast_i2t_hubness": 0.5, "seconds_fast": 0.4,
                "test_fast_bank_rsum": 210.0, "test_reciprocal_rsum": 208.0,
                "seconds_reciprocal": 3.0, "test_multi_rsum": 207.0, "seconds_multi": 12.0}
    return pd.DataFrame(rows)


def test_each_re_ranker_is_an_arm_beside_the_run():
    rows = with_rerankers(runs()).set_index(["arm", "seed"])
    assert rows.index.is_unique and len(rows) == 3 + 4 * 2
    fast = rows.loc[("hardest@fast", 1)]
    assert fast[["test_rsum", "test_i2t_r1", "test_i2t_hubness"]].tolist() == [223, 25, 0.5]
    assert (fast["rerank_gain"], fast["rerank_seconds"]) == (22, 0.4) and np.isnan(fast["dev_rsum"])
    assert rows.loc[("hardest", 1), ["rerank_gain", "rerank_seconds"]].tolist() == [0, 0]
    assert np.isnan(rows.loc[("hardest@fast_bank", 0), "rerank_seconds"])  # its time is not taken
    assert fast[["run", "model", "loss", "reranker"]].tolist() == ["hardest1", "m", "hardest",
                                                                   "fast"]


def test_a_claim_about_a_gain_is_judged_by_them():
    claim = {"id": "x", "kind": "difference", "metric": "rerank_gain", "margin": "", "needs": ""}
    rows = with_rerankers(runs())
    twice = judge(claim | {"arm_a": "hardest@fast", "arm_b": "times(2|hardest@reciprocal)"}, rows)
    assert twice.parts[0].differences.tolist() == [20 - 2 * 8, 22 - 2 * 7]
    old = judge(claim | {"arm_a": "old@fast", "arm_b": "old"}, rows)
    assert old.outcome == "not tested" and "no runs of old@fast" in old.missing


def test_a_run_beside_its_own_re_ranking_is_of_one_rounding_and_names_its_rate():
    """Re-ranked rows once lost how they were trained: each was then older than its own run."""
    config = '{"settings": {"learning_rate": 0.002}}'
    rows = runs().assign(arithmetic=["fused", "", ""], config=config, collapsed="")
    every = with_rerankers(rows)
    arms = pd.concat([every, scale_rows(table(), every)], ignore_index=True)
    claim = {"id": "x", "kind": "difference", "margin": "", "needs": ""}
    for arm_a, arm_b in (("hardest@fast", "hardest"), ("hardest@fast", "hardest@multi"),
                         ("hardest@fast(1)", "hardest"),
                         ("hardest@fast(1)", "hardest@fast(2)")):
        verdict = judge(claim | {"arm_a": arm_a, "arm_b": arm_b, "metric": "test_i2t_r1"},
                        arms.assign(test_i2t_r1=arms["test_i2t_r1"].fillna(0.0)))
        assert verdict.mixed == 0 and verdict.rates == "learning rate 0.002"
    mixed = arms.replace({"hardest": "a", "hardest@fast": "b"}).assign(
        arithmetic=np.where(arms["arm"].eq("hardest"), "", arms["arithmetic"]))
    assert judge(claim | {"arm_a": "b", "arm_b": "a", "metric": "test_rsum"}, mixed).mixed == 1


def test_rows_that_were_not_re_ranked_stay_as_they_are():
    rows = with_rerankers(runs().drop(columns=[name for name in runs() if "fast" in name]))
    assert list(rows["arm"]) == ["hardest", "hardest", "old"]


def test_its_columns_are_those_that_an_evaluation_writes():
    written = {f"test_{name}" for name in reranked_columns("scenes", "test")}
    wanted = {name.replace("test_", f"test_{method}_") for method in METHODS for name in MEASURED}
    assert wanted <= written and not set(KEPT) & set(MEASURED)


def searcher(seed: int) -> SimpleNamespace:
    """What a Searcher has of a split of eight images with two texts each."""
    owner = np.repeat(np.arange(8), 2)
    scores = np.random.default_rng(seed).normal(size=(8, 16)).astype(np.float32) / 5
    scores[owner, np.arange(16)] += 0.3
    return SimpleNamespace(scores=scores, split=SimpleNamespace(image_of_text=owner))


def test_the_grid_is_r1_after_fr_at_every_pair_first_scale_before_second():
    splits = {"dev": searcher(1), "test": searcher(2)}
    grid = scale_grid(splits, SCALES).set_index(["direction", "first", "second"])
    assert len(grid) == 2 * 9
    for (first, second), (split, part) in product(product(SCALES, SCALES), splits.items()):
        after = RERANKERS["fast"](part.scores, first, second, first, second)
        best = ranks(after, part.split.image_of_text)
        for way in ("i2t", "t2i"):
            assert grid.loc[(way, first, second), f"{split}_r1"] == pytest.approx(
                100 * (best.by_direction(way) == 1).mean())
    assert grid["test_r1"].nunique() > 4  # pairs differ, so a swap of first and second is seen


def table() -> pd.DataFrame:
    """A grid by hand: on test first * 10 + second, on dev the negative of it."""
    cells = [(way, first, second, 0.0 - 10 * first - second, 10.0 * first + second)
             for way, first, second in product(("i2t", "t2i"), (1.0, 2.0, 3.0), (1.0, 2.0, 3.0))]
    grid = pd.DataFrame(cells, columns=["direction", "first", "second", "dev_r1", "test_r1"])
    grid.loc[grid["direction"] == "t2i", "test_r1"] += 100
    return grid.assign(arm="hardest", seed=0)


def test_regions_of_the_grid_are_arms():
    arms = scale_rows(table(), runs()).set_index("arm")
    i2t = arms["test_i2t_r1"].rename(lambda arm: arm.removeprefix("hardest@fast")).to_dict()
    assert i2t == pytest.approx({
        "(1)": 11, "(2)": 22, "(3)": 33, "(1=2)": 22, "(1>2)": (21 + 31 + 32) / 3,
        "(1<2)": (12 + 13 + 23) / 3, "(best 1=2)": 11, "(best 1>2)": 21, "(best 1<2)": 12,
        "(best)": 11})  # the best on dev, its value on test
    assert (arms["test_t2i_r1"] - arms["test_i2t_r1"] == 100).all()
    assert set(arms["run"]) == {"hardest0"} and set(arms["model"]) == {"m"}


def test_the_best_pair_is_that_of_the_mean_over_seeds_on_dev():
    grid = pd.concat([table(), table().assign(seed=1, dev_r1=table()["test_r1"] / 10)])
    best = best_scales(grid)
    assert best.loc["i2t", ["first", "second"]].tolist() == [1, 1]
    assert best.loc["i2t", "test_r1"] == 11


def test_a_kept_grid_serves_only_beside_the_rows_it_was_made_of(tmp_path):
    path = tmp_path / "photos" / "08_reranking__scales.csv"
    path.parent.mkdir()
    none = kept_grid(tmp_path, "photos", runs())
    assert none.empty and scale_rows(none, runs()).empty
    table().to_csv(path, index=False)
    write_json(path.with_suffix(".json"), dict.fromkeys(NEEDED, "") | {"run_ids": ["hardest0"]})
    assert len(kept_grid(tmp_path, "photos", runs())) == 18
    assert kept_grid(tmp_path, "scenes", runs()).empty
    assert kept_grid(tmp_path, "photos", runs().query("seed == 1")).empty


def test_a_model_chooses_its_scale_by_its_mean_on_dev():
    """Each direction for itself, of equals the smallest, and what lies at an end is said."""
    dev = {"i2t": {5.0: (1, 1), 10.0: (2, 4), 25.0: (5, 1)}, "t2i": {5.0: (1, 9), 10.0: (4, 4),
                                                                  25.0: (6, 6)}}
    curves = pd.DataFrame([
        {"arm": "sum", "seed": seed, "direction": way, "first": scale, "dev_r1": values[seed],
         "test_r1": 100 - values[seed], "spread": 0.1 + 0.2 * seed}
        for way, scales in dev.items() for scale, values in scales.items() for seed in (0, 1)])
    chosen = tuned_scales(curves).set_index("direction")
    assert chosen["first"].to_dict() == {"i2t": 10.0, "t2i": 25.0}
    assert chosen["at_edge"].to_dict() == {"i2t": False, "t2i": True}
    assert chosen["spread"].tolist() == pytest.approx([0.2, 0.2])
