"""Which numbers and names the parameters of a notebook may be: checked here, for all notebooks,
before anything is trained. What type they have `profiles` has checked.
"""

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from itr_study.checks import check_choice, check_count
from itr_study.data import DATASETS
from itr_study.data.caption_noise import check_share
from itr_study.data.near_duplicates import CHOICES
from itr_study.data.scenes.styles import STYLES
from itr_study.relevance import RELEVANCE
from itr_study.studies.arms import TERMS
from itr_study.studies.bases import searched_rates
from itr_study.studies.bcls import COMPARED
from itr_study.studies.forgive import FORGIVING, REFERENCE
from itr_study.studies.judges import ARMS

SEEDS = "seeds"  # how parameters that count runs end
# Claims about exact relevance are then not tested, and every claim has one judge.
NONE_WILL_DO = ("exact_seeds", "judge_seeds")


def settings(dataset: str, _parameters: SimpleNamespace) -> Iterable[str]:
    """The settings of Table IV: those whose learning rates somebody has searched."""
    return searched_rates(dataset)


def models(dataset: str, _parameters: SimpleNamespace) -> Iterable[str]:
    """What can be re-ranked: "hardest" in the sweeps' model, "vsepp+gru/hardest" in a setting."""
    rates = searched_rates(dataset)
    return [*COMPARED, *(f"{setting}/{loss}" for setting in rates for loss in COMPARED)] * bool(
        rates)


# A parameter that holds names, or one: what it may choose from.
NAMES: dict[str, Callable[[str, SimpleNamespace], Iterable[str]]] = {
    "settings": settings, "plug_in_settings": settings, "bcls_settings": settings,
    "losses": lambda _dataset, _parameters: TERMS,
    "label_sources": lambda _dataset, _parameters: RELEVANCE,
    "compared": lambda _dataset, _parameters: COMPARED,
    "rate_losses": lambda _dataset, parameters: parameters.compared,
    "judge_searched": lambda _dataset, _parameters: ARMS,
    "batch_losses": lambda _dataset, _parameters: COMPARED,
    "grid_ends": lambda _dataset, parameters: [
        f"alpha={alpha:g},beta={beta:g}"
        for alpha in parameters.grid_alphas for beta in parameters.grid_betas],
    "reranked": models,
    "swept": lambda _dataset, parameters: parameters.reranked,
    "tuned": lambda _dataset, parameters: parameters.reranked,
    "forgiving": lambda _dataset, _parameters: FORGIVING,
    "second_losses": lambda _dataset, _parameters: FORGIVING,
    "left_out": lambda _dataset, _parameters: CHOICES[1:]}


def noises(values: Sequence[float]) -> None:
    """Shares of the training captions."""
    for share in values:
        check_share(share, "noises")


def levels(values: Sequence[int]) -> None:
    """Levels of vagueness that the generator has."""
    for level in values:
        check_count("levels", level, 0, len(STYLES) - 1)


def against(values: Sequence[str]) -> None:
    """Losses that are held against the hardest negative, which is one of them."""
    if values and REFERENCE not in values:
        raise ValueError(f"of {', '.join(values)} each is held against {REFERENCE!r}, which is not "
                         "among them: name it, too")


def both_or_none(values: Sequence[str]) -> None:
    """Images left out, and as many others: one is the measure of the other."""
    if len(set(values)) == 1:
        raise ValueError(f"left_out = {list(values)} has nothing to be held against: name both "
                         f"{' and '.join(CHOICES[1:])}, or none")


# A parameter whose values must be more than names: what refuses others.
CHECKS: dict[str, Callable[[Any], None]] = {
    "noises": noises, "levels": levels, "left_out": both_or_none, "forgiving": against,
    "second_losses": against}


def check_parameters(dataset: str, parameters: SimpleNamespace) -> None:
    """Raise ValueError for an unknown data set, a number of seeds that trains nothing, a name that
    a parameter cannot choose, naming those that it can, or what CHECKS refuses.

    On data whose learning rates nobody has searched, names that hold settings are left to
    `bases.frozen_rates`, which says so.
    """
    check_choice("dataset", dataset, DATASETS)
    for name, value in vars(parameters).items():
        if name.endswith(SEEDS):
            check_count(name, value, least=0 if name in NONE_WILL_DO else 1)
        if name in NAMES and (known := NAMES[name](dataset, parameters)):
            for chosen in [value] if isinstance(value, str) else value:
                check_choice(name, chosen, known)
        if name in CHECKS:
            CHECKS[name](value)
