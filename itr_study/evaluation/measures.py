"""What runs are measured by beside the retrieval table: which metrics each data set carries.

Graded truth: `exact` where the data knows it (scenes), else labels from captions: `sentence`
(MiniLM's cosine, on the unit scale) and its control `cider`, whose makers saw no captions. Columns
are named <direction>_<metric>_<truth>. Human judgements where people gave them. COCO's test is also
ranked in five folds, CUB is also measured by class. The test split is also re-ranked. Models with
several vectors of an image are also measured by the entropy of these.

An evaluation takes all measures. Older rows lack those that are `asked`: they serve where nobody
asks for these, and elsewhere their run is measured again, which needs its weights.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.percent import percent
from itr_study.evaluation.reranked import SECONDS, reranked, reranked_columns
from itr_study.evaluation.scored import Scored
from itr_study.metrics import GRADED_METRICS, first, five_fold, query_means
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

# R@1 and R-Precision by class, and the same after FR: what dvse prints of CUB (Table III).

def class_columns(dataset: str, split: str) -> tuple[str, ...]:
    """i2t_class_r1 ... t2i_class_rp of dev and test, fast_cub_i2t_class_r1 ... of test, of data
    sets that are measured by class."""
    if not DATASETS[dataset].by_class or split == "train":
        return ()
    after = tuple(f"fast_cub_{name}" for name in CLASS_METRICS)
    return CLASS_METRICS + after * (split == "test")


def by_class(scored: Scored) -> dict[str, float]:
    """Retrieval by class in percent, of the test split after FR with the scales of dvse, too.

    As printed FR sees all queries of the split at once. {} where the split names no classes.
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


# Embedding entropy of models with several vectors of an image: the quantity that dvse is about.

WITH_HEADS = frozenset(name for name, model in MODELS.items() if model.has_heads)


def entropy_columns(dataset: str, split: str) -> tuple[str, ...]:
    """entropy and entropy_noise of the test split."""
    return ("entropy", "entropy_noise") if split == "test" else ()


def head_entropy(scored: Scored) -> dict[str, float]:
    """The mean entropy (nats) of a vector of an image against all texts of the split, and the mean
    share of the noise in percent, over images and heads; {} for a model without heads.

    Source:  dvse Eqs. 1, 2 and 5, as `metrics.entropy` has them.
    """
    if scored.heads is None:
        return {}
    found = entropies(scored.heads(), scored.split.image_of_text, TEMPERATURE)
    return {"entropy": float(found.nats.mean()), "entropy_noise": percent(found.noise.mean())}


# What is kept of the scores of a test split, which are too many to keep (5 million, 20 MB).
#
# The scores of the pairs that people judged, so that a claim about people can be asked later; the
# first results of some queries, so that two runs can be compared by what they find. Both are
# numbers of a model about pairs: no picture, text or feature can be had back from them. Only of a
# model that compares every pair anew all scores are kept, on the machine that made them
# (`lab.runs.store`).

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


CAPTION_LABELS = ("sentence", "cider")


class Measure(NamedTuple):
    """Columns that some data sets carry.

    columns: of (data set, split), the names it gives there; metric: of a scored split, these names
    and their values (shares in percent), or those for which it has what they need; measures that
    share a metric share its walk over the scores; costs: names that metric gives, too, for all
    splits together: seconds, which no two runs share; models: those that it is taken of, None for
    all; asked: whether a row is complete without it, unless it is asked for.
    """

    columns: Callable[[str, str], tuple[str, ...]]
    metric: Callable[[Scored], dict[str, float]]
    costs: tuple[str, ...] = ()
    models: frozenset[str] | None = None
    asked: bool = False


def vectors_needed(sources: Iterable[str]) -> tuple[str, ...]:
    """Names of the label vectors that these label sources read of a split to grade it."""
    return tuple(sorted({name for source in sources
                         for name in RELEVANCE[source]().vectors_needed}))


_graded: WeakKeyDictionary[EncodedSplit, dict[str, Truth]] = WeakKeyDictionary()


def truths(split: EncodedSplit) -> dict[str, Truth]:
    """Graded truth of a split by every source whose label vectors it carries; computed once.

    Training texts have label vectors only where training reads them, so train has none.
    """
    if split.name == "train":
        return {}
    if split not in _graded:
        carried = {"exact"} if split.relevance is not None else set()
        carried |= {name for name in CAPTION_LABELS
                    if set(vectors_needed([name])) <= set(split.label_vectors)}
        _graded[split] = {name: truth_from(name, split) for name in sorted(carried)}
    return _graded[split]


