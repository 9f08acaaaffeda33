"""Training: a run that is trained in the background, its curves, and buttons to stop and go on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from itr_study.digits import lasting, number
from itr_study.explorers.explorer import POLL, Control, Explorer, button, list_ticks
from itr_study.plots.curves import learning_curves
from itr_study.plots.style import canvas, finish, styled

RECENT = 5  # epochs by whose mean time the time left is estimated
PANELS = {"dev_rsum": ("RSUM on dev", "sum of six recalls, points"),
          "loss": ("loss", "mean of an epoch")}
NOTHING = "no epoch has ended yet"
AT_WORK = ("starting", "running", "stopping", "elsewhere")
STATES = {"starting": "starting: a process of its own loads the data",
          "running": "training in the background", "stopping": "ending the step, then saving",
          "elsewhere": "another process trains it; it can be stopped there only",
          "new": "not trained yet", "done": "done", "diverged": "diverged"}
SAVED = "stopped; Go on trains from where it was saved, as if it had never stopped"
UNSAVED = "stopped before anything was to be saved"


class Training(Explorer):
    """A run in the background: the curves so far, and how far it is.

        from itr_study.lab.runs.background import BackgroundRun
        Training(BackgroundRun(config))

    Args: run: what has config, look(), start() and stop() as a BackgroundRun does.
    """

    drawing, title = "training", "Training"

    def __init__(self, run: Any) -> None:
        self.events = {"poll": self.look}
        self.run = run
        self.now = run.look()

    def look(self, _: Any = None) -> None:
        """Read what the run has written by now."""
        self.now = self.run.look()

    def start(self, _: Any = None) -> None:
        """Train, or go on; pressed twice, once."""
        self._press(self.run.start, ("starting", "running", "done"))

    def stop(self, _: Any = None) -> None:
        """Save and end; pressed twice, once."""
        self._press(self.run.stop, ("stopping", "interrupted", "done"))

    def _press(self, do: Callable[[], None], done: Sequence[str]) -> None:
        self.look()
        try:
            if self.now.state not in done:
                do()
        finally:
            self.look()

    @property
    def selected(self) -> pd.DataFrame:
        """The history, a line an epoch; see `training.state.History`."""
        return pd.DataFrame(self.run.look().rows)

    def controls(self) -> list[Control]:
        """List what can be set."""
        begun = self.now.checkpoint or bool(self.now.rows)
        idle = self.now.state not in (*AT_WORK, "done", "diverged")
        at_work = self.now.state in ("starting", "running")
        return [button("start", "Start", self.start, off=not idle or begun),
                button("stop", "Stop and save", self.stop, off=not at_work),
                button("go_on", "Go on", self.start, off=not idle or not begun)]

    def stage(self) -> dict[str, Any]:
        """Return the epochs done and a curve for each of PANELS."""
        epochs = self.run.config.settings.epochs
        return {"poll": POLL if self.now.state in AT_WORK else 0, "epochs": epochs,
                "done": len(self.now.rows), "ticks": list_ticks(0, epochs, whole=True),
                "panels": [make_panel(self.now.rows, column, *words)
                           for column, words in PANELS.items()]}

    def numbers(self) -> dict[str, str]:
        """Return the run, its state, the time left and the best epoch."""
        config, rows, state = self.run.config, self.now.rows, self.now.state
        known = STATES | {"interrupted": SAVED if self.now.checkpoint or rows else UNSAVED}
        told = {"run": f"{config.model} on {config.dataset}, seed {config.seed}",
                "state": known.get(state, f"{state}: remove the reason, then go on"),
                "epochs": f"{len(rows)} of {config.settings.epochs}"}
        if self.now.reason:
            told["reason"] = self.now.reason
        recent = [row["seconds"] for row in rows[-RECENT:]]
        if state == "running" and recent:
            left = np.mean(recent) * (config.settings.epochs - len(rows))
            told["time left"] = f"about {lasting(left)}"
        if measured := [row for row in rows if row.get("dev_rsum") is not None]:
            best = max(measured, key=lambda row: row["dev_rsum"])
            told |= {"best RSUM on dev": number(best["dev_rsum"], 1),
                     "best epoch": f"{best['epoch']}"}
        return told

    def picture(self) -> Figure:
        """Draw the curves."""
        rows = self.selected
        shown = {label: [column] for column, (label, _) in PANELS.items()
                 if column in rows and rows[column].notna().any()}
        if not shown:
            return draw_empty(self.title, self.run.config.settings.epochs)
        named = rows.assign(method=self.run.config.model, seed=self.run.config.seed)
        columns = [column for (column,) in shown.values()]
        named[columns] = named[columns].astype(float)
        return learning_curves(named, shown, self.title, y_label="")


def make_panel(rows: Sequence[Mapping[str, Any]], column: str, label: str,
               unit: str) -> dict[str, Any]:
    """Make a curve: points (epoch, value), ticks of the values, if any, last and best point."""
    points = [[row["epoch"], row[column]] for row in rows if row.get(column) is not None]
    values = [value for _, value in points]
    best = (max if column == "dev_rsum" else min)(points, key=lambda point: point[1], default=None)
    says = "not a number so far" if rows else NOTHING
    if best:
        says = (f"{number(points[-1][1])} after epoch {points[-1][0]}, best {number(best[1])} in "
                f"epoch {best[0]}")
    return {"label": label, "unit": unit, "points": points, "best": best, "says": says,
            "ticks": list_ticks(min(values), max(values)) if values else []}


@styled
def draw_empty(title: str, epochs: int) -> Figure:
    """Draw the panels before the first epoch has ended: no value, so no axis of values."""
    figure, axes_list = canvas(len(PANELS))
    for axes, (label, unit) in zip(axes_list, PANELS.values(), strict=True):
        axes.set(title=label, xlabel="epoch", ylabel=unit, xlim=(0, epochs), yticks=[])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center")
    return finish(figure, title)
