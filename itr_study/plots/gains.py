"""What losses gain beside a reference, as something about the data changes; where that turns."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from itr_study.plots.curves import Ends, finish_labels, panel_canvas
from itr_study.plots.style import INK, Picture, caption, headline, look, styled

APART = 1.5  # points between the marks of neighbouring losses at one place
LINE = 0.17  # inches of another line of the title
STRIP = 0.035  # of a panel's height: between the bars of two crossings


@styled
def gain_curves(table: pd.DataFrame, places: Mapping[float, str], title: str, x_label: str, *,
                crossings: pd.DataFrame | None = None, log: bool = False,
                note: str = "") -> Picture:
    """A line for each loss with the 95 % interval at every place, a panel per measure; the
    reference is the dashed line at 0. Side by side where they would hide each other.

    Args:    table: panel, loss, x, difference, low, high (NaN: no interval), verdict (hollow
             where it is "collapsed").
             places: x -> what stands below it.
             crossings: panel, loss, at, low, high (on the scale of x): a bar at the foot of the
             panel over the interval, with the loss's mark where it passes 0.
             log: a logarithmic axis.
    """
    figure, panels = panel_canvas(table["panel"].nunique())
    ends_list = []
    for axes, (panel, part) in zip(panels, table.groupby("panel", sort=False), strict=True):
        axes.set(title=panel, xlabel=x_label, xscale="log" if log else "linear",
                 ylabel="less the hardest negative, points")
        axes.margins(x=0.04)
        axes.set_xticks(list(places), list(places.values()))
        axes.set_xticks([], minor=True)
        axes.axhline(0, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1.5)
        ends_list.append(loss_lines(axes, part))
        if crossings is not None:
            crossing_bars(axes, crossings[crossings["panel"] == panel])
    headline(figure, title)
    figure.set_figheight(figure.get_figheight() + LINE * figure.get_suptitle().count("\n"))
    caption(figure, note)
    finish_labels(panels, ends_list)
    return figure


def loss_lines(axes: Axes, table: pd.DataFrame) -> Ends:
    """The lines of one panel, each moved aside a little; returns their ends."""
    losses, ends = list(table["loss"].unique()), []
    for place, loss in enumerate(losses):
        part, how = table[table["loss"] == loss].sort_values("x"), look(loss, place)
        aside = APART * (place - (len(losses) - 1) / 2) / 72
        moved = axes.transData + ScaledTranslation(aside, 0, axes.figure.dpi_scale_trans)
        axes.vlines(part["x"], part["low"], part["high"], color=how.colour, linewidth=1.1,
                    transform=moved, clip_on=False)
        axes.plot(part["x"], part["difference"], how.line, marker=how.marker, color=how.colour,
                  label=how.label, transform=moved, linewidth=1.2, clip_on=False)
        for line in part[part["verdict"] == "collapsed"].itertuples():
            axes.plot(line.x, line.difference, how.marker, color=how.colour, clip_on=False,
                      markerfacecolor="white", transform=moved)
        ends.append((*part.iloc[-1][["x", "difference"]], how.label, how.colour))
    values = table[["difference", "low", "high"]].stack()
    axes.update_datalim([(x, y) for x in table["x"] for y in (values.min(), values.max(), 0)])
    axes.autoscale_view()
    return ends


def crossing_bars(axes: Axes, found: pd.DataFrame) -> None:
    """A bar for each crossing below all lines, in room made for it."""
    low, high = axes.get_ylim()
    if len(found):
        axes.set_ylim(low - (high - low) * STRIP * (len(found) + 1), high)
    for place, line in enumerate(found.itertuples(), start=1):
        how, at = look(line.loss), axes.get_xaxis_transform()
        axes.plot([line.low, line.high], [STRIP * place] * 2, color=how.colour, linewidth=2.5,
                  alpha=0.6, transform=at, solid_capstyle="butt")
        axes.plot(line.at, STRIP * place, how.marker, color=how.colour, transform=at)
