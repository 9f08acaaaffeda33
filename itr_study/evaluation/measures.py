"""Measures of runs besides the retrieval table, by data set, and what is kept of the scores.

Graded truth is `exact` if the data knows it (scenes), else `sentence` (MiniLM's cosine) and its
control `cider`; columns are <direction>_<metric>_<truth>. An evaluation takes all measures; rows
may lack those that are `asked`, unless somebody needs them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from time import process_time
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.percent import percent
from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import GRADED_METRICS, Ranks, first, five_fold, hubness, query_means, ranks
from itr_study.metrics.class_based import CLASS_METRICS, class_based
from itr_study.metrics.entropy import TEMPERATURE, entropies
from itr_study.metrics.human import human_correlation
from itr_study.metrics.recall import KS
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.models import MODELS
from itr_study.models.base import compares_pairs
from itr_study.relevance import RELEVANCE
from itr_study.rerank import RERANKERS, Bank
from itr_study.rerank.fast import CUB_SCALES

Heads = Callable[[], Iterator[tuple[int, Tensor]]]


class Scored(NamedTuple):
    """A split with the scores of a model.

    Attributes:
        scores: (I, T).
        split: encoded.
        bank: scores of the queries of another split, for re-ranking.
        heads: gives the scores of the K vectors of images in pieces, (first image, (i, K, T)).
    """

    scores: AnyScores
    split: EncodedSplit
    bank: Bank | None = None
    heads: Heads | None = None


def class_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns by class: i2t_class_r1 ... t2i_class_rp, of test also fast_cub_<name>."""
    if not DATASETS[dataset].by_class or split == "train":
        return ()
    after = tuple(f"fast_cub_{name}" for name in CLASS_METRICS)
    return CLASS_METRICS + after * (split == "test")


def by_class(scored: Scored) -> dict[str, float]:
    """Measure retrieval by class in percent, of the test split also after FR; {} without classes.

    Source: dvse, Table III (CUB); FR sees all queries of the split at once, with its scales.
    """
    split, scores = scored.split, scored.scores
    if split.image_classes is None:
        return {}
    taken = {"": scores}
    if split.name == "test":
        taken["fast_cub_"] = RERANKERS["fast"](scores, **CUB_SCALES)
    truth = Truth(split.image_of_text, split.n_images)
    return {f"{prefix}{name}": percent(value) for prefix, each in taken.items()
            for name, value in class_based(each, truth, split.image_classes).items()}


WITH_HEADS = frozenset(name for name, model in MODELS.items() if model.has_heads)


def entropy_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns of the test split: entropy, entropy_noise."""
    return ("entropy", "entropy_noise") if split == "test" else ()


def head_entropy(scored: Scored) -> dict[str, float]:
    """Average embedding entropy (nats) and noise (percent) over images and heads; {} without heads.

    Source: dvse Eqs. 1, 2 and 5, as in `metrics.entropy`.
    """
    if scored.heads is None:
        return {}
    found = entropies(scored.heads(), scored.split.image_of_text, TEMPERATURE)
    return {"entropy": float(found.nats.mean()), "entropy_noise": percent(found.noise.mean())}


QUERIES = 100  # of each direction, at most
RESULTS = 10  # of each query
ALL = slice(None)


def kept_of(scores: AnyScores, split: EncodedSplit, dataset: str) -> dict[str, np.ndarray]:
    """Choose the arrays that are kept of a test split's scores (all: 20 MB); none of other splits.

    Args:
        scores: (I, T) of the split.
        split: encoded.
        dataset: its name.

    Returns:
        judged_<collection> (N,) float16, scores of the pairs that people judged; i2t_queries,
        t2i_queries (Q,) int32, sampled images and texts; i2t_first, t2i_first (Q, 10) int32, their
        first results, best first, of equal scores the first of the split.
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
    """Return all scores of a test split if the model compares every pair, else {}.

    They are slow to compute again. Returns scores (I, T), and of the queries of dev, if given,
    bank_images (B, T) and bank_texts (I, C); float32.
    """
    if split.name != "test" or not compares_pairs(model):
        return {}
    return {"scores": scores} | ({} if bank is None else {
        "bank_images": bank.images, "bank_texts": bank.texts})


def judged_scores(scores: Scores, split: EncodedSplit, collection: str) -> np.ndarray:
    """Return the scores (N,) float16 of the pairs of a collection of judgements."""
    pairs = split.judgements[collection]
    return np.asarray(scores.i2t[pairs.images, pairs.texts], np.float16)


