"""Pictures of sub-embeddings, from numbers made up."""

from functools import cache

import numpy as np

from itr_study import plots
from itr_study.data.box_table import grid_boxes
from itr_study.metrics.attention import rank_map
from tests.plots.frames import picture
from tools import drawings

HALF = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
BOXES = np.array([[0, 0, 0.5, 1], [0.5, 0.5, 1, 1], [np.nan] * 4, [0, 0, 1, 1]])
SHARP = np.array([[0.7, 0.1, 0.1, 0.1], [0.0, 0.9, 0.1, 0.0]])  # two heads, four regions


def maps() -> dict[str, np.ndarray]:
    """Both maps of two heads."""
    return {"softmax attention": SHARP, "rank map": rank_map(SHARP)}


@cache
def head_pictures() -> dict:
    """One of each kind."""
    many = np.eye(49)[:8]
    return {"correlations": plots.correlation_maps({f"({c}) variant": HALF for c in "abcd"}, "Half",
                                                   "n = 1"),
            "ten heads": plots.correlation_maps({"ten": np.eye(10)}, "Ten"),
            "attention": plots.attention_maps(picture(size=(60, 60)), BOXES, maps(), "Two"),
            "many heads": plots.attention_maps(picture(size=(60, 60)), grid_boxes(7),
                                               {"softmax attention": many}, "Eight heads"),
            "collapse": drawings.schematic_collapse(), "weights": drawings.schematic_weights(),
            "subembeddings": drawings.schematic_subembeddings()}
