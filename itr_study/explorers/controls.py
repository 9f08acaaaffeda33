"""A picture with controls, alive where somebody watches, and the code behind a formula."""

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
    """The source of a function, a method or a class as a cell shows it, in colours.

    Example:
        >>> print(show_source(show_source).data.splitlines()[0])
        def show_source(part: Callable) -> Code:
    """
    return Code(dedent(inspect.getsource(part)), language="python")


def explore(draw: Callable[..., Any], **controls: ValueWidget) -> Any:
    """Draw a picture by its arguments, and again whenever a control is moved.

    Args:    draw: gives the picture; controls: per argument of `draw` the widget that sets it.
    Returns: in a live notebook the controls above the picture, redrawn while one is moved; in a
             batch the picture at the controls' values. A batch has nobody to move them, a page
             made from it could not redraw, and nbclient sometimes waits for ever at a cell whose
             widget captures output (nbclient #312).
    Raises:  what `draw` raises, in a batch; in a live notebook it is shown below the controls.
    """
    if not in_notebook():
        return draw(**{name: control.value for name, control in controls.items()})

    def redraw(**values: Any) -> Any:
        """A figure as the image of it that is made soonest; anything else as it is."""
        shown = draw(**values)
        return Image(quick_png(shown)) if isinstance(shown, Figure) else shown

    # without auto_display the picture would be drawn and thrown away
    return interactive(redraw, {"auto_display": True}, **controls)
