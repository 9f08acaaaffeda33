"""What is kept of the scores of a test split, which are too many to keep (5 million, 20 MB).

The scores of the pairs that people judged, so that a claim about people can be asked later; the
first results of some queries, so that two runs can be compared by what they find. Both are numbers
of a model about pairs: no picture, text or feature can be had back from them. Only of a model that
compares every pair anew all scores are kept, on the machine that made them (`runs.scores`).
"""

import numpy as np
from torch import Tensor, nn

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.metrics import first
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS
from itr_study.models.base import compares_pairs
from itr_study.rerank import Bank

QUERIES = 100  # of each direction, at most
RESULTS = 10  # of each query
ALL = slice(None)


def kept_of(scores: AnyScores, split: EncodedSplit, dataset: str) -> dict[str, np.ndarray]:
    """The arrays that are kept of a test split's scores; none of another split.

    judged_<collection> (N,) float16: the scores of its pairs, in the order of the judgements, by
    which images ask. i2t_queries, t2i_queries (Q,) int32: which images and texts were sampled;
    i2t_first, t2i_first (Q, 10) int32: the results of each with the highest scores, best first, of
    equal ones the first of the split; fewer where the split has fewer.

    Args:    scores: (I, T) of the split; dataset: its name.
    """
    if split.name != "test":
        return {}
    pair = Scores.of(scores)
    arrays = {f"judged_{name}": judged_scores(pair, split, name)
              for name in DATASETS[dataset].kept_judgements if name in split.judgements}
    for direction, count in zip(DIRECTIONS, pair.shape, strict=True):
        queries = sampled(count)
        asked = pair.cut(queries, ALL) if direction == "i2t" else pair.cut(ALL, queries)
        arrays[f"{direction}_queries"] = queries
        arrays[f"{direction}_first"] = first(asked, RESULTS)[direction].astype(np.int32)
    return arrays


def all_scores(model: nn.Module, scores: Tensor, split: EncodedSplit,
               bank: Bank | None = None) -> dict[str, Tensor]:
    """Of a model that compares every pair anew all scores of a test split: scores (I, T) and, where
    they were made, those of the queries of dev: bank_images (B, T) and bank_texts (I, C); float32,
    60 MB of 1,000 images and 5,000 texts each."""
    if split.name != "test" or not compares_pairs(model):
        return {}
    return {"scores": scores} | ({} if bank is None else {
        "bank_images": bank.images, "bank_texts": bank.texts})


def judged_scores(scores: Scores, split: EncodedSplit, collection: str) -> np.ndarray:
    """(N,) float16: the scores of the pairs of a collection of judgements, in its order."""
    pairs = split.judgements[collection]
    return np.asarray(scores.i2t[pairs.images, pairs.texts], np.float16)


def sampled(count: int) -> np.ndarray:
    """(Q,) int32 in rising order: the same queries of so many for every run, for ever (numpy keeps
    the numbers of RandomState, not those of newer generators)."""
    return np.sort(np.random.RandomState(0).permutation(count)[:QUERIES]).astype(np.int32)
