"""Numbers in words: the sign that is no hyphen, the digits that tell something."""

import doctest
import math

import pytest

from itr_study import digits
from itr_study.digits import MINUS, digits_for, number, signed, with_interval


def test_examples():
    failed, tried = doctest.testmod(digits)
    assert tried and not failed


@pytest.mark.parametrize("value", [-3.5, -0.31, -0.0027, -120.0])
def test_no_hyphen_stands_before_a_number(value):
    for text in (number(value), signed(value), with_interval(value, 2 * value, -value)):
        assert "-" not in text and text.startswith(MINUS)
    assert signed(-value).startswith("+") and "+" not in number(-value)


def test_what_rounds_to_nothing_has_no_sign():
    assert signed(-0.01, 1) == signed(0.01, 1) == number(-0.04, 1) == "0.0"
    assert with_interval(-0.03, -1.8, 1.8) == "0.0 [−1.8, +1.8]"


def test_tiny_numbers_keep_two_digits_and_their_ends_as_many():
    assert with_interval(0.00042, 0.0001, 0.00074) == "+0.00042 [+0.00010, +0.00074]"
    assert signed(0.999) == "+1.00" and signed(1.0) == "+1.0"
    assert with_interval(2.0, -math.inf, math.inf) == "+2.0 [−inf, +inf]"


def test_ends_that_are_no_numbers_take_no_digits_from_the_others():
    assert with_interval(0.04, -math.inf, math.inf) == "+0.040 [−inf, +inf]"
    assert digits_for(math.nan, 0.04) == 3 and digits_for(math.nan) == 1
