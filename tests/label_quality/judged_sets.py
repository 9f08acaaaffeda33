"""Small images, captions and ratings for label sources: to be worked by hand."""

import numpy as np

from itr_study.data.base import Judgements
from itr_study.data.batches import EncodedSplit, JudgedPairs
from itr_study.encoders.ngrams import Ngrams

TEXTS = ("a red dog runs on the grass", "the red dog runs fast", "two cats sleep on a chair",
         "cats sleep", "a man rides a red horse on the grass", "a man rides fast")
OWNER = np.array([0, 0, 1, 1, 2, 2])
VECTORS = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8], [0.6, 0.8], [0.28, 0.96]], np.float32)
EXACT = np.array([[1, 1, 0, 0, 0.5, 0.25], [0, 0, 1, 1, 0, 0], [0.5, 0.999, 0, 0.25, 1, 1]],
                 np.float32)


def judged_split(exact: bool = False) -> EncodedSplit:
    """Three images with two captions each, with label vectors of three kinds; judged."""
    images, texts = np.array([0, 0, 1, 2, 2]), np.array([0, 4, 5, 3, 1])
    ratings = np.array([[4, 4, 4], [2, 3, 3], [1, 1, np.nan], [1, 2, 1], [3, 3, 2]])
    judged = Judgements("expert", tuple(map(str, images)), tuple(map(str, texts)), ratings,
                        np.array([True, False, False, False, False]), "c")
    return EncodedSplit(
        "test", OWNER, np.zeros((3, 1, 1, 0), np.float32), relevance=EXACT if exact else None,
        label_vectors={"mine": VECTORS, "cider": Ngrams().fit(TEXTS, OWNER).encode(TEXTS),
                       "texts": np.array(TEXTS, object)},
        judgements={"expert": JudgedPairs(images, texts, judged)})


class Overlap:
    """A stand-in for METEOR's program: share of words that two texts have in common."""

    def __init__(self):
        self.asked = 0

    def compute_score(self, gts, res):
        self.asked += len(res)
        sets = [(set(gts[n][0].split()), set(res[n][0].split())) for n in res]
        scores = [len(a & b) / len(a | b) for a, b in sets]
        return float(np.mean(scores)), scores
