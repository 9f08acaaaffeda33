"""Measures of runs besides the retrieval table, by data set, and what is kept of the scores.

Graded truth is `exact` if the data knows it (scenes), else `sentence` (MiniLM's cosine) and its
control `cider`; columns are <direction>_<metric>_<truth>. An evaluation takes all measures; rows
may lack those that are `asked`, unless somebody needs them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from time import process_time
from typing import NamedTuple
from warnings import catch_warnings
from weakref import WeakKeyDictionary, ref

import numpy as np
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.protocol import FOLDED
from itr_study.evaluation.table import percent, retrieval_table
from itr_study.metrics import GRADED_METRICS, Ranks, first, five_fold, hubness, query_means, ranks
from itr_study.metrics.eccv import coco_numbers, eccv_table, package_data, read_eccv
from itr_study.metrics.entropy import TEMPERATURE, entropies
from itr_study.metrics.graded import HELD
from itr_study.metrics.human import human_correlation
from itr_study.metrics.recall import KS
from itr_study.metrics.retrieval_sets import CLASS_METRICS, class_based
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.models import MODELS
from itr_study.models.base import compares_pairs
from itr_study.relevance import RELEVANCE
from itr_study.rerank import RERANKERS, Bank
from itr_study.rerank.fast import CUB_SCALES, FlatScores

QUERIES = 100  # whose first results are kept, of each direction, at most
RESULTS = 10  # kept of each query
CAPTION_LABELS = ("sentence", "cider")
HUBNESS = tuple(f"{direction}_hubness" for direction in DIRECTIONS)
RECALLS = (*(f"{direction}_r{k}" for direction in DIRECTIONS for k in KS), "rsum")
SECONDS = tuple(f"seconds_{method}" for method in RERANKERS)
FURTHER = {f"{d}_{short}": f"{d}_{name}" for d in DIRECTIONS for short, name in {
    "map_eccv": "eccv_map_at_r", "rp_eccv": "eccv_r_precision", "r1_eccv": "eccv_r1",
    **{f"r{k}_cxc": f"cxc_r{k}" for k in KS}}.items()}  # as `eccv_table` names them
WITH_HEADS = frozenset(name for name, model in MODELS.items() if model.has_heads)

# Gives the scores of the K vectors of images in pieces: (first image, (i, K, T)).
Heads = Callable[[], Iterator[tuple[int, Tensor]]]


class Scored(NamedTuple):
    """A split with the scores (I, T) of a model."""

    scores: AnyScores
    split: EncodedSplit
    bank: Bank | None = None  # scores of the queries of another split, for re-ranking
    heads: Heads | None = None


class Measure(NamedTuple):
    """Columns that some data sets carry; measures with one metric share its pass over the scores.

    metric gives names and values (shares in percent), as far as a split allows.
    """

    columns: Callable[[str, str], tuple[str, ...]]  # of a data set and a split
    metric: Callable[[Scored], dict[str, float]]
    costs: tuple[str, ...] = ()  # names it adds for all splits: seconds, different for each run
    models: frozenset[str] | None = None  # those it is taken of; None: all
    asked: bool = False  # whether a row is complete without it, unless it is asked for


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


def head_entropy(scored: Scored) -> dict[str, float]:
    """Average embedding entropy (nats) and noise (percent) over images and heads; {} without heads.

    Source: dvse Eqs. 1, 2 and 5, as in `metrics.entropy`.
    """
    if scored.heads is None:
        return {}
    found = entropies(scored.heads(), scored.split.image_of_text, TEMPERATURE)
    return {"entropy": float(found.nats.mean()), "entropy_noise": percent(found.noise.mean())}


def reranked_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Name the columns of test: hubness of both directions, then <method>_<recall or hubness>."""
    if split != "test":
        return ()
    return HUBNESS + tuple(f"{method}_{name}" for method in (*RERANKERS, "fast_bank")
                           for name in RECALLS + HUBNESS)