def truth_from(source: str, split: EncodedSplit) -> Truth:
    """Truth of a whole split as a label source grades it, held as one (I, T) float32 array."""
    grade = RELEVANCE[source]()
    blocks = Truth(split.image_of_text, split.n_images).blocks()
    values = np.concatenate([grade.block(split, images) for images in blocks])
    return Truth(split.image_of_text, split.n_images, values.__getitem__)


def graded_columns(*metrics: str) -> Callable[[str, str], tuple[str, ...]]:
    """Columns <direction>_<metric>_<truth> of these graded metrics by every truth; none on train.
    """
    def of(dataset: str, split: str) -> tuple[str, ...]:
        return () if split == "train" else tuple(
            f"{direction}_{metric}_{truth}" for metric in metrics
            for truth in DATASETS[dataset].graded_by for direction in DIRECTIONS)

    return of


def graded(scored: Scored) -> dict[str, float]:
    """All graded metrics by all truths that the split carries; one walk over scores a truth."""
    means = {name: query_means(scored.scores, truth, GRADED_METRICS)
             for name, truth in truths(scored.split).items()}
    return {f"{direction}_{metric}_{truth}": percent(table[f"{direction}_{metric}"])
            for metric in GRADED_METRICS for truth, table in means.items()
            for direction in DIRECTIONS}


def human_columns(dataset: str, split: str) -> tuple[str, ...]:
    """human_<collection>_<coefficient>, such as human_expert_tau_c."""
    return tuple(f"human_{name}" for name in DATASETS[dataset].human_columns.get(split, ()))


def human(scored: Scored) -> dict[str, float]:
    """Agreement with people: tau-c with the experts, tau-b with the crowd. They saw an image and
    judged texts, so of two matrices i2t is asked."""
    i2t, table = Scores.of(scored.scores).i2t, {}
    for pairs in scored.split.judgements.values():
        judged = np.asarray(i2t[pairs.images, pairs.texts])
        table |= human_correlation(judged, pairs.judgements)
    return {f"human_{name}": percent(value) for name, value in table.items()}


def fold_columns(dataset: str, split: str) -> tuple[str, ...]:
    """1k_i2t_r1, ..., 1k_rsum."""
    names = (*(f"{direction}_r{k}" for direction in DIRECTIONS for k in KS), "rsum")
    return tuple(f"1k_{name}" for name in names if split in DATASETS[dataset].in_folds)


def folded(scored: Scored) -> dict[str, float]:
    """R@K and RSUM of the five folds: "1k_i2t_r1", ..., "1k_rsum"."""
    table = five_fold(scored.scores, scored.split.image_of_text)
    return {f"1k_{name}": percent(value)
            for name, value in (table | {"rsum": sum(table.values())}).items()}


# Each joins the columns dev_<name> and test_<name> of rows; a row without them is incomplete. What
# is added is `asked`, as long as there are rows without it.
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
    """Names of what is measured on a split of a data set, in order.

    Args:    model: one of MODELS; "" for the names that all models have; needs: which of the
             measures that are `asked` are counted in.
    """
    for name in needs:
        check_choice("measure", name, MEASURES)
    return tuple(column for name, measure in MEASURES.items()
                 if (not measure.asked or name in needs)
                 and (measure.models is None or model in measure.models)
                 for column in measure.columns(dataset, split))


def measure_of(dataset: str, column: str) -> str:
    """The measure that gives rows of a data set a column, such as "test_fast_rsum" or
    "seconds_fast"; empty for a column of none."""
    split, _, name = column.partition("_")
    return next((of for of, measure in MEASURES.items()
                 if column in measure.costs or name in measure.columns(dataset, split)), "")


def measure(scored: Scored, dataset: str) -> dict[str, float]:
    """The measures of a data set, as far as the scored split has what they need, and their costs.

    Args:    scored: a split of the data set of this name. Shares are in percent.
    """
    metrics = dict.fromkeys(measure.metric for measure in MEASURES.values()
                            if measure.columns(dataset, scored.split.name))
    return {name: value for metric in metrics for name, value in metric(scored).items()}


def costs() -> set[str]:
    """Names of what is measured for all splits together; never compared between runs."""
    return {name for measure in MEASURES.values() for name in measure.costs}
