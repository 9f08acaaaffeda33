"""Texts as n-grams weighted by how rare they are among training images: what CIDEr-D compares.

Source:  Vedantam, Zitnick & Parikh, CIDEr, CVPR 2015, Sec. 4 and Eqs. 1-2, and CIDEr-D of the
         coco-caption code, which clips counts and punishes a difference in length.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from itr_study.data.vocabulary import tokenize

ORDERS = 4  # n-grams of 1 to 4 words
CHUNK = 256  # candidates at a time
SIGMA = 6.0  # words: spread of the Gaussian over differences in length

Gram = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NgramVectors:
    """T texts as n-grams, ready for CIDEr-D as one sparse product.

    CIDEr-D clips: its product of counts a (candidate) and b (reference) of an n-gram is
    min(a, b) * b = sum over c >= 1 of [a >= c] * [b >= c] * b. So each column stands for "this
    n-gram at least c times"; `candidates` has weight 1 there, `references` b, both times idf and
    over the length of the text's vector of that order. `candidates @ references.T` is then the
    sum over n of the clipped cosines, over 4, for all pairs at once, and exact.
    """

    candidates: sparse.csr_array  # (T, F) float32
    references: sparse.csr_array  # (T, F) float32
    lengths: np.ndarray  # (T,) int64: bigrams, as coco-caption measures length
    source: object  # the one call of `encode` they come of: only those share columns

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, texts: np.ndarray) -> "NgramVectors":
        return NgramVectors(self.candidates[texts], self.references[texts], self.lengths[texts],
                            self.source)


class Ngrams:
    """CIDEr-D's view of texts; the rarity of n-grams is learnt from training captions only.

    idf of an n-gram = log(training images) - log(max(1, training images whose captions have it)).
    Raises:  ValueError: encoding before fitting, no texts, or lengths that do not fit.
    Source:  Vedantam et al., Eq. 1.
    Differs: words come from `tokenize`, not from Stanford's PTBTokenizer: digits, n't and 's are
             parted alike, but 'll and 're stay with their word, cannot and gonna stay whole, and
             signs such as & or % are dropped where PTB keeps them. coco-caption takes idf from
             the references of the test set itself; here it never sees a test caption.
    """

    name, version = "cider", 1

    def __init__(self) -> None:
        self.settings = {"orders": ORDERS, "sigma": SIGMA, "tokens": "words"}
        self.images = 0  # training images; 0 = not fitted
        self.image_counts: Counter[Gram] = Counter()  # n-gram -> training images that have it

    def fit(self, texts: Sequence[str], image_of_text: np.ndarray) -> "Ngrams":
        """Count in how many training images each n-gram is used."""
        if not len(texts) or len(texts) != len(image_of_text):
            raise ValueError("cider is fitted on training texts and the image of each; got "
                             f"{len(texts)} texts and {len(image_of_text)} images")
        used: dict[int, set[Gram]] = {}  # image -> the n-grams of its captions
        for text, image in zip(texts, np.asarray(image_of_text).tolist(), strict=True):
            used.setdefault(image, set()).update(ngrams(tokenize(text)))
        self.images = len(used)
        self.image_counts = Counter(gram for grams in used.values() for gram in grams)
        return self

    def idf(self, gram: Gram) -> float:
        """Compute log(images) - log(max(1, images that have it)), >= 0."""
        return math.log(self.images) - math.log(max(1, self.image_counts[gram]))

    def encode(self, texts: Sequence[str]) -> NgramVectors:
        """Encode all texts of a split: only texts encoded together can be compared."""
        if not self.images:
            raise ValueError("cider is not fitted; call fit(training texts, image_of_text) first")
        if not len(texts):
            raise ValueError("cider has no texts to encode")
        column: dict[tuple[Gram, int], int] = {}
        idf: dict[Gram, float] = {}
        starts, columns, ones, counts, lengths = [0], [], [], [], []
        for text in texts:
            words = tokenize(text)
            row = Counter(ngrams(words))
            for gram in row:
                if gram not in idf:
                    idf[gram] = self.idf(gram)
            norms = order_norms(row, idf)
            for gram, count in row.items():
                if not idf[gram]:
                    continue
                weight = idf[gram] / norms[len(gram) - 1]
                for c in range(1, count + 1):
                    columns.append(column.setdefault((gram, c), len(column)))
                    ones.append(weight / ORDERS)
                    counts.append(weight * count)
            starts.append(len(columns))
            lengths.append(max(0, len(words) - 1))
        return NgramVectors(matrix(ones, columns, starts, len(column)),
                            matrix(counts, columns, starts, len(column)),
                            np.array(lengths), object())


def ngrams(words: Sequence[str]) -> Iterator[Gram]:
    """Yield all runs of 1 to 4 words, repetitions too."""
    for n in range(1, ORDERS + 1):
        for start in range(len(words) - n + 1):
            yield tuple(words[start:start + n])


def order_norms(row: Counter[Gram], idf: dict[Gram, float]) -> np.ndarray:
    """Measure a text's vectors of counts times idf: (4,) lengths, one for each order."""
    squares = [0.0] * ORDERS
    for gram, count in row.items():
        squares[len(gram) - 1] += (count * idf[gram]) ** 2
    return np.sqrt(squares)


