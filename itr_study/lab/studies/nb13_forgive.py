"""When to tolerate false negatives: the arms of notebook 13, and what is compared there.

Labels: "<loss>, vagueness=<level>", "<loss>, noise=<share>" and "<loss>, without <what>" on data
that has such an option; "clean_gru/<loss>, ..." in the second base model. Each arm has its base
model, its loss and what is varied as factors: setting, loss, vagueness, noise, left_out.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt, ValidationInfo, field_validator, model_validator

from itr_study.data.caption_noise import BY_LIST, Pairs, as_true, expected_pairs
from itr_study.data.scenes.styles import STYLES
from itr_study.evaluation.evaluate import encode_texts, score
from itr_study.evaluation.search import Searcher
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.replication import SECOND_BASE
from itr_study.lab.ledger.verdict import adjusted
from itr_study.lab.runs.config import RunConfig, training_vectors
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.studies.arms import ArmRun, base_config, has_option, over_seeds, sum_of
from itr_study.lab.studies.bases import rate_in
from itr_study.lab.studies.nb06_kendall import COMPARED, ComparedLosses, compared_arms
from itr_study.lab.studies.parameters import Factor, Names, Parameters, by_profile
from itr_study.metrics.answers import auroc, best_scores, refusal_level
from itr_study.metrics.intervals import LEVEL
from itr_study.metrics.truth import DIRECTIONS
from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of

# From the loss that takes one negative to those that take all; the last also orders the rest.
FORGIVING = {"hardest": ("hardest",), "top5": ("top5",), "soft": ("soft",), "sum": ("sum",),
             "info_nce": ("info_nce",), "hardest+listwise": ("hardest", "listwise")}
REFERENCE = "hardest"
MODEL, SECOND = "two_branch", SECOND_BASE  # base models: of the sweeps, one that saw no captions
SCENES = "scenes"  # whose captions can be made vague
# All values of each option, whatever a profile trains of them; and the option of the data set.
WHOLE: dict[str, list] = {"levels": list(range(len(STYLES))), "noises": [0.0, 0.2, 0.4],
                          "left_out": list(BY_LIST), "tolerant": list(FORGIVING),
                          "second_losses": list(FORGIVING)}
OPTIONS = {"levels": "vagueness", "noises": "caption_noise", "left_out": "leave_out"}
SHOWN = 3  # pictures with a caption of each level
# Losses on the board of section 1; the tables have all of them.
BOARD = ("sum", "hardest", "top5", "soft", "info_nce", "hardest+listwise", "bcls", "ladder",
         "info_nce+soft_labels", "hardest+recall_at_k")
EXACT = [f"test_{way}_ndcg_exact" for way in DIRECTIONS]


class ForgiveParameters(ComparedLosses, title="13_when_to_forgive"):
    """Parameters of notebook 13."""

    seeds: PositiveInt = by_profile("runs of each loss", 1, 5, 5)
    rate_factors: list[Factor] = by_profile("its control: times the base's learning rate",
                                            [2.0], [0.5, 2.0], [0.125, 0.25, 0.5, 2.0])
    rate_losses: Names = by_profile(
        "losses of the control", ["hardest", "bcls"], list(FORGIVING)[:4], list(COMPARED))
    tolerant: Names = by_profile("losses of sections 4 to 6, the hardest negative among them",
                                 ["hardest", "top5", "hardest+listwise"], list(FORGIVING)[:3],
                                 list(FORGIVING), among=FORGIVING, rivals=[REFERENCE])
    levels: list[Annotated[int, Field(ge=0, lt=len(STYLES))]] = by_profile(
        "of vagueness, 0 (precise) to 4; []: none", [0, 4], *2 * [WHOLE["levels"]], empty=True)
    noises: list[Annotated[float, Field(ge=0, lt=1)]] = by_profile(
        "shares of captions at wrong images, 0 to below 1; []: none", [0.0, 0.4], [0.0, 0.4],
        WHOLE["noises"], empty=True)
    left_out: Names = by_profile(
        "near_duplicates, as_many_others (Flickr8k); []: none", *3 * [WHOLE["left_out"]],
        among=BY_LIST, empty=True)
    second_losses: Names = by_profile(
        "of sections 5 and 6 in the second base model", [], [], ["hardest", "top5", "soft"],
        among=FORGIVING, empty=True, rivals=[REFERENCE])
    refusing: Names = by_profile(
        "losses of the comparison whose models section 8 needs", ["hardest", "hardest+listwise"],
        ["hardest", "sum", "info_nce"],
        ["hardest", "top5", "sum", "info_nce", "hardest+listwise"], among=COMPARED)
    refusing_seeds: PositiveInt = by_profile("runs of each of these", 1, 3, 5)
    refusing_second: Names = by_profile(
        "losses of them in the second base model; []: none", [], [],
        ["hardest", "info_nce", "hardest+listwise"], among=COMPARED, empty=True)

    @field_validator("noises", "left_out", "tolerant", "second_losses")
    @classmethod
    def check_pairs(cls, values: list, info: ValidationInfo) -> list:
        """Refuse a single value."""
        if len(values) == 1:  # compared with itself, no gain would change
            others = [other for other in WHOLE[info.field_name] if other not in values]
            raise ValueError(f"{info.field_name} = {values} has nothing to be compared with: name "
                             f"another, too, such as {others[0]!r}"
                             + ", or none" * (info.field_name != "tolerant"))
        return values

    @model_validator(mode="after")
    def check_second(self) -> Self:
        """Refuse losses of the second base model without anything to train them on."""
        self.check_within("rate_losses", self.compared, "compared")
        for name in self.explicit.keys() & {"refusing", "refusing_second"}:  # else those compared
            self.check_within(name, self.compared, "compared")
        if self.second_losses and not self.noises and not self.left_out:
            raise ValueError(f"second_losses = {self.second_losses} train nothing by themselves: "
                             "name noises, too, such as [0.0, 0.4], or left_out")
        return self


def compared_rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make the losses of the comparison at multiples of the learning rate, seed 0."""
    first = [arm for arm in compared_arms(dataset, parameters)
             if arm.config.seed == 0 and arm.label in parameters.rate_losses]
    return [ArmRun(f"{arm.label}@{times:g}", arm.config.with_(
        **{"settings.learning_rate": times * arm.config.settings.learning_rate}),
        factors={"loss": arm.label, "rate": times})
        for times in parameters.rate_factors for arm in first]


