"""What one model finds for a query, as it ranks them or re-ranked, from one `Searcher`."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from PIL import Image

from itr_study.data.base import RetrievalDataset, Split
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.examples import match_rank
from itr_study.explorers.messages import quoted
from itr_study.metrics import ranks
from itr_study.metrics.first import first_with_scores
from itr_study.rerank import RERANKERS

FIRST = 10  # results that count for a hub
ORDERS = {"plain": "in the order of the split", "failures": "failures first",
          "apart": "largest disagreement first"}


class Asked(NamedTuple):
    """A query: a text asks for pictures ("t2i") or a picture for texts ("i2t"). `item` is its index
    in the split, from 0, or new words or a new picture."""

    way: str
    item: int | str | Image.Image

    @property
    def known(self) -> bool:
        """Whether it is of the split, so that its match is known."""
        return isinstance(self.item, int)

    def words(self, split: Split) -> str:
        """The text that asks, or what the picture is called."""
        if not self.known:
            return self.item if self.way == "t2i" else "a picture of yours"
        return (split.texts if self.way == "t2i" else split.image_ids)[self.item]

    def picture(self, split: Split, dataset: RetrievalDataset) -> Image.Image | None:
        """The picture that asks, None where a text does. Raises: whatever opening it raises."""
        if self.way == "t2i":
            return None
        return dataset.open_image(split.image_ids[self.item]) if self.known else self.item


class Found(NamedTuple):
    """All candidates of a query, best first, and the rank of its match, None where unknown."""

    hits: list[Hit]
    match: int | None


class Ranked:
    """One model over one split.

    Args:    name: how a reader calls it; searcher: of one split, with texts.
    Raises:  ValueError for scores that are not finite.
    """

    def __init__(self, name: str, searcher: Searcher) -> None:
        self.name, self.searcher, self._counts = name, searcher, dict[str, np.ndarray]()
        check_finite(name, searcher.scores)

    def found(self, asked: Asked, reranked: bool = False) -> Found:
        """Every candidate in order; reranked: after FR among all queries of the split, which a new
        query is none of.

        Raises:  ValueError as `Searcher.search_text` and `search_image`, and for a new query that
                 is to be re-ranked.
        """
        search = self.searcher.search_text if asked.way == "t2i" else self.searcher.search_image
        hits = search(asked.item, top=len(self.candidates(asked.way)))
        if reranked:
            if not asked.known:
                raise ValueError("re-ranking compares a query with all others of the split, and "
                                 "a new one is not among them; switch re-ranking off")
            hits = reordered(hits, self.reranked_scores(asked))
        return Found(hits, match_rank(hits))

    def check_new_pictures(self) -> None:
        """Raise ValueError where the model cannot take a picture of the reader."""
        data = self.searcher.data
        if not data.image_encoders:
            raise ValueError(data.needs_network)

    def candidates(self, way: str) -> tuple[str, ...]:
        """What is found, by id: pictures for texts, texts for pictures."""
        split = self.searcher.split
        return split.image_ids if way == "t2i" else split.text_ids

    def reranked_scores(self, asked: Asked) -> np.ndarray:
        """(n,) scores of all candidates of a query of the split after FR."""
        rows = self._fast.of_queries(asked.way, np.array([asked.item]))
        return np.asarray(rows).reshape(-1)

    @cached_property
    def _fast(self):
        return RERANKERS["fast"](self.searcher.scores)

    @cached_property
    def match_ranks(self) -> dict[str, np.ndarray]:
        """Of every query of the split the rank of its first match: "i2t" (I,), "t2i" (T,)."""
        found = ranks(self.searcher.scores, self.searcher.split.image_of_text)
        return {"i2t": found.i2t, "t2i": found.t2i}

    def in_first(self, way: str) -> np.ndarray:
        """(n,) of every candidate, in how many queries it is among the first ten; counted once."""
        if way not in self._counts:
            found, _ = first_with_scores(self.searcher.scores, FIRST, way)
            self._counts[way] = np.bincount(found.ravel(), minlength=len(self.candidates(way)))
        return self._counts[way]

    def hubs(self, way: str, top: int) -> list[Hit]:
        """The candidates that are found most often; the score counts how often."""
        counts, split = self.in_first(way), self.searcher.split
        texts = self.searcher.first_texts if way == "t2i" else split.texts
        return [Hit(rank, float(counts[i]), int(i), self.candidates(way)[i], texts[i], None)
                for rank, i in enumerate(np.argsort(-counts, kind="stable")[:top], start=1)]


def orders_of(sides: Sequence[Ranked]) -> dict[str, str]:
    """The orders of queries that there are, and how a reader calls them: two models can disagree.
    """
    return {key: text for key, text in ORDERS.items() if key != "apart" or len(sides) == 2}


def in_order(order: str, sides: Sequence[Ranked], way: str) -> np.ndarray:
    """(q,) all queries of the split in one of `orders_of`."""
    ranks = [side.match_ranks[way] for side in sides]
    if order == "failures":
        return np.argsort(-ranks[0], kind="stable")
    if order == "apart":  # by how many times further down one model has the match
        return np.argsort(-np.abs(np.log(ranks[0] / ranks[1])), kind="stable")
    return np.arange(len(ranks[0]))


def reordered(hits: list[Hit], scores: np.ndarray) -> list[Hit]:
    """The hits in the order of other scores (n,), by index; the first of equals first."""
    by_index = sorted(hits, key=lambda hit: hit.index)
    order = np.argsort(-scores, kind="stable").tolist()
    return [by_index[i]._replace(rank=rank, score=float(scores[i]))
            for rank, i in enumerate(order, start=1)]


def check_finite(name: str, scores: np.ndarray | float) -> None:
    """Raise ValueError for scores of a model that are not finite."""
    if not np.isfinite(scores).all():
        raise ValueError(f"the scores of {name!r} hold NaN or infinity: the model has diverged "
                         "and orders nothing; take an earlier epoch, or another run")


def check_models(explorer: str, models: Mapping[str, Searcher], least: int = 1,
                 most: int | None = None) -> None:
    """Raise ValueError unless an explorer is given trained models by name, as many as it takes, all
    over the same images and texts."""
    wanted = f"{least}" if least == most else f"{least} to {most}" if most else f"{least} or more"
    if not isinstance(models, Mapping) or not least <= len(models) <= (most or len(models)):
        got = ", ".join(models) or "none" if isinstance(models, Mapping) else quoted(models)
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


def checked_relevance(relevance: np.ndarray | None, searcher: Searcher) -> np.ndarray | None:
    """The relevance given, None takes the exact one where it is known. Raises: ValueError unless it
    is of the searcher's images and texts, in [0, 1]."""
    if relevance is None:
        return searcher.relevance
    given, wanted = np.asarray(relevance), searcher.scores.shape
    if given.shape != wanted or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"relevance must be {wanted} numbers in [0, 1], one for each image and "
                         f"text; got shape {given.shape}" + " with NaN or numbers beyond" * (
                             given.shape == wanted))
    return given
