"""From a trained model to the rows of a retrieval grid."""

from collections.abc import Sequence

import numpy as np

from itr_study.evaluation.search import Searcher
from itr_study.plots.retrieval import Query, Result


def image_queries(searcher: Searcher, images: Sequence[int], top: int = 5,
                  relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """What a model finds for pictures of its split: the best texts, and where the first match is.

    Args:    images: indices into the split; top: results of each; relevance: (I, T), None takes the
             exact one where it is known; title: over each query, such as the name of the model.
    """
    graded = searcher.relevance if relevance is None else relevance
    split, queries = searcher.split, []
    for image in images:
        hits = searcher.search_image(image, top=len(split.texts))
        results = [Result(hit.text, hit.score, hit.match,
                          None if graded is None else float(graded[image, hit.index]))
                   for hit in hits[:top]]
        picture = searcher.dataset.open_image(split.image_ids[image])
        rank = next(hit.rank for hit in hits if hit.match)
        queries.append(Query(picture, results, rank, title))
    return queries


def text_queries(searcher: Searcher, texts: Sequence[int], top: int = 5,
                 relevance: np.ndarray | None = None, title: str = "") -> list[Query]:
    """What a model finds for texts of its split: the best pictures, and where the match stands.

    Args:    texts: indices into the split; the others as in `image_queries`.
    """
    graded = searcher.relevance if relevance is None else relevance
    split, queries = searcher.split, []
    for text in texts:
        hits = searcher.search_text(text, top=len(split.image_ids))
        results = [Result(searcher.dataset.open_image(hit.id), hit.score, hit.match,
                          None if graded is None else float(graded[hit.index, text]))
                   for hit in hits[:top]]
        rank = next(hit.rank for hit in hits if hit.match)
        queries.append(Query(split.texts[text], results, rank, title))
    return queries
