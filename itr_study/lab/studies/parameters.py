"""Which numbers and names the parameters of a notebook may be, checked before anything is trained.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from itr_study.checks import check_arguments, check_choice, check_count, check_number
from itr_study.data import DATASETS
from itr_study.data.base import SPLITS
from itr_study.data.caption_noise import CHOICES, check_share
from itr_study.data.scenes.styles import STYLES
from itr_study.lab.studies.arms import TERMS
from itr_study.lab.studies.bases import base, base_tables, datasets_with_bases, searched_rates
from itr_study.lab.studies.nb05_listwise import has_labels
from itr_study.lab.studies.nb06_kendall import COMPARED, DEFAULTS
from itr_study.lab.studies.nb07_sub_embeddings import CHOICES as OPEN
from itr_study.lab.studies.nb07_sub_embeddings import COMPONENTS, check_components, check_heads
from itr_study.lab.studies.nb09_stronger_models import STRONGER
from itr_study.lab.studies.nb11_attention import OTHERS
from itr_study.lab.studies.nb12_claims import SEARCHED, swept_configs
from itr_study.lab.studies.nb13_forgive import FORGIVING, HELD_AGAINST
from itr_study.models.subembeddings import MOST_HEADS
from itr_study.relevance import RELEVANCE

# Lists that may be empty: of the base's own grid, of nothing yet, of what is not trained here.
EMPTY_WILL_DO = ("rates", "grid_ends", "judge_searched", "levels", "noises", "left_out",
                 "second_losses", "rate_models", "shown")
WIDEST = 2.0  # of a window: labels are cosines
LARGEST = 1e6  # of what multiplies scores, losses or steps: far below where float32 ends
INSIDE = 3  # rates of a search, at least: the best may lie at neither end
SEEDS = "seeds"  # how parameters that count runs end
# Claims about exact relevance, about sub-embeddings are then not tested; every claim has one judge.
NONE_WILL_DO = ("exact_seeds", "judge_seeds", "dvse_seeds", "dvse_other_seeds", "stronger_seeds",
                "best_clean_seeds", "dear_seeds", "ladder_seeds", "ensemble_seeds", "two_run_seeds")


def settings(dataset: str, _parameters: SimpleNamespace) -> Iterable[str]:
    """The settings of Table IV: those whose learning rates somebody has searched."""
    return searched_rates(dataset)


def models(dataset: str, _parameters: SimpleNamespace) -> Iterable[str]:
    """What can be re-ranked: "hardest" in the sweeps' model, "vsepp+gru/hardest" in a setting."""
    rates = searched_rates(dataset)
    return [*COMPARED, *(f"{setting}/{loss}" for setting in rates for loss in COMPARED)] * bool(
        rates)


def sources(dataset: str, parameters: SimpleNamespace) -> Iterable[str]:
    """Label sources that a data set has: only generated data knows exact relevance. A profile may
    name it for all data; `label_arms` leaves it out elsewhere."""
    asked = "label_sources" in parameters.explicit
    return [name for name in RELEVANCE if not asked or has_labels(dataset, name)]


def searched(dataset: str, parameters: SimpleNamespace) -> Iterable[str]:
    """Arms of the second judge that these parameters sweep, and whose rate is not another's."""
    swept = swept_configs(dataset, parameters) if parameters.judge_searched else SEARCHED
    return [arm for arm in SEARCHED if arm in swept]


# A parameter that holds names, or one: what it may choose from. They are checked in this order:
# what reads other names stands behind them.
NAMES: dict[str, Callable[[str, SimpleNamespace], Iterable[str]]] = {
    "settings": settings, "plug_in_settings": settings, "bcls_settings": settings,
    "losses": lambda _dataset, _parameters: TERMS,
    "label_sources": sources,
    "compared": lambda _dataset, _parameters: COMPARED,
    "rate_losses": lambda _dataset, parameters: parameters.compared,
    "batch_losses": lambda _dataset, _parameters: COMPARED,
    "grid_ends": lambda _dataset, parameters: [
        f"alpha={alpha:g},beta={beta:g}"
        for alpha in parameters.grid_alphas for beta in parameters.grid_betas],
    "reranked": models,
    "swept": lambda _dataset, parameters: parameters.reranked,
    "tuned": lambda _dataset, parameters: parameters.reranked,
    "forgiving": lambda _dataset, _parameters: FORGIVING,
    "second_losses": lambda _dataset, _parameters: FORGIVING,
    "left_out": lambda _dataset, _parameters: CHOICES[1:],
    "judge_searched": searched,
    "components": lambda _dataset, _parameters: COMPONENTS, **STRONGER,
    "choices": lambda _dataset, _parameters: OPEN, "others": lambda _dataset, _parameters: OTHERS}


