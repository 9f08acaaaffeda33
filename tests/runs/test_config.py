"""Configs: what is refused, and how they are changed."""

import pytest
from pydantic import ValidationError

from itr_study.lab.runs.config import RunConfig
from tests.small_runs import SMALL


def refused(**changes):
    with pytest.raises(ValueError) as caught:
        SMALL.with_(**changes)
    return str(caught.value)


def test_wrong_configs_are_refused_with_the_names_there_are():
    assert "did you mean 'learning_rate'" in refused(**{"settings.learing_rate": 0.1})
    assert "got 'sed'; did you mean 'seed'" in refused(sed=1)
    assert ("argument of model 'two_branch' must be one of size, hidden"
            in refused(**{"model_arguments.sizes": 3}))
    assert ("argument of loss 'topk' must be one of margin, k"
            in refused(**{"objective.0.arguments.kk": 3}))
    assert "k must be an integer >= 1" in refused(**{"objective.0.arguments.k": 0})
    assert "dataset must be one of scenes" in refused(dataset="flickr9k")
    assert "at '1' there is 0 to 0" in refused(**{"objective.1.weight": 2.0})
    assert "there is nothing" in refused(**{"seed.x": 2})
    assert "valid integer" in refused(seed="1")
    assert "less than 9223372036854775808" in refused(seed=10**20)
    assert "batch_size must be at least 2, got 1: " in refused(**{"settings.batch_size": 1})
    assert ("thresholds must be a list of numbers, got 0.5"
            in refused(**{"objective.0": {"loss": "ladder", "labels": "sentence",
                                          "label_arguments": {"scale": "cosine"},
                                          "arguments": {"thresholds": 0.5}}}))
    assert "go together" in refused(**{"settings.warmup_epochs": 1})
    assert "settings: warmup_epochs must be less than the number of epochs, got 9 of " in refused(
        **{"settings.warmup_epochs": 9, "warmup_objective": [{"loss": "triplet_sum"}]})
    assert ("settings: average must be at most the number of epochs, got 99 of "
            in refused(**{"settings.average": 99}))
    with pytest.raises(ValidationError, match="frozen"):
        SMALL.seed = 3


def test_the_first_line_says_what_is_wrong_and_nothing_else_is_added():
    """A table of notebooks shows "why" by one line; a second complaint was false."""
    assert refused(**{"objective.0.weight": -1}) == (
        "objective.0.weight must be greater than or equal to 0, got -1")
    assert refused(**{"objective.0.arguments.margin": -0.1}) == "margin must be >= 0, got -0.1"
    assert refused(objective=[]).startswith("objective must have a term, such as ")
    with pytest.raises(ValidationError, match="must have a term"):
        RunConfig(dataset="scenes", images="detector", model="two_branch", objective=())


def test_changes_reach_inside_and_leave_the_original_alone():
    changed = SMALL.with_(**{"objective.0.arguments.k": 3, "settings.learning_rate": 0.1,
                             "seed": 7})
    assert changed.objective[0].arguments["k"] == 3 and changed.seed == 7
    assert changed.settings.learning_rate == 0.1
    assert SMALL.seed == 0 and SMALL.objective[0].arguments == {"k": 1}
    assert RunConfig.model_validate_json(changed.model_dump_json()) == changed
