"""How much a notebook computes: numbers by notebook and profile, and knobs that override them.

In a notebook's set-up cell, after the parameters cell (whose knobs default to None):

    knobs = choose("03_topk", profile, seeds=seeds, ks=ks)
    knobs.seeds                         the profile's number, or the explicit one
    knobs.profile, knobs.explicit       where the numbers are from: "quick", {"seeds": 3}
"""

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from itr_study.checks import check_choice

FILE = Path(__file__).parent / "profiles.toml"
PROFILES = ("smoke", "quick", "full")


def read_profiles(file: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Notebook -> profile -> knob -> value.

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


def choose(notebook: str, profile: str, **knobs: Any) -> SimpleNamespace:
    """The numbers of a notebook in a profile; a knob that is not None wins.

    Args:    notebook: name as in profiles.toml, such as "03_topk"; profile: "smoke", "quick" or
             "full"; knobs: those of the parameters cell.
    Returns: every knob by name, and `profile` and `explicit`, for the provenance of figures.
    Raises:  ValueError for a name that is not there, or a knob of another type than the profile's.
    """
    notebooks = read_profiles(FILE)
    check_choice("notebook with profiles", notebook, notebooks)
    check_choice("profile", profile, PROFILES)
    chosen = dict(notebooks[notebook][profile])
    for name, value in knobs.items():
        check_choice(f"knob of {notebook}", name, chosen)
        if value is not None:
            _check_type(name, value, chosen[name])
            chosen[name] = value
    explicit = {name: value for name, value in knobs.items() if value is not None}
    return SimpleNamespace(**chosen, profile=profile, explicit=explicit)


def _check_type(name: str, value: Any, like: Any) -> None:
    """Refuse another type: papermill turns a tuple into the text "(1, 2)" and says nothing."""
    number = isinstance(like, float) and isinstance(value, int) and not isinstance(value, bool)
    if isinstance(like, list) and isinstance(value, list | tuple):
        for one in value:
            _check_type(name, one, like[0] if like else one)
    elif not number and type(value) is not type(like):
        raise ValueError(f"{name} must be like {like!r} ({type(like).__name__}); "
                         f"got {value!r} ({type(value).__name__})")
