"""Define explorers: a state in Python that handles what a reader does and says what is drawn.

    pushed = PushPull()             the last line of a cell shows it
    pushed.handle("loss", "topk")   as the control of that name does
    pushed.numbers()                the numbers below the drawing
    pushed.selected                 what the reader chose, for the next cell

A live notebook draws `view` by `widget.ExplorerWidget`; a batch shows `picture`.
"""

import inspect
import logging
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from textwrap import dedent
from types import MappingProxyType
from typing import Any

import numpy as np
from IPython.display import HTML, Code, display
from ipywidgets import Image, ValueWidget, VBox
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from itr_study.digits import number
from itr_study.explorers.messages import check_value, cut, parse_place, quote
from itr_study.plots.style import png_bytes, quick_png
from itr_study.progress import in_notebook

TICKS = 5  # steps between the ticks of an axis, about
POLL = 1000  # ms between a page's questions while something goes on
Action = Callable[[Any], Any]  # raises ValueError, with a message to the reader, if it fails
Control = dict[str, Any]  # what the page makes a control of, and the action "do"
LOG = logging.getLogger(__name__)


def list_ticks(low: float, high: float, whole: bool = False) -> list[list[Any]]:
    """List ticks of an axis, (place, text), that enclose both ends; whole: at whole numbers only.

    Example: a quarter needs two decimals
        >>> list_ticks(0.3, 0.9)
        [[0.3, '0.30'], [0.45, '0.45'], [0.6, '0.60'], [0.75, '0.75'], [0.9, '0.90']]
        >>> list_ticks(0, 4, whole=True)[-1]
        [4.0, '4']
    """
    high = high if high > low else low + 1
    ticks = MaxNLocator(TICKS, integer=whole).tick_values(low, high)
    step = ticks[1] - ticks[0]
    digits = next((many for many in range(16)
                   if np.abs(ticks - ticks.round(many)).max() < step / 1000), 16)
    return [[round(float(at), digits), number(at, digits)] for at in ticks]


def control(kind: str, name: str, label: str, do: Action, value: Any = None,
            **more: Any) -> Control:
    """Make a control that does something with its value.

    Kinds are "button", "checkbox", "range" (min, max, step, says: the text of its value), "select"
    (options), "text" (hint, letters: its width) and "file" (kinds, most: bytes that are sent; it
    sends {"name", "size", "data" in base64, None if too large}).
    """
    return {"kind": kind, "name": name, "label": label, "do": do, "value": value, **more}


def button(name: str, label: str, do: Action, off: bool = False) -> Control:
    """Make a button; off: it cannot be pressed now."""
    return control("button", name, label, do, off=off)


def choice(name: str, label: str, do: Action, value: str, options: Mapping[str, str]) -> Control:
    """Make a list to choose from; options: value -> text."""
    return control("select", name, label, do, value, options=[*map(list, options.items())])


def number_line(name: str, label: str, do: Action, index: int, count: int) -> Control:
    """Make a line to write a number from 1 to `count`; it calls `do` with the index, from 0."""
    return control("text", name, f"{label}, 1 to {count:,}",
                   lambda written: do(parse_place(label, written, count)), f"{index + 1:,}",
                   letters=6)


def slider(name: str, label: str, do: Action, value: float, least: float, most: float,
           step: float, says: str | None = None) -> Control:
    """Make a slider; says: the text shown for its value."""
    return control("range", name, label, do, value, min=least, max=most, step=step, says=says)


def browse(kind: str, label: str, go: Action, place: int, count: int) -> list[Control]:
    """Make back, a slider and forward; `place` is from 0, `go` goes to the index of another."""
    def jump(number: float) -> None:
        if not 1 <= number <= count or number != int(number):
            raise ValueError(f"there is no place {number}; they count from 1 to {count:,}")
        go(int(number) - 1)

    return [button("previous", f"Previous {kind}", lambda _: jump(place), place == 0),
            slider("go", label, jump, place + 1, 1, count, 1, f"{place + 1:,} of {count:,}"),
            button("next", f"Next {kind}", lambda _: jump(place + 2), place == count - 1)]


