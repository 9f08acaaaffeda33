"""Search: a sentence or a picture asks one or two models, next to each other."""

import os
from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from itr_study.checks import check_choice, check_count
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.explorer import Control, Explorer, browse, button, choice, control
from itr_study.explorers.messages import read_parts
from itr_study.explorers.pictures import LARGEST, encode_thumbnail, read_upload
from itr_study.explorers.ranked import (
    Asked,
    Ranked,
    check_models,
    check_relevance,
    find_match,
    list_orders,
    sort_queries,
)
from itr_study.plots.retrieval import Query, Result, retrieval_grid

TOP = 9  # results that are shown of each model
KEPT = 1000  # thumbnails that are kept, some 4 kB each
LONGEST = 2000  # letters of a sentence that are read
NOT_AMONG = ("Re-ranking was switched off: it compares a query with all others of the split, and a "
             "new one is not among them.")
WAYS = {"t2i": "a sentence asks for pictures", "i2t": "a picture asks for sentences"}
SHOWS = {"best": "best", "negatives": "hardest negatives", "hubs": "hubs of the split"}


def save_table(table: pd.DataFrame, name: str) -> Path:
    """Write a table as <name>-<n>.csv into the working folder, n the first that is free."""
    data = table.to_csv(index=False, lineterminator="\n").encode()
    try:
        paths = (Path.cwd() / f"{name}-{n}.csv" for n in count(1))
        path = next(path for path in paths if not os.path.lexists(path))
        path.touch(exist_ok=False)
        try:
            path.write_bytes(data)
        except BaseException:
            path.unlink()  # half a table would be read as a whole one
            raise
    except OSError as error:
        raise ValueError("nothing could be saved in the folder where this notebook works "
                         f"({error.strerror or error}); go to another one in a cell, such as "
                         "import os; os.chdir('/tmp'), and save again") from error
    return path


