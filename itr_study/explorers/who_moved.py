"""Who moved? The first results of a query under two models, and their ranks in the other list."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, partial
from textwrap import shorten
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.digits import number
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import POLL, Control, Explorer, browse, choice, number_line
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.explorers.ranked import check_models, check_relevance
from itr_study.metrics import ndcg_rows, per_query
from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.plots.retrieval import Mover, relevance_colours, who_moved
from itr_study.progress import Show, counting, progress

TOP = 20  # results of a list
MEASURES = {"rank": "rank of the first match", "ndcg": "NDCG"}
SMALL, LARGE = 64, 150  # pixels: of a result, of the query
LETTERS = {"i2t": 46, "t2i": 38}  # of a result's text, also next to a picture
FAR = 40  # of one that is in neither list's first, next to its long rank
SHADES = 9  # colours of the legend
KEPT = 400  # small pictures
SOON = 0.3  # seconds: what takes less is shown at once
ASKS = {"i2t": ("picture", "texts"), "t2i": ("text", "pictures")}


class Moves:
    """Ranks of all queries under two models; NDCG of all, once it is asked for.

    Arguments are those of `WhoMoved`.

    Example: the second model puts the text of image 1 first
        >>> moves = Moves([[0.9, 0.1], [0.8, 0.3]], [[0.9, 0.1], [0.2, 0.3]], [0, 1], ["a", "b"])
        >>> moves.gains("i2t", "rank")
        array([0, 1])
    """

    def __init__(self, scores_a: np.ndarray, scores_b: np.ndarray, image_of_text: np.ndarray,
                 texts: Sequence[str], relevance: np.ndarray | None = None) -> None:
        self.scores = tuple(wide(np.asarray(scores)) for scores in (scores_a, scores_b))
        self.texts = () if texts is None else tuple(map(str, texts))
        self.owner = np.asarray(image_of_text)
        self.relevance = None if relevance is None else wide(np.asarray(relevance))
        shapes, count = [scores.shape for scores in self.scores], len(self.texts)
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][1] != count:
            raise ValueError("both scores must be (images, texts) of the same images and of the "
                             f"{count} texts; got {shapes[0]} and {shapes[1]}; score both models "
                             "on one split")
        if self.relevance is not None:
            check_relevance(self.relevance, shapes[0])
        self.queries = 2 * sum(self.scores[0].shape)  # of both directions and both models
        self.ndcgs: dict[str, list[np.ndarray]] | None = None  # of both models, once counted
        self._lock = threading.Lock()
        found = [ranks(scores, self.owner)
                 for scores in progress(self.scores, "ranks of two models")]
        self._ranks = {way: [one.by_direction(way) for one in found] for way in DIRECTIONS}
        described = np.unique(self.owner, return_index=True)[1]
        self.first_texts = tuple(self.texts[text] for text in described)  # of each image

    def count_ndcg(self, show: Show) -> None:
        """Compute the NDCG of all queries, once; `show` is told how many of `queries` are done.

        Graded relevance sorts every list: most of a minute for 5,000 images and 25,000 texts.
        """
        with self._lock:  # a cell may ask for what a page has begun
            if self.ndcgs is not None:
                return
            graded = None if self.relevance is None else (lambda images: self.relevance[images])
            truth = Truth(self.owner, len(self.scores[0]), graded)
            gained, queries = [], self.queries // 2  # of one model
            for before, scores in zip((0, queries), self.scores, strict=True):
                gained += per_query(scores, truth, ndcg_rows(),
                                    show=lambda done, before=before: show(before + done))
            self.ndcgs = {way: [one[way] for one in gained] for way in DIRECTIONS}

    def measure(self, way: str, measure: str) -> list[np.ndarray]:
        """Return "rank" of the first match or "ndcg" of each query, [(Q,), (Q,)] of both models."""
        if measure == "ndcg" and self.ndcgs is None:
            with counting("NDCG of two models", self.queries, "queries") as show:
                self.count_ndcg(show)
        return (self._ranks if measure == "rank" else self.ndcgs)[way]

    def gains(self, way: str, measure: str) -> np.ndarray:
        """Return what each query (Q,) gains by the second model: ranks of its match, or NDCG."""
        a, b = self.measure(way, measure)
        return a - b if measure == "rank" else b - a

    def measure_query(self, way: str, query: int) -> tuple[list[int], list[float]]:
        """Compute ranks of the first match of one query under both models, and its NDCG."""
        pick, _, graded = self._select(way, query)
        relevance = graded.astype(np.float32)[None]
        return ([int(ranks[query]) for ranks in self._ranks[way]],
                [float(ndcg_rows()(one[pick][None], relevance)[0]) for one in self.scores])

    def _select(self, way: str, query: int) -> tuple[tuple, np.ndarray, np.ndarray]:
        """Return the index of its row or column, (n,) what matches, (n,) relevance."""
        images = np.arange(len(self.scores[0]))
        pick = np.s_[query, :] if way == "i2t" else np.s_[:, query]
        match = self.owner == query if way == "i2t" else images == self.owner[query]
        return pick, match, match if self.relevance is None else self.relevance[pick]

    def results(self, way: str, query: int) -> pd.DataFrame:
        """List the first TOP of either model, and the first match of each, by the first model.

        Equal scores count against a model: matches come last among them. Query and result are
        indices from 0; the text of an image is its first one.
        """
        pick, match, graded = self._select(way, query)
        scores = [one[pick] for one in self.scores]
        places = [1 + np.argsort(np.lexsort((match, -values))) for values in scores]
        shown = np.minimum(*places) <= TOP
        for place in places:
            shown |= match & (place == place[match].min())
        first = np.flatnonzero(shown)
        first = first[np.argsort(places[0][first])]
        texts = self.texts if way == "i2t" else self.first_texts
        found = {"match": match, "relevance": graded.astype(float), "rank_a": places[0],
                 "rank_b": places[1], "score_a": scores[0].astype(float),
                 "score_b": scores[1].astype(float)}
        return pd.DataFrame({
            "direction": way, "query": query, "result": first, "text": [texts[n] for n in first],
            **{column: values[first] for column, values in found.items()}})


class WhoMoved(Explorer):
    """Two models' lists for one query: the first of either, and its rank in the other.

    Args:
        scores_a, scores_b: (I, T), higher = more alike, of the same images and texts.
        image_of_text: (T,) int, whose text each is.
        texts: (T,).
        names: of the two models.
        relevance: (I, T) in [0, 1]; None: only matches are known.
        pictures: the index of an image -> its picture; None shows its first text alone.
    Raises: ValueError: shapes that differ, NaN, relevance outside [0, 1], an image without a text.
    """

    drawing, title = "who_moved", "Who moved?"

    def __init__(self, scores_a: np.ndarray, scores_b: np.ndarray, image_of_text: np.ndarray,
                 texts: Sequence[str], names: tuple[str, str] = ("A", "B"),
                 relevance: np.ndarray | None = None,
                 pictures: Callable[[int], Image.Image] | None = None) -> None:
        if not isinstance(names, list | tuple) or len(names) != 2 or names[0] == names[1]:
            raise ValueError(f"names must be two that differ, one for each model; got {names!r}")
        self.names = tuple(map(str, names))
        self.moves = Moves(scores_a, scores_b, image_of_text, texts, relevance)
        # the darkest colour is the least relevance that there is: captions are rarely below 0.5
        self.low = 0.0 if relevance is None else min(float(self.moves.relevance.min()), 0.9)
        self.thumbnail = None if pictures is None else lru_cache(KEPT)(
            lambda image, side: encode_thumbnail(pictures(image), side))
        self.way, self.sort, self.measure = "i2t", "gain", "rank"
        self.sorts = {"gain": f"largest gain of {self.names[1]}",
                      "harm": f"largest harm of {self.names[1]}", "order": "their number"}
        self.events = {"poll": self.look}
        self.wanted = ""  # the measure that the reader waits for
        self.left: tuple[str, int] | None = None  # way and query when they began to wait
        self.share, self.task = 0.0, None  # of the NDCGs that are counted, and the counting itself
        self.choose()

    @classmethod
    def of(cls, models: Mapping[str, Searcher], relevance: np.ndarray | None = None) -> Self:
        """Compare two trained models by name; relevance None: the exact one, if it is known."""
        check_models(cls.__name__, models, least=2, most=2)
        a, b = models.values()
        return cls(a.scores, b.scores, a.split.image_of_text, a.split.texts, tuple(models),
                   a.relevance if relevance is None else relevance,
                   lambda image: a.dataset.open_image(a.split.image_ids[image]))

    def choose(self, way: str | None = None, sort: str | None = None,
               measure: str | None = None) -> None:
        """Choose who asks, the order of queries and its measure; show the first query of it."""
        way = self.way if way is None else way
        sort = self.sort if sort is None else sort
        measure = self.measure if measure is None else measure
        check_choice("direction", way, DIRECTIONS)
        check_choice("order of queries", sort, self.sorts)
        check_choice("measure", measure, MEASURES)
        self.way, self.sort, self.measure, self.place = way, sort, measure, 0
        gains = self.moves.gains(way, measure)
        self.order = np.argsort({"gain": -gains, "harm": gains, "order": 0 * gains}[sort],
                                kind="stable")

    def measure_by(self, measure: str) -> None:
        """Choose another measure, at once or when it is counted: the page goes on meanwhile."""
        check_choice("measure", measure, MEASURES)
        self.wanted, self.left = measure, (self.way, self.query)
        if measure == "ndcg" and self.moves.ndcgs is None and self.task is None:
            self.share, pool = 0.0, ThreadPoolExecutor(1)
            self.task = pool.submit(self.moves.count_ndcg, self._count)
            pool.shutdown(wait=False)
            wait([self.task], SOON)
        self.look()

    def _count(self, done: float, note: str = "") -> None:
        self.share = done / self.moves.queries

    def look(self, _: Any = None) -> None:
        """Take the measure that is waited for; a reader who went on stays at their query.

        Raises: ValueError: it could not be counted.
        """
        task, measure = self.task, self.wanted
        running = task is not None and not task.done()
        if measure == "ndcg" and running:
            return
        self.wanted = ""
        if task is not None and not running:
            self.task = None
            if error := task.exception():
                raise ValueError("NDCG of all queries could not be counted. "
                                 f"{type(error).__name__}: {error}")
        if measure:
            query, went_on = self.query, (self.way, self.query) != self.left
            self.choose(measure=measure)
            if went_on:
                self.ask(query)

    def ask(self, query: int) -> None:
        """Show the query of this index, from 0."""
        check_count("query", query, least=0, most=len(self.order) - 1)
        self.place = int(np.flatnonzero(self.order == query)[0])

    @property
    def query(self) -> int:
        """Index of the image or text that asks, from 0; a reader sees it as its number, from 1."""
        return int(self.order[self.place])

    @property
    def selected(self) -> pd.DataFrame:
        """The query and its results as `Moves.results` gives them, indices from 0."""
        return self.moves.results(self.way, self.query)

    def controls(self) -> list[Control]:
        """List what can be set."""
        count = len(self.order)
        ways = {way: f"{asks}s ask for {wanted}" for way, (asks, wanted) in ASKS.items()}
        return [choice("direction", "Who asks", lambda way: self.choose(way=way), self.way, ways),
                choice("sort", "Queries by", lambda sort: self.choose(sort=sort), self.sort,
                       self.sorts),
                choice("measure", "Measured by", self.measure_by, self.wanted or self.measure,
                       MEASURES),
                *browse("query", "Place in this order", partial(setattr, self, "place"), self.place,
                        count),
                number_line("query", "Query", self.ask, self.query, count)]

    def movers(self, found: pd.DataFrame) -> list[Mover]:
        """Return the results with their rows in each list, those beyond the first below them."""
        rows = [found[rank].rank().astype(int) - 1 for rank in ("rank_a", "rank_b")]
        nowhere = found[["rank_a", "rank_b"]].min(axis=1) > TOP
        letters = np.where(nowhere, FAR, LETTERS[self.way])
        return [Mover(shorten(line.text, letters[line.Index], placeholder=" …"),
                      bool(line.match), float(line.relevance), (int(line.rank_a), int(line.rank_b)),
                      (int(rows[0][line.Index]), int(rows[1][line.Index])),
                      (bool(line.rank_a > TOP), bool(line.rank_b > TOP)))
                for line in found.itertuples()]

    def stage(self) -> dict[str, Any]:
        """Return the query and the results with their ends in both lists."""
        found = self.selected
        movers = self.movers(found)
        colours = relevance_colours([one.relevance for one in movers], self.low)
        scale = None if self.moves.relevance is None else {
            "label": "relevance", "ends": [number(self.low, 2), number(1, 2)],
            "colours": relevance_colours(np.linspace(self.low, 1, SHADES), self.low)}
        query = self.query if self.way == "i2t" else None
        return {"names": list(self.names), "top": TOP,
                "query": {"words": self._query_words(), "picture": self._picture(query, LARGE)},
                "poll": POLL * bool(self.wanted or self.task),
                "counted": self.share if self.wanted else None, "scale": scale,
                "label": f"First {ASKS[self.way][1]}: {self.names[0]} left, {self.names[1]} right",
                "results": [
                    {"key": int(line.result), "text": one.text, "match": one.match,
                     "colour": colour, "says": self._describe(line), "ranks": list(one.ranks),
                     "rows": list(one.rows), "beyond": list(one.beyond),
                     "picture": self._picture(line.result if self.way == "t2i" else None, SMALL)}
                    for one, line, colour in zip(movers, found.itertuples(), colours,
                                                 strict=True)]}

    def _picture(self, image: int | None, side: int) -> str | None:
        if self.thumbnail is None or image is None:
            return None
        return self.thumbnail(int(image), side)

    def _query_words(self) -> str:
        texts = self.moves.first_texts if self.way == "i2t" else self.moves.texts
        return f"{ASKS[self.way][0].capitalize()} {self.query + 1:,}: “{texts[self.query]}”"

    def _describe(self, line: Any) -> str:
        """List all that is known of one result."""
        kind = "match" if line.match else "no match"
        graded = "" if self.moves.relevance is None else f", relevance {line.relevance:.2f}"
        sides = zip(self.names, (line.rank_a, line.rank_b), (line.score_a, line.score_b),
                    strict=True)
        return f"“{line.text}”: {kind}{graded}; " + "; ".join(
            f"{name}: rank {rank:,}, score {number(score, 3)}" for name, rank, score in sides)

    def numbers(self) -> dict[str, str]:
        """Return rank and NDCG of the query under both models, and who is better how often."""
        found, query = self.selected, self.query
        ranked, graded = self.moves.measure_query(self.way, query)
        both = int((found[["rank_a", "rank_b"]].max(axis=1) <= TOP).sum())
        gains = self.moves.gains(self.way, self.measure)
        told = {"query": self._query_words()}
        for name, rank, ndcg in zip(self.names, ranked, graded, strict=True):
            told[f"rank of the first match, {name}"] = f"{rank:,}"
            told[f"NDCG, {name}"] = f"{ndcg:.3f}"
        told[f"in both first {min(TOP, found['rank_a'].max())}"] = str(both)
        by = f"by {MEASURES[self.measure]}"
        return told | {f"{self.names[1]} better {by}": f"{(gains > 0).sum():,} of {len(gains):,}",
                       f"{self.names[1]} worse {by}": f"{(gains < 0).sum():,} of {len(gains):,}"}

    def picture(self) -> Figure:
        """Draw the two lists as a bump chart."""
        return who_moved(self.movers(self.selected), self.names,
                         f"First results for {ASKS[self.way][0]} {self.query + 1:,}", TOP, self.low,
                         self.moves.relevance is not None)
