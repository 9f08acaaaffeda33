"""A run of a second on a small part of `scenes`, for tests of runs, rows, sweeps and workers."""

from itr_study.runs import run
from itr_study.runs.config import RunConfig

SMALL = RunConfig.model_validate({
    "dataset": "scenes", "data_options": {"train": 24, "dev": 10, "test": 10},
    "images": "detector", "sentences": "glove-mean", "model": "two_branch",
    "model_arguments": {"size": 8, "hidden": 16},
    "objective": [{"loss": "topk", "arguments": {"k": 1}}],
    "settings": {"epochs": 2, "batch_size": 32}})


def count_trainings(monkeypatch) -> list:
    """A list that grows by one with every training."""
    trained, real = [], run.fit

    def fit(*arguments, **named):
        trained.append(named["seed"])
        return real(*arguments, **named)

    monkeypatch.setattr(run, "fit", fit)
    return trained