def sampled(count: int) -> np.ndarray:
    """Sample queries (Q,) int32, rising: the same for every run (numpy keeps RandomState)."""
    return np.sort(np.random.RandomState(0).permutation(count)[:QUERIES]).astype(np.int32)


# `fast`, `reciprocal` and `multi` see all queries of the test split at once, `fast_bank` is FR with
# the queries of the dev split instead.

HUBNESS = tuple(f"{direction}_hubness" for direction in DIRECTIONS)
RECALLS = (*(f"{direction}_r{k}" for direction in DIRECTIONS for k in KS), "rsum")
SECONDS = tuple(f"seconds_{method}" for method in RERANKERS)


def reranked_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns of test: hubness of both directions, then <method>_<recall or hubness>."""
    if split != "test":
        return ()
    return HUBNESS + tuple(f"{method}_{name}" for method in (*RERANKERS, "fast_bank")
                           for name in RECALLS + HUBNESS)


def reranked(scored: Scored) -> dict[str, float]:
    """Measure hubness, and of each re-ranking method recall in percent, hubness and seconds.

    Hubness is a skewness, not in percent. seconds_<method> are seconds of a core to re-rank and
    count the ranks, beyond counting them without re-ranking. Without a bank nothing is re-ranked.

    Raises:
        ValueError: as the re-rankers.
    """
    scores, owner, bank = scored.scores, scored.split.image_of_text, scored.bank
    table = hubness(scores)
    if bank is None:
        return table
    start = process_time()
    ranks(scores, owner)
    plain = process_time() - start
    taken = {"multi": as_cosines(scores)}
    for method, rerank in RERANKERS.items():
        start = process_time()
        after = rerank(taken.get(method, scores))
        best = ranks(after, owner)
        table[f"seconds_{method}"] = max(0.0, process_time() - start - plain)
        table |= _after(method, after, best)
    after = RERANKERS["fast"](scores, bank=bank)
    return table | _after("fast_bank", after, ranks(after, owner))


def as_cosines(scores: AnyScores) -> AnyScores:
    """Divide scores beyond [-1, 1] by the largest, which keeps every order."""
    pair = Scores.of(scores)
    largest = max(max(float(matrix.max()), -float(matrix.min())) for matrix in pair)
    if largest <= 1:
        return scores
    i2t = pair.i2t / largest
    return Scores(i2t, i2t if pair.single else pair.t2i / largest)


def _after(method: str, scores: AnyScores, best: Ranks) -> dict[str, float]:
    """Compute the columns of one method from its scores and their ranks."""
    recalls = retrieval_table(best)
    values = {name: recalls[name] for name in RECALLS} | hubness(scores)
    return {f"{method}_{name}": value for name, value in values.items()}


CAPTION_LABELS = ("sentence", "cider")


class Measure(NamedTuple):
    """Columns that some data sets carry.

    Attributes:
        columns: (data set, split) -> names.
        metric: scored split -> names and values (shares in percent), as far as it can; measures
            that share it share its walk over the scores.
        costs: names that metric adds for all splits together: seconds, different for each run.
        models: those it is taken of; None: all.
        asked: whether a row is complete without it, unless it is asked for.
    """

    columns: Callable[[str, str], tuple[str, ...]]
    metric: Callable[[Scored], dict[str, float]]
    costs: tuple[str, ...] = ()
    models: frozenset[str] | None = None
    asked: bool = False


def vectors_needed(sources: Iterable[str]) -> tuple[str, ...]:
    """Name the label vectors of a split that these label sources read."""
    return tuple(sorted({name for source in sources
                         for name in RELEVANCE[source]().vectors_needed}))


_graded: WeakKeyDictionary[EncodedSplit, dict[str, Truth]] = WeakKeyDictionary()


def truths(split: EncodedSplit) -> dict[str, Truth]:
    """Grade a split by every source whose label vectors it carries, once; train has none."""
    if split.name == "train":
        return {}
    if split not in _graded:
        carried = {"exact"} if split.relevance is not None else set()
        carried |= {name for name in CAPTION_LABELS
                    if set(vectors_needed([name])) <= set(split.label_vectors)}
        _graded[split] = {name: truth_from(name, split) for name in sorted(carried)}
    return _graded[split]


def truth_from(source: str, split: EncodedSplit) -> Truth:
    """Grade a whole split by a label source, held as one (I, T) float32 array."""
    grade = RELEVANCE[source]()
    blocks = Truth(split.image_of_text, split.n_images).blocks()
    values = np.concatenate([grade.block(split, images) for images in blocks])
    return Truth(split.image_of_text, split.n_images, values.__getitem__)


def graded_columns(*metrics: str) -> Callable[[str, str], tuple[str, ...]]:
    """Make a namer of columns <direction>_<metric>_<truth>; none on train."""
    def of(dataset: str, split: str) -> tuple[str, ...]:
        return () if split == "train" else tuple(
            f"{direction}_{metric}_{truth}" for metric in metrics
            for truth in DATASETS[dataset].graded_by for direction in DIRECTIONS)

    return of


def graded(scored: Scored) -> dict[str, float]:
    """Measure all graded metrics by all truths of the split, one walk over scores a truth."""
    means = {name: query_means(scored.scores, truth, GRADED_METRICS)
             for name, truth in truths(scored.split).items()}
    return {f"{direction}_{metric}_{truth}": percent(table[f"{direction}_{metric}"])
            for metric in GRADED_METRICS for truth, table in means.items()
            for direction in DIRECTIONS}


def human_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns human_<collection>_<coefficient>, such as human_expert_tau_c."""
    return tuple(f"human_{name}" for name in DATASETS[dataset].human_columns.get(split, ()))


