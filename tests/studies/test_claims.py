"""How the ledger is drawn: topics, units, shared luck."""

import doctest

import pandas as pd
import pytest

from itr_study.lab.ledger import verdict
from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.ledger.verdict import UNITS, units_of
from itr_study.lab.studies import nb12_claims as module
from itr_study.lab.studies.nb12_claims import TOPICS, shared_luck, topic_of


@pytest.mark.parametrize("where", [module, verdict])
def test_examples(where):
    failed, tried = doctest.testmod(where)
    assert tried and not failed


def test_no_two_metrics_share_a_unit_that_neither_has():
    """A metric without a unit of UNITS is never mixed with another."""
    metrics = {metric for cell in load_claims()["metric"] for metric in split_list(cell)}
    alone = [unit for unit in map(units_of, metrics) if unit not in UNITS.values()]
    assert len(alone) == len(set(alone)) < len(metrics) / 2
    assert units_of("minutes") == "minutes a run"
    assert units_of("test_rsum") != units_of("test_i2t_r1")


@pytest.mark.parametrize("id_, metric, arm, topic", [
    ("topk-fig6-rise", "test_i2t_r1", "k=2", "sweeps"),
    ("topk-fig6-rise", "test_i2t_r1", "clean_gru/k=3", "sweeps"),  # of the second base model
    ("topk-tab4-vsepp-gru", "test_i2t_r1", "vsepp+gru/top5", "settings"),
    ("listwise-tab5-both", "test_rsum", "hardest+listwise", "listwise_retrieval"),
    ("listwise-people", "test_human_expert_tau_c", "hardest+listwise", "listwise_graded"),
    ("listwise-fig6-trend", "ndcg_apart", "hardest", "listwise_training"),
    ("bcls-fig4-dev", "dev_rsum", "bcls", "bcls_retrieval"),
    ("bcls-fig5-alpha-tau", "test_i2t_tau_sentence", "alpha=0.2", "bcls_graded"),
    ("bcls-alpha-rule", "spread_coco5k", "labels(captions, pooled)", "labels"),
    ("dvse-tab4-seconds-rr", "rerank_cpu_seconds", "reciprocal", "dvse_time"),
    ("dvse-tab4-scalable", "rerank_cpu_growth", "multi", "dvse_time"),
    ("dvse-tab4-rr", "test_rsum", "hardest@reciprocal", "dvse_gain"),
    ("dvse-fr-bank", "test_rsum", "hardest@fast_bank", "dvse_models"),
    ("dvse-fig7-rise", "test_i2t_r1", "hardest@fast(20)", "dvse_scales"),
    ("dvse-fr-own", "test_rsum", "dvse/mask+var+ort@fast", "dvse_models"),
    ("dvse-tab5-se", "test_rsum", "dvse/heads", "dvse_parts"),
    ("dvse-fig8-i2t", "test_i2t_r1-test_t2i_r1", "step(bound=0|bound=1)", "dvse_sweeps"),
    ("dvse-tab6-best", "test_rsum", "K=6", "dvse_sweeps"),
    ("dvse-fig6-ort", "last_head_correlation", "dvse/heads", "dvse_training")])
def test_each_difference_has_its_picture(id_, metric, arm, topic):
    assert topic in TOPICS
    assert topic_of(pd.Series({"id": id_, "metric": metric, "arm_a": arm, "arm_b": "b"})) == topic


def test_what_falls_by_re_ranking_is_a_claim_about_fr_too():
    """Its first arm is not re-ranked, the second is."""
    assert topic_of(pd.Series({"id": "dvse-fr-hubs", "metric": "test_i2t_hubness",
                               "arm_a": "hardest", "arm_b": "hardest@fast"})) == "dvse_models"


def test_luck_that_arms_share_is_what_pairing_takes_away():
    """b is a moved up, c another's luck: of the pairs ab, ac, bc one cancels wholly."""
    luck, other = [-2.0, -1.0, 0.0, 1.0, 2.0], [1.0, -2.0, 0.0, 2.0, -1.0]  # uncorrelated
    rows = pd.DataFrame([{"arm": arm, "seed": seed, "test_rsum": value}
                         for arm, values in (("a", luck), ("b", [5 + v for v in luck]),
                                             ("c", other)) for seed, value in enumerate(values)])
    (found,) = shared_luck(rows, ["test_rsum"]).round(2).values.tolist()
    assert found == ["RSUM", 3, 5, 0.33, 66.67]
    assert shared_luck(rows[rows["seed"] < 4], ["test_rsum"]).empty
