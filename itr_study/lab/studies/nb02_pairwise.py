"""The arms of notebooks 00 and 02: one pairwise loss against another."""

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from itr_study.lab.studies.arms import TERMS, ArmRun, base_config, in_one_model, over_seeds, swept
from itr_study.lab.studies.parameters import Names, Parameters, by_profile, like
from itr_study.losses import LOSSES


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
    changes = {"hardest": {"objective.0": TERMS["hardest"]},
               **({"one epoch of sum first": warm} if start.settings.epochs > 1 else {}),
               "a tenth of the rate": slow, "soft": {"objective.0": TERMS["soft"]},
               "top5": {"objective.0": TERMS["top5"]}}
    return [arm for label, change in changes.items()
            for arm in over_seeds(label, start.with_(**change), parameters.collapse_seeds)]


def first_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return one model of notebook 00, trained in about a minute."""
    return over_seeds("first", base_config(dataset, "first", parameters), 1)


ARMS = (loss_arms, margin_arms, sibling_arms, collapse_arms)
