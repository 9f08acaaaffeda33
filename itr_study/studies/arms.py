"""What plans are made of: base configs at the size of a profile, terms by name, arms over seeds.

An arm is a label of the ledger with one run per seed; labels are explained in
ledger/reported/README.md.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd

from itr_study.data import DATASETS
from itr_study.models import MODELS
from itr_study.runs.config import RunConfig
from itr_study.runs.sweeps import ended_row, sweep
from itr_study.studies.bases import base, frozen_rates
from itr_study.training.objective import SENTENCE_COSINES

# The losses of Table IV, "hardest" being ours: the paper compares the sum with top-5, which
# changes two things at once.
TERMS: dict[str, dict[str, Any]] = {
    "sum": {"loss": "triplet_sum"},
    "hardest": {"loss": "triplet_hardest"},
    "top5": {"loss": "topk", "arguments": {"k": 5}},
    "soft": {"loss": "triplet_soft"},
    "info_nce": {"loss": "info_nce"},
    "sigmoid": {"loss": "sigmoid"},
    "listwise": {"loss": "smooth_ndcg", "labels": "sentence"},
    "listnet": {"loss": "listnet", "labels": "sentence"},
    "approx_ndcg": {"loss": "approx_ndcg", "labels": "sentence"},
    "windows": {"loss": "kendall_window"} | SENTENCE_COSINES,  # SW-HS
    "kendall": {"loss": "kendall"} | SENTENCE_COSINES,  # every pair that differs by more than alpha
    "ladder": {"loss": "ladder"} | SENTENCE_COSINES,
    "sam": {"loss": "semantic_margin", "labels": "cider"},
}
TABLE_IV = ("sum", "hardest", "top5")


class ArmRun(NamedTuple):
    """One run of the ledger: its label, what is run, and the edition that its row must have at
    least (see `evaluation.measures`): 2 for what asks for re-ranking or the first ten results."""

    label: str
    config: RunConfig
    edition: int = 1


Maker = Callable[[str, SimpleNamespace], list[ArmRun]]  # of (dataset, parameters of a notebook)


def base_config(dataset: str, name: str, parameters: SimpleNamespace, **changes: Any) -> RunConfig:
    """A base config at the size of the profile: `parameters.epochs` and, on generated data,
    `parameters.scenes`; 0 epochs and an empty `scenes` leave the base as it is. On any data
    `parameters.data_options`, of which there are mostly none. A dev split no larger than the part
    of it that a base looks at is looked at whole."""
    sized: dict[str, Any] = {}
    if parameters.epochs:
        sized["settings.epochs"] = parameters.epochs
    scenes = parameters.scenes if DATASETS[dataset].generated else {}
    if options := scenes | parameters.data_options:
        sized["data_options"] = options
    config = base(dataset, name, **sized | changes)
    part, dev = config.settings.dev_images, config.data_options.get("dev")
    return config if dev is None or dev > part else config.with_(**{"settings.dev_images": 0})


def over_seeds(label: str, config: RunConfig, seeds: int) -> list[ArmRun]:
    """The same run for seeds 0 … seeds-1: arms share seeds, so that differences are paired."""
    return [ArmRun(label, config.with_(seed=seed)) for seed in range(seeds)]


def with_loss(dataset: str, name: str, parameters: SimpleNamespace, loss: str,
              rate: float) -> RunConfig:
    """A setting with one loss at a learning rate."""
    return base_config(dataset, name, parameters, **{
        "objective.0": TERMS[loss], "settings.learning_rate": rate})


def sum_of(start: RunConfig, *terms: str | dict[str, Any]) -> RunConfig:
    """The config with these terms, each of weight 1, as its objective: names of TERMS, or terms."""
    return start.with_(objective=[TERMS[term] if isinstance(term, str) else term
                                  for term in terms])


def in_one_model(dataset: str, parameters: SimpleNamespace, seeds: int,
                 objectives: Mapping[str, Sequence[str | dict[str, Any]]]) -> list[ArmRun]:
    """The sweeps' model with each of these objectives: label -> its terms, as in `sum_of`."""
    start = base_config(dataset, "two_branch", parameters)
    return [arm for label, terms in objectives.items()
            for arm in over_seeds(label, sum_of(start, *terms), seeds)]


def weighed(dataset: str, parameters: SimpleNamespace, first: str, second: str) -> list[ArmRun]:
    """Two terms, the second of each weight of `parameters.weights`: "soft+0.3×windows"."""
    return in_one_model(dataset, parameters, parameters.weight_seeds, {
        f"{first}+{weight:g}×{second}": (first, TERMS[second] | {"weight": float(weight)})
        for weight in parameters.weights})


def plugged_in(dataset: str, parameters: SimpleNamespace, settings: Sequence[str], seeds: int,
               label: str, terms: Sequence[str]) -> list[ArmRun]:
    """Every setting of Table IV with the hardest negative, and with other terms in its place.

    The learning rate is the one chosen for the hardest negative: the gain is no search's.
    """
    arms = []
    for name in settings:
        rate = frozen_rates(dataset)[name]["hardest"]
        alone = with_loss(dataset, name, parameters, "hardest", rate)
        arms += over_seeds(f"{name}/hardest", alone, seeds)
        arms += over_seeds(f"{name}/{label}", sum_of(alone, *terms), seeds)
    return arms


def train_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None, workers: int = 2,
               device: str = "auto", weights: bool = False) -> pd.DataFrame:
    """One row per arm and seed, trained where it is missing, with its label in `arm` and its
    model in words in `model`; with `weights` trained where the trained model is missing, too."""
    rows = sweep([arm.config for arm in arms], root=root, workers=workers, device=device,
                 edition=[arm.edition for arm in arms], weights=weights)
    return _named(rows, arms)


def ended_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None) -> pd.DataFrame:
    """The rows of those runs that have ended already, as `train_arms` has them; none is trained.
    """
    found = [(arm, ended_row(arm.config, root, arm.edition)) for arm in arms]
    kept = [(arm, row) for arm, row in found if row is not None]
    return _named(pd.DataFrame([row for _, row in kept]), [arm for arm, _ in kept])


def _named(rows: pd.DataFrame, arms: Sequence[ArmRun]) -> pd.DataFrame:
    words = [f"{MODELS[c.model].display_name} on {c.images}, {c.sentences or c.tokens}"
             for c in (arm.config for arm in arms)]
    return rows.assign(arm=[arm.label for arm in arms], model=words)
