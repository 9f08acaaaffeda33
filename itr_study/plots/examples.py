"""Pictures of the data themselves: examples with their texts, and confusable pairs."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
from PIL import Image

from itr_study.plots.style import Picture, canvas, caption, headline, styled

WIDTH, HEIGHT = 3.2, 2.6  # inches of a column and of a picture in it
WIDEST = 9.6  # inches of all columns: what is wider is shrunk in a notebook, and its type with it
LETTERS = 14.4  # of 8 pt in an inch


@styled
def example_grid(examples: Sequence[tuple[Image.Image, Sequence[str]]], title: str,
                 columns: int = 3, note: str = "") -> Picture:
    """Pictures with all their texts below, wrapped and never cut (as topk Figs. 1 and 3).

    Args:    examples: (picture, texts) pairs, at least one.
    Source:  Zhang et al., Deep Top-k Ranking, Figs. 1 and 3.
    """
    if not examples:
        raise ValueError("example_grid needs at least one (picture, texts) pair, got none")
    columns = min(columns, len(examples))
    width = min(WIDTH, WIDEST / columns)
    blocks = ["\n".join("\n".join(wrap(text, int(LETTERS * width), initial_indent="• ",
                                       subsequent_indent="   ")) for text in texts)
              for _, texts in examples]
    rows = -(-len(examples) // columns)
    lines = [max(block.count("\n") + 1 for block in blocks[row * columns:(row + 1) * columns])
             for row in range(rows)]
    heights = [part for count in lines for part in (min(HEIGHT, width), 0.145 * count + 0.1)]
    figure, panels = canvas(columns, 2 * rows, size=(width * columns, sum(heights) + 0.7),
                            gridspec_kw={"height_ratios": heights})
    for axes in panels:
        axes.axis("off")
    for place, ((picture, _), block) in enumerate(zip(examples, blocks, strict=True)):
        above = 2 * (place // columns) * columns + place % columns
        panels[above].imshow(np.asarray(picture.convert("RGB")), interpolation="lanczos")
        panels[above].set_anchor("W")
        panels[above + columns].text(0, 1, block, fontsize=8, va="top", linespacing=1.15)
    headline(figure, title)
    caption(figure, note)
    return figure
