"""Measure anyone's scores or embeddings, and say by which protocol: `itr.score`.

Numbers of different protocols cannot be compared, and many published ones were: one caption an
image instead of five, a whole data set instead of its test split, ties in the order of a file. What
makes numbers wrong is refused; what makes them another protocol's is said.
"""

from typing import NamedTuple

import numpy as np
import torch

from itr_study.checks import check_choice
from itr_study.digits import counted
from itr_study.evaluation.table import percent, retrieval_table
from itr_study.metrics import GRADED_METRICS, Ranks, Truth, hubness, query_means, ranks
from itr_study.metrics.graded import host_blocks
from itr_study.metrics.ndcg import ndcg
from itr_study.metrics.ranks import padded, vectors_of
from itr_study.metrics.recall import five_fold
from itr_study.metrics.retrieval_sets import map_at_r, r_precision
from itr_study.metrics.scores import QUERIES, Matrix, Scores
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text

SIMILARITIES = ("cosine", "dot")
FOLDED = 5000  # images of the test split whose five folds are "1K"
# Images of whole data sets, whose test splits have 1,000 or 5,000.
WHOLE = {8091: "Flickr8k", 8092: "Flickr8k", 31014: "Flickr30k", 31783: "Flickr30k", 123287: "COCO"}
UNIT = 1e-2  # by which the length of a vector of half precision may differ from 1


class Scorecard(NamedTuple):
    """What `score` gives."""

    table: dict[str, float]  # percent; ranks, RSUM and hubness as they are
    protocol: list[str]  # sentences: what was ranked, and what to know before one compares
    ranks: Ranks  # of the best match of every query


def score(scores: Matrix | None = None, image_of_text: np.ndarray | None = None,
          relevance: Matrix | None = None, *, images: Matrix | None = None,
          texts: Matrix | None = None, similarity: str | None = None) -> Scorecard:
    """Measure scores, or embeddings, of any model in both directions.

    Args:
        scores: (I, T), images down, higher = more alike; it may be memory-mapped.
        image_of_text: (T,) int, the row of each text's image; None: equally many texts an image,
            one image after the other.
        relevance: (I, T) graded, in [0, 1]; None: only matches are relevant.
        images: (I, D) vectors, instead of scores.
        texts: (T, D) vectors.
        similarity: of vectors: "cosine" or "dot"; None: their lengths must be 1.
    Returns: recall, ranks and RSUM as `retrieval_table`, R-Precision (rp), mAP@R (map), NDCG and
        hubness; with relevance also tau, cs100 and rel10; of 5,000 images also the mean of five
        folds (1k).
    Raises: ValueError for a known mistake of protocol, with the remedy: rows and columns swapped,
        one text an image scored of several, images that come again, scores of pairs alone, all
        scores equal, NaN, vectors that are not of length 1.

    Example: each image finds its text first; text 1 finds image 1 second
        >>> card = score(np.array([[0.9, 0.5], [0.1, 0.4]]))
        >>> card.table["i2t_r1"], card.table["t2i_r1"], card.protocol[0]
        (100.0, 50.0, '2 images, 2 texts, 1 an image')
    """
    if (scores is None) == (images is None or texts is None):
        raise ValueError("give scores (I, T), or both images (I, D) and texts (T, D)")
    shape = tuple(np.shape(scores)) if scores is not None else (len(images), len(texts))
    owner = owners(shape, image_of_text)
    matrix = products(images, texts, similarity) if scores is None else scores
    table, protocol, best = recalled(matrix, owner)
    if relevance is not None and (of := tuple(np.shape(relevance))) != shape:
        raise ValueError(f"relevance must be {shape} as the scores, got {of}")
    truth = Truth(owner, shape[0], None if relevance is None else lambda rows: np.asarray(
        relevance[rows]))
    sets = r_precision(matrix, truth) | map_at_r(matrix, truth)
    short = {"r_precision": "rp", "map_at_r": "map"}
    means = {f"{name[:3]}_{short[name[4:]]}": value for name, value in sets.items()}
    means |= ndcg(matrix, truth) if relevance is None else query_means(
        matrix, truth, GRADED_METRICS)
    if shape[0] == FOLDED:
        folds = five_fold(matrix, owner)
        means |= {f"1k_{name}": value for name, value in folds.items()} | {
            "1k_rsum": sum(folds.values())}
    table |= {name: percent(value) for name, value in means.items()} | hubness(matrix)
    return Scorecard(table, protocol, best)


def recalled(scores: Matrix, owner: np.ndarray) -> Scorecard:
    """Measure what ranks alone tell: the retrieval table; the rest of `score` takes longer.

    Args, Raises: as `score`, with the image of each text.
    """
    best = ranks(scores, owner)
    return Scorecard(retrieval_table(best), [*described(owner, scores.shape[0]),
                                             *looked_at(scores, owner, best)], best)


