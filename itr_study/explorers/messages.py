"""Validate browser messages before they are handled; they may be malformed or foreign."""

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any

LETTERS = 60  # of a value that is quoted
BEYOND = "a number beyond all bounds"
MOST = 600  # letters of a problem below an explorer
GROUPED = re.compile(r"\d{1,9}|\d{1,3}([,'’ \u00a0\u2009\u202f]\d{3}){1,2}")  # 1250 and 1,250


def check_value(control: Mapping[str, Any], value: Any) -> None:
    """Raise ValueError unless a value is of the kind that a control sends."""
    kind, label = control["kind"], control["label"]
    if kind == "range":
        read_number(label, value)
    elif kind in ("select", "text") and not isinstance(value, str):
        raise ValueError(f"{label} must be a text, got {quote(value)}")
    elif kind == "checkbox" and not isinstance(value, bool):
        raise ValueError(f"{label} must be on or off (true or false), got {quote(value)}")
    elif kind == "file":
        read_parts(label, value, "name", "size", "data")


def read_number(what: str, value: Any) -> float:
    """Convert a finite number, also NumPy's, to Python's own; ValueError for anything else."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return int(value) if isinstance(value, int) else float(value)
        except OverflowError:
            raise ValueError(f"{what} must be a finite number, got {BEYOND}") from None
    raise ValueError(f"{what} must be a finite number, got {quote(value)}")


def parse_place(what: str, text: str, count: int) -> int:
    """Parse a number from 1 to `count` as people write it; return the index, from 0.

    Example:
        >>> parse_place("Query", " 1,250 ", 5000), parse_place("Query", "1 250", 5000)
        (1249, 1249)
    """
    plain = text.strip()
    if GROUPED.fullmatch(plain) and 1 <= (at := int(re.sub(r"\D", "", plain))) <= count:
        return at - 1
    raise ValueError(f"{what} must be a whole number from 1 to {count:,}; got {quote(text)}")


def read_parts(what: str, value: Any, *names: str) -> list[Any]:
    """Read the parts of a message by their names; ValueError if one is missing."""
    if not isinstance(value, Mapping) or any(name not in value for name in names):
        raise ValueError(f"{what} must come with its {' and '.join(names)}, got {quote(value)}")
    return [value[name] for name in names]


def quote(value: Any) -> str:
    """Write a value as Python does, cut short.

    Example:
        >>> quote("a"), quote("a" * 99).endswith("aaa …")
        ("'a'", True)
    """
    try:
        return cut(repr(value), LETTERS)
    except ValueError:  # of a whole number with thousands of digits
        return BEYOND


def cut(text: str, most: int = MOST) -> str:
    """Cut a text to so many letters."""
    return text if len(text) <= most else f"{text[:most - 2]} …"
