"""The code behind a formula."""

import inspect
from collections.abc import Callable
from textwrap import dedent

from IPython.display import Code


def show_source(part: Callable) -> Code:
    """The source of a function, a method or a class as a cell shows it, in colours.

    Example:
        >>> print(show_source(show_source).data.splitlines()[0])
        def show_source(part: Callable) -> Code:
    """
    return Code(dedent(inspect.getsource(part)), language="python")
