"""How well *all* matches of a query are found, given as index lists: mAP@R, R-Precision, R@K.

R is the number of matches of the query. R@K of `recall` asks for one of them; these ask for all,
which is what ground truth with many matches per query (ECCV Caption, CUB) is for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import host_blocks, of_truth, on_host, steps
from itr_study.metrics.ranks import ROWS, check_nan, count_pieces
from itr_study.metrics.scores import AnyScores, Matrix, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS, Positives, Truth

WANTED = 10_000_000  # scores copied at a time: few passes over the columns of a large matrix
MANY = 16  # matches of a query from which one sort is faster than a count for each
PAIRS = 100_000  # scores looked at together, by class: with what is made of them 5 MB
CLASS_METRICS = tuple(f"{direction}_class_{name}" for direction in DIRECTIONS
                      for name in ("r1", "rp"))


class Matches(NamedTuple):
    """Positives of every image (texts) and of every text (images); a list may be empty."""

    i2t: Positives
    t2i: Positives


@dataclass(frozen=True, eq=False)
class MatchRanks:
    """1-based ranks of the matches of queries, list after list, each best first."""

    queries: np.ndarray  # (Q,) which images or texts
    starts: np.ndarray  # (Q + 1,) as in `Positives`
    ranks: np.ndarray  # (P,)
    sizes: np.ndarray  # (Q,) R: the length of the list, and matches that the gallery lacks

    def map_at_r(self) -> np.ndarray:
        """Average precision over the ranks up to R, 0 where no match is: (Q,)."""
        lengths = np.diff(self.starts)
        place = np.arange(1, len(self.ranks) + 1) - np.repeat(self.starts[:-1], lengths)
        return self.over_r(place / self.ranks)

    def r_precision(self) -> np.ndarray:
        """Compute the share of matches among the first R: (Q,)."""
        return self.over_r(np.ones(len(self.ranks)))

    def recall_at(self, k: int) -> np.ndarray:
        """Return 1 where a match is among the first k, else 0: (Q,)."""
        check_count("k", k)
        nonempty = self.starts[1:] > self.starts[:-1]
        hit = np.zeros(len(self.sizes))
        hit[nonempty] = self.ranks[self.starts[:-1][nonempty]] <= k
        return hit

    def over_r(self, values: np.ndarray) -> np.ndarray:
        """Sum the values (P,) of matches with rank <= R and divide by R: (Q,)."""
        query = np.repeat(np.arange(len(self.sizes)), np.diff(self.starts))
        kept = np.where(self.ranks <= self.sizes[query], values, 0)
        return np.bincount(query, kept, len(self.sizes)) / self.sizes


def find(scores: AnyScores, positives: Positives, direction: str,
         sizes: np.ndarray | None = None) -> MatchRanks:
    """Rank all matches of all queries that have any, by counting; nothing is truncated.

    Args:
        scores: (I, T), higher = more alike; of `Scores` the matrix of this direction.
        positives: a list of texts for every image ("i2t") or of images for every text ("t2i").
        direction: "i2t" or "t2i".
        sizes: R of every query; None: the length of its list. Give it where ground truth names
            matches that are not in the gallery: they count in R and are never found.
    Raises: ValueError for NaN, or where scores and lists do not fit.
    Differs: the p-th best match has rank p + the non-matching items that score at least as high:
        ties count against the model, in the package `eccv-caption` the caller's sort breaks them.
    """
    check_choice("direction", direction, DIRECTIONS)
    matrix = Scores.of(scores).by_direction(direction)
    lengths = np.diff(positives.starts)
    sizes = lengths if sizes is None else np.asarray(sizes)
    count = matrix.shape[DIRECTIONS.index(direction)]
    if count != len(positives) or len(sizes) != len(positives) or (sizes < lengths).any():
        raise ValueError(f"{direction} needs a list of positives and a size, at least its length, "
                         f"for each of {count} queries; got {len(positives)}, {len(sizes)}")
    queries = np.flatnonzero(sizes)
    each = []
    for part in steps(len(queries), sum(matrix.shape) - count, len(queries), WANTED):
        rows = on_host(query_rows(matrix, direction, queries[part]))
        if np.isnan(rows.max()):
            check_nan(on_host(matrix))
        each += [list_ranks(row, positives[q])
                 for q, row in zip(queries[part].tolist(), rows, strict=True)]
    starts = np.concatenate(([0], np.cumsum(lengths[queries])))
    ranks = np.concatenate(each) if each else np.zeros(0, np.int64)
    return MatchRanks(queries, starts, ranks, sizes[queries])


def list_ranks(row: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Rank the items of one list within one query's scores (n,), best first."""
    matches = np.sort(row[items])
    below = np.searchsorted(matches, matches)  # matches that score less
    if len(items) > MANY:
        at_least = len(row) - np.searchsorted(np.sort(row), matches)
    else:
        at_least = np.array([np.count_nonzero(row >= score) for score in matches], np.int64)
    others = at_least - (len(matches) - below)
    return others[::-1] + np.arange(1, len(matches) + 1)


