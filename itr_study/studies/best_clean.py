"""The ladder from `clean_gru` up to `best_clean`, the best single model without a leak: what each
step is worth on dev, one at a time.

Trained with the hardest negative alone, the better of the two losses on the upper rungs of
`ladder`, where the mean of weights was tried, too. No rate here was searched but that of the
start: each rung keeps it, and a network that is fine-tuned has a hundredth of it. Regions of two
networks, 7 x 7 and 9 x 9, cannot be joined along D, so that rungs with a grid or a network that is
trained have one network. There all cells of an image lack the same features, as their mean does
below: else more would change. Those rungs and ten crops are dear, with what they stand on: a step
over 81 cells costs 7 to 12 times as much as over their mean, and a run that trains the last stages
takes 40 minutes of a core, of the bigger network 66.
"""

from collections.abc import Sequence
from types import SimpleNamespace

import pandas as pd

from itr_study.runs.config import RunConfig
from itr_study.studies.arms import ArmRun, over_seeds, sum_of, with_loss
from itr_study.studies.bases import base_tables, rate_in
from itr_study.studies.ladder import Ladder, Rung, rung_config, worth

LOSS = "hardest"
TRAINED = {"settings.learning_rate_factors": {"network": 0.01}}  # a first guess
ALIKE = {"model_arguments.dropout_alike": True}
PHOTOGRAPHS = Ladder("clean_gru", {
    "clean_gru": Rung("", {}),
    "batches of 64": Rung("clean_gru", {"settings.batch_size": 64}),
    "half as long again": Rung("batches of 64", {"settings.epochs": 36,
                                                 "settings.warmup_epochs": 15}),
    "a third network": Rung("half as long again", {
        "images": "lite0:pooled:flip+lite1:pooled:flip+lite2:pooled:flip"}),
    "wider embedding": Rung("clean_gru", {"model_arguments.size": 512}, dear=True),
    "smaller network alone": Rung("clean_gru", {"images": "lite0:pooled:one"}, dear=True),
    "bigger network alone": Rung("clean_gru", {"images": "lite2:pooled:one"}, dear=True),
    "ten crops": Rung("smaller network alone", {"images": "lite0:pooled:ten"}, dear=True),
    "learnt pool of its grid": Rung("smaller network alone", {
        "images": "lite0:grid:one", "model_arguments.pool": "gpo"} | ALIKE, dear=True),
    "cells dropped": Rung("learnt pool of its grid", {"model_arguments.region_dropout": 0.2},
                          dear=True),
    "last stages trained": Rung("smaller network alone", {
        "images": "lite0:stage7:one"} | ALIKE | TRAINED, dear=True),
    "last stages, mirrored": Rung("last stages trained", {"images": "lite0:stage7:flip"},
                                  dear=True),
    "bigger's last stages": Rung("bigger network alone", {
        "images": "lite2:stage7:one"} | ALIKE | TRAINED, dear=True),
}, "a third network")
SCENES = Ladder("vsepp+gru", {
    "vsepp+gru": Rung("", {}),
    "mean of weights": Rung("vsepp+gru", {"settings.average": 3}),
    "wider embedding": Rung("vsepp+gru", {"model_arguments.size": 256}),
    "learnt pool": Rung("vsepp+gru", {"model_arguments.pool": "gpo"}),
    "regions dropped": Rung("learnt pool", {"model_arguments.region_dropout": 0.2}),
}, "vsepp+gru")
LADDERS = {"flickr8k": PHOTOGRAPHS, "scenes": SCENES}
# Whose scores are added to those of the best rung: the base FISHER, and all runs of both.
FISHER = "two_branch+fisher"
TOGETHER, ALL = "best_clean and Two-branch (Fisher)", "all runs of both"


def best_clean_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every rung, and the base FISHER, as "rung/hardest", over `parameters.best_clean_seeds` seeds,
    of dear rungs `parameters.dear_seeds`; none where these are 0, or on data without a ladder."""
    if dataset not in LADDERS or not parameters.best_clean_seeds:
        return []
    seeds = {name: parameters.dear_seeds if rung.dear else parameters.best_clean_seeds
             for name, rung in LADDERS[dataset].rungs.items()}
    return [arm for name, count in (seeds | {FISHER: parameters.best_clean_seeds}).items()
            for arm in over_seeds(f"{name}/{LOSS}", best_clean_config(dataset, name, parameters),
                                  count)]


def best_clean_config(dataset: str, name: str, parameters: SimpleNamespace) -> RunConfig:
    """A rung, or FISHER, at the rate that was searched for LOSS, seed 0."""
    if name == FISHER:
        usual = base_tables(dataset)[FISHER]["settings"]["learning_rate"]
        return with_loss(dataset, FISHER, parameters, LOSS, rate_in(dataset, FISHER, LOSS, usual))
    ladder = LADDERS[dataset]
    config = rung_config(dataset, name, parameters, ladder)
    rate = rate_in(dataset, ladder.start, LOSS, config.settings.learning_rate)
    return sum_of(config, LOSS).with_(**{"settings.learning_rate": rate})


def best_arm(dataset: str) -> str:
    """The arm of the rung that is taken."""
    return f"{LADDERS[dataset].best}/{LOSS}"


def steps(dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What each rung adds on dev, as `ladder.worth` has it; rows: of `best_clean_arms`."""
    return worth(rows, LADDERS[dataset].rungs)


def put_together(dataset: str, runs: Sequence[ArmRun]) -> dict[tuple[str, int], tuple[ArmRun, ...]]:
    """Which runs make one model, (label, seed) -> its members, as `ensembles.ensemble_rows` takes
    them: TOGETHER of the best rung and of FISHER at each seed, ALL of all runs of both."""
    best, fisher = ([run for run in runs if run.label == label]
                    for label in (best_arm(dataset), f"{FISHER}/{LOSS}"))
    pairs = {(TOGETHER, one.config.seed): (one, other)
             for one, other in zip(best, fisher, strict=True)}
    return pairs | {(ALL, 0): (*best, *fisher)} if len(best) > 1 else pairs


def why_none(dataset: str, parameters: SimpleNamespace) -> str:
    """Why no rung is trained here, and how one trains them; a line for people."""
    if dataset not in LADDERS:
        return f"{dataset} has no such ladder; there is one of {' and '.join(LADDERS)}"
    dear = [rung.dear for rung in LADDERS[dataset].rungs.values()]
    more = f", with dear_seeds = 1 {sum(dear)} others, too" * any(dear)
    return (f"nothing of this ladder is trained: best_clean_seeds is {parameters.best_clean_seeds}."
            f" With 1 it trains {len(dear) - sum(dear)} rungs and {FISHER}{more}")
