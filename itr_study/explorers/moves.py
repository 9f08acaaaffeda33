"""Two models over the same images and texts: what each query gains, and where results move."""

import threading
from collections.abc import Sequence

import numpy as np
import pandas as pd

from itr_study.metrics.ndcg import ndcg_rows, ndcgs_per_query
from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.progress import Show, counting, progress

TOP = 20  # results of a list
MEASURES = {"rank": "rank of the first match", "ndcg": "NDCG"}


class Moves:
    """Ranks of all queries under two models, counted once; NDCG of all, once it is asked for.

    Args:    scores_a, scores_b: (I, T), higher = more alike; image_of_text: (T,) int; texts: (T,);
             relevance: (I, T) in [0, 1], or None: 1 for matches, else 0.
    Raises:  ValueError for shapes that differ, NaN, relevance outside [0, 1], an image without a
             text.

    Example: the second model puts the text of image 1 first
        >>> moves = Moves([[0.9, 0.1], [0.8, 0.3]], [[0.9, 0.1], [0.2, 0.3]], [0, 1], ["a", "b"])
        >>> moves.gains("i2t", "rank")
        array([0, 1])
    """

    def __init__(self, scores_a: np.ndarray, scores_b: np.ndarray, image_of_text: np.ndarray,
                 texts: Sequence[str], relevance: np.ndarray | None = None) -> None:
        self.scores = tuple(wide(np.asarray(scores)) for scores in (scores_a, scores_b))
        self.texts = () if texts is None else tuple(map(str, texts))  # refused below
        self.owner = np.asarray(image_of_text)
        self.relevance = None if relevance is None else wide(np.asarray(relevance))
        self._check()
        self._ndcgs: dict[str, list[np.ndarray]] | None = None  # of both models, once counted
        self._lock = threading.Lock()
        found = [ranks(scores, self.owner) for scores in progress(self.scores,
                                                                  "ranks of two models")]
        self._ranks = {way: [one.by_direction(way) for one in found] for way in DIRECTIONS}
        described = np.unique(self.owner, return_index=True)[1]
        self.first_texts = tuple(self.texts[text] for text in described)  # of each image

    def _check(self) -> None:
        shapes, texts = [scores.shape for scores in self.scores], len(self.texts)
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][1] != texts:
            raise ValueError("both scores must be (images, texts) of the same images and of the "
                             f"{texts} texts; got {shapes[0]} and {shapes[1]}; score both models "
                             "on one split")
        if self.relevance is not None and self.relevance.shape != shapes[0]:
            raise ValueError(f"relevance must be {shapes[0]} as the scores are, or None; got "
                             f"{self.relevance.shape}")
        if self.relevance is not None and not (self.relevance.min() >= 0
                                               and self.relevance.max() <= 1):
            raise ValueError("relevance must lie in [0, 1], found "
                             f"{self.relevance.min()} to {self.relevance.max()}; a cosine c "
                             "becomes (1 + c) / 2")

    @property
    def counted(self) -> bool:
        """Whether the NDCG of all queries is there."""
        return self._ndcgs is not None

    @property
    def queries(self) -> int:
        """Those of both directions and both models: how many NDCGs there are."""
        return 2 * sum(self.scores[0].shape)

    def count_ndcg(self, show: Show) -> None:
        """Count the NDCG of all queries, once. Where relevance is graded it sorts every list, most
        of a minute where there are 5,000 images and 25,000 texts: that is for those who measure by
        it.

        Args:    show: is told how many of `queries` are done, as `progress.counting` gives it.
        """
        with self._lock:  # a cell may ask for what a page has begun
            if self._ndcgs is not None:
                return
            graded = None if self.relevance is None else (lambda images: self.relevance[images])
            truth = Truth(self.owner, len(self.scores[0]), graded)
            gained = ndcgs_per_query(self.scores, truth, show=show)
            self._ndcgs = {way: [one[way] for one in gained] for way in DIRECTIONS}

    def measured(self, way: str, measure: str) -> list[np.ndarray]:
        """[(Q,), (Q,)] of each query of a direction the rank of its first match ("rank") or its
        NDCG ("ndcg") under both models."""
        if measure == "ndcg" and not self.counted:
            with counting("NDCG of two models", self.queries, "queries") as show:
                self.count_ndcg(show)
        return (self._ranks if measure == "rank" else self._ndcgs)[way]

    def of_query(self, way: str, query: int) -> tuple[list[int], list[float]]:
        """Ranks of the first match of one query under both models, and its NDCG."""
        pick, _, graded = self._query(way, query)
        relevance = graded.astype(np.float32)[None]
        return ([int(ranks[query]) for ranks in self._ranks[way]],
                [float(ndcg_rows()(one[pick][None], relevance)[0]) for one in self.scores])

    def _query(self, way: str, query: int) -> tuple[tuple, np.ndarray, np.ndarray]:
        """Of a query: where its row or column lies, (n,) what matches, (n,) relevance."""
        images = np.arange(len(self.scores[0]))
        pick = np.s_[query, :] if way == "i2t" else np.s_[:, query]
        match = self.owner == query if way == "i2t" else images == self.owner[query]
        return pick, match, match if self.relevance is None else self.relevance[pick]

    def gains(self, way: str, measure: str) -> np.ndarray:
        """(Q,) what each query of a direction gains by the second model: places that its first
        match comes up, or NDCG."""
        a, b = self.measured(way, measure)
        return a - b if measure == "rank" else b - a

    def results(self, way: str, query: int) -> pd.DataFrame:
        """What is among the first TOP of either model, and the first match of each wherever it
        stands, in the first model's order.

        Equal scores count against a model: matches stand last among them. An image is called by
        its first text.

        Returns: direction, query, result (both indices, from 0), text, match, relevance, rank_a,
                 rank_b, score_a, score_b.
        """
        pick, match, graded = self._query(way, query)
        scores = [one[pick] for one in self.scores]
        places = []
        for values in scores:
            places.append(np.empty(len(match), int))
            places[-1][np.lexsort((match, -values))] = np.arange(1, len(match) + 1)
        shown = np.minimum(*places) <= TOP
        for place in places:
            shown |= match & (place == place[match].min())
        first = np.flatnonzero(shown)
        first = first[np.argsort(places[0][first])]
        texts = self.texts if way == "i2t" else self.first_texts
        return pd.DataFrame({
            "direction": way, "query": query, "result": first, "text": [texts[n] for n in first],
            "match": match[first], "relevance": graded[first].astype(float),
            "rank_a": places[0][first], "rank_b": places[1][first],
            "score_a": scores[0][first].astype(float), "score_b": scores[1][first].astype(float)})
