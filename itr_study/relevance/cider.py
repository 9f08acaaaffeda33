"""CIDEr-D of captions as relevance: words shared, rare ones more; sees no pretrained network."""

import numpy as np

from itr_study.encoders.ngrams import NgramVectors, cider_d, cider_d_rows
from itr_study.relevance._captions import CaptionSource


class Cider(CaptionSource):
    """Relevance of text j to image i: CIDEr-D / 10 of text j with the captions of image i.

    It knows no text but the training captions, so no leakage from a sentence encoder that has seen
    test captions can be in it: the control of runs with labels "sentence".

    Source: Vedantam et al., CVPR 2015, Sec. 4 (pooling "mean"); bcls, Table II.
    Differs: over 10, so that it is in [0, 1]; tokens and idf as `encoders.ngrams.Ngrams` says;
        matches exactly 1, all others at most 1 - 1e-4.
    Example: text 2 is a caption of image 0 too; of two words, it has but 2 of the 4 orders
        >>> from itr_study.data.batches import EncodedSplit
        >>> from itr_study.encoders.ngrams import Ngrams
        >>> texts, owner = ["a dog", "the dog", "a dog", "a cat"], np.array([0, 0, 1, 2])
        >>> vectors = {"cider": Ngrams().fit(texts, owner).encode(texts)}
        >>> split = EncodedSplit("train", owner, np.zeros((3, 1, 1, 1)), label_vectors=vectors)
        >>> Cider().block(split, slice(0, 1)).round(3).tolist()
        [[1.0, 1.0, 0.5, 0.0]]
    """

    name, version, scale, vectors_needed = "cider", 1, "unit", ("cider",)

    def check(self, vectors: object, texts: int) -> None:
        """Raise ValueError unless these are n-gram vectors."""
        if not isinstance(vectors, NgramVectors):
            raise ValueError('split.label_vectors["cider"] must be NgramVectors of encoders.ngrams,'
                             f' got {type(vectors).__name__}: encode with label_vectors=("cider",)')

    def alike(self, captions: NgramVectors, texts: NgramVectors) -> np.ndarray:
        """Return CIDEr-D / 10 of all pairs."""
        return cider_d(captions, texts)

    def alike_pairs(self, captions: NgramVectors, texts: NgramVectors) -> np.ndarray:
        """Return CIDEr-D / 10 row by row."""
        return cider_d_rows(captions, texts)
