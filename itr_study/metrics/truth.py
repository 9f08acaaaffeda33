"""Ground truth of a test set: which text describes which image, and how relevant pairs are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from itr_study.checks import check_choice, check_count, check_numbers

DIRECTIONS = ("i2t", "t2i")
IMAGES = 256  # of a block of relevance, at most


@dataclass(frozen=True, eq=False)
class Positives:
    """Index lists of differing lengths, end to end: `positives[q]` are the matches of query q.

    items (P,) int64; starts (Q + 1,) int64: list q is items[starts[q]:starts[q + 1]].
    """

    starts: np.ndarray
    items: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, query: int) -> np.ndarray:
        if not 0 <= query < len(self):
            raise IndexError(f"query must be in [0, {len(self)}), got {query}")
        return self.items[self.starts[query]:self.starts[query + 1]]

    def take(self, queries: np.ndarray) -> "Positives":
        """Take the lists of some queries (q,), in their order; queries may repeat."""
        lengths = np.diff(self.starts)[queries]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        shift = np.repeat(self.starts[queries] - starts[:-1], lengths)
        return Positives(starts, self.items[shift + np.arange(starts[-1])])


@dataclass(frozen=True, eq=False)
class Truth:
    """Matches in both directions, and relevance in blocks of images.

    Args:
        image_of_text: (T,) int, the image each text describes, in any order; every image has at
            least one text, and how many may differ.
        n_images: I; -1: one more than the largest index in image_of_text.
        graded: function of a slice of images giving their relevance (i, T) in [0, 1]; without it
            relevance is 1 for matches, else 0.
    Raises: ValueError for an index out of range, an image without a text.
    Example: texts 0 and 2 describe image 0, text 1 describes image 1
        >>> truth = Truth(np.array([0, 1, 0]))
        >>> truth.positives("i2t")[0], truth.positives("t2i")[1]
        (array([0, 2]), array([1]))
        >>> truth.relevance(slice(1, 2))
        array([[0., 1., 0.]], dtype=float32)
    """

    image_of_text: np.ndarray
    n_images: int = -1
    graded: Callable[[slice], np.ndarray] | None = None

    def __post_init__(self) -> None:
        owner = whole_numbers(self.image_of_text)
        if self.n_images == -1:
            object.__setattr__(self, "n_images", int(owner.max()) + 1)
        object.__setattr__(self, "image_of_text", check_image_of_text(owner, self.n_images))

    @property
    def n_texts(self) -> int:
        """T."""
        return len(self.image_of_text)

    def positives(self, direction: str) -> Positives:
        """List the matches of each image ("i2t", texts in ascending order) or text ("t2i")."""
        check_choice("direction", direction, DIRECTIONS)
        if direction == "t2i":
            return Positives(np.arange(self.n_texts + 1), self.image_of_text)
        counts = np.bincount(self.image_of_text, minlength=self.n_images)
        starts = np.concatenate(([0], np.cumsum(counts)))
        return Positives(starts, np.argsort(self.image_of_text, kind="stable"))

    def relevance(self, images: slice) -> np.ndarray:
        """Return the relevance (i, T) of every text to the images of a slice."""
        rows = np.arange(self.n_images)[images]
        if self.graded is None:
            return (rows[:, None] == self.image_of_text).astype(np.float32)
        values = np.asanyarray(self.graded(images))
        check_numbers(values, "relevance")
        if values.shape != (len(rows), self.n_texts):
            raise ValueError(f"graded relevance of {images} must be {(len(rows), self.n_texts)}, "
                             f"got {values.shape}")
        return values

    def blocks(self) -> list[slice]:
        """Cut all images into slices of IMAGES."""
        return [slice(a, min(a + IMAGES, self.n_images)) for a in range(0, self.n_images, IMAGES)]


def whole_numbers(image_of_text: object) -> np.ndarray:
    """Convert to (T,) int64, which unlike unsigned types has a -1; else raise ValueError."""
    owner = np.asarray(image_of_text)
    if owner.ndim != 1 or not np.issubdtype(owner.dtype, np.integer) or len(owner) == 0:
        raise ValueError("image_of_text must be a non-empty 1-dim array of integers, got shape "
                         f"{owner.shape} and {owner.dtype}")
    return owner.astype(np.int64)


def check_image_of_text(image_of_text: object, n_images: int,
                        n_texts: int | None = None) -> np.ndarray:
    """Convert to (T,) int64; raise ValueError unless each image has a text and vice versa."""
    owner = whole_numbers(image_of_text)
    check_count("n_images", n_images, 0)
    if n_texts is not None and len(owner) != n_texts:
        raise ValueError(f"image_of_text must have one entry per text: expected {n_texts} "
                         f"(columns of the scores), got {len(owner)}")
    if owner.min() < 0 or owner.max() >= n_images:
        raise ValueError(f"image_of_text must lie in [0, {n_images}), one row of the scores per "
                         f"image; found {owner.min()} to {owner.max()}")
    counts = np.bincount(owner, minlength=n_images)
    if counts.min() == 0:
        empty = np.flatnonzero(counts == 0)
        raise ValueError(f"every image needs at least one text; {len(empty)} have none, the first "
                         f"is image {empty[0]}. Leave them out of the scores.")
    return owner
