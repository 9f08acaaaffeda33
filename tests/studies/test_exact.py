"""Arms for claims about exact relevance: on scenes at its own size, every one that is named."""

from itr_study.ledger.judge import asks_exact, named_arms
from itr_study.ledger.reported import load_claims
from itr_study.runs.committed import keeps_rows
from itr_study.studies.exact import exact_arms
from itr_study.studies.profiles import choose


def test_every_arm_that_a_claim_about_exact_relevance_names_is_trained_once_a_seed():
    runs = exact_arms("flickr8k", choose("12_claims", "full"))
    named = {arm for claim in load_claims().to_dict("records") if asks_exact(claim)
             for arm in named_arms(claim["arm_a"], claim["arm_b"])}
    assert {run.label for run in runs} == named and "hardest+listwise(exact)" in named
    assert sorted((run.label, run.config.seed) for run in runs) == [
        (arm, seed) for arm in sorted(named) for seed in range(10)]
    assert {run.config.dataset for run in runs} == {"scenes"}
    assert all(keeps_rows(run.config) for run in runs)


def test_generated_data_needs_none():
    assert exact_arms("scenes", choose("12_claims", "quick")) == []
