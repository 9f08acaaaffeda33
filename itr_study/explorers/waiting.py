"""Waiting: which runs an explorer lacks and why; they are trained, and it is opened (see `pane`).
"""

from collections.abc import Callable, Collection, Mapping
from textwrap import fill
from typing import Any

from matplotlib.figure import Figure

from itr_study.digits import counted, lasting
from itr_study.explorers.beside import POLL, Beside
from itr_study.explorers.explorer import Control, Explorer, button
from itr_study.explorers.in_turn import InTurn
from itr_study.explorers.training import AT_WORK, HERE, Looked, Trained
from itr_study.plots.style import canvas, caption, headline, styled
from itr_study.progress import Show

FINAL = ("done", "diverged", "lost")  # training changes nothing
QUIET = 5 * POLL  # ms between looks while nobody is at work that this page knows of


class Waiting(Explorer):
    """The runs that an explorer needs: which are not here, why, and how far they are.

    Args:    what: the title of what is to be opened; runs: by how a reader calls them, as
             `Training` takes them, or why there can be none, as the end of a sentence that begins
             with the name; build: makes what is opened, called once all are here; minutes: about
             how long some of them are trained; at_once: how many are trained side by side; a
             next one is begun when one ends, also while nobody looks.
    """

    drawing = "waiting"

    def __init__(self, what: str, runs: Mapping[str, Trained | str], build: Callable[[], Explorer],
                 minutes: Mapping[str, float], at_once: int = 2) -> None:
        self.title, self.what, self.build = f"{what} waits for models", f"“{what}”", build
        self.lost = {name: run for name, run in runs.items() if isinstance(run, str)}
        self.names, self.opened = list(runs), None
        self.turn = InTurn({name: run for name, run in runs.items() if not isinstance(run, str)},
                           at_once, minutes)
        self.beside = Beside(f"{self.what} could not be opened")

    @property
    def runs(self) -> Mapping[str, Trained]:
        """Those that can be trained."""
        return self.turn.runs

    @property
    def looks(self) -> Mapping[str, Looked]:
        """Where each of them stood at the last look."""
        return self.turn.looks

    def states(self) -> dict[str, str]:
        """Of each run, as of `runs.background.Look`; "lost" where there can be none."""
        return {name: "lost" if name in self.lost else self.looks[name].state
                for name in self.names}

    @property
    def in_vain(self) -> bool:
        """Whether one is lost whatever is trained, so that nothing can be opened."""
        return self._any(("diverged", "lost"))

    def missing(self) -> list[str]:
        """What training would bring."""
        return [] if self.in_vain else [
            name for name, state in self.states().items() if state not in (*AT_WORK, *FINAL)]

    @property
    def ready(self) -> bool:
        """Whether all are here."""
        return set(self.states().values()) == {"done"}

    @property
    def opening(self) -> bool:
        """Whether it is being built."""
        return self.beside.at_work

    def look(self, _: Any = None) -> None:
        """Read how far all are; begin the next. Raises: ValueError where what was to be opened
        could not be, or a run could not be started."""
        self.turn.look()
        self.beside.check()

    def _any(self, states: Collection[str]) -> bool:
        """Whether a run is in one of these states."""
        return not set(states).isdisjoint(self.states().values())

    def train(self, _: Any = None) -> None:
        """Train what is missing; pressed twice, once. Raises: ValueError where training brings
        nothing."""
        self.look()
        if not (self.missing() or self.ready or self._any(HERE)):
            raise ValueError("there is nothing to train here now; " + self._told())
        self.turn.train(self.missing())

    def stop(self, _: Any = None) -> None:
        """Save and end what is trained here; pressed twice, once. Raises: ValueError where nothing
        is."""
        if not self._any(HERE):
            raise ValueError("nothing is being trained here, so there is nothing to stop")
        self.turn.stop()

    def show(self, _: Any = None) -> None:
        """Build what is opened, beside: the page goes on. Raises: ValueError before all are here.
        """
        if not self.ready:
            raise ValueError("not all models are here; " + self._told())
        self.beside.begin(self._build)

    def _build(self, _: Show) -> None:
        self.opened = self.build()

    def seconds(self) -> float | None:
        """About how long it takes to train all that is missing; None where nobody knows."""
        return self.turn.seconds([name for name, state in self.states().items()
                                  if state not in FINAL])

    def controls(self) -> list[Control]:
        seconds = self.seconds()
        more = set(self.missing()) - set(self.turn.queue)  # that nobody asked for yet
        about = f" (about {lasting(seconds)})" if more and seconds is not None else ""
        return [button("train", f"Train{about}", off=not more),
                button("stop", "Stop and save", off=not self._any(HERE[:2])),
                button("show", "Open", off=not self.ready or self.opening)]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"train": self.train, "stop": self.stop, "show": self.show, "poll": self.look}

    def stage(self) -> dict[str, Any]:
        moving = (self.opening or self.turn.queue or self.turn.failure or self.opened
                  or self.beside.failure or self._any(AT_WORK))
        # Another cell or process may train what is missing.
        pause = POLL if moving else QUIET if self.missing() else 0
        return {"poll": pause, "runs": [
            {"name": name, "says": self._says(name), "done": self._done(name)[0],
             "epochs": self._done(name)[1]} for name in self.names]}

    def _done(self, name: str) -> tuple[int, int]:
        """Epochs of a run, and of how many; a run that is here has all that it needs."""
        if name in self.lost:
            return 0, 1
        epochs, look = self.runs[name].config.settings.epochs, self.looks[name]
        return epochs if look.state == "done" else len(look.rows), epochs

    def _says(self, name: str) -> str:
        """Where a run stands, as the end of a sentence that begins with its name."""
        if name in self.lost:
            return self.lost[name]
        if name in self.turn.queue:
            return "is trained next"
        return standing(self.looks[name], self.runs[name].config.settings.epochs)

    def _told(self) -> str:
        """Where all stand that are not here."""
        return "; ".join(f"{name} {self._says(name)}" for name, state in self.states().items()
                         if state != "done")

    def sentence(self) -> str:
        states, seconds = self.states(), self.seconds()
        absent = [name for name, state in states.items() if state != "done"]
        if not absent:
            return (f"{self.what} is being opened: its pictures and texts are encoded."
                    if self.opening else f"All models of {self.what} are here: open it.")
        said = (f"{self.what} waits for {len(absent)} of {counted(len(states), 'model')}: "
                f"{self._told()}.")
        if self.in_vain:
            return f"{said} Training does not help: choose other runs" + (
                ", or bring the data." if self.lost else ".")
        about = "" if seconds is None else f", in about {lasting(seconds)}"
        if self._any(HERE):
            left = "" if seconds is None else f" About {lasting(seconds)} left."
            return f"{said}{left} Other cells can be run meanwhile."
        they = "They" if len(self.missing()) > 1 else "It"
        return (said + f" {they} can be trained here, in the background{about}."
                * bool(self.missing()))

    def picture(self) -> Figure:
        return epochs_done({name: self._done(name) for name in self.names}, self.title)


