"""What an explorer is: a plain state that says all that is shown, and hears what a reader does.

    moved = PushPull()                  the last line of a cell shows it
    moved.hear("loss", "topk")          what the control of that name does
    moved.sentence()                    what is seen, in words
    moved.selected                      what the reader chose, for the next cell

Nothing here knows of a browser: a live notebook shows the state through `skin.Skin`, which only
draws what `view` says; a batch shows `picture`. All numbers are computed here.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from IPython.display import HTML, display
from matplotlib.figure import Figure

from itr_study.explorers.heard import brief, check_sent, quoted
from itr_study.plots.style import png_bytes
from itr_study.progress import in_notebook

Control = dict[str, Any]  # what the skin makes a control from; the functions below make them
LOG = logging.getLogger(__name__)


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

    @property
    def drawings(self) -> tuple[str, ...]:
        """All modules that its stage may be drawn by: several where `drawing` changes."""
        return (self.drawing,)

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

    def hear(self, name: str, value: Any = None) -> None:
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
        """All that the skin draws."""
        return {"drawing": self.drawing, "title": self.title, "controls": list(self.controls()),
                "stage": self.stage(), "sentence": self.sentence(), "problem": self.problem}

    def _ipython_display_(self) -> None:
        """Live: the explorer, and below it what remains where no kernel runs (a page made from the
        notebook, or the notebook opened again). In a batch: that alone."""
        if in_notebook():
            from itr_study.explorers.skin import skin_of  # a batch needs no widget

            display(skin_of(self))
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
