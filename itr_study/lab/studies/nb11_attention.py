"""The arms of notebook 11, and whether their models look at what words name.

    rows, runs = study.train(looks.looking_arms), study.arms(looks.looking_arms)
    places = study.of_models("places", rows, runs, lambda making: looks.pointing_rows(
        (run, study.searcher(run)) for run in making))

Labels: "saf/hardest" is that arm of notebook 09, at its learning rate, so that both share its runs;
"sgr" alone is SGR with the loss that its rate was searched for, "dvse" a base as it stands.
"""

from collections.abc import Iterable, Sequence

import pandas as pd
from pydantic import PositiveInt

from itr_study.encoders.nanodet import NanoDet
from itr_study.evaluation.looks import Look, Looker, scene_pointing, word_maps
from itr_study.evaluation.pointing import CONTROLS, MEAN, MEASURES, by_class, word_pointing
from itr_study.evaluation.search import Searcher
from itr_study.features.images import dataset_boxes
from itr_study.files.paths import home
from itr_study.lab.studies.arms import ArmRun, base_config, over_seeds
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb09_stronger_models import SEARCHED, stronger_config
from itr_study.lab.studies.parameters import Names, Parameters, Scenes, by_profile, like

WORDS = "saf"  # the model whose words look at regions, in which losses are compared
OF_CLASSES = ("mass", "uniform", "centre", "area")  # told for classes, too, not for names alone
COLUMNS = {"kind", "names", "commonest", "commonest_share", *MEASURES,
           *(f"{measure}_of_classes" for measure in OF_CLASSES)}
OTHERS = ("sgr", "vse_infinity", "dan", "dvse", "two_branch")  # bases that show something else


class AttentionParameters(Parameters, title="11_attention_maps"):
    """Parameters of notebook 11."""

    scenes: Scenes = like(Parameters, "scenes", smoke={"train": 60, "dev": 20, "test": 20},
                          quick={"train": 300, "dev": 60, "test": 100})
    seeds: PositiveInt = by_profile("runs of each loss", 1, 5, 5)
    compared: Names = by_profile(
        "losses of the model whose words look at regions", *2 * [["sum", "hardest"]],
        ["hardest", "hardest+listwise", "bcls"], among=COMPARED)
    others: Names = by_profile('other models, such as "dvse"', ["vse_infinity", "dvse"],
                               *2 * [["sgr", "vse_infinity", "dvse", "two_branch"]], among=OTHERS)
    other_seeds: PositiveInt = by_profile("runs of each of them", 1, 1, 1)


def looking_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List SAF with each of the losses `parameters.compared`, over `parameters.seeds`."""
    labels = {loss: f"{WORDS}/{loss}" for loss in parameters.compared}
    return [run for loss, label in labels.items() for run in over_seeds(
        label, stronger_config(label, dataset, parameters), parameters.seeds, setting=WORDS,
        loss=loss)]


def other_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the models of `parameters.others`: a base, or one of notebook 09 with its loss there."""
    return [run for name in parameters.others for run in over_seeds(
        name, stronger_config(f"{name}/{SEARCHED[name][0]}", dataset, parameters)
        if name in SEARCHED else base_config(dataset, name, parameters),
        parameters.other_seeds, setting=name)]


ARMS = (looking_arms, other_arms)


def named_places(searcher: Searcher, looks: Sequence[Look]) -> pd.DataFrame:
    """Measure how much of what a model looks at is in the boxes of each named object.

    On generated pictures in the true boxes, on photographs in those of NanoDet (`scene_pointing`,
    `word_pointing`). looks: one for each text, at its own image.
    """
    if searcher.dataset.boxes is not None:
        return scene_pointing(searcher.dataset, searcher.split, looks)
    first = dict(reversed(list(zip(searcher.split.image_of_text.tolist(), looks, strict=True))))
    places = [first[image].boxes for image in range(len(searcher.split.image_ids))]
    table = dataset_boxes(searcher.dataset, NanoDet(), home() / "features")
    return word_pointing(searcher.split, word_maps(searcher.split, looks), places, table)


def pointing_rows(searchers: Iterable[tuple[ArmRun, Searcher]], first: bool = False
                  ) -> pd.DataFrame:
    """Measure how right each thing is that a model shows, a line per run and kind.

    What has no row for each word (heads, pooling, a gradient) is the mean of its rows, and the same
    for every word of a text.

    Args:
        searchers: runs, each with its model.
        first: only the first thing that a model shows: words, heads or pooling, if it has any.
    Returns: Frame of arm, seed, kind, names (how many), commonest (the class of most),
        commonest_share (how many), the mean over names of the controls and measures of
        `word_pointing`, and of those of OF_CLASSES the mean over classes, each counted once; in
        percent but names.
    """
    lines = []
    for run, searcher in searchers:
        looker = Looker(searcher)
        for kind in looker.kinds[:1] if first else looker.kinds:
            rows = named_places(searcher, looker.maps(kind))
            classes = by_class(rows)
            lines.append({"arm": run.label, "seed": run.config.seed, "kind": kind,
                          "names": len(rows), "commonest": classes.index[0],
                          "commonest_share": 100 * classes["names"].iloc[0] / len(rows)}
                         | (100 * rows[[*CONTROLS, *MEASURES]].mean()).to_dict()
                         | {f"{measure}_of_classes": 100 * classes.loc[MEAN, measure]
                            for measure in OF_CLASSES})
    return pd.DataFrame(lines)