def standing(look: Looked, epochs: int) -> str:
    """Where a run stands, as the end of a sentence that begins with its name."""
    done = f"{len(look.rows)} of {counted(epochs, 'epoch')} done"
    says = {"done": "is here", "new": "is not trained on this machine",
            "starting": "is about to be trained", "running": f"is being trained here, {done}",
            "stopping": f"is being saved, {done}",
            "elsewhere": f"is being trained by {look.reason}, {done}",
            "diverged": f"has diverged ({look.reason}); training it again would give the same",
            "interrupted": f"was stopped, {done}" + ", and goes on from there" * look.checkpoint}
    return says.get(look.state, f"could not be trained ({look.state}: {look.reason})")


@styled
def epochs_done(runs: Mapping[str, tuple[int, int]], title: str) -> Figure:
    """A bar for each run: epochs that are done, of how many."""
    figure, (axes,) = canvas()
    for place, (done, epochs) in enumerate(runs.values()):
        axes.barh(place, epochs, color="none", edgecolor="black")
        axes.barh(place, done, color="C0")
    axes.set(yticks=range(len(runs)), xlabel="epochs")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_yticklabels([fill(name, 20) for name in runs])
    axes.invert_yaxis()
    headline(figure, title)
    caption(figure, "frame: all epochs of a run; filled: those that are done")
    return figure
