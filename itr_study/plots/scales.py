"""What FR's scales do: R@1 over the whole grid of them (dvse Fig. 7)."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from itr_study.plots.style import (
    DIFFERENCES,
    DIRECTIONS,
    GREY,
    INK,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)

SYMBOLS = {"i2t": "γ", "t2i": "λ"}
MARKS = (("□", {"marker": "s", "markersize": 8, "markerfacecolor": "none"}),
         ("☆", {"marker": "*", "markersize": 11, "markerfacecolor": "white"}),
         ("○", {"marker": "o", "markersize": 8, "markerfacecolor": "none"}))
TICKS = 6  # about


@styled
def scale_maps(table: pd.DataFrame, title: str, marks: Mapping[str, pd.DataFrame],
               note: str = "") -> Picture:
    """What FR adds to R@1 at every pair of its scales, a panel per direction; cells of equal size,
    in the steps in which the scales come.

    Args:    table: direction, first, second (the scales), gain (points of R@1); marks: by name the
             pair of scales that is marked, by direction (index) first and second; three at most.
    Source:  dvse, Fig. 7.
    Differs: it draws R@1 itself; here red is better than without FR and blue is worse, on the same
             colours for both directions, and a loss beyond the largest gain is drawn as that.
    """
    limit = max(table["gain"].max(), 0.1)
    figure, panels = canvas(2, size=(9.6, 4.9))
    figure.get_layout_engine().set(h_pad=0.1)
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False),
                                       strict=True):
        grid = part.pivot(index="second", columns="first", values="gain")
        image = scale_panel(axes, grid, limit)
        for pairs, (_, mark) in zip(marks.values(), MARKS, strict=False):
            first, second = pairs.loc[direction, ["first", "second"]]
            axes.plot(grid.columns.get_loc(first), grid.index.get_loc(second), linestyle="",
                      color=INK, markeredgewidth=1.2, **mark)
        symbol = SYMBOLS[direction]
        axes.set(title=DIRECTIONS[direction], xlabel=f"{symbol}1, of the scores in the sum",
                 ylabel=f"{symbol}2, of the pair's own score")
    bar = figure.colorbar(image, ax=panels, extend="min", shrink=0.9, pad=0.02)
    bar.set_label("R@1 with FR less R@1 without, points")
    headline(figure, title)
    signs = [f"{sign} {name}" for name, (sign, _) in zip(marks, MARKS, strict=False)]
    caption(figure, " · ".join(filter(None, [*signs, note])))
    return figure


def scale_panel(axes: Axes, grid: pd.DataFrame, limit: float) -> AxesImage:
    """One direction: the cells, and the diagonal of equal scales."""
    image = axes.imshow(grid, cmap=DIFFERENCES, vmin=-limit, vmax=limit, origin="lower",
                        aspect="equal", interpolation="nearest")
    axes.plot([-0.5, len(grid) - 0.5], [-0.5, len(grid) - 0.5], color=GREY, linewidth=0.6)
    scales = list(grid.index)
    step = -(-len(scales) // TICKS)
    shown = [place for place in range(0, len(scales), step) if place + step / 2 < len(scales)]
    shown.append(len(scales) - 1)
    axes.set_xticks(shown, [f"{scales[place]:g}" for place in shown])
    axes.set_yticks(shown, [f"{scales[place]:g}" for place in shown])
    axes.grid(False)
    return image