def second_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make the losses of the comparison in the second base model; nobody trains them for it."""
    return in_base(dataset, SECOND, parameters, {one: COMPARED[one] for one in parameters.compared})


def refusing_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List runs of the comparison whose models section 8 needs, in both base models."""
    both = [*compared_arms(dataset, parameters), *second_arms(dataset, parameters)]
    asked = {MODEL: parameters.refusing, SECOND: parameters.refusing_second}
    return [arm for arm in both if arm.factors["loss"] in asked[arm.factors.get("setting", MODEL)]
            and arm.config.seed < parameters.refusing_seeds]


def vagueness_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make every loss on captions from precise to vague."""
    return _arms(dataset, parameters, "levels", "vagueness", {MODEL: parameters.tolerant})


def scene_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make the same on `scenes`, whatever the data set: elsewhere false negatives are unknown."""
    return vagueness_arms(SCENES, _for_scenes(dataset, parameters))


def _for_scenes(dataset: str, parameters: Parameters) -> Parameters:
    """Leave out the options, and the tuned rates, of another data set."""
    return parameters if dataset == SCENES else parameters.model_copy(
        update={"data_options": {}, "images": None}).with_rates({})


def noise_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make every loss with a share of the training captions at wrong images.

    The second base model, which takes five times as long, has the least and the most alone.
    """
    ends = parameters.model_copy(update={"noises": [
        share for share in parameters.noises
        if share in (min(parameters.noises), max(parameters.noises))]})
    return [*_arms(dataset, parameters, "noises", "noise", {MODEL: parameters.tolerant}),
            *_arms(dataset, ends, "noises", "noise", {SECOND: parameters.second_losses})]


def near_duplicate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Make every loss without near-duplicates in the data, and without as many other images."""
    return _arms(dataset, parameters, "left_out", "left_out",
                 {MODEL: parameters.tolerant, SECOND: parameters.second_losses})


