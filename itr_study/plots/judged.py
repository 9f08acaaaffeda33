"""Label sources against people: agreement, relevance by rating, shares of ratings."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    SPARE,
    WRONG,
    Picture,
    canvas,
    finish,
    legend_above,
    mark,
    styled,
)

RATED_LOOKS = {"own captions left out": (INK, "o", "full"), "all pairs": ("#0072b2", "D", "none")}
WIDTH, ROW = 7.2, 0.24  # inches


@styled
def agreement_dots(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw how label sources agree with judges, a panel per judge; printed: squares.

    Args: table: judge, statistic, source, rated ("own captions left out", "all pairs"), value, low,
        high (percent; NaN: no interval) and reported (bool).
    """
    judges = list(table.groupby("judge", sort=False))
    rows = [part.groupby(["source", "reported"]).ngroups for _, part in judges]
    figure, panels = canvas(rows=len(judges), size=(WIDTH, 1.1 + sum(0.62 + ROW * n for n in rows)),
                            height_ratios=[n + 1 for n in rows])
    for axes, (judge, part) in zip(panels, judges, strict=True):
        agreement_panel(axes, part)
        axes.set(title=judge, xlabel=f"{part['statistic'].iloc[0]} × 100")
    entries = [mark(marker, colour, rated, fill)
               for rated, (colour, marker, fill) in RATED_LOOKS.items()
               if (~table["reported"] & (table["rated"] == rated)).any()]
    if table["reported"].any():
        entries.append(mark("s", GREY, "reported", fill="none"))
    legend_above(panels[0], entries, columns=3)
    return finish(figure, title, note)


def agreement_panel(axes: Axes, part: pd.DataFrame) -> None:
    """Draw one judge: a line per source, ours first."""
    part = part.sort_values("reported", kind="stable")
    groups = list(part.groupby(["source", "reported"], sort=False))
    for height, ((_, printed), rows) in enumerate(groups):
        for _, row in rows.iterrows():
            colour, marker, fill = (GREY, "s", "none") if printed else RATED_LOOKS[row["rated"]]
            line = height + (0 if printed else {"full": -0.14, "none": 0.14}[fill])
            axes.plot([row["low"], row["high"]], [line, line], color=colour, linewidth=1.4)
            axes.plot(row["value"], line, marker, color=colour,
                      markerfacecolor=colour if fill == "full" else "white")
    axes.set_yticks(range(len(groups)), [name for (name, _), _ in groups])
    for tick, ((_, printed), _) in zip(axes.get_yticklabels(), groups, strict=True):
        tick.set(color=GREY if printed else INK, fontstyle="italic" if printed else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.margins(x=0.06)


@styled
def relevance_by_rating(table: pd.DataFrame, title: str, x_label: str, note: str = "") -> Picture:
    """Draw relevance at each rating per source: quartiles, whiskers at 5 and 95 %.

    Args: table: source, rating (a level), relevance.
    """
    groups = list(table.groupby("source", sort=False))
    figure, panels = canvas(len(groups))
    for position, (axes, (source, part)) in enumerate(zip(panels, groups, strict=True)):
        levels = list(part.groupby("rating", sort=True, observed=True)["relevance"])
        boxes = axes.boxplot([values for _, values in levels], whis=(5, 95), showfliers=False,
                             widths=0.55, patch_artist=True, medianprops={"color": INK})
        for box in boxes["boxes"]:
            box.set(facecolor=SPARE[position % len(SPARE)], alpha=0.45)
        axes.set_xticks(range(1, len(levels) + 1), [f"{level}\nn = {len(values):,}"
                                                    for level, values in levels])
        axes.set(title=source, xlabel=x_label, ylabel="relevance")
    return finish(figure, title, note)


@styled
def rating_bars(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw the share of each rating, a panel per judge, a bar per kind of pair.

    Args: table: judge, rating (a level), own (bool: of the same image), share (percent of the
        judge's pairs of this kind), pairs.
    """
    judges = list(table.groupby("judge", sort=False))
    figure, panels = canvas(len(judges), sharey=True)
    looks = ((True, RIGHT, -0.2, "", "of one image"), (False, WRONG, 0.2, "///", "across images"))
    for axes, (judge, part) in zip(panels, judges, strict=True):
        levels = list(dict.fromkeys(part["rating"]))
        for own, colour, shift, hatch, _ in looks:
            shown = part[part["own"] == own]
            axes.bar([levels.index(level) + shift for level in shown["rating"]], shown["share"],
                     0.38, color=colour, alpha=0.75, hatch=hatch, edgecolor="white", linewidth=0.4)
        axes.set_xticks(range(len(levels)), levels)
        axes.set(title=judge, xlabel="rating", ylabel="pairs, %" if axes is panels[0] else "")
        axes.grid(False, axis="x")
    entries = [Patch(facecolor=colour, alpha=0.75, hatch=hatch, edgecolor="white", label=label)
               for _, colour, _, hatch, label in looks]
    return finish(figure, title, note, marks=entries)