# A parameter whose values must be more than names: what refuses others.
CHECKS: dict[str, Callable[[Any], None]] = {
    **HELD_AGAINST, "components": check_components, "heads": check_heads}


# Parameters that choose from what others hold: who sets these alone may leave some names behind.
WITHIN = {"rate_losses": ("compared",), "swept": ("reranked",), "tuned": ("reranked",),
          "grid_ends": ("grid_alphas", "grid_betas")}
# Bounds of a parameter, or of each number that it lists: whole numbers, and all others.
COUNTS: dict[str, dict[str, float]] = {
    "epochs": {"least": 0}, "ks": {"least": 1}, "dims": {"least": 1}, "batches": {"least": 2},
    "pairs": {"least": 1}, "resamples": {"least": 1}, "heads": {"least": 0, "most": MOST_HEADS},
    "pvse_heads": {"least": 1, "most": MOST_HEADS}}
NUMBERS: dict[str, dict[str, float]] = {
    **dict.fromkeys(("rates", "rate_factors", "judge_factors", "taus", "weights", "gammas",
                     "scales"), {"above": 0, "most": LARGEST}),
    **dict.fromkeys(("alphas", "grid_alphas"), {"least": 0, "below": WIDEST}),
    "betas": {"above": 0, "most": WIDEST - DEFAULTS["relaxation"]},
    "grid_betas": {"above": 0, "most": WIDEST}, "margins": {"least": 0}, "bounds": {"least": 0},
    "balances": {"above": 0, "most": 1}}
# Options of the data: what refuses another value before the data is read.
OPTIONS: dict[str, Callable[[Any], None]] = {
    **{name: lambda value, name=name: check_choice(name, value, (True, False))
       for name in ("skip_bad", "as_published")},
    "leave_out": lambda value: check_choice("leave_out", value, CHOICES),
    "caption_noise": check_share,
    "noise_seed": lambda value: check_count("noise_seed", value, 0),
    "vagueness": lambda value: check_count("vagueness", value, 0, len(STYLES) - 1)}


def check_parameters(dataset: str, parameters: SimpleNamespace) -> None:
    """Raise ValueError for an unknown data set, a number that trains nothing or that a part would
    refuse later, an empty list or one that holds an item twice, an option that the data does not
    take, a name that a parameter cannot choose, naming those that it can, or what CHECKS refuses.

    On data whose learning rates nobody has searched, names that hold settings are left to
    `bases.frozen_rates`, which says so.
    """
    check_choice("dataset", dataset, DATASETS)
    for name, value in vars(parameters).items():
        _check_numbers(name, value)
        if isinstance(value, list | tuple):
            _check_list(name, value)
        if name.endswith(SEEDS):
            check_count(name, value, least=0 if name in NONE_WILL_DO else 1)
    _check_pairs(dataset, parameters)
    _check_data(dataset, parameters)
    given = vars(parameters)
    for name in filter(given.__contains__, NAMES):
        if known := NAMES[name](dataset, parameters):
            _check_names(name, parameters, known)
    for name in filter(given.__contains__, CHECKS):
        CHECKS[name](given[name])
    _check_trained(parameters)


def _check_list(name: str, values: list | tuple) -> None:
    """Refuse a list without an item where one is needed, or with two of one label."""
    if not values and name not in EMPTY_WILL_DO:
        raise ValueError(f"{name} is empty and needs an item; leave it out for the profile's")
    seen: dict[str, Any] = {}
    for value in values:
        number = isinstance(value, float) or name in NUMBERS
        label = f"{value + 0.0:g}" if number else str(value)  # as arms have it
        if label in seen:
            both = f" (as {seen[label]!r}, whose label is {label}, too)" * (value != seen[label])
            raise ValueError(f"{name} holds {value!r} twice{both}; each is trained and drawn once")
        seen[label] = value


