"""When to forgive: the arms of notebook 13, and what each loss gains beside the hardest negative.

Labels: "<loss>, vagueness=<level>", "<loss>, noise=<share>" and "<loss>, without <what>", where a
data set has such an option; "clean_gru/<loss>, ..." in the model of the second judge. The losses
are those of FORGIVING.
"""

import inspect
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.data import DATASETS
from itr_study.data.false_negatives import Pairs, as_true, expected_pairs
from itr_study.data.near_duplicates import CHOICES
from itr_study.data.scenes.styles import STYLES
from itr_study.ledger.judges import JUDGE
from itr_study.metrics.truth import DIRECTIONS
from itr_study.runs.data import dataset_of
from itr_study.studies.arms import ArmRun, base_config, over_seeds, sum_of
from itr_study.studies.bases import base_tables, rate_in

# From what takes one negative to what looks at all of them; the last also orders the rest.
FORGIVING = {"hardest": ("hardest",), "top5": ("top5",), "soft": ("soft",), "sum": ("sum",),
             "info_nce": ("info_nce",), "hardest+listwise": ("hardest", "listwise")}
REFERENCE = "hardest"
MODEL, SECOND = "two_branch", JUDGE  # bases: the sweeps' model, the second judge
SCENES = "scenes"  # whose captions can be made vague
# What is to be looked at, whatever a profile trains of it; and which option of the data each is.
WHOLE: dict[str, list] = {"levels": list(range(len(STYLES))), "noises": [0.0, 0.2, 0.4],
                          "left_out": list(CHOICES[1:])}
OPTIONS = {"levels": "vagueness", "noises": "caption_noise", "left_out": "leave_out"}
SHOWN = 3  # pictures with a caption of each level
EXACT = [f"test_{way}_ndcg_exact" for way in DIRECTIONS]


def vagueness_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss on captions from precise to vague."""
    return _arms(dataset, parameters, "vagueness", {
        f"vagueness={level}": level for level in parameters.levels}, {MODEL: parameters.forgiving})


def scene_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The same on `scenes`, whatever data set a notebook looks at: elsewhere nobody knows which
    negatives are false. In profile full their rows are published in evidence/scenes."""
    return vagueness_arms(SCENES, _for_scenes(dataset, parameters))


def _for_scenes(dataset: str, parameters: SimpleNamespace) -> SimpleNamespace:
    """The parameters without the options of another data set."""
    options = parameters.data_options if dataset == SCENES else {}
    return SimpleNamespace(**vars(parameters) | {"data_options": options})


def noise_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss with a share of the training captions at wrong images; 0 is the data as it is.
    The second judge, whose runs take five times as long, sees the least and the most alone: the
    prediction is about these."""
    noises = {f"noise={share:g}": share for share in parameters.noises}
    ends = {words: share for words, share in noises.items()
            if share in (min(parameters.noises), max(parameters.noises))}
    return [arm for base, losses in _judges(dataset, parameters).items() for arm in _arms(
        dataset, parameters, "caption_noise", noises if base == MODEL else ends, {base: losses})]


def near_duplicate_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every loss on the data without its near-duplicates, and without as many other images."""
    return _arms(dataset, parameters, "leave_out", {
        f"without {what}": what for what in parameters.left_out}, _judges(dataset, parameters))


def _judges(dataset: str, parameters: SimpleNamespace) -> dict[str, list[str]]:
    """Base -> losses that are trained in it; the second judge where the data set has its base."""
    second = {SECOND: parameters.second_losses} if SECOND in base_tables(dataset) else {}
    return {MODEL: parameters.forgiving} | second


def _arms(dataset: str, parameters: SimpleNamespace, option: str, values: Mapping[str, Any],
          judges: Mapping[str, Sequence[str]]) -> list[ArmRun]:
    """Every loss of each judge with each value of an option of the data, by what the label says of
    it; none where the data set has no such option."""
    if not has_option(dataset, option):
        return []
    return [arm for words, value in values.items() for base, losses in judges.items()
            for arm in in_base(dataset, base, _with_option(parameters, option, value),
                               {loss: FORGIVING[loss] for loss in losses}, f", {words}")]


def has_option(dataset: str, option: str) -> bool:
    """Whether a data set can be loaded with an option."""
    return option in inspect.signature(DATASETS[dataset].load).parameters


def why_none(dataset: str, parameter: str) -> str:
    """Why there are no runs of what a parameter lists, and what would train them.

    Example:
        >>> why_none("scenes", "left_out")
        'scenes has no option leave_out, so there is nothing to train'
        >>> why_none("flickr8k", "noises")
        'not trained yet: this profile names no `noises`; noises = [0.0, 0.2, 0.4] trains them'
    """
    if not has_option(SCENES if parameter == "levels" else dataset, OPTIONS[parameter]):
        return f"{dataset} has no option {OPTIONS[parameter]}, so there is nothing to train"
    return (f"not trained yet: this profile names no `{parameter}`; {parameter} = "
            f"{WHOLE[parameter]} trains them")


def in_base(dataset: str, base: str, parameters: SimpleNamespace,
            objectives: Mapping[str, Sequence[str]], after: str = "") -> list[ArmRun]:
    """A base with each of these objectives, at the learning rate that was searched for it there;
    else at that of the hardest negative, or the base's own where nobody has searched. Labels as the
    sweeps have them, in another model behind its name."""
    start, before = base_config(dataset, base, parameters), "" if base == MODEL else f"{base}/"
    usual = start.settings.learning_rate
    return [arm for loss, terms in objectives.items() for arm in over_seeds(
        f"{before}{loss}{after}", sum_of(start, *terms).with_(
            **{"settings.learning_rate": rate_in(dataset, base, loss, usual)}), parameters.seeds)]


