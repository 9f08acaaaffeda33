"""Training: a run that is trained in the background, its curves, and buttons to stop and go on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from itr_study.digits import counted, lasting, number
from itr_study.explorers.explorer import POLL, Control, Explorer, button, ticks_between
from itr_study.plots.curves import learning_curves
from itr_study.plots.style import canvas, headline, styled

RECENT = 5  # epochs by whose mean time the time left is told
AT_WORK = ("starting", "running", "stopping", "elsewhere")
PANELS = {"dev_rsum": ("RSUM on dev", "sum of six recalls, %"),
          "loss": ("loss", "mean of an epoch")}


NOTHING = "no epoch has ended yet"


class Looked(Protocol):
    """Where a run stands: `lab.runs.background.Look`."""

    state: str
    reason: str
    rows: list[dict[str, Any]]
    checkpoint: bool


class Trained(Protocol):
    """What is shown of a run, and done to it: `lab.runs.background.BackgroundRun`."""

    config: Any

    def look(self) -> Looked: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Training(Explorer):
    """A run in the background: the curves that it has written so far, and how far it is.

        from itr_study.lab.runs.background import BackgroundRun
        Training(BackgroundRun(config))

    Args:    run: of a config; this room knows nothing of where runs are kept.
    """

    drawing, title = "training", "Training"

    def __init__(self, run: Trained) -> None:
        self.run = run
        self.now = run.look()

    def look(self, _: Any = None) -> None:
        """Read what the run has written by now."""
        self.now = self.run.look()

    def start(self, _: Any = None) -> None:
        """Train, or go on; pressed twice, once. Raises: ValueError where another process trains it,
        or it has diverged."""
        self.look()
        if self.now.state in ("starting", "running", "done"):  # what was asked for is so
            return
        try:
            self.run.start()
        finally:
            self.look()

    def stop(self, _: Any = None) -> None:
        """Save and end; pressed twice, once. Raises: ValueError where it is not trained here."""
        self.look()
        if self.now.state in ("stopping", "interrupted", "done"):
            return
        try:
            self.run.stop()
        finally:
            self.look()

    @property
    def begun(self) -> bool:
        """Whether there is something to go on from."""
        return self.now.checkpoint or bool(self.now.rows)

    @property
    def selected(self) -> pd.DataFrame:
        """The history: a line an epoch; see `training.state.History`."""
        return pd.DataFrame(self.run.look().rows)

    def controls(self) -> list[Control]:
        idle = self.now.state not in (*AT_WORK, "done", "diverged")
        return [button("start", "Start", off=not idle or self.begun),
                button("stop", "Stop and save", off=self.now.state not in ("starting", "running")),
                button("go_on", "Go on", off=not idle or not self.begun)]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"start": self.start, "stop": self.stop, "go_on": self.start, "poll": self.look}

    def stage(self) -> dict[str, Any]:
        epochs = self.run.config.settings.epochs
        return {"poll": POLL if self.now.state in AT_WORK else 0, "epochs": epochs,
                "done": len(self.now.rows), "state": self.now.state,
                "ticks": ticks_between(0, epochs, whole=True),
                "panels": [panel_of(self.now.rows, column, *words)
                           for column, words in PANELS.items()]}

    def sentence(self) -> str:
        config, rows, reason = self.run.config, self.now.rows, self.now.reason
        what = f"{config.model} on {config.dataset}, seed {config.seed}"
        epochs = f"{len(rows)} of {counted(config.settings.epochs, 'epoch')}"
        says = {
            "new": f"Not trained yet: {what}, {counted(config.settings.epochs, 'epoch')}.",
            "starting": f"Starting {what}: "
                        + (f"{reason}." if reason else "a process of its own loads the data."),
            "running": f"Training {what} in the background: {epochs} done{self._left()}.",
            "stopping": f"Stopping {what}: it ends the step and saves; {epochs} done.",
            "elsewhere": f"Another process ({reason}) trains {what}: {epochs} done; it can be "
                         "watched here, and stopped there.",
            "done": f"Done: {what}, {epochs}" + (" (no better one came)" * (
                len(rows) < config.settings.epochs)) + "." + (f" But {reason}." if reason else ""),
            "diverged": f"Diverged: {what} after {epochs}: {reason}.",
            "interrupted": f"Stopped: {what} after {epochs}. " + (
                "Go on trains from where it was saved, as if it had never stopped." if self.begun
                else "Nothing was to be saved yet.")}
        said = says.get(self.now.state, f"It ended after {epochs} ({self.now.state}): {reason}. "
                                        "Remove the reason, then go on.")
        return said + best_of(rows, so_far=self.now.state not in ("done", "diverged"))

    def _left(self) -> str:
        """About how long it takes to the last epoch, in words."""
        recent = [row["seconds"] for row in self.now.rows[-RECENT:]]
        if not recent:
            return ""
        seconds = np.mean(recent) * (self.run.config.settings.epochs - len(self.now.rows))
        return f", about {lasting(seconds)} left"

    def picture(self) -> Figure:
        rows = pd.DataFrame(self.run.look().rows)
        shown = {label: [column] for column, (label, _) in PANELS.items()
                 if column in rows and rows[column].notna().any()}
        if not shown:
            return nothing_yet(self.title, self.run.config.settings.epochs)
        named = rows.assign(method=self.run.config.model, seed=self.run.config.seed)
        columns = [column for (column,) in shown.values()]
        named[columns] = named[columns].astype(float)
        return learning_curves(named, shown, self.sentence(), y_label="")


def panel_of(rows: Sequence[Mapping[str, Any]], column: str, label: str,
             unit: str) -> dict[str, Any]:
    """A curve: its points (epoch, value), the ticks of its values, and its last and best point; no
    ticks where there is no value, for any axis would be made up."""
    points = [[row["epoch"], row[column]] for row in rows if row.get(column) is not None]
    values = [value for _, value in points]
    best = (max if column == "dev_rsum" else min)(points, key=lambda point: point[1], default=None)
    return {"label": label, "unit": unit, "points": points, "best": best,
            "ticks": ticks_between(min(values), max(values)) if values else [],
            "says": f"{label}: " + (f"{number(points[-1][1])} after epoch {points[-1][0]}, "
                                    f"{'highest' if column == 'dev_rsum' else 'lowest'} "
                                    f"{number(best[1])} in epoch {best[0]}" if points else
                                    NOTHING if not rows else "not a number so far")}


def best_of(rows: Sequence[Mapping[str, Any]], so_far: bool) -> str:
    """The best epoch, of all or so far, as a sentence; empty where none was measured."""
    measured = [row for row in rows if row.get("dev_rsum") is not None]
    if not measured:
        return ""
    best = max(measured, key=lambda row: row["dev_rsum"])
    return (f" Best{' so far' * so_far}: RSUM {number(best['dev_rsum'], 1)} on dev, in epoch "
            f"{best['epoch']}.")


@styled
def nothing_yet(title: str, epochs: int) -> Figure:
    """The panels of a run of so many epochs of which none has ended: no value, so no axis of it."""
    figure, axes_list = canvas(len(PANELS))
    for axes, (label, unit) in zip(axes_list, PANELS.values(), strict=True):
        axes.set(title=label, xlabel="epoch", ylabel=unit, xlim=(0, epochs), yticks=[])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha="center", va="center")
    headline(figure, title)
    return figure
