"""Boxes in a picture: (N, 4) left, top, right and bottom in fractions of its sides."""

import numpy as np

from itr_study.checks import check_count


def grid_boxes(side: int) -> np.ndarray:
    """Where the cells of a grid lie, row by row: (side * side, 4).

    Example:
        >>> grid_boxes(2)[1].tolist()  # top right
        [0.5, 0.0, 1.0, 0.5]
    """
    check_count("side", side)
    row, column = np.divmod(np.arange(side * side), side)
    return np.stack([column, row, column + 1, row + 1], axis=1) / side


def areas(boxes: np.ndarray) -> np.ndarray:
    """(..., 4) -> (...) share of the picture; 0 for boxes whose sides have changed places."""
    return np.clip(boxes[..., 2:] - boxes[..., :2], 0, None).prod(axis=-1)


def shared(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area that box i (N, 4) has in common with box j (M, 4): (N, M)."""
    return areas(np.concatenate([np.maximum(some[:, None, :2], others[None, :, :2]),
                                 np.minimum(some[:, None, 2:], others[None, :, 2:])], axis=-1))


def overlaps(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of box i (N, 4) with box j (M, 4): (N, M), 0 for empty boxes.

    Example:
        >>> overlaps(np.array([[0, 0, 0.5, 1]]), np.array([[0.25, 0, 0.75, 1], [0, 0, 0.5, 1]]))
        array([[0.33333333, 1.        ]])
    """
    both = shared(some, others)
    union = areas(some)[:, None] + areas(others)[None] - both
    return np.divide(both, union, out=np.zeros(both.shape), where=union > 0)


def separate(boxes: np.ndarray, scores: np.ndarray, overlap: float,
             classes: np.ndarray | None = None) -> np.ndarray:
    """Indices of the boxes (N, 4) that stay, the highest score (N,) first: of boxes that overlap by
    more than `overlap` (intersection over union) only the first, and of boxes with classes (N,)
    only those of one class drive each other out. Of equal scores the first in order stands first.

    Example: the second box overlaps the first by 0.9; the third lies apart
        >>> boxes = np.array([[0, 0, 0.9, 1], [0, 0, 1, 1], [0.9, 0.9, 1, 1]])
        >>> separate(boxes, np.array([0.5, 0.4, 0.6]), 0.8)
        array([2, 0])
    """
    classes = np.zeros(len(boxes), int) if classes is None else classes
    left, kept = np.argsort(-scores, kind="stable"), []
    while len(left):
        one, left = left[0], left[1:]
        kept.append(one)
        alike = overlaps(boxes[one][None], boxes[left])[0] > overlap
        left = left[~(alike & (classes[left] == classes[one]))]
    return np.array(kept, np.int64)


def covered(places: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Share of each place (R, 4) that lies in any of some boxes (N, 4): (R,).

    What two boxes have in common counts once: edges of all cut the picture into tiles that are
    wholly in or out, and a place is made of tiles.

    Raises:  ValueError for a place without an area.
    Example: the left half, of which two boxes that overlap cover three quarters
        >>> covered(np.array([[0, 0, 0.5, 1]]), np.array([[0, 0, 1, 0.5], [0, 0.25, 1, 0.75]]))
        array([0.75])
    """
    size = areas(places)
    if not (size > 0).all():
        raise ValueError(f"place {int(np.argmin(size))} has no area; give left, top, right and "
                         "bottom, each above 0")
    everything = np.concatenate([places, boxes])
    across, down = (np.unique(everything[:, [axis, axis + 2]]) for axis in (0, 1))
    inside = np.zeros((len(down) - 1, len(across) - 1), bool)
    for left, top, right, bottom in boxes:
        inside |= (((down[:-1] >= top) & (down[1:] <= bottom))[:, None]
                   & ((across[:-1] >= left) & (across[1:] <= right)))
    tiles = inside * np.outer(np.diff(down), np.diff(across))
    total = np.pad(tiles.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))  # up to each edge
    x0, x1 = (np.searchsorted(across, places[:, i]) for i in (0, 2))
    y0, y1 = (np.searchsorted(down, places[:, i]) for i in (1, 3))
    found = total[y1, x1] - total[y0, x1] - total[y1, x0] + total[y0, x0]
    return np.clip(found / size, 0, 1)
