"""Metrics by name. To add one: its file, its function here, and its oracle under tests/oracles.

A metric is called with (scores (I, T), truth) and returns a dict of fractions in [0, 1]; tables
and plots print percent. Only `kendall` and `coherent` may be negative: they lie in [-1, 1].
`ranks` is the primitive under everything that asks where a match stands.
"""

from itr_study.metrics.coherent import coherent, coherent_per_query
from itr_study.metrics.eccv import eccv_table, read_eccv
from itr_study.metrics.intervals import Interval, bootstrap
from itr_study.metrics.kendall import kendall, kendall_per_query
from itr_study.metrics.ndcg import ndcg, ndcg_per_query
from itr_study.metrics.ranks import Ranks, ranks, ranks_from_embeddings
from itr_study.metrics.recall import five_fold, folds, recall, retrieval_table
from itr_study.metrics.retrieval_sets import map_at_r, r_precision
from itr_study.metrics.truth import Positives, Truth

METRICS = {"recall": recall, "map_at_r": map_at_r, "r_precision": r_precision, "ndcg": ndcg,
           "kendall": kendall, "coherent": coherent}

__all__ = ["METRICS", "Interval", "Positives", "Ranks", "Truth", "bootstrap", "coherent",
           "coherent_per_query", "eccv_table", "five_fold", "folds", "kendall",
           "kendall_per_query", "map_at_r", "ndcg", "ndcg_per_query", "r_precision", "ranks",
           "ranks_from_embeddings", "read_eccv", "recall", "retrieval_table"]