def owners(shape: tuple[int, ...], image_of_text: np.ndarray | None) -> np.ndarray:
    """Return the image of each text of a matrix of this shape; ValueError if they do not fit."""
    if len(shape) != 2 or min(shape) < 2:
        raise ValueError(f"scores must be (n_images, n_texts), got {shape}: scores of pairs alone "
                         "say nothing of retrieval; score every image with every text")
    n_images, n_texts = shape
    if image_of_text is None:
        if n_texts % n_images:
            turned = "; rows and columns seem swapped: give scores.T" * (not n_images % n_texts)
            raise ValueError(f"{n_images:,} images cannot have equally many of {n_texts:,} texts"
                             f"{turned or '; say by ids which image each text describes'}")
        return np.arange(n_texts) // (n_texts // n_images)
    named = len(np.unique(image_of_text)), len(image_of_text)
    if shape != named:
        wrong = f"scores are {n_images:,} × {n_texts:,}, ids name {named[0]:,} images and " \
                f"{named[1]:,} texts: "
        if (n_texts, n_images) == named:
            raise ValueError(wrong + "rows and columns are swapped; give scores.T")
        if n_images == named[1] > named[0]:
            raise ValueError(wrong + "image ids are not unique, each image has a row for each of "
                             "its texts; keep one row an image")
        if n_images == named[0] == n_texts:
            raise ValueError(wrong + "one text an image was scored of several, which is another "
                             "protocol; score all texts")
        raise ValueError(wrong + "score all images with all texts that ids name")
    return check_image_of_text(image_of_text, n_images, n_texts)


def products(images: Matrix, texts: Matrix, similarity: str | None) -> np.ndarray:
    """Compute the scores (I, T) float32 of two sets of vectors, some images at a time."""
    first, second = vectors_of(images, texts)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError("images and texts must be (I, D) and (T, D), got "
                         f"{tuple(images.shape)} and {tuple(texts.shape)}")
    if similarity is not None:
        check_choice("similarity", similarity, SIMILARITIES)
    for name, vectors in (("images", first), ("texts", second)):
        lengths = vectors.norm(dim=1)
        low, high = float(lengths.min()), float(lengths.max())
        if similarity is None and not 1 - UNIT < low <= high < 1 + UNIT:
            raise ValueError(f"vectors of {name} have lengths from {low:.3g} to {high:.3g}, not 1: "
                             "their inner products are no cosines; divide them by their lengths, "
                             "or say similarity cosine, or dot")
        if similarity == "cosine" and not low > 0:
            raise ValueError(f"a vector of {name} is zero and has no cosine: is it of an empty "
                             "text, or a picture that could not be read?")
    if similarity == "cosine":
        first, second = (vectors / vectors.norm(dim=1, keepdim=True) for vectors in (first, second))
    scores, second = np.empty((len(first), len(second)), np.float32), padded(second, 64)
    with torch.no_grad():
        for start in range(0, len(first), QUERIES):  # padded: equal vectors have equal scores
            part = first[start:start + QUERIES]
            scores[start:start + len(part)] = (padded(part, QUERIES) @ second.T)[
                :len(part), :scores.shape[1]].float().cpu().numpy()
    return scores


def described(owner: np.ndarray, n_images: int) -> list[str]:
    """Say what is ranked, and of which protocol it is."""
    each = np.bincount(owner)
    ratio = f"{each.min()} an image" if each.min() == each.max() else \
        f"{each.min()} to {each.max()} an image"
    found = [f"{counted(n_images, 'image')}, {counted(len(owner), 'text')}, {ratio}"]
    if n_images in WHOLE:
        found.append(f"{n_images:,} images are all of {WHOLE[n_images]}, not its test split: no "
                     "published number is of them")
    elif n_images == FOLDED:
        found.append("5K: all 5,000 images at once; 1k_ is the mean of five folds of 1,000 images, "
                     "cut in the order of the rows (5 × 1K)")
    else:
        found.append("1K: one gallery of 1,000 images" if n_images == 1000 else
                     f"a gallery of {n_images:,} images: R@K is comparable at this size alone")
    if each.max() == 1 and n_images >= 1000:
        found.append("one text an image: numbers of Flickr and COCO are of five, where a text is "
                     "found more easily, and an image less")
    return found


def looked_at(scores: Matrix, owner: np.ndarray, best: Ranks) -> list[str]:
    """Say how many queries tie with their match, and what comes twice.

    Raises: ValueError: all scores are equal, or most rows come again.
    """
    pair, found = Scores.of(scores), []
    for direction, what in zip(DIRECTIONS, ("image", "text"), strict=True):
        places = Truth(owner, pair.shape[0]).positives(direction)
        kept, seen = [], set()
        for queries, rows in host_blocks(pair, direction, QUERIES):
            highest = [row[places[q]].max() for q, row in zip(
                range(queries.start, queries.stop), rows, strict=True)]
            kept.append(1 + (rows > np.array(highest)[:, None]).sum(axis=1))
            seen.update(hash((row + 0).tobytes()) for row in rows)  # -0.0 is 0.0
        best_case, n = np.concatenate(kept), pair.shape[DIRECTIONS.index(direction)]
        again = n - len(seen)
        if again == n - 1 and best_case.max() == 1 and n > 1:
            raise ValueError("all scores are equal: R@K would be the order of the file; has the "
                             "model collapsed, or were scores never filled in?")
        if again > n / 2 and direction == "i2t":
            raise ValueError(f"{again:,} of {n:,} rows equal another row: image ids are not "
                             "unique; keep one row an image")
        if again:
            found.append(f"{counted(again, what)} with the scores of another: duplicates, which "
                         "tie with each other")
        if tied := int((best_case < best.by_direction(direction)).sum()):
            r1 = percent(float((best.by_direction(direction) <= 1).mean()))
            found.append(f"{direction}: the match of {tied:,} of {n:,} queries ties with others, "
                         f"which counts against it: R@1 {r1:.1f}; in its favour "
                         f"{percent(float((best_case <= 1).mean())):.1f}")
    return found or ["no ties, no duplicates"]
