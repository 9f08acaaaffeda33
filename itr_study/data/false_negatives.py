"""How many false negatives a batch holds: pairs that are no match, though the text is as true of
the image as if it had been written about it.

    graded = dataset.relevance(dataset.splits["train"])
    expected_pairs(graded, dataset.splits["train"].image_of_text, batch=128).share

Every loss takes such a pair for a negative. Other texts of the same image, siblings, are no false
negatives: a match is decided by image id, and they are matches (`same_image="negative"` of a label
source would make them negatives).
"""

from typing import NamedTuple

import numpy as np

from itr_study.checks import GAP, MATCH, check_count

ROWS = 256  # images looked at at a time


class Pairs(NamedTuple):
    """What a batch of B pairs holds beside its own: of B (B - 1) cells, row i is the image of text
    i, how many are false negatives, and how many join an image with a sibling of its text."""

    cells: int
    false_negatives: float
    siblings: float

    @property
    def share(self) -> float:
        """Of the cells, those that are false negatives."""
        return self.false_negatives / self.cells


def expected_pairs(relevance: np.ndarray, image_of_text: np.ndarray, batch: int) -> Pairs:
    """The mean over all batches of different texts, each as likely as any other; counted, not
    sampled.

    Each of the T (T - 1) ordered pairs of texts is in a batch of B with probability
    B (B - 1) / (T (T - 1)), as row (the image of the first) and column, so the share of false
    negatives is the same for batches of every size.

    Args:    relevance: (I, T) exact, of at least 1 - 1e-4 where a text is wholly true of an image;
             image_of_text: (T,); batch: B, 2 to T.
    Raises:  ValueError for another shape or batch.
    Source:  this package.
    Example: text 1 is true of image 0 as well, whose two texts are siblings
        >>> graded = np.array([[1.0, 0.9999, 1.0], [0.2, 1.0, 0.5]])
        >>> expected_pairs(graded, np.array([0, 1, 0]), batch=3)
        Pairs(cells=6, false_negatives=2.0, siblings=2.0)
    """
    owner = np.asarray(image_of_text)
    check_count("batch", batch, 2, len(owner))
    if relevance.shape[1] != len(owner) or relevance.shape[0] <= owner.max():
        raise ValueError(f"relevance must be (I, T) of the {len(owner)} texts and their images, "
                         f"got {relevance.shape}")
    texts = np.bincount(owner, minlength=len(relevance))  # of each image
    found = 0
    for start in range(0, len(relevance), ROWS):
        rows = np.arange(len(relevance))[start:start + ROWS]
        false = as_true(relevance[rows]) & (owner != rows[:, None])
        found += int(texts[rows] @ false.sum(axis=1))
    cells, all_cells = batch * (batch - 1), len(owner) * (len(owner) - 1)
    siblings = int((texts * (texts - 1)).sum())
    return Pairs(cells, found * cells / all_cells, siblings * cells / all_cells)


def as_true(relevance: np.ndarray) -> np.ndarray:
    """Where a text is wholly true of an image; float32 holds 1 - 1e-4 to within 3e-8."""
    return np.asarray(relevance) > MATCH - 1.5 * GAP
