"""The arms of notebook 11, and whether their models look at what words name.

    rows = study.train(looks.looking_arms)
    runs = study.arms(looks.looking_arms)
    places = looks.pointing_rows((run, study.searcher(run)) for run in runs)

Labels: "saf/hardest" is SAF with the hardest negative in the place of its own loss; "dvse" alone is
a base as it stands.
"""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd

from itr_study.encoders.nanodet import NanoDet
from itr_study.evaluation.looks import Look, Looker, word_maps
from itr_study.evaluation.pointing_scenes import scene_pointing
from itr_study.evaluation.pointing_words import MEASURES, word_pointing
from itr_study.evaluation.search import Searcher
from itr_study.features.detected import dataset_boxes
from itr_study.files.paths import home
from itr_study.studies.arms import TERMS, ArmRun, base_config, over_seeds

WORDS = "saf"  # the model whose words look at regions, in which losses are compared
OTHERS = ("sgr", "vse_infinity", "dan", "dvse", "two_branch")  # bases that show something else


def looking_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """SAF with each of `parameters.losses`, over `parameters.seeds`."""
    start = base_config(dataset, WORDS, parameters)
    return [run for loss in parameters.losses for run in over_seeds(
        f"{WORDS}/{loss}", start.with_(objective=[TERMS[loss]]), parameters.seeds)]


def other_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The bases of `parameters.others` as they stand, over `parameters.other_seeds`."""
    return [run for name in parameters.others
            for run in over_seeds(name, base_config(dataset, name, parameters),
                                  parameters.other_seeds)]


def named_places(searcher: Searcher, looks: Sequence[Look]) -> pd.DataFrame:
    """A row for each name of an object in the texts of a split: how much of what a model looks at
    lies in its boxes. On generated pictures in the true ones, on photographs in those of NanoDet
    (`scene_pointing`, `word_pointing`).

    Args:    looks: one for each text, at its own image.
    """
    if searcher.dataset.boxes is not None:
        return scene_pointing(searcher.dataset, searcher.split, looks)
    first = dict(reversed(list(zip(searcher.split.image_of_text.tolist(), looks, strict=True))))
    places = np.stack([first[image].boxes for image in range(len(searcher.split.image_ids))])
    table = dataset_boxes(searcher.dataset, NanoDet(), home() / "features")
    return word_pointing(searcher.split, word_maps(searcher.split, looks), places, table)


def pointing_rows(searchers: Iterable[tuple[ArmRun, Searcher]], first: bool = False
                  ) -> pd.DataFrame:
    """A line for each run and each thing that its model shows: arm, seed, kind, names (how many
    there are), and the mean over names of the measures of `word_pointing`, in percent.

    What has no row for each word (heads, pooling, a gradient) is the mean of its rows, and the same
    for every word of a text.

    Args:    first: only the first thing that a model shows: words, heads or pooling, if it has any.
    """
    lines = []
    for run, searcher in searchers:
        looker = Looker(searcher)
        for kind in looker.kinds[:1] if first else looker.kinds:
            rows = named_places(searcher, looker.maps(kind))
            lines.append({"arm": run.label, "seed": run.config.seed, "kind": kind,
                          "names": len(rows)} | (100 * rows[list(MEASURES)].mean()).to_dict())
    return pd.DataFrame(lines)
