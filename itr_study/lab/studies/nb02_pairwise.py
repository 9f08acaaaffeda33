"""The arms of notebooks 00 and 02: one pairwise loss against another."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd

from itr_study.digits import counted
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import TERMS, ArmRun, base_config, in_one_model, over_seeds, sum_of
from itr_study.losses import LOSSES

# The ladder to the second judge, `clean_gru`: what each step is worth on dev, one at a time.
#
# `best_clean` climbs on from there with what stands here. It has nothing to do with the ladder
# loss. A run must not take longer than six minutes on one core: regions of a grid, 9 x 9 vectors
# an image, make a step 7 times as long as their mean does, 12 with a learnt pool, so that no rung
# has them.

START = "ladder_start"  # the base that the lowest rung is
LADDER_LOSSES = ("sum", "hardest")  # the steps are chosen for both alike


class Rung(NamedTuple):
    """One step from the rung below it, "" is the base that the ladder starts from, and whether it
    is dear: such rungs have a number of seeds of their own."""

    below: str
    changes: Mapping[str, Any]
    dear: bool = False


RUNGS: dict[str, Rung] = {
    "first guess": Rung("", {}),
    "own words": Rung("first guess", {"tokens": "words"}),
    "both ways": Rung("first guess", {"model_arguments.text": "bigru"}),
    "wider state": Rung("first guess", {"model_arguments.text_size": 512,
                                        "model_arguments.hidden_dropout": 0.5}),
    "hidden layer": Rung("first guess", {"model_arguments.image_hidden": 1024,
                                         "model_arguments.hidden_dropout": 0.5}),
    "words dropped": Rung("first guess", {"model_arguments.word_dropout": 0.2}),
    "more dropout": Rung("first guess", {"model_arguments.dropout": 0.4,
                                         "model_arguments.image_dropout": 0.5}),
    "mean of weights": Rung("first guess", {"settings.average": 3}),
    "one network": Rung("first guess", {"images": "lite2:pooled:flip"}),
    "twice as long": Rung("first guess", {"settings.epochs": 24, "settings.warmup_epochs": 10}),
    "three times as long": Rung("twice as long", {"settings.epochs": 36,
                                                  "settings.warmup_epochs": 15}),
    "batches of 256": Rung("first guess", {"settings.batch_size": 256}),
    "batches of 64": Rung("first guess", {"settings.batch_size": 64}),
    "batches of 32": Rung("first guess", {"settings.batch_size": 32}),
    "both ways in batches of 64": Rung("batches of 64", {"model_arguments.text": "bigru"}),
}


class Ladder(NamedTuple):
    """Where a ladder starts, a base, its rungs by name, each below those that stand on it, and the
    one that is taken."""

    start: str
    rungs: Mapping[str, Rung]
    best: str


TO_JUDGE = Ladder(START, RUNGS, "twice as long")


def ladder_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every rung with every loss, as "rung/loss", over `parameters.ladder_seeds` seeds.

    The sum has the settings of the hardest negative, whose warm-up it is.
    """
    networks = ":" in base_config(dataset, START, parameters).images  # not features of the data
    return [arm for name, rung in RUNGS.items() if networks or "images" not in rung.changes
            for loss in LADDER_LOSSES for arm in over_seeds(
        f"{name}/{loss}", sum_of(rung_config(dataset, name, parameters), loss),
        parameters.ladder_seeds)]


def worth(rows: pd.DataFrame, rungs: Mapping[str, Rung] = RUNGS) -> pd.DataFrame:
    """What each rung adds on dev to the rung that it stands on, seed by seed.

    Args:    rows: of `ladder_arms`, with dev_rsum and minutes.
    Returns: a line per loss and rung, in their order: group (the loss), label (the rung),
             difference (mean over seeds), low, high (the smallest and the largest of them: no
             interval), n, dev_rsum, minutes (means).
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


def rung_config(dataset: str, name: str, parameters: SimpleNamespace,
                ladder: Ladder = TO_JUDGE) -> RunConfig:
    """The base that a ladder starts from with the changes of a rung and of all below it."""
    rung = ladder.rungs[name]
    start = (rung_config(dataset, rung.below, parameters, ladder) if rung.below else
             base_config(dataset, ladder.start, parameters))
    changes = dict(rung.changes)
    if "settings.average" in changes:  # a profile of fewer epochs has fewer weights
        changes["settings.average"] = min(changes["settings.average"], start.settings.epochs)
    return start.with_(**changes)


def summary(steps: pd.DataFrame) -> str:
    """Which rungs lie right of zero on dev, for both losses or for all they have, as a title.

    Args:    steps: as `worth` gives them.
    Example:
        >>> steps = pd.DataFrame({"label": ["both ways", "own words"] * 2, "n": 2,
        ...                       "difference": [4, -9, 1, 3], "dev_rsum": [296, 280, 290, 289]})
        >>> summary(steps)
        'On dev 1 of 2 steps is right of zero for both losses, 2 seeds (settles nothing): both ways'
    """
    least = steps.groupby("label", sort=False)["difference"].min()
    helped, n = [*least.index[least > 0]], steps["n"].min()
    all_have_both = steps.groupby("label").size().eq(len(LADDER_LOSSES)).all()
    losses = ("both losses" if all_have_both else steps["group"].iloc[0]
              if steps["group"].nunique() == 1 else "whichever of two losses they have")
    few, be = " (settles nothing)" if n < FEWEST else "", "is" if len(helped) == 1 else "are"
    least_of = "" if n == steps["n"].max() else "at least "
    return (f"On dev {len(helped)} of {len(least)} steps {be} right of zero for {losses}, "
            f"{least_of}{counted(n, 'seed')}{few}"
            + f": {', '.join(helped)}" * bool(helped))


def loss_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 02: every loss of the registry's pairwise kind in the sweeps' model."""
    return in_one_model(dataset, parameters, parameters.seeds,
                        {loss: (loss,) for loss in parameters.losses})


def margin_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 02: the margin of the hardest-negative loss; the default's runs are "hardest"."""
    default = LOSSES["triplet_hardest"]().margin
    return in_one_model(dataset, parameters, parameters.margin_seeds, {
        f"margin={margin:g}": (TERMS["hardest"] | (
            {} if margin == default else {"arguments": {"margin": margin}}),)
        for margin in parameters.margins})


def sibling_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 02: other captions of the same image as negatives (published code) or matches,
    which is what they are by default: those runs are the ones of `loss_arms`."""
    start = base_config(dataset, "two_branch", parameters)
    ways = {"positive": {}, "negative": {"label_arguments": {"same_image": "negative"}}}
    return [arm for loss in ("sum", "hardest") for same, change in ways.items()
            for arm in over_seeds(f"{loss}, siblings {same}", start.with_(
                **{"objective.0": TERMS[loss] | change}), parameters.sibling_seeds)]


def collapse_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 02: the hardest negative from scratch at a high learning rate, and its remedies."""
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


def first_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 00: one model, trained in about a minute."""
    return over_seeds("first", base_config(dataset, "first", parameters), 1)
