"""Binary labels: 1 where the text was written about the image, else 0."""

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.data.batches import Batch, EncodedSplit

SAME_IMAGE = ("positive", "negative")


class Binary:
    """Relevance 1 for the texts of an image and 0 for all others, decided by image id.

    Args: same_image: what another text of the same image is. "positive": a match, which is true.
        "negative": no match, as published code has it; then only the diagonal of a batch of pairs
        is a match, even if an image was drawn twice.

    Raises: ValueError for another value; "negative" on a batch that is not made of pairs.
    Source: bcls Eq. 10 and Fig. 6 ("positive"); topk Eq. 12, bcls Eq. 1 ("negative").
    Example: two texts of image 7 and one of image 9, drawn as pairs
        >>> ids = torch.tensor([7, 7, 9])
        >>> batch = Batch(image_ids=ids, text_ids=torch.arange(3), text_images=ids)
        >>> Binary()(batch).tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> Binary(same_image="negative")(batch).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    name, version, scale = "binary", 1, "binary"
    vectors_needed: tuple[str, ...] = ()

    def __init__(self, same_image: str = "positive") -> None:
        check_choice("same_image", same_image, SAME_IMAGE)
        self.same_image = same_image

    def __call__(self, batch: Batch, split: EncodedSplit | None = None) -> Tensor:
        """Return (I, T) float32, 0 or 1, on the batch's device."""
        if self.same_image == "positive":
            return batch.match.float()
        ids = batch.ids
        if not ids.paired:
            raise ValueError('same_image="negative" needs a batch of pairs, row i the image of '
                             f"text i; got {len(ids.images)} images and {len(ids.texts)} texts "
                             'that are not paired. Take same_image="positive" here.')
        return torch.eye(len(ids.images), device=batch.image_ids.device)

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """Return (i, T) float32, 0 or 1, of every text of a split and a slice of its images."""
        if self.same_image == "negative":
            raise ValueError('same_image="negative" is about batches of pairs; a whole split has '
                             'no pairs. Take same_image="positive" here.')
        rows = np.arange(split.n_images)[images]
        return (rows[:, None] == split.image_of_text).astype(np.float32)
