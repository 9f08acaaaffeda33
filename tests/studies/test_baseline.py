"""CCA beside the losses: both its numbers are chosen on dev, and nothing of test is looked at."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.evaluate import evaluate
from itr_study.lab.studies import nb03_topk
from itr_study.lab.studies.nb03_topk import cca_baseline, cca_config
from itr_study.lab.studies.plans import choose
from itr_study.models.cca import fit_cca
from tests.models.test_cca import splits


def made(monkeypatch, least=2):
    monkeypatch.setattr(nb03_topk, "LEAST", least)
    return SimpleNamespace(splits=splits())


def test_the_best_on_dev_is_taken_and_judged_on_test(monkeypatch):
    data = made(monkeypatch)
    search, row = cca_baseline(data)
    assert set(search["size"]) == {2, 4, 6}
    assert set(search["regularisation"]) == set(nb03_topk.REGULARISATIONS)
    slow = {(size, r): evaluate(fit_cca(data.splits["train"], size, r),
                                data.splits["dev"]).table["rsum"]
            for size in (2, 4, 6) for r in nb03_topk.REGULARISATIONS}
    found = search.set_index(["size", "regularisation"])["dev_rsum"]
    pd.testing.assert_series_equal(found.sort_index(), pd.Series(slow).sort_index(),
                                   check_names=False)
    best = row.iloc[0]
    assert slow[best["size"], best["regularisation"]] == max(slow.values())
    judged = evaluate(fit_cca(data.splits["train"], best["size"], best["regularisation"]),
                      data.splits["test"]).table
    assert best["test_rsum"] == pytest.approx(judged["rsum"])
    assert best["test_t2i_r1"] == pytest.approx(judged["t2i_r1"])


def test_test_changes_nothing_of_the_choice(monkeypatch):
    data = made(monkeypatch)
    search, row = cca_baseline(data)
    test = data.splits["test"]
    data.splits["test"] = replace(test, sentences=np.roll(test.sentences, 5, axis=0))
    again, moved = cca_baseline(data)
    pd.testing.assert_frame_equal(search, again)
    chosen = ["size", "regularisation", "at_edge"]
    pd.testing.assert_frame_equal(row[chosen], moved[chosen])
    assert moved["test_rsum"].item() < row["test_rsum"].item()


@pytest.mark.parametrize(("least", "strengths", "edge"), [
    (6, (0.1,), True),
    (6, (1.0, 1e-9, 1e9), False),  # six are all directions, which is no end
    (4, (1e-9, 0.01, 1e9), True)])  # four are the fewest that are tried
def test_the_end_of_the_grid_is_told(monkeypatch, least, strengths, edge):
    data = made(monkeypatch, least)
    monkeypatch.setattr(nb03_topk, "REGULARISATIONS", strengths)
    row = cca_baseline(data)[1]
    assert row["size"].item() == least and row["at_edge"].item() is edge


def test_it_reads_what_the_papers_rows_read():
    for dataset, images in (("scenes", "detector"), ("flickr8k", "lite0:pooled:flip"),
                            ("flickr30k", "lite0:pooled:flip")):
        config = cca_config(dataset, choose("03_topk", "smoke"))
        assert config.images == images and config.sentences == "fisher"
