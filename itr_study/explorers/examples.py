"""Which queries to show: neither the best nor the worst, but an easy, a middling and a hard one."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from itr_study.evaluation.search import Searcher
from itr_study.plots.retrieval import Query


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
