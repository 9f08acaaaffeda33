"""A picture with controls, live if somebody watches; the source code of a formula."""

import inspect
from collections.abc import Callable
from textwrap import dedent
from typing import Any

from IPython.display import Code, Image
from ipywidgets import ValueWidget, interactive
from matplotlib.figure import Figure

from itr_study.plots.style import quick_png
from itr_study.progress import in_notebook


def show_source(part: Callable) -> Code:
    """Show the source of a function, a method or a class in colours.

    Example:
        >>> print(show_source(show_source).data.splitlines()[0])
        def show_source(part: Callable) -> Code:
    """
    return Code(dedent(inspect.getsource(part)), language="python")


def explore(draw: Callable[..., Any], **controls: ValueWidget) -> Any:
    """Draw a picture by its arguments, and again whenever a control is moved.

    A batch gets the picture alone: nobody moves a control, a page made from it could not redraw,
    and nbclient sometimes waits for ever at a widget that captures output (nbclient #312).

    Args:
        draw: gives the picture.
        controls: the widget that sets each argument of `draw`.
    """
    if not in_notebook():
        return draw(**{name: control.value for name, control in controls.items()})

    def redraw(**values: Any) -> Any:
        shown = draw(**values)
        return Image(quick_png(shown)) if isinstance(shown, Figure) else shown

    # without auto_display the picture would be drawn and thrown away
    return interactive(redraw, {"auto_display": True}, **controls)