class Explorer(ABC):
    """A state that can be shown and changed.

    Attributes:
        drawing: the module that draws its stage, static/<drawing>.js.
        title: heading.
        problem: why the last action failed, "" if it did not.
        note: what the last action has to report, mostly "".
        selected: what the reader has chosen, for the next cell.
        events: what the stage sends -> what it does.
    """

    drawing: str
    title: str
    problem: str = ""
    note: str = ""
    selected: Any = None
    events: Mapping[str, Action] = MappingProxyType({})

    @abstractmethod
    def controls(self) -> Sequence[Control]:
        """List what can be set, in order."""

    @abstractmethod
    def stage(self) -> dict[str, Any]:
        """Return what the drawing shows, as plain values of JSON."""

    @abstractmethod
    def numbers(self) -> dict[str, str]:
        """Return the numbers below the drawing by their labels."""

    @abstractmethod
    def picture(self) -> Figure:
        """Draw the same as a still picture."""

    def sentence(self) -> str:
        """Join title and numbers in one line: a caption, and the picture's alternative text."""
        told = [f"{label}: {value}" for label, value in self.numbers().items()]
        return ". ".join(filter(None, [self.title.rstrip("?"), "; ".join(told)]))

    def handle(self, name: str, value: Any = None) -> None:
        """Do what the reader did.

        What cannot be done changes nothing and is explained in `problem`: nobody reads a traceback
        below a widget. A "poll" comes from the page itself, so problem and note stay.
        """
        before = ("", "") if name != "poll" else (self.problem, self.note)
        self.problem, self.note = "", before[1]
        try:
            controls = {control["name"]: control for control in self.controls()}
            actions = {key: control["do"] for key, control in controls.items()} | {**self.events}
            if not isinstance(name, str) or name not in actions:
                raise ValueError(f"there is nothing called {quote(name)} here; there are "
                                 f"{', '.join(actions)}")
            if name in controls:
                check_value(controls[name], value)
            actions[name](value)
        except ValueError as error:
            self.problem = cut(str(error))
        except Exception as error:
            LOG.exception("%s: %s could not be done", self.title, name)
            self.problem = cut(f"This could not be done. {type(error).__name__}: {error}")
        self.problem = self.problem or before[0]

    def view(self) -> dict[str, Any]:
        """Return all that the page draws."""
        controls = [{key: value for key, value in control.items() if key != "do"}
                    for control in self.controls()]
        return {"title": self.title, "controls": controls, "stage": self.stage(),
                "numbers": [list(pair) for pair in self.numbers().items()], "note": self.note,
                "problem": self.problem}

    def _ipython_display_(self) -> None:
        """Show the widget in a live notebook, and what remains of it without a kernel."""
        if in_notebook():
            from itr_study.explorers.widget import make_widget  # a batch needs no widget

            display(make_widget(self))
        display(self.make_still(closed=in_notebook()))

    def make_still(self, closed: bool = False) -> HTML:
        """Make the page without a kernel: picture and numbers; closed: unfolded by a click."""
        title, alt = escape(self.title), escape(self.sentence(), quote=True)
        data = b64encode(png_bytes(self.picture(), dpi=110)).decode()
        rows = "".join(f"<tr><th style='text-align:left'>{escape(label)}</th>"
                       f"<td style='text-align:left'>{escape(value)}</td></tr>"
                       for label, value in self.numbers().items())
        page = (f"<img alt='{alt}' style='max-width:100%' src='data:image/png;base64,{data}'>"
                f"<table>{rows}</table>")
        if not closed:
            return HTML(f"<p><b>{title}</b></p>{page}")
        return HTML(f"<details><summary>{title}, as a picture without controls</summary>{page}"
                    "</details>")


def show_source(part: Callable) -> Code:
    """Show the source of a function, a method or a class in colours.

    Example:
        >>> print(show_source(show_source).data.splitlines()[0])
        def show_source(part: Callable) -> Code:
    """
    return Code(dedent(inspect.getsource(part)), language="python")


def explore(draw: Callable[..., Any], **controls: ValueWidget) -> Any:
    """Draw a picture by its arguments, and again whenever a control is moved.

    A batch gets the picture alone: nobody moves a control, and a page made from it cannot redraw.
    No widget captures output: papermill and nbclient may wait for ever at one (nbclient #312).

    controls: the widget that sets each argument of `draw`, which returns a figure.
    """
    if not in_notebook():
        return draw(**{name: control.value for name, control in controls.items()})
    picture = Image(format="png")

    def redraw(*_: object) -> None:
        picture.value = quick_png(draw(**{name: one.value for name, one in controls.items()}))

    redraw()
    for control in controls.values():
        control.observe(redraw, "value")
    return VBox([*controls.values(), picture])
