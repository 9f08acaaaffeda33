"""One claim of a paper held against what we have: paired runs, label sources, or a test.

All evidence is paired: both arms share the seed, hence initial weights and batch order. "Wholly
above zero" says that the two-sided 95 % Student-t interval of the mean of the differences is, with
at least five pairs. reported/legend.md explains the outcomes.

difference   a - b is wholly above zero, for every pair of arms and every metric of the claim
order        the same for all neighbours of arm_a, listed from best to worst
equivalence  every a - b is wholly inside +- margin ("5%": of b)
peak         the best arm of the region arm_a is wholly above every arm of arm_b outside
definition   nothing to measure: held by a test, which is named
misprint     the same, and what the test holds is not what is printed

Contradicted: one pair (peak: one outside arm against the whole region) is wholly on the other side.
No effect: else, every pair is wholly inside +- the SMALLEST difference that matters in its unit.
If the rule may pick among m places, as contradiction by any of m cells and the best of a region do,
the level is 1 - 0.05 / m. Claims about label sources ("labels(sentence, max)") have no runs and no
seeds: see evidence.py.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import pandas as pd

from itr_study.data import DATASETS
from itr_study.evaluation.measures import MEASURES, measure_of
from itr_study.lab.ledger.evidence import LABELS, LabelArms, NoEvidence
from itr_study.lab.ledger.paired import (
    FEWEST,
    Arms,
    CrossedArms,
    ImageError,
    NoRanks,
    Part,
    Sample,
    arms_in,
)
from itr_study.lab.ledger.reported import split_list
from itr_study.metrics.intervals import LEVEL

STEPS = "step_milliseconds"  # of a training step, CPU time of one thread
RERANKING = "rerank_cpu_seconds"  # of one thread, beyond counting the ranks of plain scores
GROWTH = "rerank_cpu_growth"  # 100 ln(RERANKING of the larger of two matrices / the smaller)
TIMES = (STEPS, RERANKING, GROWTH)  # from benchmarks, not from runs
STOOD = "stood"  # 100 if a run has not collapsed, else 0: the one measure of collapsed runs

# The first that fits a metric is its unit; one that none fits is a unit of its own.
UNITS = {"milliseconds": "milliseconds a step", "seconds": "seconds",
         "spread": "standard deviation of cosines, × 100",
         "head_correlation": "mean |cosine| of two heads, × 100", "mask_rate": "heads on, %",
         "mask_std": "standard deviation of the mask, × 100",
         "sigma_std": "standard deviation of σ over heads, × 100",
         "entropy_noise": "share of other texts, %", "entropy": "nats", "growth": "100 ln(factor)",
         "agreement": "correlation with people, × 100", "eccv": "mAP@R or R-P, points",
         "generalisation": "100 ln(RSUM on test / RSUM on training images)",
         "error": "error of Smooth-NDCG, × 100", "apart": "1 − correlation, × 100",
         "hinge": "training loss", "hubness": "hubness, skewness", "ndcg": "NDCG, × 100",
         "tau": "Kendall's τ, × 100", "cs100": "coherent score, × 100",
         "rel10": "relevance of the first ten, × 100", "rsum": "points of RSUM",
         "gain": "points of RSUM", STOOD: "runs that have not collapsed, %",
         "_r": "points of recall"}

SECOND_BASE = "clean_gru"  # its arms are those of the sweeps behind this name: "clean_gru/sum"
PLUG_INS = ("/hardest+listwise", "/bcls")  # how arms of a setting end that a loss was added to

# Points that matter, by unit: smaller differences are no effect. Set in November 2026, when the
# differences were known; other units have none.
SMALLEST = {"points of RSUM": 2.0, "points of recall": 0.5, "Kendall's τ, × 100": 0.5,
            "NDCG, × 100": 0.5}


def units_of(metrics: str, margin: str = "") -> str:
    """Name the units of differences of metrics, each once; under a relative margin it is a share.

    Example:
        >>> units_of("test_i2t_r1;test_i2t_r5;half_rsum"), units_of("test_human_expert_tau_c")
        ('points of recall; points of RSUM', "Kendall's τ, × 100")
        >>> units_of("step_milliseconds", "5%"), units_of("minutes"), units_of("")
        ('% of the second variant', 'minutes a run', '')
    """
    from itr_study.plots.tables import title_of  # here: a verdict must not wait for matplotlib

    units = ["% of the second variant" if margin.endswith("%") else unit_in(name) or title_of(name)
             for name in split_list(metrics)]
    return "; ".join(dict.fromkeys(units))


def unit_in(metric: str) -> str:
    """Find the unit that a metric shares with others, or an empty text."""
    return next((unit for part, unit in UNITS.items() if part in metric), "")


# Kinds without a measurement, and their outcomes.
HELD = {"definition": "held by a test", "misprint": "not as printed"}
# Generalisation, 100 log(RSUM on test / RSUM on training images), is compared among arms whose RSUM
# on training images is within so many points of the best: an arm that learns little keeps much.
FIT = 30


class Case(NamedTuple):
    """A claim as samples: all of `support` above zero, all of one list of `against`, or of `small`.

    Those of `small` say that no difference matters; there are none where a unit has no margin.
    """

    support: list[Sample]
    against: list[list[Sample]]
    shown: list[Part]
    small: list[Sample]


def adjusted(places: int) -> float:
    """Compute the level for a rule that may pick among some places (Bonferroni)."""
    return 1 - (1 - LEVEL) / places


def none_matters(parts: list[Part], places: int = 1) -> list[Sample]:
    """List what must be above zero if no part is as large as SMALLEST; empty if one has no such."""
    margins = [SMALLEST.get(unit_in(part.metric)) for part in parts]
    return [] if None in margins else [
        part.sample(adjusted(places), sign, margin)
        for part, margin in zip(parts, margins, strict=True) for sign in (1, -1)]


def difference_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """Pair arm_a and arm_b, or neighbours of arm_a for an order."""
    first, second = split_list(claim["arm_a"]), split_list(claim["arm_b"])
    couples = pairwise(first) if claim["kind"] == "order" else zip(first, second, strict=True)
    parts = [arms.part(a, b, metric)
             for metric, (a, b) in product(split_list(claim["metric"]), couples)]
    return case_of(parts)


def case_of(parts: list[Part], sign: int = 1, least: float = 0.0) -> Case:
    """Want every difference, times a sign, above zero, or above `least`."""
    level = adjusted(len(parts))
    return Case([part.sample(LEVEL, sign, -least) for part in parts],
                [[part.sample(level, -sign, -least)] for part in parts], parts, none_matters(parts))


def equivalence_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """Hold every difference against the margin, which may be relative ("5%")."""
    margin, relative = float(claim["margin"].rstrip("%")), claim["margin"].endswith("%")
    couples = zip(split_list(claim["arm_a"]), split_list(claim["arm_b"]), strict=True)
    parts = [arms.part(a, b, metric, relative)
             for (a, b), metric in product(couples, split_list(claim["metric"]))]
    return equivalence_of(parts, margin)


def equivalence_of(parts: list[Part], margin: float) -> Case:
    """Want every difference inside the margin."""
    level = adjusted(len(parts))
    inside = [part.sample(LEVEL, sign, margin) for part in parts for sign in (1, -1)]
    outside = [[part.sample(level, sign, -margin)] for part in parts for sign in (1, -1)]
    return Case(inside, outside, parts, [])


def peak_case(claim: Mapping[str, str], arms: Arms | LabelArms) -> Case:
    """Pair the best of a region with each arm outside, and each of these with the whole region."""
    region, outside = split_list(claim["arm_a"]), split_list(claim["arm_b"])
    metrics, support, against, shown = split_list(claim["metric"]), [], [], []
    level = adjusted(len(metrics) * len(outside))
    for metric in metrics:
        best = max(region, key=lambda arm: arms.values(arm, metric).mean())
        parts = [arms.part(best, other, metric) for other in outside]
        support += [part.sample(adjusted(len(region))) for part in parts]
        against += [[arms.part(inside, other, metric).sample(level, -1) for inside in region]
                    for other in outside]
        shown += parts
    return Case(support, against, shown, none_matters(shown, len(region)))


CASES = {"difference": difference_case, "order": difference_case,
         "equivalence": equivalence_case, "peak": peak_case}


def decide(case: Case) -> str:
    """Find the outcome of a case."""
    if all(sample.above() for sample in case.support):
        return "reproduced"
    if any(all(sample.above() for sample in group) for group in case.against):
        return "contradicted"
    return "no effect" if is_small(case) else "undecided"


def p_value(case: Case, outcome: str) -> float:
    """Compute the p-value of an outcome, which is below 0.05 if it is decided.

    Of all samples together the largest, of several ways to be contradicted the smallest; of an
    undecided claim the smallest of the three outcomes.
    """
    ways = {"reproduced": [case.support], "contradicted": case.against, "no effect": [case.small]}
    groups = ways.get(outcome) or [case.support, *case.against, case.small]
    return min(max(sample.p_value() for sample in group) for group in groups if group)


def q_values(table: pd.DataFrame, family: str) -> pd.Series:
    """Compute the q-value of every p: the share of false discoveries if all up to it count.

    Source: Benjamini and Hochberg (1995).
    Args: table: p, NaN where nothing is measured; family: the column by which they are apart.
    """
    from scipy import stats

    measured = table.dropna(subset="p")
    return measured.groupby(family)["p"].transform(
        stats.false_discovery_control).reindex(table.index)


def at_looks(case: Case, looks: int) -> Case:
    """Share the 5 % among so many looks at the runs, each before more seeds were added.

    A look at five pairs, the fewest that decide, is the first.
    """
    def shared(samples: list) -> list:
        return [sample._replace(level=1 - (1 - sample.level) / looks) for sample in samples]

    first = looks == 1 or min(part.n for part in case.shown) <= FEWEST
    return case if first else case._replace(
        support=shared(case.support), against=list(map(shared, case.against)),
        small=shared(case.small))


def planned(parts: list[Part], margin: float | None) -> int | None:
    """Find how many pairs make every half width the margin, or the SMALLEST of its unit.

    None: more than MOST, a unit without a margin, or a spread that is not known.
    """
    margins = [SMALLEST.get(unit_in(part.metric)) if margin is None else margin for part in parts]
    counts = [part.pairs_needed(width) if width else None
              for part, width in zip(parts, margins, strict=True)]
    return None if None in counts else max(counts)


def is_small(case: Case) -> bool:
    """Tell whether every difference is settled to be too small to matter."""
    return bool(case.small) and all(sample.above() for sample in case.small)


DECIDED = ("reproduced", "contradicted")
MEASURED = (*DECIDED, "no effect", "undecided")
OUTCOMES = (*MEASURED, "collapsed", *HELD.values(), "not tested")


@dataclass(frozen=True)
class Verdict:
    """What our runs, label sources or tests say about one claim, on our data and models."""

    id: str
    outcome: str  # one of OUTCOMES
    dataset: str
    model: str  # of several: separated by semicolons
    pairs: int  # shared seeds, the fewest over the parts; images where label sources are judged
    parts: tuple[Part, ...] = ()
    needed: int | None = None  # pairs planned for an undecided claim, as `planned` counts them
    missing: str = ""  # what a claim not tested waits for; which arms collapsed, in how many runs
    collapsed: tuple[str, ...] = ()  # the arms that hold collapsed runs
    test: str = ""  # the tests that hold a definition
    levels: str = ""  # of confidence, for and against
    margin: float | None = None  # of an equivalence
    rates: str = ""  # at which learning rates its arms were trained
    mixed: int = 0  # seeds at which older rows, of another rounding, are paired with newer ones
    flat: str = ""  # which arms have got the equal scores that their loss asks for
    small: bool = False  # whether every difference is settled to be too small to matter
    p: float | None = None  # of the outcome, see `p_value`; None: not measured, too few pairs
    crossed: tuple[Part, ...] = ()  # the parts with an error over images, where ranks are kept
    crossed_outcome: str = ""  # by those parts

    @property
    def sentence(self) -> str:
        """The verdict in words, naming data and model."""
        if self.outcome in HELD.values():
            return f"{self.outcome}: {self.test}"
        if self.outcome == "not tested":
            return f"not tested: {self.missing}"
        unit = "images" if self.parts[0].data else "pairs"
        about = "".join(f"{words}, " for words in (self.model, self.rates) if words)
        conditions = f"on {self.dataset} with {about}n = {self.pairs:,} {unit}"
        if self.outcome == "collapsed":
            return f"{self.missing}, {conditions}"
        margins = in_margins(part.metric for part in self.parts)
        width = f"± {self.margin:g}" if self.margin is not None else margins
        remedy = ("only more judged images would decide" if unit == "images" else
                  "no number of pairs is planned" if self.needed is None else
                  f"about {self.needed} pairs would narrow its intervals to {width}"
                  if self.needed > self.pairs else f"its intervals are as narrow as {width}")
        older = f"; at {self.mixed} seeds older rows are paired with newer ones" * bool(self.mixed)
        flat = ("; no collapse, but scores drew together towards a minimum of that loss: "
                f"{self.flat}") * bool(self.flat)
        small = f" beyond {margins}" if self.outcome == "no effect" else f", within {margins},"
        return (f"{self.outcome}{small * self.small} {conditions}"
                f"{f'; {remedy}' * (self.outcome == 'undecided')}{older}{flat}")

    def standing(self, part: Part) -> str:
        """Tell what a part says by itself: "for", "against", "open", "collapsed", "unlike fit"."""
        if self.outcome == "not tested":
            return "unlike fit"
        if named_arms(part.arm_a, part.arm_b) & set(self.collapsed):
            return "collapsed"
        case = case_of([part]) if self.margin is None else equivalence_of([part], self.margin)
        return {"reproduced": "for", "contradicted": "against"}.get(decide(case), "open")


def in_margins(metrics: Iterable[str]) -> str:
    """Write the SMALLEST of the units of some metrics.

    Example:
        >>> in_margins(["test_i2t_r1", "i2t_ndcg_exact"])
        '± 0.5 points of recall, ± 0.5 of NDCG × 100'
    """
    units = dict.fromkeys(map(unit_in, metrics))
    return ", ".join(f"± {SMALLEST[unit]:g} {unit}" if unit.startswith("points") else
                     f"± {SMALLEST[unit]:g} of {unit.replace(', ×', ' ×')}"
                     for unit in units if unit in SMALLEST)


def lacking(claim: Mapping[str, str], rows: pd.DataFrame) -> str:
    """Say what a claim needs and the rows do not have; empty if it can be judged."""
    wanted = named_arms(claim["arm_a"], claim["arm_b"])
    if not claim["arm_a"]:
        return claim["needs"]
    arms = sorted(wanted - set(rows["arm"] if "arm" in rows else ()))
    if arms:
        return "; ".join(filter(None, [f"no runs of {', '.join(arms)}", _needs(claim, rows)]))
    columns = sorted(name for name in metrics_of(claim) if name not in rows or any(
        rows.loc[rows["arm"] == arm, name].isna().all() for arm in wanted))
    if not columns:
        return ""
    found = {measure_of(dataset, name) for name in columns for dataset in rows["dataset"].unique()}
    if claim.get("waits_for") == "data" and found == {""}:  # no run on these has them
        return claim["needs"] or "other data"
    measures = sorted(name for name in found - {""} if MEASURES[name].asked)  # else: no remedy
    remedy = (f"these runs lack the measures {', '.join(measures)}: train and publish them again "
              "(itr-study train ID, itr-study runs ID --publish)") * bool(measures)
    missing = f"no values of {', '.join(columns)}"
    return "; ".join(filter(None, [missing, remedy or _needs(claim, rows)]))


def _needs(claim: Mapping[str, str], rows: pd.DataFrame) -> str:
    """Say what a test of a claim waits for; a benchmark of times is of no use to generated data."""
    datasets = set(rows["dataset"]) if "dataset" in rows else set()
    if claim["metric"] in TIMES and any(
            record.generated for name, record in DATASETS.items() if name in datasets):
        return "the ledgers of real data judge times"
    return claim["needs"]


def judge(claim: Mapping[str, str], rows: pd.DataFrame, evidence: pd.DataFrame | None = None,
          error_of: ImageError | None = None) -> Verdict:
    """Hold one claim against what we have on one data set.

    A claim may span several models, such as the settings of a table: each pair of arms is of one
    model, and the verdict names all of them.

    Args:
        claim: a row of claims.csv.
        rows: tidy frame, one run per row: arm, seed, dataset, model, metrics in percent;
            `collapsed` and `flattened`, if known, say why a run has, empty if it has not.
        evidence: of label sources, as `read_evidence` gives it.
        error_of: over images, as `CrossedArms` takes it: decided claims get `crossed`.
    Raises: ValueError: more than one data set, repeated (arm, seed), missing values, a pair of arms
        without a shared seed or of different models.
    """
    datasets = sorted(rows["dataset"].unique()) if "dataset" in rows else []
    if len(datasets) > 1:
        raise ValueError(f"rows must be of one data set, got {', '.join(datasets)}; "
                         "use ledger() for several")
    dataset = "".join(datasets)
    if claim["kind"] in HELD:
        return Verdict(claim["id"], HELD[claim["kind"]], "", "", 0, test=claim["test"])
    if claim["arm_a"].startswith(LABELS):
        return judge_labels(claim, evidence)
    if missing := lacking(claim, rows):
        return Verdict(claim["id"], "not tested", dataset, "", 0, missing=missing)
    used = named_arms(claim["arm_a"], claim["arm_b"])
    rows = rows[rows["arm"].isin(used)]  # the rest makes all that follows slow
    arms = Arms(rows)
    case = looked_at(claim, arms)
    pairs = min(part.n for part in case.shown)
    fallen = runs_that(rows, "collapsed", used) if claim["metric"] != STOOD else {}
    unfit = unlike_fit(claim, arms, used)
    outcome = "not tested" if unfit else "collapsed" if fallen else decide(case)
    measured = outcome in MEASURED and pairs >= FEWEST
    needed = planned(case.shown, margin_of(claim)) if outcome == "undecided" else None
    crossed = None  # the case with errors over seeds and images
    if outcome in DECIDED and error_of:
        with suppress(NoRanks):
            crossed = looked_at(claim, CrossedArms(rows, error_of))
    who = "collapsed" if named_arms(claim["arm_a"]) & set(fallen) else "baseline collapsed"
    mixed = max(len(arms.mixed(named_arms(part.arm_a, part.arm_b)) & set(part.seeds))
                for part in case.shown)
    return Verdict(claim["id"], outcome, dataset, arms.model(used), pairs, tuple(case.shown),
                   needed, unfit or f"{who}: {in_words(fallen)}" * bool(fallen), tuple(fallen),
                   levels=levels(case), margin=margin_of(claim), mixed=mixed,
                   rates=rates_of(rows, used), flat=in_words(runs_that(rows, "flattened", used)),
                   small=is_small(case), p=p_value(case, outcome) if measured else None,
                   crossed=tuple(crossed.shown) if crossed else (),
                   crossed_outcome=decide(crossed) if crossed else "")


def looked_at(claim: Mapping[str, str], arms: Arms) -> Case:
    """Build the case of a claim, which has been looked at claim["looks"] times."""
    return at_looks(CASES[claim["kind"]](claim, arms), int(claim.get("looks") or 1))


def judge_labels(claim: Mapping[str, str], evidence: pd.DataFrame | None) -> Verdict:
    """Hold a claim about label sources against their differences over images."""
    arms = LabelArms(evidence)
    try:
        case = CASES[claim["kind"]](claim, arms)
    except NoEvidence as error:
        missing = "; ".join(filter(None, [str(error), claim["needs"]]))
        return Verdict(claim["id"], "not tested", "", "", 0, missing=missing)
    outcome = decide(case)
    data = "; ".join(dict.fromkeys(part.data for part in case.shown))
    return Verdict(claim["id"], outcome, data, "label sources alone",
                   min(part.n for part in case.shown), tuple(case.shown), levels=levels(case),
                   margin=margin_of(claim), small=is_small(case), p=p_value(case, outcome))


def metrics_of(claim: Mapping[str, str]) -> set[str]:
    """List the columns that a claim is judged by: of "a-b" both."""
    return {name for metric in split_list(claim["metric"]) for name in metric.split("-")}


def named_arms(*cells: str) -> set[str]:
    """List the plain arms that cells of a claim name."""
    return {inner for cell in cells for arm in split_list(cell) for inner in arms_in(arm)}


def rates_of(rows: pd.DataFrame, arms: set[str]) -> str:
    """Say at which learning rates some arms were trained; empty if nothing was.

    A plug-in, an arm of PLUG_INS in a setting, is trained at the rate of the setting's baseline,
    except in the second base model, where each loss has its own.
    """
    of_arms = rows[rows["arm"].isin(arms) & rows["config"].notna()] if "config" in rows else ()
    rates = [json.loads(config)["settings"]["learning_rate"] for config in of_arms["config"]] \
        if len(of_arms) else []
    if not rates:
        return ""
    settings = of_arms["arm"].str.rpartition("/")[0]
    shared = (pd.Series(rates, of_arms.index).groupby(settings).nunique() == 1).all()
    plugged = any(arm.endswith(PLUG_INS) and not arm.startswith(SECOND_BASE) for arm in arms) \
        and not any("@" in arm for arm in arms)
    ends = [f"{rate:g}" for rate in sorted({min(rates), max(rates)})]
    return (f"learning rate{'s' * (len(ends) - 1)} {' to '.join(ends)}"
            + " (the baseline's)" * bool(shared and plugged))


def runs_that(rows: pd.DataFrame, ended: str, arms: set[str]) -> dict[str, str]:
    """Count the runs of arms that a column says have so ended: {"sum": "5 of 5 runs"}."""
    if ended not in rows:
        return {}
    counts = rows[ended].map(bool, na_action="ignore").eq(True).groupby(rows["arm"]).agg(
        ["sum", "size"])
    return {arm: f"{counts.loc[arm, 'sum']} of {counts.loc[arm, 'size']} runs"
            for arm in sorted(arms) if counts.loc[arm, "sum"]}


def in_words(runs: Mapping[str, str]) -> str:
    """Write arms and how many of their runs: "hardest in 5 of 5 runs, sum in 1 of 5 runs"."""
    return ", ".join(f"{arm} in {many}" for arm, many in runs.items())


def margin_of(claim: Mapping[str, str]) -> float | None:
    """Read the margin of an equivalence, in the unit of its differences."""
    return float(claim["margin"].rstrip("%")) if claim["margin"] else None


def unlike_fit(claim: Mapping[str, str], arms: Arms, used: set[str]) -> str:
    """Say why generalisation cannot be compared: an arm fits its training images much less."""
    if "generalisation" not in claim["metric"]:
        return ""
    fit = {arm: arms.values(arm, "train_rsum").mean() for arm in sorted(used)}
    best = max(fit.values())
    below = [f"{arm} has {value:.0f}" for arm, value in fit.items() if value < best - FIT]
    return (f"RSUM on training images must be within {FIT} of the best arm's {best:.0f}, or what "
            f"is kept of it on test cannot be compared; {', '.join(below)}") if below else ""


def levels(case: Case) -> str:
    """Write the confidence levels of a case: for the claim, and against it."""
    of_for = {sample.level for sample in case.support}
    against = {sample.level for group in case.against for sample in group}
    for_claim, against_it = (", ".join(f"{100 * level:.4g} %" for level in sorted(found))
                             for found in (of_for, against))
    return for_claim if for_claim == against_it else f"{for_claim}; against {against_it}"
