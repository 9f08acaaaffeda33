"""What plans are made of: base configs at the size of a profile, terms by name, arms over seeds.

An arm is a label of the ledger with one run per seed; labels are explained in reported/README.md.
"""

import tomllib
from types import SimpleNamespace
from typing import Any, NamedTuple

from itr_study.configs import BASES, RunConfig, base

COSINES = {"labels": "sentence", "label_arguments": {"scale": "cosine"}}
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
    "windows": {"loss": "kendall_window"} | COSINES,  # SW-HS
    "kendall": {"loss": "kendall"} | COSINES,  # every pair that differs by more than alpha
    "ladder": {"loss": "ladder"} | COSINES,
    "sam": {"loss": "semantic_margin", "labels": "cider"},
}
SETTINGS = ("two_branch+fisher", "two_branch+sentence", "vsepp+gru", "vsepp+bigru-glove")
TABLE_IV = ("sum", "hardest", "top5")


class Arm(NamedTuple):
    """One run of the ledger: its label, and what is run."""

    label: str
    config: RunConfig


def base_config(dataset: str, name: str, knobs: SimpleNamespace, **changes: Any) -> RunConfig:
    """A base config at the size of the profile: `knobs.epochs` and, on generated data,
    `knobs.scenes`; 0 epochs and an empty `scenes` leave the base as it is."""
    sized: dict[str, Any] = {}
    if knobs.epochs:
        sized["settings.epochs"] = knobs.epochs
    if dataset == "scenes" and knobs.scenes:
        sized["data_options"] = dict(knobs.scenes)
    return base(dataset, name, **sized | changes)


def over_seeds(label: str, config: RunConfig, seeds: int) -> list[Arm]:
    """The same run for seeds 0 … seeds-1: arms share seeds, so that differences are paired."""
    return [Arm(label, config.with_(seed=seed)) for seed in range(seeds)]


def frozen_rates(dataset: str) -> dict[str, dict[str, float]]:
    """Learning rate by setting and loss, chosen on dev from the three of `rate_arms`."""
    return tomllib.loads((BASES / f"{dataset}.toml").read_text(encoding="utf-8"))["rates"]


def with_loss(dataset: str, name: str, knobs: SimpleNamespace, loss: str,
              rate: float) -> RunConfig:
    """A setting with one loss at a learning rate."""
    return base_config(dataset, name, knobs, **{
        "objective.0": TERMS[loss], "settings.learning_rate": rate})


def sum_of(start: RunConfig, *terms: str | dict[str, Any]) -> RunConfig:
    """The config with these terms, each of weight 1, as its objective: names of TERMS, or terms."""
    return start.with_(objective=[TERMS[term] if isinstance(term, str) else term
                                  for term in terms])
