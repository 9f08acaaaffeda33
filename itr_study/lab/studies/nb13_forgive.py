"""When to forgive: the arms of notebook 13, and what each loss gains beside the hardest negative.

Labels: "<loss>, vagueness=<level>", "<loss>, noise=<share>" and "<loss>, without <what>", where a
data set has such an option; "clean_gru/<loss>, ..." in the model of the second judge. The losses
are those of FORGIVING.
"""

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt, ValidationInfo, field_validator, model_validator

from itr_study.data import DATASETS
from itr_study.data.caption_noise import CHOICES, Pairs, as_true, expected_pairs
from itr_study.data.scenes.styles import STYLES
from itr_study.lab.ledger.judges import JUDGE
from itr_study.lab.ledger.paired import FEWEST, Arms
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.studies.arms import ArmRun, base_config, over_seeds, sum_of
from itr_study.lab.studies.bases import rate_in
from itr_study.lab.studies.nb06_kendall import ComparedLosses, compared_arms, compared_rate_arms
from itr_study.lab.studies.parameters import Factor, Names, Parameters, by_profile
from itr_study.lab.studies.wording import listed, too_few
from itr_study.metrics.intervals import LEVEL
from itr_study.metrics.truth import DIRECTIONS
from itr_study.plots.names import name_of

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


class ForgiveParameters(ComparedLosses, title="13_when_to_forgive"):
    """Parameters of notebook 13."""

    seeds: PositiveInt = by_profile("runs of each arm", 1, 2, 5)
    rate_factors: list[Factor] = by_profile("its control: times the base's learning rate",
                                            [2.0], [0.5, 2.0], [0.125, 0.25, 0.5, 2.0])
    rate_losses: Names = by_profile("losses of the control", ["hardest", "bcls"], ["hardest"],
                                    ComparedLosses.of(profile="full").compared)
    forgiving: Names = by_profile(
        "losses of sections 4 to 6, the hardest negative among them",
        ["hardest", "top5", "hardest+listwise"], ["hardest", "top5"], list(FORGIVING),
        among=FORGIVING)
    levels: list[Annotated[int, Field(ge=0, lt=len(STYLES))]] = by_profile(
        "of vagueness, 0 (precise) to 4; []: none", [0, 4], [0, 4], WHOLE["levels"], empty=True)
    noises: list[Annotated[float, Field(ge=0, lt=1)]] = by_profile(
        "shares of captions at wrong images, 0 to below 1; []: none", [0.0, 0.4], [0.0, 0.4],
        WHOLE["noises"], empty=True)
    left_out: Names = by_profile(
        "near_duplicates, as_many_others (Flickr8k); []: none", *3 * [WHOLE["left_out"]],
        among=CHOICES[1:], empty=True)
    second_losses: Names = by_profile(
        "of sections 5 and 6 in the second judge's model", [], [], ["hardest", "top5", "soft"],
        among=FORGIVING, empty=True)

    @field_validator("forgiving", "second_losses")
    @classmethod
    def check_losses(cls, values: Names) -> Names:
        if values and REFERENCE not in values:
            raise ValueError(f"of {', '.join(values)} each is held against {REFERENCE!r}, which is "
                             "not among them: name it, too")
        if len(values) == 1:
            raise ValueError(f"{REFERENCE!r} alone has nothing that is held against it: name "
                             "another loss, too, such as 'soft'")
        return values

    @field_validator("noises", "left_out")
    @classmethod
    def check_pairs(cls, values: list, info: ValidationInfo) -> list:
        if len(values) == 1:  # held against itself, what a loss gains would move by nothing
            others = [other for other in WHOLE[info.field_name] if other not in values]
            raise ValueError(f"{info.field_name} = {values} has nothing to be held against: name "
                             f"another, too, such as {others[0]!r}, or none")
        return values

    @model_validator(mode="after")
    def check_second(self) -> Self:
        self.check_within("rate_losses", self.compared, "compared")
        if self.second_losses and not self.noises and not self.left_out:
            raise ValueError(f"second_losses = {self.second_losses} train nothing by themselves: "
                             "name noises, too, such as [0.0, 0.4], or left_out")
        return self


