"""The ladder from `clean_gru` up to `best_clean`, the best single model without a leak: what each
step is worth on dev, one at a time.

No rate here was searched but those of the start: each rung keeps the rate of its loss there, and a
network that is fine-tuned has a hundredth of it. Regions of two networks, 7 x 7 and 9 x 9, cannot
be joined along D, so that rungs with a grid or a network that is trained have one network. There
all cells of an image lack the same features, as their mean does below: else more would change.
Grids are those of the smaller network, and a network is trained with the hardest negative alone,
for both are dear: a step over the 81 cells of the bigger network costs 7 to 12 times as much as
over their mean, and a run that trains the last stages takes 40 minutes of a core, of the bigger one
66.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pandas as pd

from itr_study.evaluation.ensemble import ensemble
from itr_study.evaluation.search import Searcher
from itr_study.runs.config import RunConfig
from itr_study.studies.arms import ArmRun, over_seeds, sum_of, with_loss
from itr_study.studies.bases import base_tables, rate_in
from itr_study.studies.ladder import LOSSES, Ladder, Rung, rung_config, worth

TRAINED = {"settings.learning_rate_factors": {"network": 0.01}}  # a first guess
ALIKE = {"model_arguments.dropout_alike": True}
DEAR = ("hardest",)  # the losses of a rung that takes most of an hour
PHOTOGRAPHS = Ladder("clean_gru", {
    "clean_gru": Rung("", {}),
    "mean of weights": Rung("clean_gru", {"settings.average": 3}),
    "wider embedding": Rung("clean_gru", {"model_arguments.size": 512}),
    "smaller network alone": Rung("clean_gru", {"images": "lite0:pooled:one"}),
    "bigger network alone": Rung("clean_gru", {"images": "lite2:pooled:one"}),
    "ten crops": Rung("smaller network alone", {"images": "lite0:pooled:ten"}),
    "learnt pool of its grid": Rung("smaller network alone", {
        "images": "lite0:grid:one", "model_arguments.pool": "gpo"} | ALIKE),
    "cells dropped": Rung("learnt pool of its grid", {"model_arguments.region_dropout": 0.2}),
    "last stages trained": Rung("smaller network alone", {
        "images": "lite0:stage7:one"} | ALIKE | TRAINED, DEAR),
    "last stages, mirrored": Rung("last stages trained", {"images": "lite0:stage7:flip"}, DEAR),
    "bigger's last stages": Rung("bigger network alone", {
        "images": "lite2:stage7:one"} | ALIKE | TRAINED, DEAR),
})
SCENES = Ladder("vsepp+gru", {
    "vsepp+gru": Rung("", {}),
    "mean of weights": Rung("vsepp+gru", {"settings.average": 3}),
    "wider embedding": Rung("vsepp+gru", {"model_arguments.size": 256}),
    "learnt pool": Rung("vsepp+gru", {"model_arguments.pool": "gpo"}),
    "regions dropped": Rung("learnt pool", {"model_arguments.region_dropout": 0.2}),
})
LADDERS = {"flickr8k": PHOTOGRAPHS, "scenes": SCENES}
# A rung that trains nothing of its own: the mean of the scores of the start and of this base.
FISHER, TOGETHER = "two_branch+fisher", "with Fisher vectors"


def best_clean_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every rung, and the base FISHER, with each of its losses, as "rung/loss", over
    `parameters.best_clean_seeds` seeds; none where these are 0, or on data without a ladder."""
    if dataset not in LADDERS or not parameters.best_clean_seeds:
        return []
    tried = {name: rung.losses for name, rung in LADDERS[dataset].rungs.items()} | {FISHER: LOSSES}
    configs = {f"{name}/{loss}": best_clean_config(dataset, name, parameters, loss)
               for name, losses in tried.items() for loss in losses}
    return [arm for label, config in configs.items()
            for arm in over_seeds(label, config, parameters.best_clean_seeds)]


def best_clean_config(dataset: str, name: str, parameters: SimpleNamespace,
                      loss: str) -> RunConfig:
    """A rung, or FISHER, with a loss at the rate that was searched for it, seed 0."""
    if name == FISHER:
        usual = base_tables(dataset)[FISHER]["settings"]["learning_rate"]
        return with_loss(dataset, FISHER, parameters, loss, rate_in(dataset, FISHER, loss, usual))
    ladder = LADDERS[dataset]
    config = rung_config(dataset, name, parameters, ladder)
    rate = rate_in(dataset, ladder.start, loss, config.settings.learning_rate)
    return sum_of(config, loss).with_(**{"settings.learning_rate": rate})


def steps(dataset: str, rows: pd.DataFrame, runs: Sequence[ArmRun],
          searcher: Callable[[ArmRun, str], Searcher]) -> pd.DataFrame:
    """What each rung adds on dev, that of two models included, as `ladder.worth` has it.

    Args:    rows: of `runs`, those of `best_clean_arms`; searcher: as `Study.searcher`.
    """
    both = together_rows(dataset, rows, runs, searcher)
    ladder = LADDERS[dataset]
    return worth(pd.concat([rows[[*both.columns]], both], ignore_index=True),
                 {**ladder.rungs, TOGETHER: Rung(ladder.start, {})})


def together_rows(dataset: str, rows: pd.DataFrame, runs: Sequence[ArmRun],
                  searcher: Callable[[ArmRun, str], Searcher]) -> pd.DataFrame:
    """The rung TOGETHER as rows beside those of its members: arm, seed, dev_rsum, and the minutes
    of both. A pair of which one has no row is left out. Args: as `steps`.
    """
    found = rows.set_index(["arm", "seed"])
    known = {(run.label, run.config.seed): run for run in runs}
    start, records = LADDERS[dataset].start, []
    for loss, seed in ((loss, run.config.seed) for loss in LOSSES for run in runs
                       if run.label == f"{start}/{loss}"):
        pair = [(f"{start}/{loss}", seed), (f"{FISHER}/{loss}", seed)]
        if not set(pair) <= set(found.index):
            continue
        members = {label: searcher(known[label, seed], "dev") for label, _ in pair}
        records.append({"arm": f"{TOGETHER}/{loss}", "seed": seed,
                        "dev_rsum": ensemble(members, measures=False).table["rsum"],
                        "minutes": sum(found.loc[key, "minutes"] for key in pair)})
    return pd.DataFrame(records, columns=["arm", "seed", "dev_rsum", "minutes"])


def why_none(dataset: str, parameters: SimpleNamespace) -> str:
    """Why no rung is trained here, and how one trains them; a line for people."""
    if dataset not in LADDERS:
        return f"{dataset} has no such ladder; there is one of {' and '.join(LADDERS)}"
    ladder, seeds = LADDERS[dataset], parameters.best_clean_seeds
    return (f"nothing of this ladder is trained: best_clean_seeds is {seeds}. With 1 it trains "
            f"{len(ladder.rungs)} rungs and {FISHER}, with {' and '.join(LOSSES)} or, where it is "
            f"dear, with {' and '.join(DEAR)}")