def _check_numbers(name: str, value: Any) -> None:
    """Refuse a number outside its bounds."""
    check, bounds = (check_count, COUNTS) if name in COUNTS else (check_number, NUMBERS)
    for number in value if isinstance(value, list | tuple) else [value]:
        if name in bounds:
            check(name, number, **bounds[name])


def _check_pairs(dataset: str, parameters: SimpleNamespace) -> None:
    """Refuse numbers that do not go together: more negatives than a batch has, a window's stride
    beyond the end of the labels, a grid of scales in which none is above another."""
    given = {"ks": [1], "grid_alphas": [0], "grid_betas": [0], "scales": [1, 2]} | vars(parameters)
    largest = max(given["ks"])
    if largest > 1 and dataset in datasets_with_bases() and "two_branch" in base_tables(dataset):
        batch = base(dataset, "two_branch").settings.batch_size
        if largest >= batch:
            raise ValueError(f"ks must be below {batch}, got {largest}: in a batch of {batch} "
                             f"pairs a match has at most {batch - 1} negatives")
    alpha, beta = max(given["grid_alphas"]), max(given["grid_betas"])
    if beta > WIDEST - alpha:
        raise ValueError(f"grid_betas must be at most {WIDEST:g} - alpha, got {beta:g} and alpha "
                         f"{alpha:g} in grid_alphas: labels are cosines, so that no window would "
                         "move; take smaller ones of either")
    if len(given["scales"]) < 2:
        raise ValueError(f"scales must hold two or more, got {given['scales']}: the first of a "
                         "pair is taken above and below the second")


def _check_trained(parameters: SimpleNamespace) -> None:
    """Refuse what would train nothing, or a search that could choose nothing."""
    given = {"judge_searched": [], "judge_factors": [], "second_losses": []} | vars(parameters)
    if given["judge_searched"] and len(given["judge_factors"]) < INSIDE:
        raise ValueError(f"judge_factors must hold {INSIDE} or more for judge_searched, got "
                         f"{given['judge_factors']}: a best rate at an end is not chosen")
    if given["second_losses"] and not given["noises"] and not given["left_out"]:
        raise ValueError(f"second_losses = {given['second_losses']} train nothing by themselves: "
                         "name noises, too, such as [0.0, 0.4], or left_out")


def _check_data(dataset: str, parameters: SimpleNamespace) -> None:
    """Refuse sizes and options of the data that its reader would refuse."""
    for split, count in vars(parameters).get("scenes", {}).items():
        check_choice("scenes: a split", split, SPLITS)
        check_count(f"scenes: {split}", count)
    options: Mapping[str, Any] = parameters.data_options
    check_arguments(f"dataset {dataset!r}", DATASETS[dataset].load, options, skip=1)
    for name, value in options.items():
        if name in OPTIONS:
            OPTIONS[name](value)


def _check_names(name: str, parameters: SimpleNamespace, known: Iterable[str]) -> None:
    """Refuse a name that there is not; where it was left behind, say which parameter to set."""
    value, given = vars(parameters)[name], parameters.explicit
    wider = [other for other in WITHIN.get(name, ()) if other in given and name not in given]
    for chosen in [value] if isinstance(value, str) else value:
        if wider and chosen not in known:
            raise ValueError(f"{' and '.join(wider)} as given leave no {chosen!r}, which {name} "
                             f"of this profile names: set {name}, too, to some of "
                             f"{', '.join(known)}")
        check_choice(name, chosen, known)


# How much a notebook computes: numbers by notebook and profile, and what overrides them.
#
#     parameters = choose("03_topk", "quick", seeds=3, ks=None)
#     parameters.seeds, parameters.ks             3, and the ks of the profile
#     parameters.profile, parameters.explicit     where they are from: "quick", {"seeds": 3}
#
# A notebook does it through its `Study`, with what stands in its parameters cell.

