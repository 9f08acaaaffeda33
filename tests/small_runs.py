"""A run of a second on a small part of `scenes`, for tests of runs, rows, sweeps and workers."""

import dataclasses
import inspect
import io
from collections.abc import Collection

import numpy as np

from itr_study.data import DATASETS
from itr_study.evaluation.evaluate import columns
from itr_study.files.atomic import read_json, write_atomic, write_json
from itr_study.files.sealed import seal
from itr_study.lab.runs import data, run
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.rows import make_row
from itr_study.lab.runs.store import RunResult

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


def row_of(config: RunConfig, root: str | None = None, needs: Collection[str] = ()) -> dict:
    """The row of a run, which is trained in this process where it has not ended."""
    identified = identify(config, root)
    return run.ended(identified, needs) or make_row(
        identified, run.execute(identified, root, needs=needs))


def without_asked(result: RunResult) -> None:
    """Make the folder of a finished run that of an older one, which lacks the measures that are
    `asked` and all arrays but ranks."""
    values = read_json(result.folder / "result.json")
    for split, table in values["tables"].items():
        known = columns(result.config["dataset"], split, needs=())
        values["tables"][split] = {name: table[name] for name in known}
    write_json(result.folder / "result.json", values)
    buffer = io.BytesIO()
    ranks = ("dev_i2t", "dev_t2i", "test_i2t", "test_t2i")
    np.savez_compressed(buffer, **{name: result.arrays()[name] for name in ranks})
    write_atomic(result.folder / "ranks.npz", buffer.getvalue())
    facts = {name: fact for name, fact in result.facts.items() if name != "costs"}
    seal(result.folder, but=("status.json",), **facts)


def photos(monkeypatch) -> RunConfig:
    """SMALL on `scenes` under the name of a real data set, so that its runs may be published."""
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
