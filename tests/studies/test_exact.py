"""Arms for claims about exact relevance: on scenes at its own size, every one that is named."""

from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import named_arms
from itr_study.lab.runs.published import keeps_rows
from itr_study.lab.studies.nb12_claims import exact_arms
from itr_study.lab.studies.plans import choose


def test_every_arm_that_a_claim_about_exact_relevance_names_is_trained_once_a_seed():
    runs = exact_arms("flickr8k", choose("12_claims", "full"))
    named = {arm for claim in load_claims().to_dict("records") if "_exact" in claim["metric"]
             for arm in named_arms(claim["arm_a"], claim["arm_b"])}
    assert {run.label for run in runs} == named and "hardest+listwise(exact)" in named
    assert sorted((run.label, run.config.seed) for run in runs) == [
        (arm, seed) for arm in sorted(named) for seed in range(10)]
    assert {run.config.dataset for run in runs} == {"scenes"}
    assert all(keeps_rows(run.config) for run in runs)


def test_options_of_the_data_that_is_looked_at_are_not_those_of_scenes():
    parameters = choose("12_claims", "full", dataset="flickr8k", exact_seeds=1,
                        data_options={"skip_bad": True})
    assert all(run.config.data_options == {} for run in exact_arms("flickr8k", parameters))
    assert len(exact_arms("flickr8k", parameters)) == 15
    assert exact_arms("flickr8k", parameters.model_copy(update={"exact_seeds": 0})) == []


def test_generated_data_needs_none():
    assert exact_arms("scenes", choose("12_claims", "quick")) == []
