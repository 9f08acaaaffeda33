"""Paired evidence: differences of two arms over the seeds they share."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from itr_study.lab.ledger.reported import difference
from itr_study.metrics.intervals import LEVEL, random_effects, student_interval

FEWEST, MOST = 5, 1000  # pairs needed at least; pairs ever planned
# What arms name before the slash: models that claims compare, an ensemble and its members.
RIVALS = ({"dvse", "pvse"}, {"sgraf", "saf"}, {"sgraf", "sgr"})


class Sample(NamedTuple):
    """Differences that a rule wants above zero, at a confidence level."""

    values: np.ndarray
    level: float
    error: float = 0.0  # standard error over images, as of `Part`

    def above(self) -> bool:
        """Whether the interval of the mean lies wholly above zero, with enough pairs."""
        return len(self.values) >= FEWEST and student_interval(*self)[0] > 0

    def p_value(self) -> float:
        """Compute the p-value below which `above` holds, times the places of its level, or 1.

        Two-sided as the interval is. Of differences with both errors it is that over seeds alone.
        """
        from scipy import special

        if (n := len(self.values)) < FEWEST:
            return 1.0
        mean, error = float(self.values.mean()), float(np.ptp(self.values)) and float(
            self.values.std(ddof=1) / n**0.5)
        t = mean / (error or self.error or 1e-300)  # without any spread a mean is certain
        one_sided = special.ndtr(-t) if self.error and not error else special.stdtr(n - 1, -t)
        return min(1.0, 2 * float(one_sided) * (1 - LEVEL) / (1 - self.level))


class Part(NamedTuple):
    """One paired comparison: arm_a - arm_b on a metric, one difference per shared seed.

    If arm_b is so many times an arm, `ratios` are how many times that arm_a is. `error` is that of
    the mean over images, beyond that over seeds; 0 where images are taken as given. Of label
    sources, images take the place of seeds, all differences are the mean, and `data` says where.
    """

    arm_a: str
    arm_b: str
    metric: str
    seeds: tuple[int, ...]
    differences: np.ndarray
    ratios: np.ndarray | None = None
    error: float = 0.0
    data: str = ""

    @classmethod
    def of(cls, arm_a: str, arm_b: str, metric: str, a: pd.Series, b: pd.Series,
           relative: bool = False, times: float | None = None) -> "Part":
        """Pair values by seed; times: of arm_b's arm. Raises: ValueError: they share no seed."""
        if not (seeds := sorted(set(a.index) & set(b.index))):
            raise ValueError(f"{arm_a!r} (seeds {sorted(a.index)}) and {arm_b!r} (seeds "
                             f"{sorted(b.index)}) share no seed; run both with the same seeds")
        a, b = a[seeds].to_numpy(), b[seeds].to_numpy()
        return cls(arm_a, arm_b, metric, tuple(seeds), difference(a, b, relative),
                   times and times * a / b)

    @property
    def mean(self) -> float:
        """Mean of the differences."""
        return float(self.differences.mean())

    @property
    def n(self) -> int:
        """How many pairs."""
        return len(self.seeds)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Compute the Student-t interval of the mean difference."""
        return student_interval(self.differences, level, self.error)

    def sample(self, level: float, sign: int = 1, shift: float = 0.0) -> Sample:
        """Take shift + sign x the differences, which a rule wants above zero at a level."""
        return Sample(shift + sign * self.differences, level, self.error)

    def pairs_needed(self, margin: float, level: float = LEVEL) -> int | None:
        """Find the smallest n whose half width is the margin or less, at this spread of seeds."""
        from scipy import stats

        if self.n < 2 or self.error:
            return None
        n = np.arange(FEWEST, MOST + 1)
        half = stats.t.isf((1 - level) / 2, n - 1) * self.differences.std(ddof=1) / np.sqrt(n)
        return int(n[(half <= margin).argmax()]) if half[-1] <= margin else None


class Arms:
    """Values of the arms of a tidy frame, by seed; refuses what cannot be paired."""

    def __init__(self, rows: pd.DataFrame) -> None:
        if lacking := {"arm", "seed", "dataset", "model"} - set(rows.columns):
            raise ValueError(f"rows need the columns arm, seed, dataset, model and metrics; "
                             f"missing: {', '.join(sorted(lacking))}")
        if len(twice := rows[rows.duplicated(["arm", "seed"])]):
            raise ValueError("each variant may have one row per seed; found more for "
                             f"{twice['arm'].iloc[0]!r}, seed {twice['seed'].iloc[0]}; "
                             "judge one data set and one setting at a time")
        self.rows = rows

    def values(self, arm: str, metric: str) -> pd.Series:
        """Take a metric of an arm by seed; "zero", "mean(a|b)", "step(a|b)", "times(2|a)" too.

        Of a contrast "m-n": how much larger m of such an arm is than its n.
        """
        first, *rest = metric.split("-")
        if rest:
            return self.values(arm, first) - self.values(arm, rest[0])
        if arm == "zero":
            return pd.Series(0.0, index=sorted(self.rows["seed"].unique()))
        if arm.startswith("times("):
            return factor_of(arm) * self.values(*arms_in(arm), metric)
        if arm.startswith(("mean(", "step(")):
            inner = pd.concat([self.values(name, metric) for name in arms_in(arm)],
                              axis=1, join="inner")
            steps = arm.startswith("step(")
            return (inner.diff(axis=1).abs() if steps else inner).mean(axis=1)
        of_arm = self.rows.loc[self.rows["arm"] == arm, ["seed", metric]]  # not all columns: slow
        values = of_arm.set_index("seed")[metric].astype(float)
        if values.isna().any():
            raise ValueError(f"{metric} of variant {arm!r} is missing for seeds "
                             f"{list(values.index[values.isna()])}; finish or drop those runs")
        return values

    def part(self, arm_a: str, arm_b: str, metric: str, relative: bool = False) -> Part:
        """Pair two arms over the seeds that both have.

        Raises: ValueError: the arms share no seed, or were trained with other models and are no
            RIVALS.
        """
        part = Part.of(arm_a, arm_b, metric, self.values(arm_a, metric), self.values(
            arm_b, metric), relative, factor_of(arm_b) if arm_b.startswith("times(") else None)
        models = [self.model(set(arms_in(arm))) for arm in (arm_a, arm_b) if arm != "zero"]
        named = {inner.partition("/")[0] for arm in (arm_a, arm_b) for inner in arms_in(arm)}
        if len(set(models)) > 1 and named not in RIVALS:
            raise ValueError(f"{arm_a!r} is {models[0]} but {arm_b!r} is {models[1]}; only runs "
                             "of one model can be paired")
        return part

    def mixed(self, arms: set[str]) -> set[int]:
        """Find the seeds at which arms mix older rows with some that state their arithmetic."""
        if "arithmetic" not in self.rows:
            return set()
        of_arms = self.rows[self.rows["arm"].isin(arms)]
        states = of_arms["arithmetic"].fillna("").ne("").groupby(of_arms["seed"])
        return set(states.nunique().loc[lambda kinds: kinds > 1].index)

    def model(self, arms: set[str]) -> str:
        """Name the models of some arms, in words, separated by semicolons."""
        return "; ".join(sorted(self.rows.loc[self.rows["arm"].isin(arms), "model"].unique()))


# Of a difference and of the runs of both its arms, by seed: its `error`. Raises NoRanks.
ImageError = Callable[[Part, list[str], list[str]], float]


class NoRanks(ValueError):
    """A difference cannot be split into images: there are no ranks of its runs."""


class CrossedArms(Arms):
    """Arms whose differences have an error over images, too, beside that over seeds."""

    def __init__(self, rows: pd.DataFrame, error_of: ImageError) -> None:
        super().__init__(rows)
        columns = (rows[name] for name in ("arm", "seed", "run") if name in rows)
        self.runs = {(arm, seed): run[0] for arm, seed, *run in zip(*columns, strict=True) if run}
        self.error_of = error_of

    def part(self, arm_a: str, arm_b: str, metric: str, relative: bool = False) -> Part:
        """Pair two plain arms as `Arms` does.

        Raises: NoRanks: there are none of these arms, or those of other scores, as of re-ranked
            ones.
        """
        part = super().part(arm_a, arm_b, metric, relative)
        keys = [[(arm, seed) for seed in part.seeds] for arm in (arm_a, arm_b)]
        if not self.runs.keys() >= {*keys[0], *keys[1]}:
            raise NoRanks(f"{arm_a!r} or {arm_b!r} is no arm with runs of its own")
        return part._replace(error=self.error_of(part, *(
            [self.runs[key] for key in of_arm] for of_arm in keys)))


def factor_of(arm: str) -> float:
    """Read how many times "times(7.8|fast)" takes its arm."""
    return float(arm.removeprefix("times(").partition("|")[0])


def arms_in(arm: str) -> list[str]:
    """List the plain arms inside an expression: "mean(d=1|d=2)" names two, "zero" none."""
    if arm.startswith(("mean(", "step(")):
        return arm[5:-1].split("|")
    if arm.startswith("times("):
        return [arm[:-1].partition("|")[2]]
    return [] if arm == "zero" else [arm]


def differences(rows: pd.DataFrame, pairs: Sequence[tuple[str, str]], metrics: Sequence[str],
                level: float = LEVEL) -> pd.DataFrame:
    """Compute paired differences of arms over the seeds they share, with their interval.

    rows: arm, seed, dataset, model and metrics; pairs: (arm, the one taken from it).

    Returns: Frame of comparison, arm_a, arm_b, metric, n, difference, low, high; the interval of a
        single pair is NaN.
    """
    arms, records = Arms(rows), []
    for (arm_a, arm_b), metric in product(pairs, metrics):
        part = arms.part(arm_a, arm_b, metric)
        records.append((f"{arm_a} − {arm_b}", arm_a, arm_b, metric, part.n, part.mean,
                        *(part.interval(level) if part.n > 1 else (np.nan, np.nan))))
    return pd.DataFrame(records, columns=["comparison", "arm_a", "arm_b", "metric", "n",
                                          "difference", "low", "high"])


def over_models(rows: pd.DataFrame, pairs: Sequence[tuple[str, str]],
                metrics: Sequence[str]) -> pd.DataFrame:
    """Compare two arms in every model that has five pairs of them, and over these models.

    Args:
        rows: as of `differences`; arms of other models have a prefix, "saf/hardest".
        pairs: (arm, the one taken from it), without prefix.
        metrics: as of `differences`.
    Returns: Frame of model (a prefix, "" for none, "all" in the last line of each pair and
        metric), arm_a, arm_b, metric, n (pairs; of "all": models), difference, low, high, and
        between, the standard deviation between models (`random_effects`). Pairs that fewer than
        two models have are left out.
    """
    arms, named, records = Arms(rows), set(rows["arm"]), []
    models = ["", *sorted({arm.partition("/")[0] for arm in named if "/" in arm})]
    for (arm_a, arm_b), metric in product(pairs, metrics):
        prefixes = {model: f"{model}/" * bool(model) for model in models}
        parts = {model: arms.part(before + arm_a, before + arm_b, metric)
                 for model, before in prefixes.items() if {before + arm_a, before + arm_b} <= named}
        parts = {model: part for model, part in parts.items()
                 if part.n >= FEWEST and np.ptp(part.differences) > 0}
        if len(parts) < 2:
            continue
        pooled = random_effects(*zip(*((part.mean, part.differences.std(ddof=1) / part.n**0.5)
                                       for part in parts.values()), strict=True))
        lines = [(model, part.n, part.mean, *part.interval(), np.nan)
                 for model, part in parts.items()] + [("all", len(parts), *pooled)]
        records += [(model, arm_a, arm_b, metric, *line) for model, *line in lines]
    return pd.DataFrame(records, columns=["model", "arm_a", "arm_b", "metric", "n", "difference",
                                          "low", "high", "between"])


def sign(low: float, high: float, pairs: int = FEWEST) -> str:
    """Tell the sign of a difference by its interval; fewer than five pairs decide nothing.

    Example:
        >>> sign(0.5, 2.0), sign(-2.0, -0.5), sign(-1.0, 2.0)
        ('higher', 'lower', 'undecided')
        >>> sign(0.5, 2.0, pairs=3), sign(np.nan, np.nan, pairs=1)
        ('undecided (3 seeds)', 'undecided (one seed)')
    """
    if pairs < FEWEST:
        return f"undecided ({pairs} seeds)" if pairs > 1 else "undecided (one seed)"
    return "higher" if low > 0 else "lower" if high < 0 else "undecided"
