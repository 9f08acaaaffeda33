"""The widget of an explorer: it draws the view and hands back what a reader does.

The module and the style sheet lie in static/: shell.js makes the controls, <drawing>.js the stage.
They are sent as one text, because a module of a widget can import no other; nothing is fetched from
anywhere.
"""

import logging
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

import anywidget
import traitlets

from itr_study.explorers.messages import brief

LOG = logging.getLogger(__name__)
SHOWN: WeakKeyDictionary[Any, WeakSet] = WeakKeyDictionary()  # of each explorer, its widgets
STATIC = Path(__file__).parent / "static"


class Shown(Protocol):
    """What a widget needs of an explorer."""

    drawing: str

    def view(self) -> dict[str, Any]: ...

    def handle(self, name: str, value: Any = None) -> None: ...


class ExplorerWidget(anywidget.AnyWidget):
    """The widget of an explorer.

    Args:    explorer: whose `view` it draws, and which handles what a reader does.
    Traits:  view, written by Python alone; `serial` in it is that of the message it answers, by
             which the page knows when its own was answered.
    """

    view = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Shown) -> None:
        self.explorer = explorer
        super().__init__(view=explorer.view() | {"serial": 0})
        SHOWN.setdefault(explorer, WeakSet()).add(self)
        self.on_msg(self._handle)

    def _handle(self, _: Any, message: dict[str, Any], __: Any) -> None:
        self.explorer.handle(message.get("name"), message.get("value"))
        self.show(message.get("serial"))
        for other in SHOWN[self.explorer] - {self}:  # displayed twice, it must not differ
            other.view = self.view | {"serial": other.view["serial"]}

    def show(self, serial: int | str | None = None) -> None:
        """Draw the state as it is now. What cannot be drawn, such as a picture whose file is gone,
        leaves the last view and says why: a page that gets no answer can do nothing more."""
        serial = self.view["serial"] if serial is None else serial
        try:
            view = self.explorer.view()
        except Exception as error:
            LOG.exception("%s cannot be drawn", type(self.explorer).__name__)
            view = self.view | {"problem": brief(
                f"What was chosen cannot be shown ({type(error).__name__}: {error}); choose "
                "something else, or run the cell again")}
        self.view = view | {"serial": serial}


def widget_of(explorer: Shown) -> ExplorerWidget:
    """A new widget of an explorer. Each drawing has a class of its own: by that, anywidget tells
    modules apart."""
    parts = {"_esm": module_of(explorer.drawing),
             "_css": (STATIC / "shell.css").read_text(encoding="utf-8")}
    return type(f"ExplorerWidget_{explorer.drawing}", (ExplorerWidget,), parts)(explorer)


def module_of(drawing: str) -> str:
    """The shell and a drawing as one module; the drawing defines `draw`, which the shell calls."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8")
                     for name in ("shell", drawing))
