"""A picture with controls: alive where somebody watches, still in a batch."""

from collections.abc import Callable
from typing import Any

from ipywidgets import ValueWidget, interactive

from itr_study.progress import in_notebook


def explore(draw: Callable[..., Any], **controls: ValueWidget) -> Any:
    """Draw a picture by its arguments, and again whenever a control is moved.

    Args:    draw: gives the picture; controls: per argument of `draw` the widget that sets it.
    Returns: in a live notebook the controls above the picture, redrawn when one is let go; in a
             batch the picture at the controls' values. A batch has nobody to move them, a page
             made from it could not redraw, and nbclient sometimes waits for ever at a cell whose
             widget captures output (nbclient #312).
    Raises:  what `draw` raises, in a batch; in a live notebook it is shown below the controls.
    """
    if not in_notebook():
        return draw(**{name: control.value for name, control in controls.items()})
    for control in controls.values():
        if control.has_trait("continuous_update"):
            control.continuous_update = False
    return interactive(draw, **controls)
