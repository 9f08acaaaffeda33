"""A run of a second on a small part of `scenes`, for tests of runs, rows, sweeps and workers."""

import dataclasses
import inspect

from itr_study.data import DATASETS
from itr_study.runs import data, run
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


def photos(monkeypatch) -> RunConfig:
    """SMALL on `scenes` under the name of a real data set, so that rows are committed."""
    scenes = DATASETS["scenes"]

    def load(root=None, **options):
        if root is None:
            raise ValueError("no data here")
        return dataclasses.replace(scenes.load(**options), name="photos")

    load.__signature__ = inspect.signature(scenes.load)
    monkeypatch.setitem(DATASETS, "photos", dataclasses.replace(
        scenes, name="photos", load=load, generated=False))
    monkeypatch.setattr(data, "_datasets", {})
    return SMALL.with_(dataset="photos")