def vagueness_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Every loss on captions from precise to vague."""
    return _arms(dataset, parameters, "vagueness", {
        f"vagueness={level}": level for level in parameters.levels}, {MODEL: parameters.forgiving})


def scene_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """The same on `scenes`, whatever data set a notebook looks at: elsewhere nobody knows which
    negatives are false. In profile full their rows are published in evidence/scenes."""
    return vagueness_arms(SCENES, _for_scenes(dataset, parameters))


def _for_scenes(dataset: str, parameters: Parameters) -> Parameters:
    """The parameters without the options of another data set."""
    return parameters if dataset == SCENES else parameters.model_copy(
        update={"data_options": {}, "images": None})


def noise_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Every loss with a share of the training captions at wrong images; 0 is the data as it is.
    The second judge, whose runs take five times as long, sees the least and the most alone: the
    prediction is about these."""
    noises = {f"noise={share:g}": share for share in parameters.noises}
    ends = {words: share for words, share in noises.items()
            if share in (min(parameters.noises), max(parameters.noises))}
    return [arm for base, losses in _judges(parameters).items() for arm in _arms(
        dataset, parameters, "caption_noise", noises if base == MODEL else ends, {base: losses})]


def near_duplicate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Every loss on the data without its near-duplicates, and without as many other images."""
    return _arms(dataset, parameters, "leave_out", {
        f"without {what}": what for what in parameters.left_out}, _judges(parameters))


def _judges(parameters: Parameters) -> dict[str, list[str]]:
    """Base -> losses that are trained in it."""
    return {MODEL: parameters.forgiving, SECOND: parameters.second_losses}


def _arms(dataset: str, parameters: Parameters, option: str, values: Mapping[str, Any],
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


def in_base(dataset: str, base: str, parameters: Parameters,
            objectives: Mapping[str, Sequence[str]], after: str = "") -> list[ArmRun]:
    """A base with each of these objectives, at the learning rate that was searched for it there;
    else at that of the hardest negative, or the base's own where nobody has searched. Labels as the
    sweeps have them, in another model behind its name."""
    start, before = base_config(dataset, base, parameters), "" if base == MODEL else f"{base}/"
    usual = start.settings.learning_rate
    return [arm for loss, terms in objectives.items() for arm in over_seeds(
        f"{before}{loss}{after}", sum_of(start, *terms).with_(
            **{"settings.learning_rate": rate_in(dataset, base, loss, usual)}), parameters.seeds)]


def _with_option(parameters: Parameters, option: str, value: Any) -> Parameters:
    return parameters.model_copy(update={
        "data_options": parameters.data_options | {option: value}})


ARMS = (compared_arms, compared_rate_arms, scene_arms, noise_arms, near_duplicate_arms)


class Level(NamedTuple):
    """A level of vagueness: what a training batch of the sweeps' model holds on average, the first
    captions of a few training images, and, of the test captions, how many are wholly true of
    another image too."""

    pairs: Pairs
    captions: tuple[str, ...]
    ambiguous: float


def vague_levels(dataset: str, parameters: Parameters) -> dict[int, Level]:
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


# What became of predictions that were written before: as predicted, against it, or not settled.

HELD, FAILED, OPEN, UNTRAINED = "held", "failed", "not settled", "not trained"


def outcome(settled: Sequence[bool], of: int, what: str = "losses") -> str:
    """What became of a prediction about several losses, or several models.

    Args:    settled: of each that is settled, whether as predicted; of: how many there
             are; what: their name.
    Example:
        >>> outcome([True, True], 2), outcome([False, False], 2), outcome([], 2)
        ('held', 'failed', 'not settled')
        >>> outcome([True], 2), outcome([True, False], 3)
        ('held for 1 of 2 losses', 'held for 1 of 3 losses and failed for 1')
    """
    held, failed = sum(settled), len(settled) - sum(settled)
    if not settled or of in (held, failed):
        return HELD if settled and held else FAILED if settled else OPEN
    parts = [f"{name} for {count}" for name, count in ((HELD, held), (FAILED, failed)) if count]
    first, *rest = parts
    return " and ".join([f"{first} of {of} {what}", *rest])


def of_differences(differences: pd.DataFrame, predicted: str, what: str = "losses") -> str:
    """The outcome of a prediction that these differences all have one verdict.

    Args:    differences: as `Study.compare` gives them; predicted: "higher" or "lower";
             what: they are differences of.
    """
    sides = differences["verdict"][differences["verdict"].isin(["higher", "lower"])]
    return outcome([*sides.eq(predicted)], len(differences), what)


def of_crossings(found: pd.DataFrame, losses: int, seeds: int) -> str:
    """The outcome of a prediction that every loss's curve rises above the reference.

    Args:    found: of one metric, as `crossings.crossing_table` gives them; losses: how many.
    """
    return outcome([*found["rising"]] if seeds >= FEWEST else [], losses)


def summary(answers: pd.DataFrame) -> str:
    """Which predictions held, as a title.

    Args:    answers: prediction ("1a. ..."), measure, judge, outcome; a line per measurement.
    Example:
        >>> summary(pd.DataFrame({"prediction": ["1a. more", "1a. more", "2. noise"],
        ...     "measure": ["RSUM", "NDCG", "none"], "judge": ["first", "first", "none"],
        ...     "outcome": ["held", "not settled", "not trained"]}))
        'Held: 1a by RSUM; not settled: 1a by NDCG; not trained: 2'
    """
    judges = answers.loc[answers["judge"] != "none", "judge"].nunique()
    parts: dict[str, list[str]] = {}
    for line in answers.itertuples():
        by = "" if line.measure == "none" else f" by {line.measure}"
        whose = f" ({line.judge})" if by and judges > 1 else ""
        parts.setdefault(line.outcome, []).append(line.prediction.partition(".")[0] + by + whose)
    order = sorted(parts, key=lambda name: (name == UNTRAINED, name == OPEN))  # settled ones first
    said = "; ".join(f"{name}: {', '.join(parts[name])}" for name in order)
    return said[:1].upper() + said[1:]


# Where the curves of two losses cross, as far as paired seeds settle it.
#
#     found = crossing_table(rows, gain, shares={0: 1e-4, 4: 0.2})
#     crossing_words(found, ["top5", "soft"], seeds=5)

STEPS = 10_000  # of the line along which two curves are compared


def by_level(rows: pd.DataFrame, loss_a: str, loss_b: str, knob: str, levels: Sequence[float],
             metric: str) -> np.ndarray:
    """(L, n) differences loss_a - loss_b of a metric: L levels of a knob, n seeds that all have.

    Args:    rows: as `train_arms` gives them; knob: "vagueness" or "noise".
    Raises:  ValueError where an arm is missing, or the levels share no seed.
    """
    arms = Arms(rows)
    parts = [arms.part(*(f"{loss}, {knob}={level:g}" for loss in (loss_a, loss_b)), metric)
             for level in levels]
    of_level = [dict(zip(part.seeds, part.differences, strict=True)) for part in parts]
    seeds = sorted(set.intersection(*map(set, of_level)))
    if not seeds:
        raise ValueError(f"no seed of {loss_a!r} and {loss_b!r} was run at all of the levels of "
                         f"{knob}: {', '.join(f'{level:g}' for level in levels)}")
    return np.array([[values[seed] for seed in seeds] for values in of_level])


class Crossing(NamedTuple):
    """Where the mean difference passes zero; at `low` its interval still lies wholly on one side of
    zero, at `high` wholly on the other."""

    at: float
    low: float
    high: float
    rising: bool  # from below zero to above it


def crossings(x: Sequence[float], differences: np.ndarray, level: float = LEVEL) -> list[Crossing]:
    """Where two curves cross, as far as paired seeds settle it.

    Between two levels each seed's difference is taken to change on a straight line. Along it, the
    Student interval of the mean difference is below zero, above it, or holds it; a crossing is
    settled where it holds zero between a stretch below and one above. Those places are Fieller's
    interval for the root of a line: where the true difference is zero, 95 % of such intervals hold
    zero. One that no level settles on both sides is no crossing: the list is empty, as it is with
    fewer than five seeds, which settle nothing in the ledger either.

    Args:    x: (L,) of the levels, rising, on the scale on which they are drawn (give the logarithm
             for a logarithmic axis); differences: (L, n) of n paired seeds.
    Raises:  ValueError for levels that do not rise, or another number of them.
    Source:  Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16, 1954.
    Example: five seeds, from about -3 to about +1: zero at three quarters of the way
        >>> found = crossings([0, 1], np.array([[-3.1, -2.9, -3, -3, -3], [0.9, 1.1, 1, 1, 1]]))
        >>> [(round(c.at, 2), round(c.low, 2), round(c.high, 2), c.rising) for c in found]
        [(0.75, 0.73, 0.77, True)]
    """
    from scipy import stats

    x, differences = np.asarray(x, float), np.asarray(differences, float)
    if len(x) != len(differences) or (np.diff(x) <= 0).any():
        raise ValueError(f"levels must rise, and have a row of differences each; got {x.tolist()} "
                         f"and {len(differences)} rows")
    n = differences.shape[1]
    if n < FEWEST:
        return []
    along = np.union1d(np.linspace(x[0], x[-1], STEPS + 1), x)
    lines = np.array([np.interp(along, x, seed) for seed in differences.T])  # (n, steps)
    mean = lines.mean(axis=0)
    reach = stats.t.ppf((1 + level) / 2, n - 1) * lines.std(axis=0, ddof=1) / np.sqrt(n)
    side = np.sign(mean) * (abs(mean) > reach)
    settled = np.flatnonzero(side)
    turns = np.flatnonzero(np.diff(side[settled]))
    return [_crossing(along, mean, *settled[turn:turn + 2]) for turn in turns]


def _crossing(along: np.ndarray, mean: np.ndarray, first: int, last: int) -> Crossing:
    """The crossing between two settled places; of several zeros of the mean there, the middle."""
    part, inside = mean[first:last + 1], along[first:last + 1]
    zeros = np.flatnonzero(np.sign(part[:-1]) != np.sign(part[1:]))
    roots = [inside[k] - part[k] * (inside[k + 1] - inside[k]) / (part[k + 1] - part[k])
             for k in zeros]
    return Crossing(float(np.median(roots)), float(inside[0]), float(inside[-1]),
                    bool(part[-1] > 0))


def crossing_table(rows: pd.DataFrame, gain: pd.DataFrame, shares: Mapping[int, float]
                   ) -> pd.DataFrame:
    """Every settled crossing of a loss and the hardest negative, as the share of false negatives
    grows; between two levels curves are taken to change with its logarithm. A level at which runs
    of either have collapsed is left out.

    Args:    rows: of `forgive.scene_arms`; gain: of them, as `forgive.gain_table` gives it;
             shares: level of vagueness -> share, rising.
    Returns: panel, metric, loss, at, low, high (shares), rising.
    """
    lines = []
    for (panel, metric, loss), part in gain.groupby(["panel", "metric", "loss"], sort=False):
        sound = set(part.loc[part["verdict"] != "collapsed", "setting"])
        levels = [level for level in shares if f"vagueness={level}" in sound]
        if len(levels) > 1:
            differences = by_level(rows, loss, REFERENCE, "vagueness", levels, metric)
            lines += [(panel, metric, loss, *np.exp([found.at, found.low, found.high]),
                       found.rising) for found in crossings(
                           np.log([shares[level] for level in levels]), differences)]
    return pd.DataFrame(lines, columns=["panel", "metric", "loss", *Crossing._fields])


def crossing_words(found: pd.DataFrame, losses: Sequence[str], seeds: int) -> str:
    """The crossings of one metric as a sentence, shares in percent.

    Example:
        >>> line = {"loss": "top5", "at": 0.008, "low": 0.0052, "high": 0.0131, "rising": True}
        >>> crossing_words(pd.DataFrame([line]), ["top5", "soft", "sum"], seeds=5)
        'rise above it: top-5 at 0.8 % [0.52, 1.3]; no crossing is settled for soft and sum'
        >>> crossing_words(pd.DataFrame([line]), ["top5"], seeds=3)
        '3 seeds settle nothing (5 are needed)'
    """
    if seeds < FEWEST:
        return too_few(seeds)
    words = []
    for way, rising in (("rise above", True), ("fall below", False)):
        named = [f"{name_of(line.loss)} at {100 * line.at:.2g} % "
                 f"[{100 * line.low:.2g}, {100 * line.high:.2g}]"
                 for line in found[found["rising"] == rising].sort_values("at").itertuples()]
        words += [f"{way} it: {', '.join(named)}"] * bool(named)
    rest = [name_of(loss) for loss in losses if loss not in set(found["loss"])]
    unsettled = f"no crossing is settled for {listed(rest, len(losses))}" if rest else ""
    return "; ".join(filter(None, [*words, unsettled]))
