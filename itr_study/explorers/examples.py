"""Queries to show: which ones, what a trained model finds for them, and the same as a table."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.evaluation.search import Hit, Searcher
from itr_study.plots.retrieval import Query, Result


def image_queries(searcher: Searcher, images: Sequence[int | Image.Image], top: int = 5,
                  relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """What a model finds for pictures: the best texts, and where the first match is.

    Args:    images: indices into the split, or new pictures, of which neither match nor relevance
             is known; top: results of each; relevance: (I, T), None takes the exact one where it is
             known; title: over each query, such as the name of the model.
    """
    split, queries = searcher.split, []
    for image in images:
        hits = searcher.search_image(image, top=len(split.texts))
        new = isinstance(image, Image.Image)
        picture = image if new else searcher.dataset.open_image(split.image_ids[image])
        graded = None if new else graded_by(searcher, relevance)
        results = [Result(hit.text, hit.score, hit.match,
                          None if graded is None else float(graded[image, hit.index]))
                   for hit in hits[:top]]
        queries.append(Query(picture, results, match_rank(hits), title))
    return queries


def text_queries(searcher: Searcher, texts: Sequence[int | str], top: int = 5,
                 relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """What a model finds for texts: the best pictures, and where the match stands.

    Args:    texts: indices into the split, or any words as in `Searcher.search_text`, of which no
             relevance is known; the others as in `image_queries`.
    """
    split, queries = searcher.split, []
    for text in texts:
        hits = searcher.search_text(text, top=len(split.image_ids))
        new = isinstance(text, str)
        graded = None if new else graded_by(searcher, relevance)
        results = [Result(searcher.dataset.open_image(hit.id), hit.score, hit.match,
                          None if graded is None else float(graded[hit.index, text]))
                   for hit in hits[:top]]
        queries.append(Query(text if new else split.texts[text], results, match_rank(hits), title))
    return queries


def graded_by(searcher: Searcher, relevance: np.ndarray | None) -> np.ndarray | None:
    """The relevance given, (I, T), else the exact one, None where nobody knows it."""
    return searcher.relevance if relevance is None else relevance


def match_rank(hits: Sequence[Hit]) -> int | None:
    """The rank of the first match among all hits, None where no match is known."""
    return next((hit.rank for hit in hits if hit.match), None)


def easy_to_hard(ranks: np.ndarray, at: Sequence[float] = (0.1, 0.5, 0.9)) -> list[int]:
    """The queries at these places of all, sorted by the rank of their best match.

    Example:
        >>> easy_to_hard(np.array([7, 1, 3, 2, 9]), at=(0, 0.5, 1))
        [1, 2, 4]
    """
    order = ranks.argsort(kind="stable")
    return [int(order[int(share * (len(order) - 1))]) for share in at]


def result_table(queries: Sequence[int], answers: Sequence[Query]) -> pd.DataFrame:
    """What was found for each query, a line a result: query, rank, score, match, relevance.

    Args:    queries: indices into the split; answers: what `image_queries` or `text_queries` gave.
    """
    lines = [(query, rank, result.score, result.match, result.relevance)
             for query, answer in zip(queries, answers, strict=True)
             for rank, result in enumerate(answer.results, start=1)]
    return pd.DataFrame(lines, columns=["query", "rank", "score", "match", "relevance"])


def side_by_side(searchers: Mapping[str, Searcher], ask: Callable[..., list[Query]],
                 queries: Sequence[int], relevance: np.ndarray) -> tuple[list[Query], pd.DataFrame]:
    """What several models find for the same queries, and the same as a table.

    Args:    searchers: by the name of the model; ask: `image_queries` or `text_queries`; queries:
             indices into the split; relevance: (I, T).
    Returns: the answers, query by query and model by model; lines of `result_table` with `model`.
    """
    answers, tables = [], []
    for query in queries:
        for name, searcher in searchers.items():
            title = name.replace(" + ", "\n+ ")
            answers += ask(searcher, [query], relevance=relevance, title=title)
            tables.append(result_table([query], answers[-1:]).assign(model=name))
    return answers, pd.concat(tables, ignore_index=True)


def obvious_errors(table: pd.DataFrame, least: float) -> str:
    """How many results are no match and less relevant than `least`, model by model, in words.

    Args:    table: as `side_by_side` gives it.
    """
    wrong = table[~table["match"].astype(bool) & (table["relevance"] < least)]
    return ", ".join(f"{(wrong['model'] == name).sum()} by {name}"
                     for name in dict.fromkeys(table["model"]))
