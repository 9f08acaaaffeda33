"""What a page sends, checked before an action sees it: the page may be broken, or none of ours."""

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

LETTERS = 60  # of a value that is quoted
BEYOND = "a number beyond all bounds"
MOST = 600  # of a sentence below an explorer
GROUPED = re.compile(r"\d{1,9}|\d{1,3}([,'’ \u00a0\u2009\u202f]\d{3}){1,2}")  # 1250 and 1,250


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


def index_of(place: float, count: int) -> int:
    """The index, from 0, of a place that a reader counts from 1. Raises: ValueError where there is
    none."""
    if not 1 <= place <= count or place != int(place):
        raise ValueError(f"there is no place {place}; they count from 1 to {count:,}")
    return int(place) - 1


def written_index(what: str, text: str, count: int) -> int:
    """The index, from 0, of a number from 1 to `count` as a reader writes it: with spaces around
    it, and a comma, an apostrophe or a space between thousands. Raises: ValueError for another.

    Example:
        >>> written_index("Query", " 1,250 ", 5000), written_index("Query", "1 250", 5000)
        (1249, 1249)
    """
    plain = text.strip()
    if GROUPED.fullmatch(plain) and 1 <= (at := int(re.sub(r"\D", "", plain))) <= count:
        return at - 1
    raise ValueError(f"{what} must be a whole number from 1 to {count:,}; got "
                     f"{quoted(text)}")


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
