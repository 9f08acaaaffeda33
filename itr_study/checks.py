"""Argument checks shared by all rooms: what was expected, what was found, and a remedy.

torch is imported where tensors are read: a wrong name is refused without waiting for it.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Integral
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

# A match has relevance exactly 1; every other pair at most 1 - 1e-4 (DESIGN: match by image id).
MATCH = 1.0
GAP = 1e-4
EXACT = 2**53  # whole numbers up to here are exact in float64
# What is wrong with the numbers that a check has read, or None.
Complaint = Callable[[list[float]], str | None]
Part = TypeVar("Part")


class Gathered:
    """Checks that wait for their numbers: each read of a device makes it finish all its work."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Tensor, Complaint]] = []

    def read(self, numbers: Iterable[Tensor] = ()) -> list[float]:
        """Further 0-dim numbers as floats, in one read with those of the checks that wait.

        Raises: ValueError where a check complains.
        """
        import torch

        waiting, self.waiting = self.waiting, []
        parts = [number.reshape(1) for number in numbers]
        count = start = len(parts)
        parts += [values for values, _ in waiting]
        if not parts:
            return []
        device = parts[0].device  # in float64 all are what they were
        read = torch.cat([part.detach().to(device, torch.float64) for part in parts]).tolist()
        for values, complaint in waiting:
            complain(complaint(read[start:start + len(values)]))
            start += len(values)
        return read[:count]


_GATHERED: ContextVar[Gathered | None] = ContextVar("gathered", default=None)


@contextmanager
def gathered() -> Iterator[Gathered]:
    """Inside, `check_values` waits for `read`, to be called before what was checked is used.

    Example:
        >>> import torch
        >>> with gathered() as checks:
        ...     check_values(torch.tensor([3.0]), lambda values: f"{values[0]} is too much")
        >>> checks.read()
        Traceback (most recent call last):
        ValueError: 3.0 is too much
    """
    if (outer := _GATHERED.get()) is not None:  # one list: none is lost that nobody reads inside
        yield outer
        return
    token = _GATHERED.set(waiting := Gathered())
    try:
        yield waiting
    except Exception:
        waiting.read()  # a check may know why
        raise
    finally:
        _GATHERED.reset(token)


def check_values(numbers: Tensor, complaint: Complaint) -> None:
    """Raise ValueError where the numbers give a complaint.

    Inside `gathered` that is later, so that no `except` around this call can catch it.
    """
    waiting = _GATHERED.get()
    if waiting is None:
        complain(complaint(numbers.reshape(-1).tolist()))
    else:
        waiting.waiting.append((numbers.reshape(-1), complaint))


def complain(message: str | None) -> None:
    """Raise ValueError of the message, if there is one."""
    if message is not None:
        raise ValueError(message)


