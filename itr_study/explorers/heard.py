"""What a page sends, checked before an action sees it: the page may be broken, or none of ours."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

LETTERS = 60  # of a value that is quoted
BEYOND = "a number beyond all bounds"
MOST = 600  # of a sentence below an explorer


def check_sent(control: Mapping[str, Any], value: Any) -> None:
    """Raise ValueError unless a value is of the kind that a control sends: a slider a number, a
    choice and a line texts, a tick true or false, a file its name, size and data."""
    kind, label = control["kind"], control["label"]
    if kind == "range":
        number_of(label, value)
    elif kind in ("select", "text") and not isinstance(value, str):
        raise ValueError(f"{label} must be a text, got {quoted(value)}")
    elif kind == "checkbox" and not isinstance(value, bool):
        raise ValueError(f"{label} must be on or off (true or false), got {quoted(value)}")
    elif kind == "file":
        parts_of(label, value, "name", "size", "data")


def number_of(what: str, value: Any) -> float:
    """A number as Python's own, NumPy's too; ValueError for anything else, NaN, infinity, and what
    no float can hold."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return int(value) if isinstance(value, int) else float(value)
        except OverflowError:
            raise ValueError(f"{what} must be a finite number, got {BEYOND}") from None
    raise ValueError(f"{what} must be a finite number, got {quoted(value)}")


def parts_of(what: str, value: Any, *names: str) -> list[Any]:
    """The parts of a message by their names. Raises: ValueError where one is not there."""
    if not isinstance(value, Mapping) or any(name not in value for name in names):
        raise ValueError(f"{what} must come with its {' and '.join(names)}, got {quoted(value)}")
    return [value[name] for name in names]


def quoted(value: Any) -> str:
    """A value as it is written in Python, made short.

    Example:
        >>> quoted("a"), quoted("a" * 99).endswith("aaa …")
        ("'a'", True)
    """
    try:
        return brief(repr(value), LETTERS)
    except ValueError:  # of a whole number with thousands of digits
        return BEYOND


def brief(text: str, most: int = MOST) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= most else f"{text[:most - 2]} …"
