"""R@1 and R-Precision by class, and the same after FR: what dvse prints of CUB (Table III)."""

from itr_study.data import DATASETS
from itr_study.evaluation.percent import percent
from itr_study.evaluation.scored import Scored
from itr_study.metrics.class_based import CLASS_METRICS, class_based
from itr_study.metrics.truth import Truth
from itr_study.rerank import RERANKERS
from itr_study.rerank.fast import CUB_SCALES


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
