"""Metrics. To add one: its function, its line here, and its oracle under tests/oracles.

A metric is called with (scores, truth) and returns a dict of fractions in [0, 1]; percent begins
in `evaluation`. Only `kendall` and `coherent` may be negative: they lie in [-1, 1].

Scores are a matrix (I, T) for both directions, or `Scores(i2t, t2i)`, one for each, as re-ranking
gives them: names with "i2t" are read from the rows of the one, names with "t2i" from the columns of
the other. `ranks` counts the ranks of matches. `per_query` reads scores with graded relevance, once
for any number of metrics: `per_query(scores, truth, ndcg_rows(), kendall_rows())`.

`entropy` and `attention` measure the sub-embeddings of an image by vectors and maps, not rankings.
"""

from itr_study.metrics.attention import (
    coverage,
    focus,
    head_correlation,
    mean_correlation,
    rank_map,
)
from itr_study.metrics.eccv import eccv_table, read_eccv
from itr_study.metrics.entropy import embedding_entropy, score_entropy
from itr_study.metrics.first import first, hubness
from itr_study.metrics.graded import (
    RowMetric,
    mean_relevance,
    mean_relevance_rows,
    per_query,
    query_means,
)
from itr_study.metrics.kendall import coherent, coherent_rows, kendall, kendall_rows
from itr_study.metrics.ndcg import ndcg, ndcg_rows
from itr_study.metrics.ranks import Ranks, ranks, ranks_from_embeddings
from itr_study.metrics.recall import five_fold, folds, recall, recall_of_ranks
from itr_study.metrics.retrieval_sets import class_based, map_at_r, r_precision
from itr_study.metrics.scores import Scores
from itr_study.metrics.truth import Positives, Truth

# Metrics of runs where there is graded truth, by the name in a run's columns.
GRADED_METRICS: dict[str, RowMetric] = {
    "ndcg": ndcg_rows(), "tau": kendall_rows(), "cs100": coherent_rows(),
    "rel10": mean_relevance_rows()}

__all__ = ["GRADED_METRICS", "Positives", "Ranks", "Scores", "Truth", "class_based", "coherent",
           "coherent_rows", "coverage", "eccv_table", "embedding_entropy", "first", "five_fold",
           "focus", "folds", "head_correlation", "hubness", "kendall", "kendall_rows", "map_at_r",
           "mean_correlation", "mean_relevance", "mean_relevance_rows", "ndcg", "ndcg_rows",
           "per_query", "query_means", "r_precision", "rank_map", "ranks", "ranks_from_embeddings",
           "read_eccv", "recall", "recall_of_ranks", "score_entropy"]
