"""How much a notebook computes: numbers by notebook and profile, and what overrides them.

    parameters = choose("03_topk", "quick", seeds=3, ks=None)
    parameters.seeds, parameters.ks             3, and the ks of the profile
    parameters.profile, parameters.explicit     where they are from: "quick", {"seeds": 3}

A notebook does it through its `Study`, with what stands in its parameters cell.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from itr_study.checks import check_choice

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
