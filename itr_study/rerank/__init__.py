"""Re-rankers by name. To add one: its file, its line here, and its oracle under tests/oracles.

A re-ranker is called with scores (I, T) and gives `Scores(i2t, t2i)` of the same shape, each
computed on first use; what only asks where a match stands (`ranks`) never makes them.

All of them are transductive: they look at all queries of the test set at once, which one query
alone could not give. FR with a `Bank` of other queries is the exception.
"""

from itr_study.checks import Registry
from itr_study.rerank.bank import Bank
from itr_study.rerank.fast import fast
from itr_study.rerank.grid import fast_grid
from itr_study.rerank.multi import multi
from itr_study.rerank.reciprocal import reciprocal

RERANKERS = Registry("re-ranker", {"fast": fast, "reciprocal": reciprocal, "multi": multi})

__all__ = ["RERANKERS", "Bank", "fast_grid"]
