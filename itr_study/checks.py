"""Argument checks shared by losses, models and metrics: what was expected, found, and a remedy."""

import math

from torch import Tensor

# A match has relevance exactly 1; every other pair at most 1 - 1e-4 (DESIGN: match by image id).
MATCH = 1.0


def check_number(name: str, value: float, *, above: float = -math.inf, least: float = -math.inf,
                 most: float = math.inf) -> None:
    """Raise ValueError unless `above < value`, `least <= value <= most` and value is finite."""
    if not (isinstance(value, int | float) and math.isfinite(value)):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if not (above < value and least <= value <= most):
        bounds = [f"> {above}"] * (above > -math.inf) + [f">= {least}"] * (least > -math.inf)
        bounds += [f"<= {most}"] * (most < math.inf)
        raise ValueError(f"{name} must be {' and '.join(bounds)}, got {value}")


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise ValueError unless value is one of the choices, naming them all."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}; got {value!r}")


def check_scores(scores: Tensor, relevance: Tensor) -> None:
    """Raise ValueError unless both are (I, T), floating point, and at least 1 x 1."""
    if scores.ndim != 2 or scores.shape != relevance.shape or scores.numel() == 0:
        raise ValueError("scores and relevance must both be (n_images, n_texts), at least 1 x 1; "
                         f"got {tuple(scores.shape)} and {tuple(relevance.shape)}")
    if not scores.is_floating_point():
        raise ValueError(f"scores must be floating point, got {scores.dtype}")
