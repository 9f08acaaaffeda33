"""Numbers as people read them: a minus sign that is none of a hyphen, and digits enough to tell."""

import math

MINUS = "−"


def digits_for(*values: float) -> int:
    """Decimals of numbers side by side: one, or so many that the largest has two digits.

    Example:
        >>> digits_for(-12.8, -14.8, -10.7), digits_for(0.04, -0.31, 0.39), digits_for(0.0027)
        (1, 2, 4)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 1 if largest >= 1 or largest == 0 else 1 - math.floor(math.log10(largest))


def number(value: float, digits: int | None = None) -> str:
    """A number with a sign only where it is below zero; digits: None takes those of `digits_for`.

    Example:
        >>> number(-0.154, 2), number(12.34), number(-0.0)
        ('−0.15', '12.3', '0.0')
    """
    text = f"{value:.{digits_for(value) if digits is None else digits}f}"
    zero = math.isfinite(value) and float(text) == 0  # -0.0 has no sign for a reader
    return text.removeprefix("-") if zero else text.replace("-", MINUS)


def signed(value: float, digits: int | None = None) -> str:
    """A difference: a number with its sign, whatever it is.

    Example:
        >>> signed(4.04), signed(-9.2), signed(0.043), signed(0.0)
        ('+4.0', '−9.2', '+0.043', '0.0')
    """
    text = number(value, digits)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def counted(fewest: int, what: str, most: int | None = None) -> str:
    """How many of something there are, or from how many to how many.

    Example:
        >>> counted(1, "seed"), counted(3, "seed"), counted(5, "seed", 10), counted(5, "run", 5)
        ('1 seed', '3 seeds', '5 to 10 seeds', '5 runs')
        >>> counted(1250, "text")
        '1,250 texts'
    """
    most = fewest if most is None else most
    first = "" if fewest == most else f"{fewest:,} to "
    return f"{first}{most:,} {what}" + ("" if most == 1 else "s")


def lasting(seconds: float) -> str:
    """About how long something takes.

    Example:
        >>> lasting(4), lasting(44), lasting(100), lasting(5400)
        ('10 seconds', '40 seconds', '2 minutes', '90 minutes')
    """
    if seconds >= 90:
        return counted(round(seconds / 60), "minute")
    return counted(10 * max(round(seconds / 10), 1), "second")


def with_interval(mean: float, low: float, high: float) -> str:
    """A difference and its interval, of equally many digits.

    An end shows its side of zero, if a second decimal can tell.

    Example:
        >>> with_interval(-9.24, -12.4, -6.0), with_interval(0.044, 0.031, 0.057)
        ('−9.2 [−12.4, −6.0]', '+0.044 [+0.031, +0.057]')
        >>> with_interval(-1.21, -2.47, 0.045), with_interval(1.0, 0.0, 2.0)
        ('−1.21 [−2.47, +0.04]', '+1.0 [0.0, +2.0]')
    """
    digits = digits_for(mean, low, high)
    digits += any(end and not round(end, digits) for end in (low, high))
    return f"{signed(mean, digits)} [{signed(low, digits)}, {signed(high, digits)}]"
