"""The evaluation suite beyond recall: which metrics the runs of each data set carry.

Graded truth: `exact` where the data knows it (scenes), else labels from captions: `sentence`
(MiniLM's cosine, on the unit scale) and its control `cider`, whose makers saw no captions. Human
judgements where people gave them. Columns are named <direction>_<metric>_<truth>.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.metrics.coherent import coherent
from itr_study.metrics.human import human_correlation
from itr_study.metrics.kendall import kendall
from itr_study.metrics.ndcg import ndcg
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.relevance import RELEVANCE

CAPTION_LABELS = ("sentence", "cider")


class Measure(NamedTuple):
    """More of the suite.

    columns: of (data set, split), the names it gives there; metric: of (scores (I, T), split),
    these names as fractions, or those for which the split carries what they need.
    """

    columns: Callable[[str, str], tuple[str, ...]]
    metric: Callable[[Tensor, EncodedSplit], dict[str, float]]


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


def _graded_columns(metric: str) -> Callable[[str, str], tuple[str, ...]]:
    return lambda dataset, split: () if split == "train" else tuple(
        f"{direction}_{metric}_{truth}" for truth in DATASETS[dataset].graded_by
        for direction in DIRECTIONS)


def _by_truth(metric: Callable[[Tensor, Truth], dict[str, float]]
              ) -> Callable[[Tensor, EncodedSplit], dict[str, float]]:
    return lambda scores, split: {f"{name}_{truth}": value
                                  for truth, graded in truths(split).items()
                                  for name, value in metric(scores, graded).items()}


def _judged(scores: Tensor, split: EncodedSplit) -> dict[str, float]:
    """Agreement with people: tau-c with the experts, tau-b with the crowd."""
    found: dict[str, float] = {}
    for judged in split.judgements.values():
        found |= human_correlation(scores[judged.images, judged.texts].numpy(), judged.judgements)
    return {f"human_{name}": value for name, value in found.items()}


# Each joins the columns dev_<name> and test_<name> of all rows; rows without them are incomplete.
SUITE: dict[str, Measure] = {
    "ndcg": Measure(_graded_columns("ndcg"), _by_truth(ndcg)),
    "kendall": Measure(_graded_columns("tau"), _by_truth(kendall)),
    "coherent": Measure(_graded_columns("cs100"), _by_truth(coherent)),
    "human": Measure(lambda dataset, split: tuple(
        f"human_{name}" for name in DATASETS[dataset].human_columns.get(split, ())), _judged),
}


def suite_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Names of the suite on a split of a data set, in order."""
    return tuple(name for measure in SUITE.values() for name in measure.columns(dataset, split))


def measure(scores: Tensor, split: EncodedSplit) -> dict[str, float]:
    """Everything of the suite that a split carries the truth for, in percent."""
    return {name: 100 * float(value) for measure in SUITE.values()
            for name, value in measure.metric(scores, split).items()}
