"""The arms of notebooks 00 and 02: one pairwise loss against another."""

from types import SimpleNamespace

from itr_study.losses import LOSSES
from itr_study.studies.arms import TERMS, ArmRun, base_config, in_one_model, over_seeds


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
