"""What tests of rows share."""

import dataclasses
import inspect

import pytest

from itr_study.data import DATASETS
from itr_study.runs import data
from itr_study.runs.config import RunConfig
from tests.small_runs import SMALL


@pytest.fixture
def real(monkeypatch) -> RunConfig:
    """`scenes` under the name of a real data set, so that rows are committed."""
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
