"""From a trained model to the rows of a retrieval grid."""

from collections.abc import Sequence

import numpy as np
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