def reranked(scored: Scored) -> dict[str, float]:
    """Measure hubness, and of each re-ranking method recall in percent, hubness and seconds.

    `fast`, `reciprocal` and `multi` see all queries of the split at once, `fast_bank` is FR with
    those of the bank instead; without a bank nothing is re-ranked. Hubness is a skewness, not in
    percent. seconds_<method> are seconds of a core to re-rank and count the ranks, beyond counting
    them without re-ranking.
    """
    scores, owner, bank = scored.scores, scored.split.image_of_text, scored.bank
    table = hubness(scores)
    if bank is None:
        return table
    start = process_time()
    ranks(scores, owner)
    plain = process_time() - start
    for method, rerank in RERANKERS.items():
        taken = as_cosines(scores) if method == "multi" else scores
        start = process_time()
        after = rerank(taken)
        best = ranks(after, owner)
        table[f"seconds_{method}"] = max(0.0, process_time() - start - plain)
        table |= _after(method, after, best)
        del taken, after  # before the next matrix
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


def vectors_needed(sources: Iterable[str]) -> tuple[str, ...]:
    """Name the label vectors of a split that these label sources read."""
    return tuple(sorted({name for source in sources
                         for name in RELEVANCE[source]().vectors_needed}))


_graded: WeakKeyDictionary[EncodedSplit, dict[str, Truth]] = WeakKeyDictionary()


def truths(split: EncodedSplit) -> dict[str, Truth]:
    """Grade a split by every source whose label vectors it carries; train has none.

    Up to HELD pairs, relevance is graded once and held as one (I, T) float32 array for each source;
    of more it is made when it is read, which needs the split.
    """
    if split.name == "train":
        return {}
    if split not in _graded:
        names = [name for name in CAPTION_LABELS
                 if set(vectors_needed([name])) <= set(split.label_vectors)]
        _graded[split] = {name: _truth(split, RELEVANCE[name]().block)
                          for name in sorted(["exact"] * (split.relevance is not None) + names)}
    return _graded[split]


def _truth(split: EncodedSplit, block: Callable[[EncodedSplit, slice], np.ndarray]) -> Truth:
    matches = Truth(split.image_of_text, split.n_images)
    if split.n_images * split.n_texts > HELD:
        here = ref(split)  # else the split would never leave `_graded`
        return replace(matches, graded=lambda images: block(here(), images))
    whole = np.concatenate([block(split, images) for images in matches.blocks()])
    return replace(matches, graded=whole.__getitem__)


def graded_columns(*metrics: str) -> Callable[[str, str], tuple[str, ...]]:
    """Make a namer of columns <direction>_<metric>_<truth>; none on train."""
    def of(dataset: str, split: str) -> tuple[str, ...]:
        return () if split == "train" else tuple(
            f"{direction}_{metric}_{truth}" for metric in metrics
            for truth in DATASETS[dataset].graded_by for direction in DIRECTIONS)

    return of


def graded(scored: Scored) -> dict[str, float]:
    """Measure all graded metrics by all truths of the split, in one pass over scores a truth."""
    means = {name: query_means(scored.scores, truth, GRADED_METRICS)
             for name, truth in truths(scored.split).items()}
    return {f"{direction}_{metric}_{truth}": percent(table[f"{direction}_{metric}"])
            for metric in GRADED_METRICS for truth, table in means.items()
            for direction in DIRECTIONS}


def human(scored: Scored) -> dict[str, float]:
    """Measure agreement with people, who saw an image and judged texts, so by i2t scores."""
    i2t, table = Scores.of(scored.scores).i2t, {}
    for pairs in scored.split.judgements.values():
        judged = np.asarray(i2t[pairs.images, pairs.texts])
        table |= human_correlation(judged, pairs.judgements)
    return {f"human_{name}": percent(value) for name, value in table.items()}


def folded(scored: Scored) -> dict[str, float]:
    """Measure R@K and RSUM of the five folds of 5,000 images; {} for another number of them."""
    if scored.split.n_images != FOLDED:
        return {}
    table = five_fold(scored.scores, scored.split.image_of_text)
    return {f"1k_{name}": percent(value)
            for name, value in (table | {"rsum": sum(table.values())}).items()}


def further(scored: Scored) -> dict[str, float]:
    """Measure COCO's whole test by ECCV Caption and CxC, in percent; {} without their package."""
    split = scored.split
    if split.n_images != FOLDED or package_data() is None:
        return {}
    truth_sets = read_eccv()
    numbers = coco_numbers(*split.ids, split.image_of_text, truth_sets)
    if numbers is None:
        return {}
    scores = scored.scores
    if len(numbers.texts) < split.n_texts:  # else they need not be held
        scores = Scores.of(scores).cut(slice(None), numbers.columns)
    table = eccv_table(scores, numbers.images, numbers.texts, truth_sets)
    return {short: percent(table[name]) for short, name in FURTHER.items()}


