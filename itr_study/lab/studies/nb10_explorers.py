"""Whom a reader is compared with in notebook 10: label sources, and losses of notebook 13."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.evaluate import as_vectors, encode
from itr_study.lab.label_quality.agreement import label_sources
from itr_study.lab.runs.config import RunConfig, build_objective
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.run import build_model
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.nb06_kendall import ComparedLosses, compared_arms
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.results import judged_of
from itr_study.plots.names import name_of
from itr_study.training.devices import choose_device
from itr_study.training.loop import fit
from itr_study.training.state import History

# A training as it goes: the vectors of a split after every epoch, for the map of `explorers`.
#
#     frames = epoch_frames(run.config)
#     explorers.EmbeddingMap.of(study.searcher(run), frames=frames)

def epoch_frames(config: RunConfig, root: Path | str | None = None, split: str = "test",
                 device: str = "auto") -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Train a run and return vectors of a split before it (0) and after each of its epochs.

    Of each epoch those of images (I, D) and of texts (T, D). Nothing is kept: no weights, no row,
    no checkpoint. On a CPU it is the run of the config, epoch by epoch, without the mean of epochs
    or the earlier epoch that a config may take.

    Raises: ValueError for a model with several vectors an image or a text, an unknown split; as
        `fit` and `encoded_data`.
    """
    data = encoded_data(config, root, str(choose_device(device)))
    check_choice("split", split, data.splits)
    model = build_model(config, data.inputs).to(choose_device(device))
    warmup = build_objective(config.warmup_objective) if config.warmup_objective else None
    frames: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def keep(history: History) -> None:
        frames[len(history.rows)] = as_vectors(model, *encode(model, data.splits[split]))

    keep(History())
    fit(model, build_objective(config.objective), data, config.settings, seed=config.seed,
        on_epoch=keep, device=device, warmup_objective=warmup)
    return frames


EXPERTS = "expert"  # the collection of judgements whose pairs are rated


def label_scores(split: EncodedSplit,
                 names: Sequence[str] = ("sentence/max",)) -> dict[str, np.ndarray]:
    """Compute the relevance (I, T) of every text for every image, by label source.

    names: as `label_sources` takes them; the split has the vectors that they compare.
    """
    return {f"labels: {name}": source.block(split, slice(None))
            for name, source in label_sources(names).items()}


class ExplorerParameters(Parameters, title="10_explorers"):
    """Parameters of notebook 10."""


def judged_arms(dataset: str, _: Parameters) -> list[ArmRun]:
    """List one run of each loss of notebook 13 on data whose rows keep judged pairs."""
    if EXPERTS not in DATASETS[dataset].kept_judgements:
        return []
    return compared_arms(dataset, ComparedLosses.of(profile="full", compared_seeds=1))


def loss_scores(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Give the scores (N,) of the pairs that experts judged, by loss, of rows of `judged_arms`.

    Raises as `judged_of`.
    """
    return {name_of(row["arm"]): judged_of(row, EXPERTS) for _, row in rows.iterrows()}
