"""What an explorer is: a plain state that holds all that is shown, and handles what a reader does.

    moved = PushPull()                  the last line of a cell shows it
    moved.handle("loss", "topk")          what the control of that name does
    moved.sentence()                    what is seen, in words
    moved.selected                      what the reader chose, for the next cell

Nothing here knows of a browser: a live notebook shows the state through
`widget.ExplorerWidget`, which draws what `view` returns; a batch shows `picture`. All numbers are
computed here.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from IPython.display import HTML, display
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from itr_study.digits import number
from itr_study.explorers.messages import brief, check_sent, quoted
from itr_study.plots.style import png_bytes
from itr_study.progress import in_notebook

TICKS = 5  # steps between the ticks of an axis, about
POLL = 1000  # ms between a page's looks at something that goes on
Control = dict[str, Any]  # what the page makes a control from; the functions below make them
LOG = logging.getLogger(__name__)


def ticks_between(low: float, high: float, whole: bool = False) -> list[list[Any]]:
    """Round places on an axis with what stands there; the first and the last hold both ends between
    them.

    Args:    whole: at whole numbers only.
    Example: a quarter needs two decimals
        >>> ticks_between(0.3, 0.9)
        [[0.3, '0.30'], [0.45, '0.45'], [0.6, '0.60'], [0.75, '0.75'], [0.9, '0.90']]
        >>> ticks_between(0, 4, whole=True)[-1]
        [4.0, '4']
    """
    high = high if high > low else low + 1
    ticks = MaxNLocator(TICKS, integer=whole).tick_values(low, high)
    step = ticks[1] - ticks[0]
    digits = next((many for many in range(16)
                   if np.abs(ticks - ticks.round(many)).max() < step / 1000), 16)
    return [[round(float(at), digits), number(at, digits)] for at in ticks]


def slider(name: str, label: str, value: float, least: float, most: float, step: float,
           says: str | None = None) -> Control:
    """A number, set by dragging or by the arrow keys; says: what stands in its place."""
    return {"name": name, "kind": "range", "label": label, "value": value, "min": least,
            "max": most, "step": step, "says": says}


def choice(name: str, label: str, value: str, options: Mapping[str, str]) -> Control:
    """One of several.

    Args:    options: what it stands for -> how a reader calls it.
    """
    return {"name": name, "kind": "select", "label": label, "value": value,
            "options": [[key, words] for key, words in options.items()]}


def button(name: str, label: str, off: bool = False) -> Control:
    """Something to do; off: not now."""
    return {"name": name, "kind": "button", "label": label, "off": off}


def tick(name: str, label: str, value: bool) -> Control:
    """Something to switch on and off."""
    return {"name": name, "kind": "checkbox", "label": label, "value": value}


def words(name: str, label: str, value: str, hint: str = "", letters: int = 36) -> Control:
    """A line to write; hint: what stands in it while it is empty; letters: how wide it is."""
    return {"name": name, "kind": "text", "label": label, "value": value, "hint": hint,
            "letters": letters}


def file(name: str, label: str, kinds: str, most: int) -> Control:
    """A file to hand in: {"name", "size", "data" in base64}.

    Args:    kinds: of files that are offered, such as "image/*"; most: bytes of one that is sent;
             of a larger one data is None.
    """
    return {"name": name, "kind": "file", "label": label, "value": "", "kinds": kinds,
            "most": most}


class Explorer(ABC):
    """A state that can be shown, and touched.

    Attributes:
        drawing: name of the module that draws its stage, static/<drawing>.js.
        title: over it.
        problem: why the last thing that the reader did could not be done, as a sentence; "" where
            it could.
    """

    drawing: str
    title: str
    problem: str = ""

    @abstractmethod
    def controls(self) -> Sequence[Control]:
        """What can be set, in order."""

    @abstractmethod
    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        """What each thing that a reader does, does: controls by name, and what the stage sends. It
        raises ValueError, with a sentence for the reader, for what cannot be done."""

    @abstractmethod
    def stage(self) -> dict[str, Any]:
        """All that the drawing shows: texts, numbers, places; plain values of JSON."""

    @abstractmethod
    def sentence(self) -> str:
        """What is seen, for those who cannot see it and for a page without a kernel."""

    @abstractmethod
    def picture(self) -> Figure:
        """The same, still."""

    @property
    def selected(self) -> Any:
        """What the reader has chosen, for the next cell."""
        return None

    def handle(self, name: str, value: Any = None) -> None:
        """Do what the reader did. What cannot be done leaves the state as it is, and its reason in
        `problem`: below a widget nobody reads a traceback. A "poll" is not done by the reader: what
        was said stays."""
        before, self.problem = self.problem if name == "poll" else "", ""
        try:
            actions = self.actions()
            if not isinstance(name, str) or name not in actions:
                raise ValueError(f"there is nothing called {quoted(name)} here; there are "
                                 f"{', '.join(actions)}")
            for control in self.controls():
                if control["name"] == name:
                    check_sent(control, value)
            actions[name](value)
        except ValueError as error:
            self.problem = brief(str(error))
        except Exception as error:
            LOG.exception("%s: %s could not be done", self.title, name)
            self.problem = brief(f"This could not be done. {type(error).__name__}: {error}")
        self.problem = self.problem or before

    def view(self) -> dict[str, Any]:
        """All that the page draws."""
        return {"drawing": self.drawing, "title": self.title, "controls": list(self.controls()),
                "stage": self.stage(), "sentence": self.sentence(), "problem": self.problem}

    def _ipython_display_(self) -> None:
        """Live: the explorer, and below it what remains where no kernel runs (a page made from the
        notebook, or the notebook opened again). In a batch: that alone."""
        if in_notebook():
            from itr_study.explorers.widget import widget_of  # a batch needs no widget

            display(widget_of(self))
        display(self.twin(closed=in_notebook()))

    def twin(self, closed: bool = False) -> HTML:
        """The picture and the sentence as a page keeps them; closed: unfolded by a click."""
        from base64 import b64encode

        shown, said = self.picture(), escape(self.sentence(), quote=True)
        data = b64encode(png_bytes(shown, dpi=110)).decode()
        image = f"<img alt='{said}' style='max-width:100%' src='data:image/png;base64,{data}'>"
        title = escape(self.title)
        if not closed:
            return HTML(f"<p><b>{title}</b><br>{said}</p>{image}")
        return HTML(f"<details><summary>{title}, as a picture without controls</summary>"
                    f"<p>{said}</p>{image}</details>")