def best_ranks(scores: AnyScores, *sets: Matches) -> list[dict[str, np.ndarray]]:
    """Rank every query's best match by each ground truth: {"i2t": (I,), "t2i": (T,)} from 1.

    One pass over each matrix for all sets, over a plain one for both directions too; 0 where a
    query has no match.
    Raises: ValueError for NaN, or where scores and lists do not fit.
    """
    pair = Scores.of(scores)
    for matches in sets:
        if (len(matches.i2t), len(matches.t2i)) != pair.shape:
            raise ValueError(f"scores {pair.shape} need as many lists of positives; got "
                             f"{(len(matches.i2t), len(matches.t2i))}")
    if not pair.single:
        i2t, t2i = (best_ranks(matrix, *sets) for matrix in pair)
        return [{"i2t": a["i2t"], "t2i": b["t2i"]} for a, b in zip(i2t, t2i, strict=True)]
    matrix, found = pair.i2t, []
    bests = [[best_scores(matrix, matches, d) for d, matches in s._asdict().items()] for s in sets]
    pieces = ((a, on_host(matrix[a:a + ROWS])) for a in range(0, len(matrix), ROWS))
    counts = count_pieces(pieces, *((i2t[0], t2i[0]) for i2t, t2i in bests))
    for best, both in zip(bests, counts, strict=True):
        # what was counted includes the best match and further matches that tie with it
        found.append({d: np.where(ties > 0, 1 + count - ties, 0)
                      for d, (_, ties), count in zip(DIRECTIONS, best, both, strict=True)})
    return found


def best_scores(scores: Matrix, positives: Positives,
                direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Find the score of each query's best match (inf without one), and how many matches tie."""
    query = np.repeat(np.arange(len(positives)), np.diff(positives.starts))
    pairs = (query, positives.items) if direction == "i2t" else (positives.items, query)
    own = on_host(scores[pairs])
    best = np.full(len(positives), -np.inf, own.dtype)
    with np.errstate(invalid="ignore"):  # NaN is refused where rows are counted, with its place
        np.maximum.at(best, query, own)
    ties = np.bincount(query[own >= best[query]], minlength=len(positives))
    best[np.diff(positives.starts) == 0] = np.inf
    return best, ties


def map_at_r(scores: AnyScores, truth: Truth) -> dict[str, float]:
    """Mean average precision up to rank R, R the matches of each query: {"i2t_map_at_r", ...}.

    Args:
        scores: (I, T), higher = more alike.
        truth: which text matches which image.
    Raises: as `find`.
    Source: Musgrave et al., ECCV 2020; Chun et al., ECCV 2022 (ECCV Caption).
    Differs: ties count against the model.
    Example: image 0 finds its two texts on ranks 1 and 3, R = 2: (1 / 1 + 0) / 2
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]])
        >>> map_at_r(scores, Truth(np.array([0, 0, 1])))["i2t_map_at_r"]
        0.75
    """
    return {f"{d}_map_at_r": float(find(pair, truth.positives(d), d).map_at_r().mean())
            for d in DIRECTIONS for pair in [of_truth(scores, truth)]}


def r_precision(scores: AnyScores, truth: Truth) -> dict[str, float]:
    """Share of matches among the first R, R the matches of each query: {"i2t_r_precision", ...}.

    Args, Raises, Source, Differs: as `map_at_r`.
    Example: image 0 has one of its two texts among the first two, image 1 its only one first
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]])
        >>> r_precision(scores, Truth(np.array([0, 0, 1])))["i2t_r_precision"]
        0.75
    """
    return {f"{d}_r_precision": float(find(pair, truth.positives(d), d).r_precision().mean())
            for d in DIRECTIONS for pair in [of_truth(scores, truth)]}


def class_based(scores: AnyScores, truth: Truth, image_classes: np.ndarray) -> dict[str, float]:
    """R@1 and R-Precision where an image matches all texts of its class: the CLASS_METRICS.

    A sentence about one bird of CUB suits every bird of its species, so matches by image id would
    count many a good answer as wrong. R@1: share of queries whose first result is of their class;
    R-Precision: share of their class among the first R results, R how many there are of it.

    Args:
        scores: (I, T), higher = more alike, or `Scores` of each direction.
        truth: which image each text describes; its class is that of this image.
        image_classes: (I,) int, equal for images of one class; numbers may be left out.
    Raises: ValueError for NaN, for scores that are not (I, T), for other classes.
    Source: dvse, Table III; Chun et al., CVPR 2021 (PCME).
    Differs: ties count against the model, published code breaks them by position.
    Example: image 0 finds the text of image 1, a bird of its species; text 1 finds image 2 first
        >>> scores = np.array([[0.2, 0.9, 0.1], [0.3, 0.4, 0.1], [0.1, 0.95, 0.8]])
        >>> class_based(scores, Truth(np.arange(3)), np.array([0, 0, 1]))["i2t_class_rp"]
        0.6666666666666666
    """
    pair, classes = of_truth(scores, truth), np.asarray(image_classes)
    if classes.shape != (truth.n_images,) or classes.dtype.kind not in "iu":
        raise ValueError("image_classes must be a whole number, its class, for each of "
                         f"{truth.n_images} images; got shape {classes.shape} of {classes.dtype}")
    classes = np.unique(classes, return_inverse=True)[1]
    of_texts, found = classes[truth.image_of_text], []
    for direction, asking, candidates in (("i2t", classes, of_texts), ("t2i", of_texts, classes)):
        each = [(part.recall_at(1), part.r_precision())
                for part in class_ranks(pair, direction, asking, candidates)]
        found += [float(np.concatenate(values).mean()) for values in zip(*each, strict=True)]
    return dict(zip(CLASS_METRICS, found, strict=True))


def class_ranks(scores: Scores, direction: str, asking: np.ndarray,
                candidates: np.ndarray) -> Iterator[MatchRanks]:
    """Rank the results of each query's class, by classes (Q,) of queries and (n,) of candidates."""
    starts = np.searchsorted(np.sort(candidates), np.arange(candidates.max() + 2))
    of_class = Positives(starts, np.argsort(candidates, kind="stable"))
    for queries, rows in host_blocks(scores, direction, max(1, PAIRS // len(candidates))):
        yield find(rows, of_class.take(asking[queries]), "i2t")
