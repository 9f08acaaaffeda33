"""A thin skin over an explorer: it draws what the state says and hands back what a reader does.

The module and the style sheet lie in static/: shell.js makes the controls, <drawing>.js the stage.
They are sent as one text, because a module of a widget can import no other; nothing is fetched from
anywhere.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

import anywidget
import traitlets

from itr_study.explorers.heard import brief

LOG = logging.getLogger(__name__)
SHOWN: WeakKeyDictionary[Any, WeakSet] = WeakKeyDictionary()  # of each explorer, its skins
STATIC = Path(__file__).parent / "static"


class Shown(Protocol):
    """What a skin needs of an explorer."""

    drawings: tuple[str, ...]

    def view(self) -> dict[str, Any]: ...

    def hear(self, name: str, value: Any = None) -> None: ...


class Skin(anywidget.AnyWidget):
    """The widget of an explorer.

    Args:    explorer: whose `view` it draws, and which hears what is done to it.
    Traits:  view, written by Python alone; `serial` in it is that of the message it answers, by
             which the page knows when its own was heard.
    """

    view = traitlets.Dict().tag(sync=True)

    def __init__(self, explorer: Shown) -> None:
        self.explorer = explorer
        super().__init__(view=explorer.view() | {"serial": 0})
        SHOWN.setdefault(explorer, WeakSet()).add(self)
        self.on_msg(self._heard)

    def _heard(self, _: Any, message: dict[str, Any], __: Any) -> None:
        self.explorer.hear(message.get("name"), message.get("value"))
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


def skin_of(explorer: Shown) -> Skin:
    """A new skin of an explorer. Each set of drawings has a class of its own: by that, anywidget
    tells style sheets and modules apart."""
    parts = {"_esm": module_of(explorer.drawings),
             "_css": (STATIC / "shell.css").read_text(encoding="utf-8")}
    return type(f"Skin_{'_'.join(explorer.drawings)}", (Skin,), parts)(explorer)


def module_of(drawings: Sequence[str]) -> str:
    """The shell and some drawings as one module, each drawing in a room of its own: two may give
    one name to different things."""
    texts = {name: (STATIC / f"{name}.js").read_text(encoding="utf-8")
             for name in ("shell", *drawings)}
    return "\n".join([texts.pop("shell"), *(
        f"drawings.{name} = (() => {{\n{text}\nreturn draw;\n}})();"
        for name, text in texts.items())])