FILE = Path(__file__).parent / "profiles.toml"
NEEDED = ("dataset", "profile", "data", "figures", "workers")  # of every parameters cell
PROFILES = ("smoke", "quick", "full")


def read_profiles(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Notebook -> profile -> parameter -> value.

    Raises:  ValueError where a notebook lacks a profile, or its profiles differ in names.
    """
    notebooks = tomllib.loads(file.read_text(encoding="utf-8"))
    for notebook, profiles in notebooks.items():
        if set(profiles) != set(PROFILES):
            raise ValueError(f"{file.name}: {notebook} must have the profiles "
                             f"{', '.join(PROFILES)}; it has {', '.join(profiles)}")
        for profile in PROFILES[1:]:
            if differing := set(profiles["smoke"]) ^ set(profiles[profile]):
                raise ValueError(f"{file.name}: {notebook}: {', '.join(sorted(differing))} must be "
                                 f"in all profiles or in none; smoke and {profile} differ")
    return notebooks


def choose(notebook: str, profile: str, *, data_options: Mapping[str, Any] | None = None,
           **parameters: Any) -> SimpleNamespace:
    """The numbers of a notebook in a profile; a parameter that is not None wins.

    Args:    notebook: name as in profiles.toml, such as "03_topk"; profile: "smoke", "quick" or
             "full"; data_options: of the data set, which are the same in every profile;
             parameters: those of the parameters cell.
    Returns: all of them by name, and `profile` and `explicit`, for the provenance of figures.
    Raises:  ValueError for a name that is not there, or a value of another type than the profile's.
    """
    notebooks = read_profiles(FILE)
    check_choice("notebook with profiles", notebook, notebooks)
    check_choice("profile", profile, PROFILES)
    chosen = dict(notebooks[notebook][profile])
    for name, value in parameters.items():
        check_choice(f"parameter of {notebook}", name, chosen)
        if value is not None:
            _check_type(name, value, chosen[name] or _filled(name, notebooks[notebook]))
            chosen[name] = value
    chosen["data_options"] = dict(data_options or {})
    given = parameters | {"data_options": data_options}
    explicit = {name: value for name, value in given.items() if value is not None}
    return SimpleNamespace(**chosen, profile=profile, explicit=explicit)


def check_cell(cell: Mapping[str, Any]) -> list[Any]:
    """The values of NEEDED, and the device, "auto" where the cell is older than that parameter.

    Raises:  ValueError naming those that are missing.
    """
    if missing := [name for name in NEEDED if name not in cell]:
        raise ValueError(f"a study needs {', '.join(NEEDED)}, and lacks {' and '.join(missing)}: a "
                         "notebook gives its globals() below its parameters cell; of data and "
                         "figures None will do")
    return [*(cell[name] for name in NEEDED), cell.get("device", "auto")]


def chosen_from(notebook: str, profile: str, cell: Mapping[str, Any]) -> SimpleNamespace:
    """`choose` with what the variables of a parameters cell say; one that it does not name has the
    profile's value."""
    notebooks = read_profiles(FILE)
    check_choice("notebook with profiles", notebook, notebooks)
    return choose(notebook, profile, **{name: cell.get(name) for name in
                                        ("data_options", *notebooks[notebook]["smoke"])})


def _filled(name: str, profiles: Mapping[str, Mapping[str, Any]]) -> Any:
    """A parameter as a profile has it in which it is not empty: by its items another value is
    checked. A list that is empty in all of them is one of names."""
    values = [profile[name] for profile in profiles.values()]
    empty = ["a name"] if isinstance(values[0], list) else values[0]
    return next(filter(None, values), empty)


def _check_type(name: str, value: Any, like: Any) -> None:
    """Refuse another type: papermill turns a tuple into the text "(1, 2)" and says nothing."""
    number = isinstance(like, float) and isinstance(value, int) and not isinstance(value, bool)
    if isinstance(like, list) and isinstance(value, list | tuple):
        for one in value:
            _check_type(name, one, like[0])
    elif not number and type(value) is not type(like):
        raise ValueError(f"{name} must be like {like!r} ({type(like).__name__}); "
                         f"got {value!r} ({type(value).__name__})")
