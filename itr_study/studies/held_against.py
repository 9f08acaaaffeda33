"""What the lists of notebook 13 must hold, so that each of their values is held against another."""

from collections.abc import Callable, Sequence

from itr_study.checks import check_count
from itr_study.data.caption_noise import check_share
from itr_study.data.near_duplicates import CHOICES
from itr_study.data.scenes.styles import STYLES
from itr_study.studies.forgive import REFERENCE


def noises(values: Sequence[float]) -> None:
    """Shares of the training captions. One alone would be held against itself, and what a loss
    gains would be settled to move by nothing."""
    for share in values:
        check_share(share, "noises")
    if len(values) == 1:
        other = 0.4 if not values[0] else 0.0
        raise ValueError(f"noises = {list(values)} has nothing to be held against: name another "
                         f"share, too, such as {other}, or none")


def levels(values: Sequence[int]) -> None:
    """Levels of vagueness that the generator has."""
    for level in values:
        check_count("levels", level, 0, len(STYLES) - 1)


def against(values: Sequence[str]) -> None:
    """Losses that are held against the hardest negative, which is one of them and not alone."""
    if values and REFERENCE not in values:
        raise ValueError(f"of {', '.join(values)} each is held against {REFERENCE!r}, which is not "
                         "among them: name it, too")
    if len(values) == 1:
        raise ValueError(f"{REFERENCE!r} alone has nothing that is held against it: name another "
                         "loss, too, such as 'soft'")


def both_or_none(values: Sequence[str]) -> None:
    """Images left out, and as many others: one is the measure of the other."""
    if len(set(values)) == 1:
        raise ValueError(f"left_out = {list(values)} has nothing to be held against: name both "
                         f"{' and '.join(CHOICES[1:])}, or none")


# A parameter whose values must be more than names: what refuses others.
HELD_AGAINST: dict[str, Callable[[Sequence], None]] = {
    "noises": noises, "levels": levels, "left_out": both_or_none, "forgiving": against,
    "second_losses": against}