def human(scored: Scored) -> dict[str, float]:
    """Measure agreement with people, who saw an image and judged texts, so by i2t scores."""
    i2t, table = Scores.of(scored.scores).i2t, {}
    for pairs in scored.split.judgements.values():
        judged = np.asarray(i2t[pairs.images, pairs.texts])
        table |= human_correlation(judged, pairs.judgements)
    return {f"human_{name}": percent(value) for name, value in table.items()}


def fold_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns 1k_i2t_r1, ..., 1k_rsum."""
    names = (*(f"{direction}_r{k}" for direction in DIRECTIONS for k in KS), "rsum")
    return tuple(f"1k_{name}" for name in names if split in DATASETS[dataset].in_folds)


def folded(scored: Scored) -> dict[str, float]:
    """Measure R@K and RSUM of the five folds."""
    table = five_fold(scored.scores, scored.split.image_of_text)
    return {f"1k_{name}": percent(value)
            for name, value in (table | {"rsum": sum(table.values())}).items()}


# Each gives columns dev_<name> and test_<name> of rows. New ones are `asked` while rows lack them.
MEASURES: dict[str, Measure] = {
    "graded": Measure(graded_columns("ndcg", "tau", "cs100"), graded),
    "human": Measure(human_columns, human),
    "folds": Measure(fold_columns, folded),
    "by class": Measure(class_columns, by_class),
    "by head": Measure(entropy_columns, head_entropy, models=WITH_HEADS),
    "first ten": Measure(graded_columns("rel10"), graded, asked=True),
    "reranked": Measure(reranked_columns, reranked, costs=SECONDS, asked=True),
}


def measure_columns(dataset: str, split: str, model: str = "",
                    needs: Collection[str] = MEASURES) -> tuple[str, ...]:
    """Name what is measured on a split of a data set, in order.

    Args:
        dataset, split: names.
        model: one of MODELS; "": only names that all models have.
        needs: which of the `asked` measures count.
    """
    for name in needs:
        check_choice("measure", name, MEASURES)
    return tuple(column for name, measure in MEASURES.items()
                 if (not measure.asked or name in needs)
                 and (measure.models is None or model in measure.models)
                 for column in measure.columns(dataset, split))


def measure_of(dataset: str, column: str) -> str:
    """Name the measure of a column such as "test_fast_rsum" or "seconds_fast"; empty if none."""
    split, _, name = column.partition("_")
    return next((of for of, measure in MEASURES.items()
                 if column in measure.costs or name in measure.columns(dataset, split)), "")


def measure(scored: Scored, dataset: str) -> dict[str, float]:
    """Take the measures of a data set, as far as the split allows, and their costs.

    Args:
        scored: a split of the data set.
        dataset: its name.

    Returns:
        Values by name; shares in percent.
    """
    metrics = dict.fromkeys(measure.metric for measure in MEASURES.values()
                            if measure.columns(dataset, scored.split.name))
    return {name: value for metric in metrics for name, value in metric(scored).items()}


def costs() -> set[str]:
    """Name what is measured for all splits together; never compared between runs."""
    return {name for measure in MEASURES.values() for name in measure.costs}
