"""Exact graded labels, for data that knows how far each text describes each image."""

import numpy as np
import torch
from torch import Tensor

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.relevance._captions import finish, finish_batch


class Exact:
    """The data's own graded relevance: 1 for matches, at most 1 - 1e-4 for every other pair.

    Raises: ValueError if the split has no graded relevance.
    Source: this package; the generated data set `scenes` has it.
    Example: text 1 fits image 0 as well as its own image, but was not written about it
        >>> split = EncodedSplit("train", np.array([0, 1]), np.zeros((2, 1, 1, 1)),
        ...                      relevance=np.array([[1, 1], [0.2, 1]]))
        >>> ids = torch.arange(2)
        >>> Exact()(Batch(image_ids=ids, text_ids=ids, text_images=ids), split)
        tensor([[1.0000, 0.9999],
                [0.2000, 1.0000]])
    """

    name, version, scale = "exact", 1, "unit"
    vectors_needed: tuple[str, ...] = ()

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """Return (I, T) float32 on the batch's device."""
        pairs = np.ix_(batch.ids.images, batch.ids.texts)
        values = torch.from_numpy(np.asarray(self._given(split)[pairs], np.float32))
        return finish_batch(values, batch)

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """Return (i, T) float32 of every text of a split and a slice of its images."""
        rows = np.arange(split.n_images)[images]
        return finish(self._given(split)[rows], rows[:, None] == split.image_of_text)

    def _given(self, split: EncodedSplit) -> np.ndarray:
        if split.relevance is None:
            raise ValueError(f'labels "exact" need graded relevance, and split {split.name!r} of '
                             'this data has none: encode a data set that has it (scenes) with '
                             'relevance=True, or take labels "binary"')
        return split.relevance