def _arms(dataset: str, parameters: Parameters, listed: str, factor: str,
          losses: Mapping[str, Sequence[str]]) -> list[ArmRun]:
    """Make the losses of each base model with each value of an option that the data set has."""
    option, words = OPTIONS[listed], "without " if factor == "left_out" else f"{factor}="
    values = vars(parameters)[listed] if has_option(dataset, option) else []
    return [arm for value in values for base, names in losses.items()
            for arm in in_base(dataset, base, _with_option(parameters, option, value),
                               {loss: FORGIVING[loss] for loss in names},
                               f", {words}{value if isinstance(value, str) else f'{value:g}'}",
                               **{factor: value})]


def why_none(dataset: str, parameter: str) -> str:
    """Say why there are no runs of a parameter's values, and what would train them.

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
            objectives: Mapping[str, Sequence[str]], after: str = "", **factors: Any
            ) -> list[ArmRun]:
    """Make a base model with each objective, at the rate searched for it (`bases.rate_in`)."""
    start, before = base_config(dataset, base, parameters), "" if base == MODEL else f"{base}/"
    return [arm for loss, terms in objectives.items() for arm in over_seeds(
        f"{before}{loss}{after}", sum_of(start, *terms).with_(**{"settings.learning_rate": rate_in(
            dataset, base, loss, start.settings.learning_rate, parameters.rates_here)}),
        parameters.seeds, setting=base, loss=loss, **factors)]


def _with_option(parameters: Parameters, option: str, value: Any) -> Parameters:
    return parameters.model_copy(update={"data_options": parameters.data_options | {option: value}})


ARMS = (compared_arms, compared_rate_arms, scene_arms, noise_arms, near_duplicate_arms)


# Section 1: which ranking loss?

MATCHES, GRADED = "matches alone", "graded labels, too"
SEEN = "graded labels of the encoder that it reads (has seen captions)"


def trained_on(config: str) -> str:
    """Name the labels a run, by its config as JSON, is trained on: MATCHES, GRADED or SEEN."""
    run = RunConfig.model_validate_json(config)
    if all(term.labels == "binary" for term in run.terms):
        return MATCHES
    read = {run.sentences, (run.tokens or "").removeprefix("wordpiece:")}
    return SEEN if training_vectors(run) & read else GRADED


def with_enough_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the arms with FEWEST runs or more: fewer decide nothing."""
    seeds = rows.groupby("arm")["seed"].transform("nunique") if len(rows) else pd.Series(dtype=int)
    return rows[seeds >= FEWEST]


