"""Who moved? The first results of a query under two models, and where each stands in the other."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from textwrap import shorten
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from itr_study.checks import check_choice, check_count
from itr_study.digits import number
from itr_study.evaluation.search import Searcher
from itr_study.explorers.explorer import POLL, Control, Explorer, button, choice, slider, words
from itr_study.explorers.messages import brief, index_of, written_index
from itr_study.explorers.pictures import thumbnail_uri
from itr_study.explorers.ranked import check_models
from itr_study.metrics.ndcg import ndcg_rows, ndcgs_per_query
from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.plots.retrieval import Mover, relevance_colours, who_moved
from itr_study.progress import Show, counting, progress

LOG = logging.getLogger(__name__)
TOP = 20  # results of a list
MEASURES = {"rank": "rank of the first match", "ndcg": "NDCG"}
SMALL, LARGE = 64, 150  # pixels: of a result, of the query
# Letters of a result's text, also beside a picture; pointed at, all of it stands above.
LETTERS = {"i2t": 46, "t2i": 38}
FAR = 40  # of one that is in neither list's first, beside its long rank
SORTS = ("gain", "harm", "order")
SHADES = 9  # colours of the legend
KEPT = 400  # small pictures
SOON = 0.3  # seconds: what takes less is shown at once
ASKS = {"i2t": ("picture", "texts"), "t2i": ("text", "pictures")}


class BackgroundTask:
    """Work in a thread, one piece at a time, so that the page goes on.

    Attributes: share: of the work that is done, in [0, 1]; failure: why the last could not be done.
    Args:       failed: the beginning of `failure`, such as "NDCG could not be counted".
    """

    def __init__(self, failed: str) -> None:
        self.failed, self.failure, self.share = failed, "", 0.0
        self.thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def begin(self, work: Callable[[Show], None], total: float) -> None:
        """Call `work` in a thread, unless some is going on; it is given a function that takes how
        much of `total` is done, as `progress.counting` gives it."""
        if self.running:
            return
        self.share, self.failure = 0.0, ""

        def show(done: float, note: str = "") -> None:
            self.share = done / total

        self.thread = threading.Thread(target=self._do, args=(work, show), daemon=True)
        self.thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        if self.thread is not None:
            self.thread.join(seconds)

    def check(self) -> None:
        """Raise ValueError, once, where the last work could not be done."""
        if self.failure:
            failure, self.failure = self.failure, ""
            raise ValueError(failure)

    def _do(self, work: Callable[[Show], None], show: Show) -> None:
        try:
            work(show)
        except Exception as error:
            LOG.exception(self.failed)
            self.failure = brief(f"{self.failed}. {type(error).__name__}: {error}")


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


class WhoMoved(Explorer):
    """Two models' lists for one query: what is first in one, and where it stands in the other.

    Args:    scores_a, scores_b: (I, T), higher = more alike, of the same images and texts;
             image_of_text: (T,) int, whose text each is; texts: (T,); names: of the two models;
             relevance: (I, T) in [0, 1], None where nobody knows more than matches; pictures: the
             index of an image -> its picture, None shows its first text alone.
    Raises:  ValueError as `Moves`, and for names that are not two.
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
            lambda image, side: thumbnail_uri(pictures(image), side))
        self.way, self.sort, self.measure = "i2t", "gain", "rank"
        self.wanted = ""  # the measure that the reader waits for
        self.left: tuple[str, int] | None = None  # way and query at which they began to wait
        self.task = BackgroundTask("NDCG of all queries could not be counted")
        self.choose()

    @classmethod
    def of(cls, models: Mapping[str, Searcher], relevance: np.ndarray | None = None) -> Self:
        """Two trained models by name.

        Args:    relevance: (I, T), None takes the exact one where it is known.
        Raises:  ValueError as `check_models`.
        """
        check_models(cls.__name__, models, least=2, most=2)
        a, b = models.values()
        return cls(a.scores, b.scores, a.split.image_of_text, a.split.texts, tuple(models),
                   a.relevance if relevance is None else relevance,
                   lambda image: a.dataset.open_image(a.split.image_ids[image]))

    def choose(self, way: str | None = None, sort: str | None = None,
               measure: str | None = None) -> None:
        """Who asks, queries in which order, measured by what; begins with the first of that order.
        Raises: ValueError for what is none of them."""
        way, sort, measure = (now if new is None else new for new, now in (
            (way, self.way), (sort, self.sort), (measure, self.measure)))
        check_choice("direction", way, DIRECTIONS)
        check_choice("order of queries", sort, SORTS)
        check_choice("measure", measure, MEASURES)
        self.way, self.sort, self.measure, self.place = way, sort, measure, 0
        gains = self.moves.gains(way, measure)
        self.order = np.argsort({"gain": -gains, "harm": gains, "order": 0 * gains}[sort],
                                kind="stable")

    def measure_by(self, measure: str) -> None:
        """Measure by something else, at once or when it is counted, beside: the page goes on.
        Raises: ValueError for what is none of them, or could not be counted."""
        check_choice("measure", measure, MEASURES)
        self.wanted, self.left = measure, (self.way, self.query)
        if measure == "ndcg" and not self.moves.counted:
            self.task.begin(self.moves.count_ndcg, self.moves.queries)
            self.task.wait(SOON)
        self.look()

    def look(self, _: Any = None) -> None:
        """Take the measure that is waited for, if it is there; a reader who went on meanwhile stays
        at their query. Raises: ValueError where it could not be counted, also to those who wait for
        it no more."""
        measure, ended = self.wanted, not self.task.running
        if measure == "ndcg" and not ended:
            return
        self.wanted = ""
        if measure == "ndcg":
            self.task.check()
        if measure:
            query, went_on = self.query, (self.way, self.query) != self.left
            self.choose(measure=measure)
            if went_on:
                self.ask(query)
        if ended:
            self.task.check()

    def go(self, place: float) -> None:
        """The query at a place of the order, from 1. Raises: ValueError where there is none."""
        self.place = index_of(place, len(self.order))

    def ask(self, query: int) -> None:
        """The query of this index, from 0. Raises: ValueError where there is none."""
        check_count("query", query, least=0, most=len(self.order) - 1)
        self.place = int(np.flatnonzero(self.order == query)[0])

    def ask_written(self, number: str) -> None:
        """The query of the number that a reader wrote, from 1. Raises: ValueError where there is
        none."""
        self.ask(written_index("Query", number, len(self.order)))

    @property
    def query(self) -> int:
        """Index of the image or text that asks, from 0; a reader sees it as its number, from 1."""
        return int(self.order[self.place])

    @property
    def selected(self) -> pd.DataFrame:
        """The query and its results, as `Moves.results` gives them: both as indices of the split,
        from 0; a reader sees the query's number, from 1."""
        return self.moves.results(self.way, self.query)

    def controls(self) -> list[Control]:
        count, other = len(self.order), self.names[1]
        return [choice("direction", "Who asks", self.way, {"i2t": "pictures ask for texts",
                                                           "t2i": "texts ask for pictures"}),
                choice("sort", "Queries by", self.sort, {
                    "gain": f"largest gain of {other}", "harm": f"largest harm of {other}",
                    "order": "their number"}),
                choice("measure", "Measured by", self.wanted or self.measure, MEASURES),
                slider("place", "Place in this order", self.place + 1, 1, count, 1,
                       f"{self.place + 1:,} of {count:,}"),
                button("previous", "Previous query"), button("next", "Next query"),
                words("query", f"Query, 1 to {count:,}", f"{self.query + 1:,}", letters=6)]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"direction": lambda way: self.choose(way=way),
                "sort": lambda sort: self.choose(sort=sort),
                "measure": self.measure_by, "poll": self.look,
                "previous": lambda _: self.go(self.place),
                "next": lambda _: self.go(self.place + 2), "place": self.go,
                "query": self.ask_written}

    def movers(self, found: pd.DataFrame) -> list[Mover]:
        """The results with their rows in each list, those beyond the first below them."""
        rows = [found[rank].rank().astype(int) - 1 for rank in ("rank_a", "rank_b")]
        nowhere = found[["rank_a", "rank_b"]].min(axis=1) > TOP
        letters = np.where(nowhere, FAR, LETTERS[self.way])
        return [Mover(shorten(line.text, letters[line.Index], placeholder=" …"),
                      bool(line.match), float(line.relevance), (int(line.rank_a), int(line.rank_b)),
                      (int(rows[0][line.Index]), int(rows[1][line.Index])),
                      (bool(line.rank_a > TOP), bool(line.rank_b > TOP)))
                for line in found.itertuples()]

    def stage(self) -> dict[str, Any]:
        found = self.selected
        movers = self.movers(found)
        colours = relevance_colours([one.relevance for one in movers], self.low)
        graded = self.moves.relevance is not None
        shades = np.linspace(self.low, 1, SHADES)
        asks, wanted = ASKS[self.way]
        return {"names": list(self.names), "top": TOP, "query": self._asking(),
                "poll": POLL * bool(self.wanted or self.task.running or self.task.failure),
                "counted": self.task.share if self.wanted else None,
                "label": f"The {asks}'s first {wanted} by {self.names[0]} on the left and by "
                         f"{self.names[1]} on the right",
                "results": [
                    {"key": int(line.result), "text": one.text, "match": one.match,
                     "colour": colour, "says": self._says(line), "ranks": list(one.ranks),
                     "rows": list(one.rows), "beyond": list(one.beyond),
                     "picture": self._small(line.result) if self.way == "t2i" else None}
                    for one, line, colour in zip(movers, found.itertuples(), colours,
                                                 strict=True)],
                "scale": {"colours": relevance_colours(shades, self.low),
                          "ends": [number(self.low, 2), number(1, 2)]} if graded else None}

    def _small(self, image: int) -> str | None:
        return None if self.thumbnail is None else self.thumbnail(int(image), SMALL)

    def _asking(self) -> dict[str, Any]:
        """The query: its words, and the picture if it is one."""
        if self.way == "t2i":
            return {"words": f"Text {self.query + 1:,}: “{self.moves.texts[self.query]}”",
                    "picture": None}
        said = f"Picture {self.query + 1:,}: “{self.moves.first_texts[self.query]}”"
        return {"words": said, "picture": None if self.thumbnail is None else
                self.thumbnail(self.query, LARGE)}

    def _says(self, line: Any) -> str:
        """All of one result, in a sentence."""
        a, b = self.names
        kind = "match" if line.match else "no match"
        graded = "" if self.moves.relevance is None else f", relevance {line.relevance:.2f}"
        moved = int(line.rank_a - line.rank_b)
        way = "stays" if not moved else f"{abs(moved):,} {'up' if moved > 0 else 'down'}"
        return (f"“{line.text}”: {kind}{graded}; {a}: rank {line.rank_a:,}, score "
                f"{number(line.score_a, 3)}; {b}: rank {line.rank_b:,}, score "
                f"{number(line.score_b, 3)}; {way}.")

    def sentence(self) -> str:
        found, (a, b), query = self.selected, self.names, self.query
        asks, wanted = ASKS[self.way]
        ranked, graded = self.moves.of_query(self.way, query)
        both = int((found[["rank_a", "rank_b"]].max(axis=1) <= TOP).sum())
        gains = self.moves.gains(self.way, self.measure)
        up, down, count = int((gains > 0).sum()), int((gains < 0).sum()), len(gains)
        return (f"{asks.capitalize()} {query + 1:,} asks for {wanted}. Its first match stands at "
                f"rank {ranked[0]:,} by {a} and {ranked[1]:,} by {b}; NDCG is {graded[0]:.3f} and "
                f"{graded[1]:.3f}. Of the first "
                f"{min(TOP, found['rank_a'].max())} {wanted} of each, {both} are the same. By "
                f"{MEASURES[self.measure]}, {b} is better for {up:,} and worse for {down:,} of "
                f"{count:,} {asks}s." + (f" {MEASURES[self.wanted]} of all queries is being "
                                         "counted." if self.wanted else ""))

    def picture(self) -> Figure:
        """The two lists as a bump chart."""
        return who_moved(self.movers(self.selected), self.names,
                         f"{self._asking()['words']}: who moved?", TOP, self.low,
                         self.moves.relevance is not None)
