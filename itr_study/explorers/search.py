"""Search: a sentence or a picture asks one or two models, side by side."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from itr_study.checks import check_choice, check_count
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.explorer import (
    Control,
    Explorer,
    button,
    choice,
    file,
    slider,
    tick,
    words,
)
from itr_study.explorers.messages import index_of, parts_of
from itr_study.explorers.pictures import LARGEST, handed_in, thumbnail_uri
from itr_study.explorers.ranked import (
    Asked,
    Found,
    Ranked,
    check_models,
    checked_relevance,
    in_order,
    orders_of,
)
from itr_study.plots.retrieval import Query, Result, retrieval_grid

TOP = 9  # results that are shown of each model
KEPT = 1000  # thumbnails that are kept, some 4 kB each
LONGEST = 2000  # letters of a sentence that are read
NOT_AMONG = ("Re-ranking was switched off: it compares a query with all others of the split, and a "
             "new one is not among them.")
AFTER = "Re-ranked by FR: each score beside what all queries think of its candidate."
WAYS = {"t2i": "a sentence asks for pictures", "i2t": "a picture asks for sentences"}
SHOWS = {"best": "best", "negatives": "hardest negatives", "hubs": "hubs of the split"}
LISTED = {"best": "", "negatives": "Listed: the best that are no match.",
          "hubs": "Listed: what is found most often, among the first ten of all queries."}


def save_new(table: pd.DataFrame, name: str) -> Path:
    """Write a table as <name>-<n>.csv into the working folder, with the first n from 1 of which
    nothing is there: no file is ever replaced. Returns where it is, in full.

    Raises:  ValueError where nothing can be written there; what was begun is removed.
    """
    data = table.to_csv(index=False, lineterminator="\n").encode()
    try:
        folder = Path.cwd()
        path = next(path for n in count(1) if (path := created(folder / f"{name}-{n}.csv")))
        with undone(path):
            path.write_bytes(data)
    except OSError as error:
        raise ValueError("nothing could be saved in the folder where this notebook works "
                         f"({error.strerror or error}); go to another one in a cell, such as "
                         "import os; os.chdir('/tmp'), and save again") from error
    return path


@contextmanager
def undone(path: Path) -> Iterator[None]:
    """Inside, whatever goes wrong removes the file: half a table would be read as a whole one."""
    try:
        yield
    except BaseException:
        path.unlink()
        raise


def created(path: Path) -> Path | None:
    """The path of a new, empty file; None where something of that name is there already."""
    try:
        path.open("xb").close()
    except FileExistsError:
        return None
    return path


class Search(Explorer):
    """Queries of a split, or new ones, and what models find for them.

    Args:    searchers: one or two, by how a reader calls them, of the same data and split, with
             texts; relevance: (I, T), None takes the exact one where the data knows it.
    Raises:  ValueError as `check_models`, for scores that are not finite, and for relevance that
             is not of theirs.
    """

    drawing, title = "search", "Search"

    def __init__(self, searchers: Mapping[str, Searcher],
                 relevance: np.ndarray | None = None) -> None:
        check_models("Search", searchers, most=2)
        self.sides = [Ranked(name, searcher) for name, searcher in searchers.items()]
        first = next(iter(searchers.values()))
        self.split, self.dataset = first.split, first.dataset
        self.relevance = checked_relevance(relevance, first)
        self.order, self.show, self.rerank, self.place, self.said = "plain", "best", False, 0, ""
        self.asked = Asked("t2i", 0)
        self.thumbnail = lru_cache(KEPT)(
            lambda name: thumbnail_uri(self.dataset.open_image(name)))

    # What a reader does

    def ask(self, way: str, item: Any) -> None:
        """Another query; one that no model can answer leaves the last one."""
        asked = Asked(way, item)
        rerank = self.rerank and asked.known
        found = {side.name: side.found(asked, rerank) for side in self.sides}
        self.said = NOT_AMONG * (self.rerank and not rerank)
        self.asked, self.rerank, self._found = asked, rerank, found
        if asked.known:
            self.place = int(np.flatnonzero(self.queries() == item)[0])

    def write(self, sentence: str) -> None:
        """A sentence of the reader, without spaces around it; one of the split is known by heart.
        """
        sentence = sentence.strip()
        if len(sentence) > LONGEST:
            raise ValueError(f"the sentence has {len(sentence):,} letters; at most {LONGEST:,} "
                             "are read: shorten it")
        same = [t for t, text in enumerate(self.split.texts) if text == sentence]
        self.ask("t2i", same[0] if same else sentence)

    def upload(self, given: Mapping[str, Any]) -> None:
        """A picture of the reader."""
        for side in self.sides:
            side.check_new_pictures()  # a large one takes seconds to be read
        self.ask("i2t", handed_in(given))

    def turn(self, way: str) -> None:
        """Ask the other way round, from the first query in order."""
        check_choice("way", way, WAYS)
        self.ask(way, int(self.queries(way)[0]))

    def go(self, place: float) -> None:
        """The query in this place of the order, from 1. Raises: ValueError where there is none."""
        queries = self.queries()
        self.ask(self.asked.way, int(queries[index_of(place, len(queries))]))

    def sort(self, order: str) -> None:
        """Another order of queries, and the first of it."""
        check_choice("order", order, orders_of(self.sides))
        self.order = order
        self.go(1)

    def switch(self, show: str) -> None:
        """What is listed: the best, the best without the matches, or the hubs."""
        check_choice("show", show, SHOWS)
        self.show, self.said = show, ""

    def rerank_all(self, on: bool) -> None:
        """Lists as models rank them, or after FR."""
        found = {side.name: side.found(self.asked, bool(on)) for side in self.sides}
        self.rerank, self._found, self.said = bool(on), found, ""

    def take(self, hit: Mapping[str, Any]) -> None:
        """A result asks back."""
        way = "i2t" if self.asked.way == "t2i" else "t2i"
        (index,) = parts_of("a result", hit, "index")
        check_count("index", index, least=0)
        self.ask(way, int(index))

    def export(self, _: Any = None) -> None:
        """What is shown as a CSV file in the working folder; never over another."""
        table = self.selected.assign(query=self.asked.words(self.split), reranked=self.rerank)
        self.said = f"Saved as {save_new(table, 'search')}."

    # What there is

    @cached_property
    def _found(self) -> dict[str, Found]:
        return {side.name: side.found(self.asked, self.rerank) for side in self.sides}

    @property
    def _new_pictures(self) -> bool:
        """Whether all models can take a picture of the reader."""
        return all(side.searcher.data.image_encoders for side in self.sides)

    def queries(self, way: str | None = None) -> np.ndarray:
        """All queries of the split in the order chosen."""
        return in_order(self.order, self.sides, way or self.asked.way)

    def listed(self, side: Ranked) -> list[Hit]:
        """The hits of a model that are shown."""
        if self.show == "hubs":
            return side.hubs(self.asked.way, TOP)
        hits = self._found[side.name].hits
        wanted = (hit for hit in hits if not hit.match) if self.show == "negatives" else hits
        return [hit for hit, _ in zip(wanted, range(TOP), strict=False)]

    def pictured(self, side: Ranked) -> list[Hit]:
        """The first of those that are listed; the best, where all are matches and none is left."""
        return (self.listed(side) or self._found[side.name].hits)[:5]

    def relevance_of(self, hit: Hit) -> float | None:
        """How relevant a result is to a query of the split, where that is known."""
        if self.relevance is None or not self.asked.known or self.show == "hubs":
            return None
        pair = (hit.index, self.asked.item) if self.asked.way == "t2i" else (
            self.asked.item, hit.index)
        return float(self.relevance[pair])

    @property
    def selected(self) -> pd.DataFrame:
        """What is shown, a line a result: model, rank, score, match, relevance, id, text."""
        return pd.DataFrame([(side.name, hit.rank, hit.score, hit.match, self.relevance_of(hit),
                              hit.id, hit.text) for side in self.sides
                             for hit in self.listed(side)],
                            columns=["model", "rank", "score", "match", "relevance", "id", "text"])

    def controls(self) -> list[Control]:
        count = len(self.queries())
        return [choice("way", "Direction", self.asked.way, WAYS),
                words("write", "Your sentence", self.asked.item if isinstance(
                    self.asked.item, str) else "", "write what a picture shows, then Enter"),
                file("upload", "Your picture" + " (these models take none)" * (
                    not self._new_pictures), "image/*", LARGEST),
                choice("sort", "Queries of the split", self.order, orders_of(self.sides)),
                button("back", "Previous", off=self.place == 0),
                slider("go", "Query", self.place + 1, 1, count, 1,
                       f"{self.place + 1:,} of {count:,}"),
                button("on", "Next", off=self.place == count - 1),
                choice("switch", "Show", self.show, SHOWS),
                tick("rerank", "Re-ranked (FR)", self.rerank), button("export", "Save as CSV")]

    def actions(self) -> Mapping[str, Callable[[Any], None]]:
        return {"way": self.turn, "write": self.write, "upload": self.upload, "sort": self.sort,
                "back": lambda _: self.go(self.place), "go": self.go,
                "on": lambda _: self.go(self.place + 2), "switch": self.switch,
                "rerank": self.rerank_all, "take": self.take, "export": self.export}

    def stage(self) -> dict[str, Any]:
        return {"way": self.asked.way, "query": self._query(), "sides": [
            {"name": side.name, "match": self._found[side.name].match,
             "hits": [self._shown(hit) for hit in self.listed(side)]} for side in self.sides]}

    def _query(self) -> dict[str, Any]:
        """The query: its words, or its picture."""
        picture = self.asked.picture(self.split, self.dataset)
        return {"text": self.asked.words(self.split),
                "picture": None if picture is None else thumbnail_uri(picture, 240)}

    def _shown(self, hit: Hit) -> dict[str, Any]:
        picture = self.asked.way == "t2i"
        return {"rank": hit.rank, "score": round(hit.score, 4), "index": hit.index, "id": hit.id,
                "text": hit.text, "match": hit.match, "relevance": self.relevance_of(hit),
                "hub": self.show == "hubs", "picture": self.thumbnail(hit.id)
                if picture else None}

    def sentence(self) -> str:
        said = [self.said] if self.said else []
        if isinstance(self.asked.item, str):
            doubts = self.sides[0].searcher.doubts(self.asked.item)
            said += [f"{doubts[0].upper()}{doubts[1:]}."] if doubts else []
        name, way = self.asked.words(self.split), self.asked.way
        said.append(f"“{name}” asks." if way == "t2i" else f"The query is {name}.")
        kind = "the picture of " * (way == "t2i")
        for side in self.sides:
            match, best = self._found[side.name].match, self._found[side.name].hits[0]
            stands = f"the match stands at rank {match:,}" if match else "no match is known"
            first = (best.text or best.id).rstrip(".")
            said.append(f"{side.name}: {stands}; first is {kind}“{first}”.")
        return " ".join([*said, *[AFTER] * self.rerank, LISTED[self.show]]).rstrip()

    def picture(self) -> Figure:
        item = self.asked.picture(self.split, self.dataset) or self.asked.words(self.split)
        queries = [Query(item, [Result(
            self.dataset.open_image(hit.id) if self.asked.way == "t2i" else hit.text, hit.score,
            hit.match, self.relevance_of(hit)) for hit in self.pictured(side)],
            self._found[side.name].match, side.name) for side in self.sides]
        return retrieval_grid(queries, f"{self.title}: {WAYS[self.asked.way]}")