def check_number(name: str, value: float, *, above: float = -math.inf, least: float = -math.inf,
                 most: float = math.inf, below: float = math.inf) -> None:
    """Raise ValueError unless a number is finite and within these bounds."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not (real and abs(value) <= sys.float_info.max):  # NaN is not; an integer may be larger
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if not (above < value < below and least <= value <= most):
        bounds = [f"> {above}"] * (above > -math.inf) + [f">= {least}"] * (least > -math.inf)
        bounds += [f"<= {most}"] * (most < math.inf) + [f"< {below}"] * (below < math.inf)
        raise ValueError(f"{name} must be {' and '.join(bounds)}, got {value}")


def check_count(name: str, value: int, least: int = 1, most: float = math.inf) -> None:
    """Raise ValueError unless value is a whole number (numpy's too), `least <= value <= most`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not (whole and least <= value <= most):
        bounds = f">= {least}" + f" and <= {most}" * (most < math.inf)
        raise ValueError(f"{name} must be an integer {bounds}, got {value!r}")


def check_choice(what: str, value: object, choices: Iterable) -> None:
    """Raise ValueError unless value is one of the choices, naming the nearest and all of them."""
    if not isinstance(value, Hashable) or value not in choices:  # such as an array
        raise ValueError(not_among(what, value, choices))


def not_among(what: str, value: object, choices: Iterable) -> str:
    """The sentence that refuses a value, for those who raise another error than ValueError.

    Example:
        >>> not_among("loss", "top_k", ["topk", "kth"])
        "loss must be one of topk, kth; got 'top_k'; did you mean 'topk'?"
        >>> not_among("argument of exact", "scale", [])
        "argument of exact: there is none to choose; got 'scale'"
    """
    names = [str(choice) for choice in choices]
    allowed = f" must be one of {', '.join(names)}" if names else ": there is none to choose"
    return f"{what}{allowed}; got {value!r}{nearest(value, names)}"


def nearest(value: object, names: Iterable[str]) -> str:
    """The question whether the nearest of the names was meant; empty where none is near."""
    near = get_close_matches(value, list(names), n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def check_arguments(what: str, function: Callable, arguments: Iterable[str], skip: int = 0) -> None:
    """Raise ValueError for an argument that the function does not take.

    Args:    what: the function, in words; skip: its first so many arguments are not for users.
    """
    known = list(inspect.signature(function).parameters)[skip:]
    for name in arguments:
        check_choice(f"argument of {what}", name, known)


def check_called(what: str, function: object, *arguments: str) -> None:
    """Raise ValueError unless a function can be called with these arguments, by place."""
    inner = getattr(function, "forward", function)  # of a module: its own call takes anything
    call = f"{what} is called with ({', '.join(arguments)})"
    if not callable(function):
        raise ValueError(f"{call}: it must be a function of these, got {function!r}")
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):  # of a function built in, which does not tell
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ValueError(f"{call}, but takes {signature}: {error}") from error


def kept_arguments(built: object) -> str:
    """Format the constructor's arguments that an object keeps under their names, for its repr."""
    kept = vars(built)
    return ", ".join(f"{name}={kept[name]!r}" for name in inspect.signature(type(built)).parameters
                     if name in kept)


class UnknownNameError(KeyError, ValueError):
    """Raised for a name that a registry lacks; the message lists the names that it has."""

    __str__ = Exception.__str__  # a KeyError puts its message in quotes


class Registry(dict[str, Part]):
    """A dict of parts by name that answers an unknown name with the nearest and all that it has.

    Args:
        kind: of the parts, in words.
        parts: by name, or objects with a `name`.

    Raises:
        ValueError: for a part without a name, and for a second one of the same name.

    Example:
        >>> Registry("loss", {"kth": 1})["kht"]
        Traceback (most recent call last):
        itr_study.checks.UnknownNameError: loss must be one of kth; got 'kht'; did you mean 'kth'?
    """

    def __init__(self, kind: str, parts: Mapping[str, Part] | Iterable[Part]) -> None:
        super().__init__()
        self.kind = kind
        for name, part in (parts.items() if isinstance(parts, Mapping) else
                           ((getattr(part, "name", None), part) for part in parts)):
            if not (name and isinstance(name, str)):
                raise ValueError(f"{part!r} cannot be registered as a {kind} without a name; give "
                                 f'it one: name = "my_{kind.replace(" ", "_")}"')
            if name in self:
                raise ValueError(f"{kind} {name!r} is registered twice, by {self[name]!r} and "
                                 f"{part!r}; give one of them another name")
            self[name] = part

    def __missing__(self, name: str) -> Part:
        raise UnknownNameError(not_among(self.kind, name, self))

    def __or__(self, other: Mapping[str, Part]) -> Registry[Part]:
        return type(self)(self.kind, {**self, **other})

    def create(self, name: str, arguments: Mapping) -> object:
        """self[name](**arguments); ValueError listing the choices if either is not known."""
        check_arguments(f"{self.kind} {name!r}", self[name], arguments)
        return self[name](**arguments)


def check_numbers(values: object, name: str = "scores") -> None:
    """Raise ValueError unless this is a numpy array or a tensor of real numbers, nothing masked.

    Whole numbers must lie within +-2^53: beyond it different ones would be equal in float64.
    """
    import numpy as np
    import torch

    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be masked: all of them are read; give {name}.filled("
                         "...), scores.filled(-numpy.inf) to rank the masked last")
    if isinstance(values, np.ndarray):
        real, wide = values.dtype.kind in "fiub", values.dtype in (np.int64, np.uint64)
    elif isinstance(values, torch.Tensor):
        real, wide = not values.is_complex(), values.dtype == torch.int64
    else:
        raise ValueError(f"{name} must be a numpy array or a torch tensor, got "
                         f"{type(values).__name__}; numpy.asarray({name}) makes one of numbers")
    if not real:
        raise ValueError(f"{name} must be real numbers, got {values.dtype}")
    if wide and 0 not in values.shape and (int(values.max()) > EXACT or int(values.min()) < -EXACT):
        raise ValueError(f"{name} of {values.dtype} must lie within +-2^53, found {values.min()} "
                         f"to {values.max()}; subtract a constant or give floats")


def check_scores(scores: Tensor, relevance: Tensor) -> None:
    """Raise ValueError unless both are tensors (I, T), at least 1 x 1, scores floating point."""
    import torch

    for name, values in (("scores", scores), ("relevance", relevance)):
        if not isinstance(values, torch.Tensor):
            raise ValueError(f"{name} must be a torch tensor, got {type(values).__name__}; "
                             f"torch.as_tensor({name}) makes one of numbers")
    if scores.ndim != 2 or scores.shape != relevance.shape or scores.numel() == 0:
        raise ValueError("scores and relevance must both be (n_images, n_texts), at least 1 x 1; "
                         f"got {tuple(scores.shape)} and {tuple(relevance.shape)}")
    if not scores.is_floating_point():
        raise ValueError(f"scores must be floating point, got {scores.dtype}")


def check_relevance(relevance: Tensor, scale: str) -> None:
    """Raise ValueError unless every value is 1 (a match) or in [floor, 1 - 1e-4].

    The floor is 0 for the scale "unit" and -1 for "cosine" and "binary": a loss of "binary" reads
    only which pairs are matches, so it takes any scale, and a bool mask too.
    """
    import torch

    if relevance.dtype == torch.bool and scale == "binary":
        return
    if relevance.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"relevance must be float32 or float64 (half precision rounds 1 - {GAP} "
                         f"to 1, a match), got {relevance.dtype}")
    between = (relevance > MATCH - GAP + 1e-6) & (relevance < MATCH)
    floor = 0.0 if scale == "unit" else -1.0

    def complaint(values: list[float]) -> str | None:
        low, high, near_one = values
        if floor <= low and high <= MATCH and not near_one:
            return None
        return (f"relevance must be exactly 1 for a match and within [{floor}, 1 - {GAP}] "
                f"otherwise; found values from {low} to {high}"
                + (f", some between 1 - {GAP} and 1" if near_one else ""))

    check_values(torch.stack((*relevance.aminmax(), between.any())), complaint)
