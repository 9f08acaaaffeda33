"""Cosines of given vectors: of image and text, such as those of CLIP, or of image and image, by
which a text is as relevant as its own picture is alike. No model is imported here."""

import numpy as np

from itr_study.data.base import DataError
from itr_study.data.batches import EncodedSplit
from itr_study.relevance._given import GivenSource, Sides


class Clip(GivenSource):
    """Relevance of text j to image i: cosine of the given vectors of image i and text j.

    Args:
        folder: holds `<split>_images.npy` (I, D) and `<split>_texts.npy` (T, D), rows in the
            order of the split; scale: "unit" gives (1 + cosine) / 2, "cosine" the cosine.
    Shape: called with (batch, split) returns (I, T) float32 on the batch's device.
    Raises: ValueError without a folder, for another scale, or vectors of other data; DataError
        for files that are missing or cannot be read.
    Source: Hessel et al., CLIPScore, EMNLP 2021; bcls, Table II.
    Differs: CLIPScore is 2.5 max(cosine, 0), the same order where cosines are positive; matches
        are exactly 1, all others at most 1 - 1e-4.
    """

    name, version = "clip", 1

    @classmethod
    def files(cls) -> str:
        return "<split>_images.npy and <split>_texts.npy"

    def sides(self, split: EncodedSplit) -> Sides:
        images = self.read(split, "images", split.n_images)
        texts = self.read(split, "texts", split.n_texts)
        if images.shape[1] != texts.shape[1]:
            raise DataError(f"{self.folder}: vectors of images and texts of {split.name!r} must "
                            f"be equally wide, got {images.shape[1]} and {texts.shape[1]}")
        return Sides(images, texts, np.arange(split.n_texts))


class Features(GivenSource):
    """Relevance of text j to image i: cosine of given vectors of image i and of j's own image.

    Args:
        folder: holds `<split>_images.npy` (I, D), rows in the order of the split; scale: "unit"
            gives (1 + cosine) / 2, "cosine" the cosine.
    Shape: called with (batch, split) returns (I, T) float32 on the batch's device.
    Raises: ValueError without a folder, for another scale, or vectors of other data; DataError
        for a file that is missing or cannot be read.
    Source: bcls, Table II, compares visual features among its label sources.
    Differs: matches are exactly 1, all others at most 1 - 1e-4.
    """

    name, version = "features", 1

    @classmethod
    def files(cls) -> str:
        return "<split>_images.npy"

    def sides(self, split: EncodedSplit) -> Sides:
        images = self.read(split, "images", split.n_images)
        return Sides(images, images, split.image_of_text)
