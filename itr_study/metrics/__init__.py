"""Metrics. To add one: its file, its line here, and its oracle under tests/oracles.

A metric is called with (scores, truth) and returns a dict of fractions in [0, 1]; percent begins
in `evaluation`. Only `kendall` and `coherent` may be negative: they lie in [-1, 1].

Scores are a matrix (I, T) that serves both directions, or `Scores(i2t, t2i)`, one for each, as
re-ranking gives them: what begins with "i2t" is read from the rows of the one, what begins with
"t2i" from the columns of the other. `ranks` is the primitive under everything that asks where a
match stands; `per_query` walks scores beside graded relevance, once for any number of metrics.

What the sub-embeddings of an image do is read from vectors and maps, not from a ranking:
`entropy`, `correlation`, `attention`.
"""

from itr_study.metrics.attention import coverage, focus, rank_map
from itr_study.metrics.class_based import class_based
from itr_study.metrics.coherent import coherent, coherent_per_query, coherent_rows
from itr_study.metrics.correlation import head_correlation, mean_correlation
from itr_study.metrics.eccv import eccv_table, read_eccv
from itr_study.metrics.entropy import embedding_entropy, score_entropy
from itr_study.metrics.first import first
from itr_study.metrics.graded import (
    RowMetric,
    mean_relevance,
    mean_relevance_per_query,
    mean_relevance_rows,
    per_query,
    query_means,
)
from itr_study.metrics.hubness import hubness
from itr_study.metrics.kendall import kendall, kendall_per_query, kendall_rows
from itr_study.metrics.ndcg import ndcg, ndcg_per_query, ndcg_rows
from itr_study.metrics.ranks import Ranks, ranks, ranks_from_embeddings
from itr_study.metrics.recall import five_fold, folds, recall, recall_of_ranks
from itr_study.metrics.retrieval_sets import map_at_r, r_precision
from itr_study.metrics.scores import Scores
from itr_study.metrics.truth import Positives, Truth

# What runs are measured by where there is graded truth, by the name in a run's columns.
GRADED_METRICS: dict[str, RowMetric] = {
    "ndcg": ndcg_rows(), "tau": kendall_rows(), "cs100": coherent_rows(),
    "rel10": mean_relevance_rows()}

__all__ = ["GRADED_METRICS", "Positives", "Ranks", "Scores", "Truth", "class_based", "coherent",
           "coherent_per_query", "coverage", "eccv_table", "embedding_entropy", "first",
           "five_fold", "focus", "folds", "head_correlation", "hubness", "kendall",
           "kendall_per_query", "map_at_r", "mean_correlation", "mean_relevance",
           "mean_relevance_per_query", "ndcg", "ndcg_per_query", "per_query", "query_means",
           "r_precision", "rank_map", "ranks", "ranks_from_embeddings", "read_eccv", "recall",
           "recall_of_ranks", "score_entropy"]
