"""Choose queries to show, and collect what trained models find for them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from PIL import Image

from itr_study.evaluation.search import Hit, Searcher
from itr_study.plots.retrieval import Query, Result


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