# Each gives columns dev_<name> and test_<name> of rows, which may lack those that are `asked`: new
# measures, and folds, which a split of other than 5,000 images does not have.
MEASURES: dict[str, Measure] = {
    "graded": Measure(graded_columns("ndcg", "tau", "cs100"), graded),
    "human": Measure(lambda dataset, split: tuple(  # human_<collection>_<coefficient>
        f"human_{name}" for name in DATASETS[dataset].human_columns.get(split, ())), human),
    "folds": Measure(lambda dataset, split: tuple(
        f"1k_{name}" for name in RECALLS if split in DATASETS[dataset].in_folds),
        folded, asked=True),
    "further matches": Measure(lambda dataset, split: tuple(
        FURTHER) * (split in DATASETS[dataset].in_folds), further, asked=True),
    "by class": Measure(class_columns, by_class),
    "by head": Measure(lambda dataset, split: ("entropy", "entropy_noise") * (split == "test"),
                       head_entropy, models=WITH_HEADS),
    "first ten": Measure(graded_columns("rel10"), graded, asked=True),
    "reranked": Measure(reranked_columns, reranked, costs=SECONDS, asked=True),
}


def measure_columns(dataset: str, split: str, model: str = "",
                    needs: Collection[str] = MEASURES) -> tuple[str, ...]:
    """Name what is measured on a split of a data set, in order.

    model: one of MODELS; "": only names that all models have. needs: which of the `asked` measures
    count.
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


def takeable() -> list[str]:
    """Name the measures that can be taken here: one needs a package."""
    return [name for name in MEASURES if name != "further matches" or package_data()]


def measure(scored: Scored, dataset: str) -> dict[str, float]:
    """Take the measures of a split's data set, as far as the split allows, and their costs."""
    metrics = dict.fromkeys(measure.metric for measure in MEASURES.values()
                            if measure.columns(dataset, scored.split.name))
    with catch_warnings(action="ignore", category=FlatScores):  # a row has recall with and without
        return {name: value for metric in metrics for name, value in metric(scored).items()}


def costs() -> set[str]:
    """Name what is measured for all splits together; never compared between runs."""
    return {name for measure in MEASURES.values() for name in measure.costs}


def kept_of(scores: AnyScores, split: EncodedSplit, dataset: str) -> dict[str, np.ndarray]:
    """Choose the arrays that are kept of a test split's scores (all: 20 MB); none of other splits.

    Returns: judged_<collection> (N,) float16, scores of the pairs that people judged; i2t_queries,
        t2i_queries (Q,) int32, sampled images and texts; i2t_first, t2i_first (Q, 10) int32, their
        first results, best first, of equal scores the first of the split.
    """
    if split.name != "test":
        return {}
    pair, whole = Scores.of(scores), slice(None)
    judged = {name: split.judgements[name] for name in DATASETS[dataset].kept_judgements
              if name in split.judgements}
    arrays = {f"judged_{name}": np.asarray(pair.i2t[pairs.images, pairs.texts], np.float16)
              for name, pairs in judged.items()}
    for direction, count in zip(DIRECTIONS, pair.shape, strict=True):
        queries = sampled(count)
        asked = pair.cut(queries, whole) if direction == "i2t" else pair.cut(whole, queries)
        arrays[f"{direction}_queries"] = queries
        arrays[f"{direction}_first"] = first(asked, RESULTS)[direction].astype(np.int32)
    return arrays


def sampled(count: int) -> np.ndarray:
    """Sample queries (Q,) int32, rising: the same for every run (numpy keeps RandomState)."""
    return np.sort(np.random.RandomState(0).permutation(count)[:QUERIES]).astype(np.int32)


def all_scores(model: nn.Module, scores: Tensor, split: EncodedSplit,
               bank: Bank | None = None) -> dict[str, Tensor]:
    """Return all scores of a test split if the model compares every pair, which is slow; else {}.

    float32: scores (I, T), and of the queries of dev, if given, bank_images (B, T) and bank_texts
    (I, C).
    """
    if split.name != "test" or not compares_pairs(model):
        return {}
    return {"scores": scores} | ({} if bank is None else {
        "bank_images": bank.made("images"), "bank_texts": bank.made("texts")})
