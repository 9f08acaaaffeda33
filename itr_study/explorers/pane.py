"""A pane that waits: an explorer of trained models, of which some may not be here yet.

    Pane(Search, {"hardest": BackgroundRun(config)}, build)         build() makes the Search
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from itr_study.explorers.explorer import Control, Explorer
from itr_study.explorers.training import Trained
from itr_study.explorers.waiting import Waiting


class Pane(Explorer):
    """An explorer of trained models, which waits for those that are not here.

    All that is done to it and shown of it is that of `shown`: a `Waiting` until it was opened, then
    what was built; at once where nothing is missing. In a batch it only says what is missing.

    Args:    kind: the class of what `build` makes; the others as `Waiting`.
    """

    def __init__(self, kind: type[Explorer], runs: Mapping[str, Trained | str],
                 build: Callable[[], Explorer], minutes: Mapping[str, float] | None = None,
                 at_once: int = 2) -> None:
        self.kind, self.waiting = kind, Waiting(kind.title, runs, build, minutes or {}, at_once)
        self.shown: Explorer = build() if self.waiting.ready else self.waiting

    @property
    def drawing(self) -> str:
        return self.shown.drawing

    @property
    def drawings(self) -> tuple[str, ...]:
        return self.waiting.drawing, self.kind.drawing

    @property
    def title(self) -> str:
        return self.shown.title

    @property
    def problem(self) -> str:
        return self.shown.problem

    @property
    def selected(self) -> Any:
        return self.shown.selected

    def hear(self, name: str, value: Any = None) -> None:
        late = isinstance(name, str) and name in self.waiting.actions() \
            and name not in self.shown.actions()
        if not late:  # else sent before it was opened
            self.shown.hear(name, value)
        self.shown = self.waiting.opened or self.shown

    def controls(self) -> Sequence[Control]:
        return self.shown.controls()

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return self.shown.actions()

    def stage(self) -> dict[str, Any]:
        return self.shown.stage()

    def sentence(self) -> str:
        return self.shown.sentence()

    def picture(self) -> Figure:
        return self.shown.picture()