def every_pair(rows: pd.DataFrame, collapsed: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pair every arm with every other, both ways, but for those with collapsed runs."""
    fallen = set(rows.loc[[bool(collapsed.get(run)) for run in rows["run"]], "arm"])
    return list(permutations([arm for arm in rows["arm"].unique() if arm not in fallen], 2))


def level_of(rows: pd.DataFrame) -> float:
    """Compute the level at which an arm is compared with all others."""
    return adjusted(max(rows["arm"].nunique() - 1, 1))


def times_exceeded(differences: pd.DataFrame) -> pd.DataFrame:
    """Count how many arms are above each arm: by each metric, and in `both` by all metrics.

    differences: of every arm less every other, as `Study.compare` gives them.
    """
    above = differences["verdict"].eq("higher").groupby(
        [differences["arm_b"], differences["arm_a"], differences["metric"]]).first().unstack()
    return above.assign(both=above.all(axis=1)).groupby("arm_b").sum()


def rate_table(same: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Table RSUM on dev of each loss, seed 0, at its learning rate and multiples of it.

    same, other: rows of `compared_arms` and of `compared_rate_arms`.
    """
    tried = pd.concat([same[same["seed"] == 0].assign(rate=1.0), other])
    return tried.pivot(index="loss", columns="rate", values="dev_rsum")


# Sections 2 to 6: what each loss gains over the hardest negative.

class Level(NamedTuple):
    """What captions of one level of vagueness are like."""

    pairs: Pairs  # what a training batch of the sweeps' model holds on average
    captions: tuple[str, ...]  # the first of a few training images
    ambiguous: float  # share of the test captions that are wholly true of another image, too


def vague_levels(dataset: str, parameters: Parameters) -> dict[int, Level]:
    """Describe every level of vagueness of `scenes`, at the size of the profile."""
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


def against(rows: pd.DataFrame, *factors: str, reference: str = REFERENCE) -> list[tuple[str, str]]:
    """Pair each arm with one loss in its base model at the same values of the factors."""
    arms = rows.drop_duplicates("arm")
    taken = arms["loss"] == reference
    return _pairs(arms[~taken], arms[taken], ["setting", *factors])


def between(rows: pd.DataFrame, factor: str, later: Any, earlier: Any) -> list[tuple[str, str]]:
    """Pair each arm at one value of a factor with that of its loss and base model at another."""
    arms = rows.drop_duplicates("arm")
    return _pairs(arms[arms[factor] == later], arms[arms[factor] == earlier], ["setting", "loss"])


def _pairs(one: pd.DataFrame, other: pd.DataFrame, on: Sequence[str]) -> list[tuple[str, str]]:
    both = one[["arm", *on]].merge(other[["arm", *on]], on=list(on), suffixes=("", "_b"))
    return list(zip(both["arm"], both["arm_b"], strict=True))


def gains(rows: pd.DataFrame, factor: str, metrics: Sequence[str],
          collapsed: Mapping[str, str], reference: str = REFERENCE) -> pd.DataFrame:
    """Subtract from each run that of one loss in its base model, setting and seed.

    Two settings can then be compared by what a loss gains in them, in columns `metrics`; `factor`
    is the column of what is varied. If its scores have collapsed (`Study.collapsed`),
    `run` names that run, so that `Study.compare` hears of it.
    """
    keys, metrics = ["setting", factor, "seed"], list(metrics)
    taken = rows[rows["loss"] == reference].set_index(keys)[["run", *metrics]]
    others = rows[rows["loss"] != reference].join(taken.add_suffix("_taken"), on=keys, how="inner")
    fallen = others["run_taken"].isin([run for run, why in collapsed.items() if why])
    return others.assign(run=others["run"].mask(fallen, others["run_taken"]), **{
        name: others[name] - others[f"{name}_taken"] for name in metrics})


def within(differences: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Judge differences of `Study.compare` by size; a verdict that decides nothing stays.

    "higher" if the interval is inside +-margin (in units of the metric), "lower" if wholly outside.
    """
    low, high = differences["low"], differences["high"]
    decides = differences["verdict"].isin(["higher", "lower", "undecided"])
    inside, outside = (low > -margin) & (high < margin), (low > margin) | (high < -margin)
    judged = np.select([inside, outside], ["higher", "lower"], "undecided")
    return differences.assign(verdict=differences["verdict"].mask(decides, judged))


STEPS = 10_000  # of the line along which two curves are compared


def by_level(rows: pd.DataFrame, loss: str, levels: Sequence[int], metric: str) -> np.ndarray:
    """Compute (L, n) differences from the hardest negative: L levels, n seeds that all have.

    Of rows of `scene_arms`; ValueError: no seed was run with both losses at all levels of
    vagueness.
    """
    values = rows.pivot(index=["loss", "vagueness"], columns="seed", values=metric)
    both = [values.reindex([(name, level) for level in levels]) for name in (loss, REFERENCE)]
    table = pd.DataFrame(both[0].to_numpy() - both[1].to_numpy()).dropna(axis=1)
    if table.empty:
        raise ValueError(f"no seed of {loss!r} and {REFERENCE!r} was run at all of the levels of "
                         f"vagueness: {', '.join(map(str, levels))}")
    return table.to_numpy()


class Crossing(NamedTuple):
    """Where a mean difference passes zero; at `low` and `high` its interval just leaves zero."""

    at: float
    low: float
    high: float
    rising: bool  # from below zero to above it


def crossings(x: Sequence[float], differences: np.ndarray, level: float = LEVEL) -> list[Crossing]:
    """Find where two curves cross, as far as paired seeds decide it.

    Between two levels each seed's difference is taken to change on a straight line. A crossing is a
    stretch on which the Student interval of the mean difference holds zero, between one below zero
    and one above it. Its ends are Fieller's interval for the root of a line: 95 % of them hold it.

    Args:
        x: (L,) levels, rising, on the scale on which they are drawn (logarithms for a log axis).
        differences: (L, n) of n paired seeds; fewer than five have no crossing.
        level: of the interval.
    Raises: ValueError: levels that do not rise, or another number of them.
    Source: Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16, 1954.

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
    decided = np.flatnonzero(side)
    turns = np.flatnonzero(np.diff(side[decided]))
    return [_crossing(along, mean, *decided[turn:turn + 2]) for turn in turns]


def _crossing(along: np.ndarray, mean: np.ndarray, first: int, last: int) -> Crossing:
    """Make the crossing between two places; of several zeros of the mean, the middle one."""
    part, inside = mean[first:last + 1], along[first:last + 1]
    zeros = np.flatnonzero(np.sign(part[:-1]) != np.sign(part[1:]))
    roots = [inside[k] - part[k] * (inside[k + 1] - inside[k]) / (part[k + 1] - part[k])
             for k in zeros]
    return Crossing(float(np.median(roots)), float(inside[0]), float(inside[-1]),
                    bool(part[-1] > 0))


def crossing_table(rows: pd.DataFrame, gain: pd.DataFrame, shares: Mapping[int, float]
                   ) -> pd.DataFrame:
    """Find every crossing of a loss and the hardest negative, as false negatives grow.

    Between two levels curves are taken to change with the logarithm of the share. A level at which
    runs of either have collapsed is left out. Gives metric, loss, at, low, high (shares), rising.

    Args:
        rows: of `scene_arms`.
        gain: their differences from the hardest negative, as `Study.compare` gives them.
        shares: level of vagueness -> share, rising.
    """
    lines = []
    for (metric, loss), part in gain.groupby(["metric", "loss"], sort=False):
        sound = set(part.loc[part["verdict"] != "collapsed", "vagueness"])
        levels = [level for level in shares if level in sound]
        if len(levels) > 1:
            lines += [(metric, loss, *np.exp([found.at, found.low, found.high]), found.rising)
                      for found in crossings(np.log([shares[level] for level in levels]),
                                             by_level(rows, loss, levels, metric))]
    return pd.DataFrame(lines, columns=["metric", "loss", *Crossing._fields])


# Section 7: what became of predictions that were written before.

AS_PREDICTED, AGAINST, OPEN, UNTRAINED = "as predicted", "against it", "open", "not trained"


def outcomes(differences: pd.DataFrame, predicted: str) -> pd.DataFrame:
    """Say of each difference whether it is as predicted, "higher" or "lower".

    Of `Study.compare` with columns setting and loss it gives measure, base model, loss (in words)
    and what happened.
    """
    other = {"higher": "lower", "lower": "higher"}[predicted]
    happened = differences["verdict"].map({predicted: AS_PREDICTED, other: AGAINST}).fillna(OPEN)
    return pd.DataFrame({"measure": differences["metric"].map(title_of),
                         "base model": differences["setting"].map(name_of),
                         "loss": differences["loss"].map(name_of), "what happened": happened})


def rising(gain: pd.DataFrame, crossed: pd.DataFrame) -> pd.DataFrame:
    """Give a verdict: "higher" if all crossings rise, "lower" if one falls, else "undecided"."""
    verdicts = crossed.groupby(["metric", "loss"])["rising"].all().map(
        {True: "higher", False: "lower"}).rename("verdict")
    lines = gain.drop_duplicates(["metric", "loss"]).drop(columns="verdict")
    lines = lines.join(verdicts, on=["metric", "loss"])
    return lines.assign(verdict=lines["verdict"].fillna("undecided"))


# Section 8: do scores tell that nothing fits?

def refusal_rows(searchers: Iterable[tuple[ArmRun, Searcher]], wrong: float = 0.1) -> pd.DataFrame:
    """Measure how well the best score of a text tells that its picture is not among those searched.

    The level is that of `refusal_level`: captions of dev ask among the pictures of test.

    Args:
        searchers: runs, each with its model over test.
        wrong: share of texts without a picture that may be answered.
    Returns: Frame of arm, seed, auroc (best scores with the picture against those without it),
        answered and wrongly_answered (texts above the level, with and without it); in percent.
    """
    lines = []
    for run, searcher in searchers:
        found, missing = best_scores(searcher.scores, searcher.split.image_of_text)
        dev = encode_texts(searcher.model, searcher.data.splits["dev"])
        asked = score(searcher.model, searcher.images, dev).max(dim=0).values.numpy()
        level = refusal_level(asked, wrong)
        lines.append({"arm": run.label, "seed": run.config.seed,
                      "auroc": 100 * auroc(found, missing),
                      "answered": 100 * (found > level).mean(),
                      "wrongly_answered": 100 * (missing > level).mean()})
    return pd.DataFrame(lines)