def _with_option(parameters: SimpleNamespace, option: str, value: Any) -> SimpleNamespace:
    return SimpleNamespace(**vars(parameters) | {
        "data_options": parameters.data_options | {option: value}})


class Level(NamedTuple):
    """A level of vagueness: what a training batch of the sweeps' model holds on average, the first
    captions of a few training images, and, of the test captions, how many are wholly true of
    another image too."""

    pairs: Pairs
    captions: tuple[str, ...]
    ambiguous: float


def vague_levels(dataset: str, parameters: SimpleNamespace) -> dict[int, Level]:
    """Every level of vagueness that `scenes` has, at the size of the profile; of another data set
    that a notebook looks at only the name is taken."""
    found, own = {}, _for_scenes(dataset, parameters)
    for level in range(len(STYLES)):
        config = base_config(SCENES, MODEL, _with_option(own, "vagueness", level))
        data = dataset_of(config)
        train, test = (data.splits[name] for name in ("train", "test"))
        relevance = data.relevance(test)
        found[level] = Level(
            expected_pairs(data.relevance(train), train.image_of_text,
                           config.settings.batch_size),
            tuple(train.texts[place] for place in np.unique(train.image_of_text,
                                                            return_index=True)[1][:SHOWN]),
            float((as_true(relevance).sum(axis=0) > 1).mean()))
    return found


class Parts(NamedTuple):
    """What the label of an arm says."""

    judge: str
    loss: str
    setting: str


def parts_of(arm: str) -> Parts:
    """Judge, loss and setting of an arm.

    Example:
        >>> tuple(parts_of("top5, noise=0.2")), tuple(parts_of("clean_gru/soft, vagueness=0"))
        (('two_branch', 'top5', 'noise=0.2'), ('clean_gru', 'soft', 'vagueness=0'))
    """
    before, _, setting = arm.partition(", ")
    judge, _, loss = before.rpartition("/")
    return Parts(judge or MODEL, loss, setting)


def with_parts(table: pd.DataFrame, arm: str = "arm") -> pd.DataFrame:
    """The table with judge, loss and setting of an arm of each line."""
    parts = pd.DataFrame(map(parts_of, table[arm]), columns=Parts._fields, index=table.index)
    return table.assign(**parts)


def beside_hardest(arms: Collection[str]) -> list[tuple[str, str]]:
    """Each arm with that of the hardest negative in the same judge and setting."""
    return [(arm, arm.replace(f"{parts_of(arm).loss}, ", f"{REFERENCE}, ", 1))
            for arm in dict.fromkeys(arms) if parts_of(arm).loss != REFERENCE]


def gains(rows: pd.DataFrame, metrics: Sequence[str],
          collapsed: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The runs with what each metric is above that of the hardest negative of the same judge,
    setting and seed: then two settings can be compared by what a loss gains in them.

    Args:    rows: as `train_arms` gives them; collapsed: run -> why its scores have, empty where
             they have not (`Study.collapsed`). Where the run of the hardest negative has, `run`
             names that one, so that `Study.compare` hears of it; else the loss's own.
    """
    rows, keys, metrics = with_parts(rows), ["judge", "setting", "seed"], list(metrics)
    hardest = rows[rows["loss"] == REFERENCE].set_index(keys)[["run", *metrics]]
    others = rows[rows["loss"] != REFERENCE].join(hardest.add_suffix("_hardest"), on=keys,
                                                  how="inner")
    fallen = others["run_hardest"].isin([run for run, why in (collapsed or {}).items() if why])
    return others.assign(run=others["run"].mask(fallen, others["run_hardest"]), **{
        name: others[name] - others[f"{name}_hardest"] for name in metrics})


def between(arms: Collection[str], later: str, earlier: str) -> list[tuple[str, str]]:
    """Each arm of a setting with that of the same judge and loss in another setting."""
    return [(arm, arm.removesuffix(later) + earlier) for arm in dict.fromkeys(arms)
            if parts_of(arm).setting == later]


def with_exact(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with exact NDCG over both directions, their mean, in test_ndcg_exact."""
    return rows.assign(test_ndcg_exact=rows.reindex(columns=EXACT).mean(axis=1))


def gain_table(differences: pd.DataFrame, places: Mapping[str, float],
               panels: Mapping[str, str]) -> pd.DataFrame:
    """Differences of arms and the hardest negative, for `plots.gain_curves`: with panel and x.

    Args:    differences: as `Study.compare` gives them; places: setting -> x; panels: metric ->
             panel; the second judge has panels of its own.
    """
    table = with_parts(differences, "arm_a")
    whose = np.where(table["judge"] == SECOND, ", second judge", "")
    return table.assign(x=table["setting"].map(places),
                        panel=table["metric"].map(panels) + whose)


def within(differences: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Differences with a verdict on how small they are, on margin - |difference|: higher where the
    interval lies inside +-margin, lower where it lies wholly outside; what settles nothing stays.

    Args:    differences: as `Study.compare` gives them.
    """
    low, high = differences["low"], differences["high"]
    settles = differences["verdict"].isin(["higher", "lower", "undecided"])
    inside, outside = (low > -margin) & (high < margin), (low > margin) | (high < -margin)
    judged = np.select([inside, outside], ["higher", "lower"], "undecided")
    return differences.assign(verdict=differences["verdict"].mask(settles, judged))
