"""What trained models find for queries: lists as ranked or re-ranked, choices, answers, tables."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.data.base import RetrievalDataset, Split
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.messages import quote
from itr_study.metrics import ranks
from itr_study.metrics.first import first_with_scores
from itr_study.metrics.scores import LazyScores
from itr_study.plots.retrieval import Query, Result
from itr_study.rerank import RERANKERS

FIRST = 10  # results that count for a hub
ORDERS = {"plain": "in the order of the split", "failures": "failures first",
          "apart": "largest disagreement first"}


class Asked(NamedTuple):
    """A query: direction ("t2i": a text asks), and an index in the split, new words or picture."""

    way: str
    item: int | str | Image.Image

    @property
    def known(self) -> bool:
        """Whether it is of the split, so that its match is known."""
        return isinstance(self.item, int)

    def words(self, split: Split) -> str:
        """Return the text that asks, or the name of the picture."""
        if not self.known:
            return self.item if self.way == "t2i" else "a picture of yours"
        return (split.texts if self.way == "t2i" else split.image_ids)[self.item]

    def picture(self, split: Split, dataset: RetrievalDataset) -> Image.Image | None:
        """Open the picture that asks, None if a text does."""
        if self.way == "t2i":
            return None
        return dataset.open_image(split.image_ids[self.item]) if self.known else self.item


class Ranked:
    """One model over one split with texts; ValueError for scores that are not finite."""

    def __init__(self, name: str, searcher: Searcher) -> None:
        self.name, self.searcher, self._counts = name, searcher, dict[str, np.ndarray]()
        check_finite(name, searcher.scores)

    def find(self, asked: Asked, reranked: bool = False) -> list[Hit]:
        """Rank every candidate of a query, by FR if `reranked`; new queries cannot be re-ranked."""
        search = self.searcher.search_text if asked.way == "t2i" else self.searcher.search_image
        hits = search(asked.item, top=len(self.candidates(asked.way)))
        if reranked:
            if not asked.known:
                raise ValueError("re-ranking compares a query with all others of the split, and "
                                 "a new one is not among them; switch re-ranking off")
            scores = self._fast.of_queries(asked.way, np.array([asked.item]))
            hits = reorder(hits, np.asarray(scores).reshape(-1))
        return hits

    def candidates(self, way: str) -> tuple[str, ...]:
        """Return the ids of what is found: pictures for texts, texts for pictures."""
        split = self.searcher.split
        return split.image_ids if way == "t2i" else split.text_ids

    @cached_property
    def _fast(self) -> LazyScores:
        return RERANKERS["fast"](self.searcher.scores)

    @cached_property
    def match_ranks(self) -> dict[str, np.ndarray]:
        """The rank of the first match of every query: "i2t" (I,), "t2i" (T,)."""
        found = ranks(self.searcher.scores, self.searcher.split.image_of_text)
        return {"i2t": found.i2t, "t2i": found.t2i}

    def list_hubs(self, way: str, top: int) -> list[Hit]:
        """List the candidates most often among the first ten; their score counts how often."""
        if way not in self._counts:
            found, _ = first_with_scores(self.searcher.scores, FIRST, way)
            self._counts[way] = np.bincount(found.ravel(), minlength=len(self.candidates(way)))
        counts, split = self._counts[way], self.searcher.split
        texts = self.searcher.first_texts if way == "t2i" else split.texts
        return [Hit(rank, float(counts[i]), int(i), self.candidates(way)[i], texts[i], None)
                for rank, i in enumerate(np.argsort(-counts, kind="stable")[:top], start=1)]


def list_orders(sides: Sequence[Ranked]) -> dict[str, str]:
    """List the orders of queries and their names; only two models can disagree."""
    return {key: text for key, text in ORDERS.items() if key != "apart" or len(sides) == 2}


def sort_queries(order: str, sides: Sequence[Ranked], way: str) -> np.ndarray:
    """Sort all queries of the split (q,) by one of `list_orders`."""
    ranks = [side.match_ranks[way] for side in sides]
    if order == "failures":
        return np.argsort(-ranks[0], kind="stable")
    if order == "apart":  # by the ratio of the ranks of the match
        return np.argsort(-np.abs(np.log(ranks[0] / ranks[1])), kind="stable")
    return np.arange(len(ranks[0]))


def reorder(hits: list[Hit], scores: np.ndarray) -> list[Hit]:
    """Sort hits by other scores (n,), given by index; the first of equals first."""
    by_index = sorted(hits, key=lambda hit: hit.index)
    order = np.argsort(-scores, kind="stable").tolist()
    return [by_index[i]._replace(rank=rank, score=float(scores[i]))
            for rank, i in enumerate(order, start=1)]


def check_finite(name: str, scores: np.ndarray | float) -> None:
    """Raise ValueError for scores of a model that are not finite."""
    if not np.isfinite(scores).all():
        raise ValueError(f"the scores of {name!r} hold NaN or infinity: the model has diverged "
                         "and orders nothing; take an earlier epoch, or another run")


def check_relevance(relevance: np.ndarray, shape: tuple[int, int]) -> None:
    """Raise ValueError unless relevance has this shape and lies in [0, 1]."""
    if relevance.shape != shape:
        raise ValueError(f"relevance must be {shape}, a number for each image and text; got shape "
                         f"{relevance.shape}")
    low, high = relevance.min(), relevance.max()
    if not (low >= 0 and high <= 1):
        raise ValueError(f"relevance must lie in [0, 1], found {low} to {high}; a cosine c becomes "
                         "(1 + c) / 2")


def check_models(explorer: str, models: Mapping[str, Searcher], least: int = 1,
                 most: int | None = None) -> None:
    """Raise ValueError unless these are models by name, as many as wanted, over one gallery."""
    wanted = f"{least}" if least == most else f"{least} to {most}" if most else f"{least} or more"
    if not isinstance(models, Mapping) or not least <= len(models) <= (most or len(models)):
        got = ", ".join(models) or "none" if isinstance(models, Mapping) else quote(models)
        raise ValueError(f"{explorer} takes {wanted} models by name, such as {{'mine': searcher}}; "
                         f"got {got}")
    first, *_ = models.values()
    if not first.split.texts:
        raise ValueError(f"{first.dataset.name} has no texts, so that nothing can be compared; "
                         "take a split with captions")
    galleries = [(one.dataset.fingerprint, one.split.image_ids, one.split.texts)
                 for one in models.values()]
    if any(gallery != galleries[0] for gallery in galleries):
        over = "; ".join(f"{name} searches {len(one.split.image_ids):,} images of {one.name} of "
                         f"{one.dataset.name} ({one.dataset.fingerprint[:8]})"
                         for name, one in models.items())
        raise ValueError("models are compared over the same images and texts: make all searchers "
                         f"of one data set and split; {over}")


def image_queries(searcher: Searcher, images: Sequence[int | Image.Image], top: int = 5,
                  relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """Find texts for pictures: the best results, and the rank of the first match.

    Args:
        searcher: of a trained model.
        images: indices into the split, or new pictures, whose match and relevance are unknown.
        top: results of each.
        relevance: (I, T); None: the exact one, if the data knows it.
        title: over each query, such as the name of the model.
    """
    split, queries = searcher.split, []
    for image in images:
        hits, new = searcher.search_image(image, len(split.texts)), isinstance(image, Image.Image)
        graded = None if new else searcher.relevance if relevance is None else relevance
        results = [Result(hit.text, hit.score, hit.match,
                          None if graded is None else float(graded[image, hit.index]))
                   for hit in hits[:top]]
        picture = image if new else searcher.dataset.open_image(split.image_ids[image])
        queries.append(Query(picture, results, find_match(hits), title))
    return queries


def text_queries(searcher: Searcher, texts: Sequence[int | str], top: int = 5,
                 relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """Find pictures for texts, indices or any words, as `image_queries` finds texts."""
    split, queries = searcher.split, []
    for text in texts:
        hits, new = searcher.search_text(text, len(split.image_ids)), isinstance(text, str)
        graded = None if new else searcher.relevance if relevance is None else relevance
        results = [Result(searcher.dataset.open_image(hit.id), hit.score, hit.match,
                          None if graded is None else float(graded[hit.index, text]))
                   for hit in hits[:top]]
        queries.append(Query(text if new else split.texts[text], results, find_match(hits), title))
    return queries


def find_match(hits: Sequence[Hit]) -> int | None:
    """Find the rank of the first match among all hits, None if no match is known."""
    return next((hit.rank for hit in hits if hit.match), None)


def easy_to_hard(ranks: np.ndarray, at: Sequence[float] = (0.1, 0.5, 0.9)) -> list[int]:
    """List the queries at these quantiles of the rank of their best match.

    Example:
        >>> easy_to_hard(np.array([7, 1, 3, 2, 9]), at=(0, 0.5, 1))
        [1, 2, 4]
    """
    order = ranks.argsort(kind="stable")
    return [int(order[int(share * (len(order) - 1))]) for share in at]


def result_table(queries: Sequence[int], answers: Sequence[Query]) -> pd.DataFrame:
    """List query (index into the split), rank, score, match, relevance of answers to queries."""
    lines = [(query, rank, result.score, result.match, result.relevance)
             for query, answer in zip(queries, answers, strict=True)
             for rank, result in enumerate(answer.results, start=1)]
    return pd.DataFrame(lines, columns=["query", "rank", "score", "match", "relevance"])


def side_by_side(searchers: Mapping[str, Searcher], ask: Callable[..., list[Query]],
                 queries: Sequence[int], relevance: np.ndarray) -> tuple[list[Query], pd.DataFrame]:
    """Ask several models, by name, the same queries of the split.

    Returns the answers of `ask` (`image_queries` or `text_queries`), query by query and model by
    model, and lines of `result_table` with `model`; relevance is (I, T).
    """
    answers, tables = [], []
    for query in queries:
        for name, searcher in searchers.items():
            title = name.replace(" + ", "\n+ ")
            answers += ask(searcher, [query], relevance=relevance, title=title)
            tables.append(result_table([query], answers[-1:]).assign(model=name))
    return answers, pd.concat(tables, ignore_index=True)


def obvious_errors(table: pd.DataFrame, least: float) -> str:
    """Count for each model of `side_by_side` results without a match and below a relevance."""
    wrong = table[~table["match"].astype(bool) & (table["relevance"] < least)]
    return ", ".join(f"{(wrong['model'] == name).sum()} by {name}"
                     for name in dict.fromkeys(table["model"]))