class Search(Explorer):
    """Queries of a split, or new ones, and what models find for them.

    Args:
        searchers: one or two by name, of the same data and split, with texts.
        relevance: (I, T) in [0, 1]; None: the exact one, if the data knows it.
    Raises: ValueError: as `check_models`; scores that are not finite; relevance of another shape.
    """

    drawing, title = "search", "Search"

    def __init__(self, searchers: Mapping[str, Searcher],
                 relevance: np.ndarray | None = None) -> None:
        check_models("Search", searchers, most=2)
        self.sides = [Ranked(name, searcher) for name, searcher in searchers.items()]
        first = next(iter(searchers.values()))
        self.split, self.dataset = first.split, first.dataset
        self.relevance = first.relevance if relevance is None else np.asarray(relevance)
        if relevance is not None:
            check_relevance(self.relevance, first.scores.shape)
        self.order, self.show, self.rerank, self.place = "plain", "best", False, 0
        self.events = {"take": self.take}
        self.asked = Asked("t2i", 0)
        self.thumbnail = lru_cache(KEPT)(
            lambda name: encode_thumbnail(self.dataset.open_image(name)))

    # What a reader does

    def ask(self, way: str, item: Any) -> None:
        """Ask another query; one that no model can answer leaves the last one."""
        asked = Asked(way, item)
        rerank = self.rerank and asked.known
        found = {side.name: side.find(asked, rerank) for side in self.sides}
        self.note = NOT_AMONG * (self.rerank and not rerank)
        self.asked, self.rerank, self._found = asked, rerank, found
        if asked.known:
            self.place = int(np.flatnonzero(self.queries() == item)[0])
        elif way == "t2i" and (doubts := self.sides[0].searcher.doubts(item)):
            self.note = f"{self.note} {doubts[0].upper()}{doubts[1:]}.".strip()

    def write(self, sentence: str) -> None:
        """Ask with a sentence of the reader; one of the split has a known match."""
        sentence = sentence.strip()
        if len(sentence) > LONGEST:
            raise ValueError(f"the sentence has {len(sentence):,} letters; at most {LONGEST:,} "
                             "are read: shorten it")
        same = [t for t, text in enumerate(self.split.texts) if text == sentence]
        self.ask("t2i", same[0] if same else sentence)

    def upload(self, given: Mapping[str, Any]) -> None:
        """Ask with a picture of the reader."""
        for data in (side.searcher.data for side in self.sides):
            if not data.image_encoders:  # before a large one is read, which takes seconds
                raise ValueError(data.needs_network)
        self.ask("i2t", read_upload(given))

    def turn(self, way: str) -> None:
        """Ask in the other direction, from the first query in order."""
        check_choice("way", way, WAYS)
        self.ask(way, int(self.queries(way)[0]))

    def go(self, place: int) -> None:
        """Ask the query at a place of the order, from 0."""
        self.ask(self.asked.way, int(self.queries()[place]))

    def sort(self, order: str) -> None:
        """Choose another order of queries, and ask its first."""
        check_choice("order", order, list_orders(self.sides))
        self.order = order
        self.go(0)

    def switch(self, show: str) -> None:
        """List the best, the best without the matches, or the hubs."""
        check_choice("show", show, SHOWS)
        self.show = show

    def rerank_all(self, on: bool) -> None:
        """List results as models rank them, or after FR."""
        found = {side.name: side.find(self.asked, bool(on)) for side in self.sides}
        self.rerank, self._found = bool(on), found

    def take(self, hit: Mapping[str, Any]) -> None:
        """Ask with a result."""
        way = "i2t" if self.asked.way == "t2i" else "t2i"
        (index,) = read_parts("a result", hit, "index")
        check_count("index", index, least=0)
        self.ask(way, int(index))

    def export(self, _: Any = None) -> None:
        """Save what is shown as a CSV file in the working folder, never over another."""
        table = self.selected.assign(query=self.asked.words(self.split), reranked=self.rerank)
        self.note = f"Saved as {save_table(table, 'search')}."

    # What is shown

    @cached_property
    def _found(self) -> dict[str, list[Hit]]:
        return {side.name: side.find(self.asked, self.rerank) for side in self.sides}

    def queries(self, way: str | None = None) -> np.ndarray:
        """Return all queries of the split in the order chosen."""
        return sort_queries(self.order, self.sides, way or self.asked.way)

    def list_hits(self, side: Ranked) -> list[Hit]:
        """Return the hits of a model that are shown."""
        if self.show == "hubs":
            return side.list_hubs(self.asked.way, TOP)
        hits = self._found[side.name]
        return [hit for hit in hits if self.show == "best" or not hit.match][:TOP]

    def get_relevance(self, hit: Hit) -> float | None:
        """Return how relevant a result is to a query of the split, if that is known."""
        if self.relevance is None or not self.asked.known or self.show == "hubs":
            return None
        pair = (hit.index, self.asked.item) if self.asked.way == "t2i" else (
            self.asked.item, hit.index)
        return float(self.relevance[pair])

    @property
    def selected(self) -> pd.DataFrame:
        """What is shown, a line a result: model, rank, score, match, relevance, id, text."""
        return pd.DataFrame([(side.name, hit.rank, hit.score, hit.match, self.get_relevance(hit),
                              hit.id, hit.text) for side in self.sides
                             for hit in self.list_hits(side)],
                            columns=["model", "rank", "score", "match", "relevance", "id", "text"])

    def controls(self) -> list[Control]:
        """List what can be set."""
        new_pictures = all(side.searcher.data.image_encoders for side in self.sides)
        upload = "Your picture" + " (these models take none)" * (not new_pictures)
        sentence = self.asked.item if isinstance(self.asked.item, str) else ""
        return [choice("way", "Direction", self.turn, self.asked.way, WAYS),
                control("text", "write", "Your sentence", self.write, sentence, letters=36,
                        hint="write what a picture shows, then Enter"),
                control("file", "upload", upload, self.upload, kinds="image/*", most=LARGEST),
                choice("sort", "Queries of the split", self.sort, self.order,
                       list_orders(self.sides)),
                *browse("query", "Query", self.go, self.place, len(self.queries())),
                choice("switch", "Show", self.switch, self.show, SHOWS),
                control("checkbox", "rerank", "Re-ranked (FR)", self.rerank_all, self.rerank),
                button("export", "Save as CSV", self.export)]

    def stage(self) -> dict[str, Any]:
        """Return the query and the results of each model."""
        picture = self.asked.picture(self.split, self.dataset)
        query = {"text": self.asked.words(self.split),
                 "picture": None if picture is None else encode_thumbnail(picture, 240)}
        return {"query": query, "sides": [
            {"name": side.name, "match": find_match(self._found[side.name]),
             "refusal": "" if self.asked.known or self.asked.way == "i2t"  # the match fits
             else self._found[side.name].refusal,
             "hits": [self._describe(hit) for hit in self.list_hits(side)]} for side in self.sides]}

    def _describe(self, hit: Hit) -> dict[str, Any]:
        return {"rank": hit.rank, "score": round(hit.score, 4), "index": hit.index, "id": hit.id,
                "text": hit.text, "match": hit.match, "relevance": self.get_relevance(hit),
                "hub": self.show == "hubs",
                "picture": self.thumbnail(hit.id) if self.asked.way == "t2i" else None}

    def numbers(self) -> dict[str, str]:
        """Return the query, and of each model the rank of the match and the first result."""
        told = {"query": self.asked.words(self.split)}
        for side in self.sides:
            hits = self._found[side.name]
            match = find_match(hits)
            told[f"rank of the match, {side.name}"] = f"{match:,}" if match else "unknown"
            told[f"first, {side.name}"] = hits[0].text or hits[0].id
        return told

    def picture(self) -> Figure:
        """Draw the first five results of each model."""
        item = self.asked.picture(self.split, self.dataset) or self.asked.words(self.split)
        queries = []
        for side in self.sides:
            found = self._found[side.name]
            results = [Result(self.dataset.open_image(hit.id) if self.asked.way == "t2i"
                              else hit.text, hit.score, hit.match, self.get_relevance(hit))
                       for hit in (self.list_hits(side) or found)[:5]]  # none left: all are matches
            queries.append(Query(item, results, find_match(found), side.name))
        return retrieval_grid(queries, f"{self.title}: {WAYS[self.asked.way]}")
