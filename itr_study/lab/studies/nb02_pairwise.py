"""The arms of notebooks 00 and 02: one pairwise loss against another."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import (
    TERMS,
    ArmRun,
    base_config,
    in_one_model,
    over_seeds,
    sum_of,
    swept,
)
from itr_study.lab.studies.parameters import Names, Parameters, by_profile, like
from itr_study.losses import LOSSES

# The ladder to the model `clean_gru`: what each step adds on dev, one at a time. `best_clean`
# (notebook 09) goes on from there. A run must take at most six minutes on one core, so that no rung
# has regions: 9 x 9 vectors an image make a step 7 times as long.

START = "ladder_start"  # the base that the lowest rung is
LADDER_LOSSES = ("sum", "hardest")  # the steps are chosen for both


class Rung(NamedTuple):
    """One step from the rung `below` it ("": the base that the ladder starts from).

    `changes` are fields of the config with their new values; a `dear` one has its own number of
    seeds.
    """

    below: str
    changes: Mapping[str, Any]
    dear: bool = False


RUNGS: dict[str, Rung] = {
    "first guess": Rung("", {}),
    "learnt word vectors": Rung("first guess", {"tokens": "words"}),
    "GRU in both directions": Rung("first guess", {"model_arguments.text": "bigru"}),
    "GRU of 512 numbers": Rung("first guess", {"model_arguments.text_size": 512,
                                        "model_arguments.hidden_dropout": 0.5}),
    "hidden image layer": Rung("first guess", {"model_arguments.image_hidden": 1024,
                                         "model_arguments.hidden_dropout": 0.5}),
    "20 % of words dropped": Rung("first guess", {"model_arguments.word_dropout": 0.2}),
    "more dropout": Rung("first guess", {"model_arguments.dropout": 0.4,
                                         "model_arguments.image_dropout": 0.5}),
    "mean of 3 epochs' weights": Rung("first guess", {"settings.average": 3}),
    "one image network": Rung("first guess", {"images": "lite2:pooled:flip"}),
    "twice as long": Rung("first guess", {"settings.epochs": 24, "settings.warmup_epochs": 10}),
    "three times as long": Rung("twice as long", {"settings.epochs": 36,
                                                  "settings.warmup_epochs": 15}),
    "batches of 256": Rung("first guess", {"settings.batch_size": 256}),
    "batches of 64": Rung("first guess", {"settings.batch_size": 64}),
    "batches of 32": Rung("first guess", {"settings.batch_size": 32}),
    "both directions, batches of 64": Rung("batches of 64", {"model_arguments.text": "bigru"}),
}


class Ladder(NamedTuple):
    """Steps from a base to a better one, each before those built on it; `best` is taken."""

    start: str
    rungs: Mapping[str, Rung]
    best: str


LADDER = Ladder(START, RUNGS, "twice as long")


def ladder_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return every rung with both losses: "rung/loss"."""
    networks = ":" in base_config(dataset, START, parameters).images  # not features of the data
    return [arm for name, rung in RUNGS.items() if networks or "images" not in rung.changes
            for loss in LADDER_LOSSES for arm in over_seeds(
        f"{name}/{loss}", sum_of(rung_config(dataset, name, parameters), loss),
        parameters.ladder_seeds, loss=loss)]


def worth(rows: pd.DataFrame, rungs: Mapping[str, Rung] = RUNGS) -> pd.DataFrame:
    """Compute what each rung adds on dev to the rung below it, seed by seed.

    Of rows of `ladder_arms` with dev_rsum and minutes, a line per loss and rung, in their order:
    group (the loss), label (the rung), difference (mean over seeds), low, high (the smallest and
    the largest of them: no interval), n, dev_rsum, minutes (means).
    """
    of = {arm: part.set_index("seed") for arm, part in rows.groupby("arm")}
    records = []
    for loss in LADDER_LOSSES:
        for name, rung in rungs.items():
            here, below = of.get(f"{name}/{loss}"), of.get(f"{rung.below}/{loss}")
            if here is None or below is None:
                continue
            gains = (here["dev_rsum"] - below["dev_rsum"]).dropna()
            records.append((loss, name, gains.mean(), gains.min(), gains.max(), len(gains),
                            here["dev_rsum"].mean(), here["minutes"].mean()))
    return pd.DataFrame(records, columns=["group", "label", "difference", "low", "high", "n",
                                          "dev_rsum", "minutes"])


