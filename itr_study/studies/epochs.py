"""A training as it goes: the vectors of a split after every epoch, for the map of `explorers`.

    frames = epoch_frames(run.config)
    explorers.EmbeddingMap.of(study.searcher(run), frames=frames)
"""

from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.evaluation.evaluate import as_vectors, encode
from itr_study.runs.config import RunConfig, build_objective
from itr_study.runs.data import encoded_data
from itr_study.runs.run import build_model
from itr_study.training.devices import choose_device
from itr_study.training.loop import fit
from itr_study.training.state import History


def epoch_frames(config: RunConfig, root: Path | str | None = None, split: str = "test",
                 device: str = "auto") -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The vectors of a split before a training (0) and after each of its epochs: images (I, D),
    texts (T, D), by epoch.

    The run is trained anew, here and now, in seconds on `scenes`, and nothing of it is kept: no
    weights, no row, no checkpoint. On a CPU it is the run of the config, epoch by epoch; its
    vectors are of the weights as they are after an epoch, also where the config takes a mean of
    several epochs, or an earlier one, in the end.

    Args:    root: folder of the real data sets; device: as in `fit`.
    Raises:  ValueError for a model that gives an image or a text several vectors, and a split that
             there is not; as `fit` and `runs.data.encoded_data`.
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
