"""Embedding entropy of models with several vectors of an image: the quantity that dvse is about."""

from itr_study.evaluation.percent import percent
from itr_study.evaluation.scored import Scored
from itr_study.metrics.entropy import TEMPERATURE, entropies
from itr_study.models import MODELS

WITH_HEADS = frozenset(name for name, model in MODELS.items() if model.has_heads)


def entropy_columns(dataset: str, split: str) -> tuple[str, ...]:
    """entropy and entropy_noise of the test split."""
    return ("entropy", "entropy_noise") if split == "test" else ()


def head_entropy(scored: Scored) -> dict[str, float]:
    """The mean entropy (nats) of a vector of an image against all texts of the split, and the mean
    share of the noise in percent, over images and heads; {} for a model without heads.

    Source:  dvse Eqs. 1, 2 and 5, as `metrics.entropy` has them.
    """
    if scored.heads is None:
        return {}
    found = entropies(scored.heads(), scored.split.image_of_text, TEMPERATURE)
    return {"entropy": float(found.nats.mean()), "entropy_noise": percent(found.noise.mean())}
