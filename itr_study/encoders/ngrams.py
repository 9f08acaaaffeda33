"""Texts as n-grams weighted by how rare they are among training images: what CIDEr-D compares.

Source:  Vedantam, Zitnick & Parikh, CIDEr, CVPR 2015, Sec. 4 and Eqs. 1-2, and CIDEr-D of the
         coco-caption code, which clips counts and punishes a difference in length.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from itr_study.data.vocabulary import tokenize

ORDERS = 4  # n-grams of 1 to 4 words
CHUNK = 256  # candidates at a time
SIGMA = 6.0  # words: spread of the Gaussian over differences in length
MOST_WORDS = 1 << 24  # different ones, in keys of n-grams
NO_KEY = np.iinfo(np.int64).max


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
        self.words: dict[str, int] = {}  # their numbers
        # of each order: keys of its n-grams as in `runs`, rising, and the images that have each
        self.image_counts: list[tuple[np.ndarray, np.ndarray]] = []

    def fit(self, texts: Sequence[str], image_of_text: np.ndarray) -> "Ngrams":
        """Count in how many training images each n-gram is used."""
        if not len(texts) or len(texts) != len(image_of_text):
            raise ValueError("cider is fitted on training texts and the image of each; got "
                             f"{len(texts)} texts and {len(image_of_text)} images")
        images, image = np.unique(image_of_text, return_inverse=True)
        self.images, self.words, self.image_counts = len(images), {}, []
        words, lengths = numbered(texts, self.words)
        for places, keys, grams in runs(words, lengths):
            used = np.sort(grams * self.images + np.repeat(image, lengths)[places])
            used = used[np.diff(used, prepend=-1) > 0]  # a tenth of the time of np.unique
            counts = np.bincount(used // self.images, minlength=len(keys))
            self.image_counts.append((np.append(keys, NO_KEY), np.append(counts, 0)))
        return self

    def encode(self, texts: Sequence[str]) -> NgramVectors:
        """Encode all texts of a split: only texts encoded together can be compared."""
        if not self.images:
            raise ValueError("cider is not fitted; call fit(training texts, image_of_text) first")
        if not len(texts):
            raise ValueError("cider has no texts to encode")
        words, lengths = numbered(texts, dict(self.words))
        text_of, width = np.repeat(np.arange(len(texts)), lengths), 0
        logs = np.array([math.log(max(1, count)) for count in range(self.images + 1)])
        known, parts = np.zeros(1, np.int64), []  # of an n-gram its place in `fit`, -1 if it is new
        for (places, keys, grams), (fitted, images) in zip(runs(words, lengths), self.image_counts,
                                                           strict=True):
            keys = known[keys // MOST_WORDS] * MOST_WORDS + keys % MOST_WORDS
            known = np.searchsorted(fitted, keys)
            known[fitted[known] != keys] = -1
            idf = math.log(self.images) - logs[images[known]]  # the last count is 0
            owners = text_of[places]
            _, first, counts = np.unique(owners * len(keys) + grams, return_index=True,
                                         return_counts=True)
            order = np.argsort(first)
            first, counts = first[order], counts[order]
            owners, grams = owners[first], grams[first]
            weights = idf[grams]
            norms = np.sqrt(np.bincount(owners, (counts * weights) ** 2))
            rows = np.repeat(np.arange(len(first)), np.where(weights, counts, 0))
            least = np.arange(len(rows)) - np.searchsorted(rows, rows)  # 0 to its count - 1
            kinds, column = np.unique(grams[rows] * MOST_WORDS + least, return_inverse=True)
            values = weights[rows] / norms[owners[rows]]
            parts.append((owners[rows], column + width, values / ORDERS, values * counts[rows]))
            width += len(kinds)
        owners, columns, ones, counted = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(owners, kind="stable")  # text by text, in each the short runs first
        starts = np.cumsum(np.bincount(owners + 1, minlength=len(texts) + 1))
        columns = columns[order]
        first = np.empty(width, np.int64)
        first[columns[::-1]] = np.arange(len(columns))[::-1]  # the last that is written stays
        place = np.empty(width, np.int32)
        place[np.argsort(first)] = np.arange(width)
        return NgramVectors(matrix(ones[order], place[columns], starts, width),
                            matrix(counted[order], place[columns], starts, width),
                            np.maximum(lengths - 1, 0), object())


def numbered(texts: Sequence[str], known: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Number all words, one text after the other, and count those of each; `known` grows."""
    words, lengths = [], []
    for text in texts:
        found = tokenize(text)
        words += [known.setdefault(word, len(known)) for word in found]
        lengths.append(len(found))
    return np.array(words, np.int64), np.array(lengths)


def runs(words: np.ndarray, lengths: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield all runs of 1, 2, ... words of texts, as `numbered` gives them, order by order.

    Returns: places (N,) where one begins; keys (G,) of those that differ: of the run without its
        last word the place among their keys, times MOST_WORDS, plus the number of that word; and
        which of these (N,) each is.
    """
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(words))  # words to the end
    places, grams = np.arange(len(words)), np.zeros(len(words), np.int64)
    for n in range(ORDERS):
        inside = left[places] > n
        places = places[inside]
        keys, grams = np.unique(grams[inside] * MOST_WORDS + words[places + n], return_inverse=True)
        yield places, keys, grams


def matrix(values: np.ndarray, columns: np.ndarray, starts: np.ndarray,
           width: int) -> sparse.csr_array:
    """Build (T, F) float32 of entries in the order of their rows."""
    return sparse.csr_array((values.astype(np.float32), columns, starts.astype(np.int32)),
                            shape=(len(starts) - 1, width))


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
