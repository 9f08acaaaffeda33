"""Re-rankers by name. To add one: its file, its line here, and its oracle under tests/oracles.

A re-ranker is called with scores (I, T), an array or a tensor, higher = more alike, or `Scores`, of
which each direction is re-ranked from its own matrix. It gives `Scores(i2t, t2i)` of that shape,
each computed on first use; `ranks` of them makes no matrix.

All of them are transductive: they look at all queries of the test set at once, which one query
alone could not give. FR with a `Bank` of other queries is the exception.
"""

from collections.abc import Callable

from itr_study.checks import Registry
from itr_study.metrics.scores import LazyScores
from itr_study.rerank.fast import Bank, fast, fast_grid
from itr_study.rerank.multi import multi
from itr_study.rerank.reciprocal import reciprocal

Reranker = Callable[..., LazyScores]
RERANKERS: Registry[Reranker] = Registry("re-ranker", dict[str, Reranker](
    fast=fast, reciprocal=reciprocal, multi=multi))

__all__ = ["RERANKERS", "Bank", "fast_grid"]
