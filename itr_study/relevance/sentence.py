"""Relevance scores computed (RSC): cosines of sentence vectors of captions."""

from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.data.batches import Batch
from itr_study.relevance._captions import (
    SCALES,
    Arrays,
    Captions,
    CaptionSource,
    check_vectors,
    cosines,
    pool_padded,
    rescale,
    row_cosines,
    tensor_cosines,
)

WIDTHS = {"minilm": 384}  # of encoders whose vectors have a known width


class Sentence(CaptionSource):
    """Relevance of text j to image i: cosine of sentence vectors of text j and i's captions.

    Args:
        vectors: name in `split.label_vectors`, (T, D) of all texts of the split.
        pooling: as `CaptionSource`; "pair" is the paper's.
        scale: "unit" gives (1 + cosine) / 2 in [0, 1], "cosine" the cosine in [-1, 1].

    Source: listwise Eqs. 7-8 ("unit"); bcls, Sec. III-B, takes the raw cosine ("cosine").
    Differs: the paper speaks of "the positive caption" of an image that has five, which is "pair"
        in training and undefined in a test; captions of the same image are matches, exactly 1, and
        all others at most 1 - 1e-4 (on both scales).
    Example: text 2 is half way between the captions 0 and 1 of image 0
        >>> from itr_study.data.batches import EncodedSplit
        >>> vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]], np.float32)
        >>> split = EncodedSplit("train", np.array([0, 0, 1]), np.zeros((2, 1, 1, 1)),
        ...                      label_vectors={"mine": vectors})
        >>> Sentence("mine", scale="cosine").block(split, slice(0, 2)).round(2)
        array([[1.  , 1.  , 0.96],
               [0.8 , 0.96, 1.  ]], dtype=float32)
        >>> Sentence("mine", "mean").block(split, slice(0, 1)).round(2)
        array([[1.  , 1.  , 0.94]], dtype=float32)
    """

    name, version = "sentence", 1

    def __init__(self, vectors: str = "minilm", pooling: str = "max", scale: str = "unit") -> None:
        super().__init__(pooling)
        check_choice("scale", scale, SCALES)
        if not isinstance(vectors, str):
            raise ValueError(f"vectors must be a name such as 'minilm', got {vectors!r}")
        self.vectors, self.scale, self.vectors_needed = vectors, scale, (vectors,)
        self._arrays: WeakKeyDictionary[Captions, Arrays] = WeakKeyDictionary()

    def check(self, vectors: np.ndarray, texts: int) -> None:
        """Raise ValueError unless these are vectors of that width."""
        check_vectors(f'split.label_vectors["{self.vectors}"]', vectors, texts,
                      WIDTHS.get(self.vectors))

    def of_batch(self, batch: Batch, captions: Captions) -> Tensor:
        """Return (I, T) on the batch's device."""
        device = batch.image_ids.device
        if captions not in self._arrays:
            self._arrays[captions] = Arrays(captions.vectors)
        (vectors,), (table, counts) = self._arrays[captions].on(device), captions.table.on(device)
        drawn = vectors[batch.text_ids]  # (T, D)
        if self.pooling == "pair":
            return rescale(tensor_cosines(drawn, drawn), self.scale)
        rows = table[batch.image_ids]  # (I, C)
        alike = tensor_cosines(vectors[rows.flatten()], drawn).view(*rows.shape, -1)  # (I, C, T)
        return rescale(pool_padded(alike, counts[batch.image_ids], self.pooling), self.scale)

    def alike(self, captions: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Return rescaled cosines of all pairs."""
        return rescale(cosines(captions, texts), self.scale)

    def alike_pairs(self, captions: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Return rescaled cosines row by row."""
        return rescale(row_cosines(captions, texts), self.scale)
