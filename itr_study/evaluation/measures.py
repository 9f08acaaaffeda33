"""What runs are measured by beside the retrieval table: which metrics each data set carries.

Graded truth: `exact` where the data knows it (scenes), else labels from captions: `sentence`
(MiniLM's cosine, on the unit scale) and its control `cider`, whose makers saw no captions. Columns
are named <direction>_<metric>_<truth>. Human judgements where people gave them. COCO's test is also
ranked in five folds.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.percent import percent
from itr_study.metrics import GRADED_METRICS, five_fold, query_means
from itr_study.metrics.human import human_correlation
from itr_study.metrics.recall import KS
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.relevance import RELEVANCE

CAPTION_LABELS = ("sentence", "cider")


class Measure(NamedTuple):
    """Columns that some data sets carry.

    columns: of (data set, split), the names it gives there; metric: of (scores, split), these
    names as fractions, or those for which the split carries what they need.
    """

    columns: Callable[[str, str], tuple[str, ...]]
    metric: Callable[[AnyScores, EncodedSplit], dict[str, float]]


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


def graded_columns(dataset: str, split: str) -> tuple[str, ...]:
    """<direction>_<metric>_<truth> of every graded metric and truth; none on train."""
    return () if split == "train" else tuple(
        f"{direction}_{metric}_{truth}" for metric in GRADED_METRICS
        for truth in DATASETS[dataset].graded_by for direction in DIRECTIONS)


def graded(scores: AnyScores, split: EncodedSplit) -> dict[str, float]:
    """All graded metrics by all truths that the split carries; one walk over scores a truth."""
    means = {name: query_means(scores, truth, GRADED_METRICS)
             for name, truth in truths(split).items()}
    return {f"{direction}_{metric}_{truth}": table[f"{direction}_{metric}"]
            for metric in GRADED_METRICS for truth, table in means.items()
            for direction in DIRECTIONS}


def human(scores: AnyScores, split: EncodedSplit) -> dict[str, float]:
    """Agreement with people: tau-c with the experts, tau-b with the crowd. They saw an image and
    judged texts, so of two matrices i2t is asked."""
    i2t, table = Scores.of(scores).i2t, {}
    for pairs in split.judgements.values():
        judged = np.asarray(i2t[pairs.images, pairs.texts])
        table |= human_correlation(judged, pairs.judgements)
    return {f"human_{name}": value for name, value in table.items()}


def folded(scores: AnyScores, split: EncodedSplit) -> dict[str, float]:
    """R@K and RSUM of the five folds: "1k_i2t_r1", ..., "1k_rsum"."""
    table = five_fold(scores, split.image_of_text)
    return {f"1k_{name}": value for name, value in (table | {"rsum": sum(table.values())}).items()}


# Each joins the columns dev_<name> and test_<name> of all rows; rows without them are incomplete.
MEASURES: dict[str, Measure] = {
    "graded": Measure(graded_columns, graded),
    "human": Measure(lambda dataset, split: tuple(
        f"human_{name}" for name in DATASETS[dataset].human_columns.get(split, ())), human),
    "folds": Measure(lambda dataset, split: tuple(
        f"1k_{name}" for name in (*(f"{d}_r{k}" for d in DIRECTIONS for k in KS), "rsum"))
        if split in DATASETS[dataset].in_folds else (), folded),
}


def measure_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Names of all measures on a split of a data set, in order."""
    return tuple(name for measure in MEASURES.values() for name in measure.columns(dataset, split))


def measure(scores: AnyScores, split: EncodedSplit, dataset: str) -> dict[str, float]:
    """The measures of a data set, in percent, as far as the split carries the truth for them.

    Args:    scores: (I, T), or `Scores` of each direction; split: of the data set of this name.
    """
    return {name: percent(value) for measure in MEASURES.values()
            if measure.columns(dataset, split.name)
            for name, value in measure.metric(scores, split).items()}
