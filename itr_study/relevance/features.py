"""Image-image cosines of given vectors: a text is as relevant as its own picture is alike."""

from itr_study.data.batches import EncodedSplit
from itr_study.relevance._given import GivenSource, Sides


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
