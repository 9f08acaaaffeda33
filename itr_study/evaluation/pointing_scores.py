"""How much of a map over regions lies in some boxes, beside maps that look nowhere.

    held = InBoxes(places, boxes)       regions of a picture, boxes of what a word names
    held.scored(weights)                the MEASURES of one map over these regions
"""

import numpy as np

from itr_study.data.boxes import areas, covered
from itr_study.metrics.attention import pixel_map

SPREAD = 0.25  # standard deviation of the centre's map, in sides of the picture
EVERYTHING = np.array([[0.0, 0.0, 1.0, 1.0]])
HALF = 0.5 + 1e-6  # of a map's largest value: a pixel of more belongs to what is looked at
PIXELS = 64  # a side of the raster on which places are compared with boxes
MEASURES = ("mass", "uniform", "centre", "area", "hit", "uniform_hit", "centre_hit",
            "iou", "uniform_iou", "centre_iou")


class InBoxes:
    """Places (R, 4) of the regions of a picture, NaN for one that lies nowhere, held against the
    boxes (N, 4) of one class; what no map changes is computed once.

    inside: (R,) how much of each place lies in any of the boxes, 0 of one that lies nowhere.

    Raises:  ValueError where all lie nowhere.
    """

    def __init__(self, places: np.ndarray, boxes: np.ndarray) -> None:
        lies = np.isfinite(places).all(axis=1)
        if not lies.any():
            raise ValueError("nobody knows where any region of this picture lies, so that no map "
                             "of it can be scored; take features whose boxes are known, such as "
                             'images="lite0:grid:one"')
        self.places, (self.inside, centre) = places.copy(), np.zeros((2, len(places)))
        self.inside[lies], centre[lies] = covered(places[lies], boxes), centre_map(places[lies])
        points = np.concatenate([middles(places), [[0.5, 0.5]]])[:, None]
        within = ((points >= boxes[:, :2]) & (points <= boxes[:, 2:])).all(axis=2).any(axis=1)
        self.hits, centre_hit = within[:-1], within[-1]  # false beside NaN
        self.named = pixel_map(np.ones(len(boxes)), boxes, PIXELS) > 0
        even = np.full(len(places), 1 / len(places))
        self.nowhere = {
            "uniform": self.inside.mean(), "centre": centre @ self.inside,
            "area": covered(EVERYTHING, boxes)[0], "uniform_hit": np.mean(self.hits),
            "centre_hit": centre_hit, "uniform_iou": self.overlap(even),
            "centre_iou": self.overlap(centre)}

    def scored(self, weights: np.ndarray) -> tuple[float, ...]:
        """The MEASURES of one map (R,).

        Example: of two halves the left one is the box; a map that gives it 0.8
            >>> halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
            >>> InBoxes(halves, halves[:1]).scored(np.array([0.8, 0.2]))[MEASURES.index("mass")]
            0.8
        """
        found = self.nowhere | {
            "mass": weights @ self.inside, "iou": self.overlap(weights),
            "hit": np.mean(self.hits, where=weights == weights.max())}
        return tuple(float(found[measure]) for measure in MEASURES)

    def overlap(self, weights: np.ndarray) -> float:
        """Intersection over union of what a map (R,) looks at with the boxes: the pixels of more
        than half its largest value, as it is drawn (`pixel_map`), and those in any box.

        More, not as much: where a region of the whole picture lies below all others, an even map
        has exactly half of its largest value beside them. It is then held to look at them, as a map
        is that differs from it by next to nothing.

        Source:  the localisation of CAM (Zhou et al., CVPR 2016, Sec. 3.2).
        Differs: half of the maximum, not a fifth; pixels themselves, not the box around the largest
                 part of them: a class may have several boxes.
        Example: the map looks at the left half, of which the box is the upper half
            >>> halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
            >>> InBoxes(halves, np.array([[0, 0, 0.5, 0.5]])).overlap(np.array([0.8, 0.2]))
            0.5
        """
        seen = pixel_map(weights, self.places, PIXELS)
        seen = seen > HALF * seen.max()
        union = (seen | self.named).sum()
        return float((seen & self.named).sum() / union) if union else 0.0


def centre_map(places: np.ndarray) -> np.ndarray:
    """(R,) weights that fall with the distance of a place's middle from the picture's, as a normal
    curve with standard deviation SPREAD, times the place's area: the map of somebody who always
    looks at the middle. They add up to 1."""
    squared = ((middles(places) - 0.5) ** 2).sum(axis=1)
    weights = areas(places) * np.exp(-squared / (2 * SPREAD ** 2))
    return weights / weights.sum()


def middles(places: np.ndarray) -> np.ndarray:
    """(R, 2) x and y."""
    return (places[:, :2] + places[:, 2:]) / 2