def matrix(values: list[float], columns: list[int], starts: list[int],
           width: int) -> sparse.csr_array:
    """Build (T, F) float32 of entries in the order of their rows."""
    return sparse.csr_array((np.array(values, np.float32), np.array(columns, np.int32),
                             np.array(starts, np.int32)), shape=(len(starts) - 1, width))


def cider_d(references: NgramVectors, candidates: NgramVectors) -> np.ndarray:
    """Compare every candidate with every reference alone: (R, C) float32 CIDEr-D / 10, in [0, 1].

    Source:  Vedantam et al., Sec. 4; CIDEr-D of coco-caption, over its factor 10.
    Example: texts of one word have no longer n-grams, so equal ones reach 1 of 4
        >>> grams = Ngrams().fit(["a dog", "a cat"], np.array([0, 1])).encode(["dog", "cat"])
        >>> cider_d(grams, grams).tolist()
        [[0.25, 0.0], [0.0, 0.25]]
    """
    check_same_source(references, candidates)
    values = np.empty((len(references), len(candidates)), np.float32)
    for start in range(0, len(candidates), CHUNK):
        part = slice(start, start + CHUNK)
        values[:, part] = product(references.references, candidates.candidates[part])
    apart = np.abs(references.lengths[:, None] - candidates.lengths)
    values *= length_factors(int(apart.max(initial=0)))[apart]
    return np.minimum(values, 1, out=values)


def product(a: sparse.csr_array, b: sparse.csr_array) -> np.ndarray:
    """Multiply a @ b.T, dense, for b of few rows: b is made dense on the columns it uses."""
    used = np.unique(b.indices)
    place = np.full(b.shape[1], -1, np.int32)
    place[used] = np.arange(len(used))
    dense = np.zeros((len(used), b.shape[0]), np.float32)
    dense[place[b.indices], np.repeat(np.arange(b.shape[0]), np.diff(b.indptr))] = b.data
    columns = place[a.indices]
    met = columns >= 0
    starts = np.concatenate(([0], np.cumsum(met)))[a.indptr]
    return sparse.csr_array((a.data[met], columns[met], starts),
                            shape=(a.shape[0], len(used))) @ dense


def cider_d_rows(references: NgramVectors, candidates: NgramVectors) -> np.ndarray:
    """Compare candidate n with reference n: (N,) float32 CIDEr-D / 10."""
    check_same_source(references, candidates)
    values = references.references.multiply(candidates.candidates).sum(axis=1)
    apart = np.abs(references.lengths - candidates.lengths)
    return np.minimum(values * length_factors(int(apart.max(initial=0)))[apart], 1)


def check_same_source(a: NgramVectors, b: NgramVectors) -> None:
    """Raise ValueError unless both were encoded together, so that columns mean the same."""
    if a.source is not b.source:
        raise ValueError("these n-gram vectors were encoded in different calls, so their columns "
                         "differ; encode all texts in one call and take rows of the result")


def length_factors(most: int) -> np.ndarray:
    """Weigh pairs whose lengths differ by 0, 1, ... most: (most + 1,)."""
    return np.exp(-np.arange(most + 1, dtype=np.float32) ** 2 / (2 * SIGMA**2))
