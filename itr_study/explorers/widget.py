"""Front end of an explorer, an anywidget: render `Explorer.view` and forward events.

static/shell.js makes the controls, static/<drawing>.js the stage. They are sent as one text, since
a module of a widget can import no other; nothing is fetched from anywhere.
"""

import logging
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import anywidget
import traitlets

from itr_study.explorers.messages import cut

LOG = logging.getLogger(__name__)
SHOWN: WeakKeyDictionary[Any, WeakSet] = WeakKeyDictionary()  # widgets of each explorer
STATIC = Path(__file__).parent / "static"


class ExplorerWidget(anywidget.AnyWidget):
    """The widget of an `Explorer`.

    Attributes:
        view: written by Python alone; its `serial` is that of the message it answers.
    """

    view = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Any) -> None:
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
        """Draw the state as it is now.

        What cannot be drawn, such as a picture whose file is gone, leaves the last view and says
        why: a page without an answer can do nothing more.
        """
        serial = self.view["serial"] if serial is None else serial
        try:
            view = self.explorer.view()
        except Exception as error:
            LOG.exception("%s cannot be drawn", type(self.explorer).__name__)
            view = self.view | {"problem": cut(
                f"What was chosen cannot be shown ({type(error).__name__}: {error}); choose "
                "something else, or run the cell again")}
        self.view = view | {"serial": serial}


def make_widget(explorer: Any) -> ExplorerWidget:
    """Make a widget; each drawing has its own class, by which anywidget tells modules apart."""
    parts = {"_esm": read_module(explorer.drawing),
             "_css": (STATIC / "shell.css").read_text(encoding="utf-8")}
    return type(f"ExplorerWidget_{explorer.drawing}", (ExplorerWidget,), parts)(explorer)


def read_module(drawing: str) -> str:
    """Read the shell and a drawing, whose `draw` the shell calls, as one module."""
    return "\n".join((STATIC / f"{name}.js").read_text(encoding="utf-8")
                     for name in ("shell", drawing))
