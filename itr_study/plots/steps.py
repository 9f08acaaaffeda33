"""The step that counts ranks, and the sigmoid that stands in for it (listwise Fig. 4)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from itr_study.plots.style import GREY, SPARE, Picture, canvas, caption, headline, styled

LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1, 1, 1)))
ORANGE = "#ee8866"
ACTIVE = 0.1  # of the peak slope: where the slope is more than that, a pair gets a gradient


def step_table(taus: Sequence[float], width: float = 0.2, points: int = 401) -> pd.DataFrame:
    """Tidy table of the sigmoid and of its slope: tau, x, sigmoid, slope, active.

    Args:    taus: temperatures, > 0; width: largest difference of scores shown; points: odd.
    Example: at x = 0 the sigmoid is one half, and its slope 1 / (4 tau)
        >>> step_table([0.01], points=3)[["x", "sigmoid", "slope"]].iloc[1].tolist()
        [0.0, 0.5, 25.0]
    """
    x = np.linspace(-width, width, points)
    frames = []
    for tau in taus:
        high = 0.5 * (1 + np.tanh(x / (2 * tau)))  # the sigmoid, without overflow
        slope = high * (1 - high) / tau
        frames.append(pd.DataFrame({"tau": tau, "x": x, "sigmoid": high, "slope": slope,
                                    "active": slope > ACTIVE / (4 * tau)}))
    return pd.concat(frames, ignore_index=True)


def active_width(tau: float) -> float:
    """Half the width of the activation area: differences of scores that still get a gradient.

    Example:
        >>> round(active_width(0.01), 4)
        0.0364
    """
    high = (1 + np.sqrt(1 - ACTIVE)) / 2  # high (1 - high) = ACTIVE / 4
    return float(tau * np.log(high / (1 - high)))


@styled
def smooth_steps(taus: Sequence[float], title: str = "", width: float = 0.2,
                 note: str = "") -> Picture:
    """The step, its derivative, the sigmoid and its slope with the activation area shaded.

    Args:    taus: temperatures, 1 to 4 of them; width: largest difference of scores shown.
    Source:  listwise Fig. 4.
    """
    table = step_table(taus, width)
    figure, axes = canvas(2, 2, size=(9.6, 5.4), sharex=True)
    step, delta, sigmoid, slope = axes
    step.plot([-width, 0], [0, 0], color=GREY)
    step.plot([0, width], [1, 1], color=GREY)
    step.plot([0], [0], "o", color=GREY, markerfacecolor="white")
    step.plot([0], [1], "o", color=GREY)
    delta.axhline(0, color=GREY)
    delta.annotate("", (0, 1), (0, 0), arrowprops={"arrowstyle": "-|>", "color": GREY})
    for place, (tau, part) in enumerate(table.groupby("tau", sort=False)):
        draw_sigmoid(sigmoid, slope, part, tau, SPARE[place], LINES[place % len(LINES)])
    for panel, name, label in zip(axes, "abcd", (
            "step H(x): is the other above?", "its derivative δ(x): no gradient but at 0",
            "sigmoid σ(x; τ)", "slope dσ/dx; shaded: activation area"), strict=True):
        panel.set_title(f"({name}) {label}")
    for panel in (sigmoid, slope):
        panel.set_xlabel("x, difference of two scores")
    for panel in (step, delta, sigmoid):
        panel.set(ylim=(-0.1, 1.15), ylabel="value")
    delta.set(yticks=[], ylabel="")  # its height has no meaning
    slope.set(ylabel="slope", ylim=(0, None))
    sigmoid.legend(loc="upper left")
    headline(figure, title or f"At τ = {taus[0]:g} the steepest slope is {1 / (4 * taus[0]):.3g}")
    caption(figure, note or f"activation area: slope above {ACTIVE:.0%} of its peak 1 / (4 τ)")
    return figure


def draw_sigmoid(sigmoid: Axes, slope: Axes, part: pd.DataFrame, tau: float, colour: str,
                 line: str | tuple) -> None:
    """One temperature: the sigmoid, its slope, and where that is more than a tenth of its peak."""
    sigmoid.plot(part["x"], part["sigmoid"], color=colour, linestyle=line, label=f"τ = {tau:g}")
    slope.plot(part["x"], part["slope"], color=colour, linestyle=line)
    slope.fill_between(part["x"], part["slope"], where=part["active"], color=ORANGE, alpha=0.35,
                       linewidth=0)
