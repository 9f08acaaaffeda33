"""The arms of notebooks 00 and 02: one pairwise loss against another."""

from types import SimpleNamespace

from itr_study.losses import LOSSES
from itr_study.studies.arms import TERMS, Arm, base_config, over_seeds


def loss_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: every loss of the registry's pairwise kind in the knob sweeps' model."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for loss in knobs.losses for arm in over_seeds(
        loss, start.with_(**{"objective.0": TERMS[loss]}), knobs.seeds)]


def margin_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: the margin of the hardest-negative loss; the default's runs are "hardest"."""
    start, default = base_config(dataset, "two_branch", knobs), LOSSES["triplet_hardest"]().margin
    terms = {f"margin={margin:g}": TERMS["hardest"] | (
        {} if margin == default else {"arguments": {"margin": margin}}) for margin in knobs.margins}
    return [arm for label, term in terms.items()
            for arm in over_seeds(label, start.with_(**{"objective.0": term}), knobs.margin_seeds)]


def sibling_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: other captions of the same image as negatives (published code) or matches,
    which is what they are by default: those runs are the ones of `loss_arms`."""
    start = base_config(dataset, "two_branch", knobs)
    ways = {"positive": {}, "negative": {"label_arguments": {"same_image": "negative"}}}
    return [arm for loss in ("sum", "hardest") for same, change in ways.items()
            for arm in over_seeds(f"{loss}, siblings {same}", start.with_(
                **{"objective.0": TERMS[loss] | change}), knobs.sibling_seeds)]


def collapse_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: the hardest negative from scratch at a high learning rate, and its remedies."""
    start = base_config(dataset, "collapse", knobs)
    warm = {"objective.0": TERMS["hardest"], "warmup_objective": [TERMS["sum"]],
            "settings.warmup_epochs": 1}
    slow = {"objective.0": TERMS["hardest"],
            "settings.learning_rate": start.settings.learning_rate / 10}
    changes = {"hardest": {"objective.0": TERMS["hardest"]}, "one epoch of sum first": warm,
               "a tenth of the rate": slow, "soft": {"objective.0": TERMS["soft"]},
               "top5": {"objective.0": TERMS["top5"]}}
    return [arm for label, change in changes.items()
            for arm in over_seeds(label, start.with_(**change), knobs.collapse_seeds)]


def first_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 00: one model, trained in about a minute."""
    return over_seeds("first", base_config(dataset, "first", knobs), 1)