def rung_config(dataset: str, name: str, parameters: Parameters,
                ladder: Ladder = LADDER) -> RunConfig:
    """Return the config of a rung: the base with its changes and those of all below it."""
    rung = ladder.rungs[name]
    start = (rung_config(dataset, rung.below, parameters, ladder) if rung.below else
             base_config(dataset, ladder.start, parameters))
    changes = dict(rung.changes)
    if "settings.average" in changes:  # a profile of fewer epochs has fewer weights
        changes["settings.average"] = min(changes["settings.average"], start.settings.epochs)
    return start.with_(**changes)


class StartParameters(Parameters, title="00_start_here"):
    """Parameters of notebook 00."""


class PairwiseParameters(Parameters, title="02_pairwise_losses"):
    """Parameters of notebook 02."""

    epochs: NonNegativeInt = like(Parameters, "epochs", smoke=2)
    seeds: PositiveInt = by_profile("runs of each loss in the comparison", 1, 5, 12)
    losses: Names = by_profile("losses compared", *3 * [
        ["sum", "hardest", "soft", "top5", "info_nce", "sigmoid"]], among=TERMS)
    margins: list[NonNegativeFloat] = by_profile(
        "margins of the hardest negative, units of score (cosine)",
        [0.1, 0.2], [0.05, 0.1, 0.2, 0.4], [0.05, 0.1, 0.2, 0.4, 0.8])
    margin_seeds: PositiveInt = by_profile("runs of each margin", 1, 5, 3)
    sibling_seeds: PositiveInt = by_profile(
        "runs with and without false negatives of the same image", 1, 5, 3)
    collapse_seeds: PositiveInt = by_profile("runs of the collapse and of each remedy", 1, 5, 3)
    ladder_seeds: NonNegativeInt = by_profile("runs of each rung, 0: none", 0, 0, 2)


def loss_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return each pairwise loss in the sweeps' model."""
    return in_one_model(dataset, parameters, parameters.seeds,
                        {loss: (loss,) for loss in parameters.losses})


def margin_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return margins of the hardest negative; the runs of the default are those of "hardest"."""
    default = LOSSES["triplet_hardest"]().margin
    return swept(dataset, parameters, parameters.margin_seeds, "margin", parameters.margins,
                 lambda margin: (TERMS["hardest"] | (
                     {} if margin == default else {"arguments": {"margin": margin}}),))


def sibling_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return other captions of the same image as matches (the default) or as negatives."""
    start = base_config(dataset, "two_branch", parameters)
    ways = {"positive": {}, "negative": {"label_arguments": {"same_image": "negative"}}}
    return [arm for loss in ("sum", "hardest") for same, change in ways.items()
            for arm in over_seeds(f"{loss}, siblings {same}", start.with_(
                **{"objective.0": TERMS[loss] | change}), parameters.sibling_seeds, loss=loss)]


def collapse_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return the hardest negative from scratch at a high learning rate, and its remedies."""
    start = base_config(dataset, "collapse", parameters)
    warm = {"objective.0": TERMS["hardest"], "warmup_objective": [TERMS["sum"]],
            "settings.warmup_epochs": 1}
    slow = {"objective.0": TERMS["hardest"],
            "settings.learning_rate": start.settings.learning_rate / 10}
    changes = {"hardest": {"objective.0": TERMS["hardest"]}, "one epoch of sum first": warm,
               "a tenth of the rate": slow, "soft": {"objective.0": TERMS["soft"]},
               "top5": {"objective.0": TERMS["top5"]}}
    return [arm for label, change in changes.items()
            for arm in over_seeds(label, start.with_(**change), parameters.collapse_seeds)]


def first_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return one model of notebook 00, trained in about a minute."""
    return over_seeds("first", base_config(dataset, "first", parameters), 1)


ARMS = (loss_arms, margin_arms, sibling_arms, collapse_arms, ladder_arms)
