"""One claim of a paper held against what we have: paired runs, label sources, or a test.

The rule is written out in `rules.py`; a verdict names our data and model and never speaks of the
paper's own data.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from itr_study.data import DATASETS
from itr_study.evaluation.measures import measure_of
from itr_study.ledger.evidence import COLUMNS, LABELS, LabelArms, LabelPart, NoEvidence
from itr_study.ledger.paired import FEWEST, MOST, Arms, Part, arms_in
from itr_study.ledger.reported import split_list
from itr_study.ledger.rules import CASES, FIT, HELD, Case, decide
from itr_study.ledger.units import TIMES

# "collapsed": arms hold runs whose scores have drawn together; nothing rests on them.
OUTCOMES = ("reproduced", "contradicted", "undecided", "collapsed", *HELD.values(), "not tested")


@dataclass(frozen=True)
class Verdict:
    """What we have says about one claim, on our data and model, never on the paper's."""

    id: str
    outcome: str  # one of OUTCOMES
    dataset: str
    model: str  # of several: separated by semicolons
    pairs: int  # shared seeds, the fewest over the parts; images where label sources are judged
    parts: tuple[Part | LabelPart, ...] = ()
    needed: int | None = None  # pairs that would decide; None: unknown or more than MOST
    missing: str = ""  # what a claim not tested waits for; which arms collapsed, in how many runs
    collapsed: tuple[str, ...] = ()  # the arms that hold collapsed runs
    test: str = ""  # the tests that hold a definition
    levels: str = ""  # of confidence, for and against
    margin: float | None = None  # of an equivalence
    rates: str = ""  # at which learning rates its arms were trained
    mixed: int = 0  # seeds at which older rows, of another rounding, are paired with newer ones
    flat: str = ""  # which arms have got the equal scores that their loss asks for

    @property
    def sentence(self) -> str:
        """The verdict in words, naming data and model."""
        if self.outcome in HELD.values():
            return f"{self.outcome}: {self.test}"
        if self.outcome == "not tested":
            return f"not tested: {self.missing}"
        unit = "images" if isinstance(self.parts[0], LabelPart) else "pairs"
        about = "".join(f"{words}, " for words in (self.model, self.rates) if words)
        conditions = f"on {self.dataset} with {about}n = {self.pairs:,} {unit}"
        if self.outcome == "collapsed":
            return f"{self.missing}, {conditions}"
        remedy = (f"about {self.needed} pairs would decide" if self.needed else
                  "only more judged images would decide" if unit == "images" else
                  f"how many would decide is unknown, or more than {MOST}")
        older = f"; at {self.mixed} seeds older rows are paired with newer ones" * bool(self.mixed)
        flat = ("; no collapse, but scores drew together towards a minimum of that loss: "
                f"{self.flat}") * bool(self.flat)
        return (f"{self.outcome} {conditions}{f'; {remedy}' * (self.outcome == 'undecided')}"
                f"{older}{flat}")

    def standing(self, part: Part | LabelPart) -> str:
        """What a part says by its 95 % interval: "for" the claim, "against" it or "open", as fewer
        than FEWEST do; "collapsed" where an arm has, "unlike fit" where arms cannot be compared."""
        if self.outcome == "not tested":
            return "unlike fit"
        if {*arms_in(part.arm_a), *arms_in(part.arm_b)} & set(self.collapsed):
            return "collapsed"
        low, high = part.interval() if part.n >= FEWEST else (-float("inf"), float("inf"))
        if (width := self.margin) is None:
            return "for" if low > 0 else "against" if high < 0 else "open"
        outside = low > width or high < -width
        return "for" if -width < low and high < width else "against" if outside else "open"


def lacking(claim: Mapping[str, str], rows: pd.DataFrame) -> str:
    """What a claim needs and the rows do not have, in words; empty when it can be judged."""
    listed = split_list(claim["arm_a"]) + split_list(claim["arm_b"])
    if not listed:
        return claim["needs"]
    wanted = {inner for arm in listed for inner in arms_in(arm)}
    names = metrics_of(claim)
    arms = sorted(wanted - set(rows["arm"] if "arm" in rows else ()))
    columns = sorted(name for name in names if name not in rows or any(
        rows.loc[rows["arm"] == arm, name].isna().all() for arm in wanted))
    reasons = [f"no runs of {', '.join(arms)}"] * bool(arms)
    reasons += [f"no values of {', '.join(columns)}"] * bool(columns and not arms)
    reasons += _how_to_measure(columns, rows) if not arms else []
    needs = needs_of(claim, rows)
    return "; ".join(reasons + [needs] * bool(reasons and needs))


def needs_of(claim: Mapping[str, str], rows: pd.DataFrame) -> str:
    """What a test of a claim waits for, beside these rows: a benchmark of times that somebody
    executed would be of no use to generated data, whose ledger takes none."""
    datasets = set(rows["dataset"]) if "dataset" in rows else set()
    if claim["metric"] in TIMES and any(
            record.generated for name, record in DATASETS.items() if name in datasets):
        return "the ledgers of real data judge times"
    return claim["needs"]


def _how_to_measure(columns: Sequence[str], rows: pd.DataFrame) -> list[str]:
    """How to get the columns that these rows lack, in words, where that can be."""
    datasets = rows["dataset"].unique() if "dataset" in rows else ()
    names = sorted({measure_of(dataset, name) for name in columns for dataset in datasets} - {""})
    return [f"these runs lack the measures {', '.join(names)}: train and publish them again "
            "(itr-study train ID, itr-study runs ID --publish)"] * bool(names)


def judge(claim: Mapping[str, str], rows: pd.DataFrame,
          evidence: pd.DataFrame | None = None) -> Verdict:
    """Hold one claim against what we have on one data set, by the rule of `rules.py`.

    Args:    claim: a row of claims.csv.
             rows: tidy frame, one run per row: arm, seed, dataset, model, metrics in percent;
             `collapsed` and `flattened`, where known, say why a run has, empty where it has not.
             evidence: of label sources, as `read_evidence` gives it.
    A claim may span several models, such as the settings of a table: each pair of arms is of one
    model, and the verdict names all of them.

    Raises:  ValueError for more than one data set, repeated (arm, seed), missing values, a pair
             of arms without a shared seed or of different models.
    """
    datasets = sorted(rows["dataset"].unique()) if "dataset" in rows else []
    if len(datasets) > 1:
        raise ValueError(f"rows must be of one data set, got {', '.join(datasets)}; "
                         "use ledger() for several")
    dataset = datasets[0] if datasets else ""
    if claim["kind"] in HELD:
        return Verdict(claim["id"], HELD[claim["kind"]], "", "", 0, test=claim["test"])
    if claim["arm_a"].startswith(LABELS):
        return judge_labels(claim, evidence)
    missing = lacking(claim, rows)
    if missing:
        return Verdict(claim["id"], "not tested", dataset, "", 0, missing=missing)
    arms = Arms(rows)
    case = CASES[claim["kind"]](claim, arms)
    outcome, needed = decide(case)
    pairs, used = min(part.n for part in case.shown), named_arms(claim["arm_a"], claim["arm_b"])
    fallen, unfit = runs_that(rows, "collapsed", used), unlike_fit(claim, arms, used)
    if unfit or fallen:
        outcome, needed = "not tested" if unfit else "collapsed", None
    return Verdict(claim["id"], outcome, dataset, arms.model(used), pairs, tuple(case.shown),
                   needed, unfit or collapse_in_words(claim, fallen), tuple(fallen),
                   levels=levels(case), margin=margin_of(claim), mixed=most_mixed(arms, case),
                   rates=rates_of(rows, used), flat=in_words(runs_that(rows, "flattened", used)))


def most_mixed(arms: Arms, case: Case) -> int:
    """At how many seeds one comparison of a case pairs older rows with newer ones, at most."""
    return max(len(set(arms.mixed({*arms_in(part.arm_a), *arms_in(part.arm_b)}))
                   & set(part.seeds)) for part in case.shown)


def judge_labels(claim: Mapping[str, str], evidence: pd.DataFrame | None) -> Verdict:
    """A claim about label sources: their differences over images, where notebook 04 left them."""
    arms = LabelArms(pd.DataFrame(columns=list(COLUMNS)) if evidence is None else evidence)
    try:
        case = CASES[claim["kind"]](claim, arms)
    except NoEvidence as error:
        missing = "; ".join(filter(None, [str(error), claim["needs"]]))
        return Verdict(claim["id"], "not tested", "", "", 0, missing=missing)
    outcome, _ = decide(case)
    data = "; ".join(dict.fromkeys(part.data for part in case.shown))
    return Verdict(claim["id"], outcome, data, "label sources alone",
                   min(part.n for part in case.shown), tuple(case.shown), levels=levels(case),
                   margin=margin_of(claim))


def metrics_of(claim: Mapping[str, str]) -> set[str]:
    """The columns that a claim is judged by: of "a-b" both."""
    return {name for metric in split_list(claim["metric"]) for name in metric.split("-")}


def asks_exact(claim: Mapping[str, str]) -> bool:
    """Whether a claim is judged by exact relevance, which only generated data has."""
    return "_exact" in claim["metric"]


def named_arms(*cells: str) -> set[str]:
    """The plain arms that cells of a claim name."""
    return {inner for cell in cells for arm in split_list(cell) for inner in arms_in(arm)}


def rates_of(rows: pd.DataFrame, arms: set[str]) -> str:
    """At which learning rates some arms were trained, in words; empty where nothing was."""
    if "config" not in rows:
        return ""
    rates = {rate_of(config) for config in rows.loc[rows["arm"].isin(arms), "config"].dropna()}
    ends = [f"{rate:g}" for rate in sorted({min(rates), max(rates)})] if rates else []
    return f"learning rate{'s' * (len(ends) - 1)} {' to '.join(ends)}" if ends else ""


def rate_of(config: str) -> float:
    """The learning rate of a run, from the config of its row."""
    return json.loads(config)["settings"]["learning_rate"]


def runs_that(rows: pd.DataFrame, ended: str, arms: set[str]) -> dict[str, str]:
    """The arms with runs that a column says have so ended, and how many: {"sum": "5 of 5 runs"}."""
    if ended not in rows:
        return {}
    counts = rows[ended].map(bool, na_action="ignore").eq(True).groupby(rows["arm"]).agg(
        ["sum", "size"])
    return {arm: f"{counts.loc[arm, 'sum']} of {counts.loc[arm, 'size']} runs"
            for arm in sorted(arms) if counts.loc[arm, "sum"]}


def collapse_in_words(claim: Mapping[str, str], fallen: Mapping[str, str]) -> str:
    """Which arms of a claim collapsed, and whether these are only those it compares with."""
    who = "collapsed" if named_arms(claim["arm_a"]) & set(fallen) else "baseline collapsed"
    return f"{who}: {in_words(fallen)}" if fallen else ""


def in_words(runs: Mapping[str, str]) -> str:
    """Arms and how many of their runs: "hardest in 5 of 5 runs, sum in 1 of 5 runs"."""
    return ", ".join(f"{arm} in {many}" for arm, many in runs.items())


def margin_of(claim: Mapping[str, str]) -> float | None:
    """The margin of an equivalence, in the unit of its differences."""
    return float(claim["margin"].rstrip("%")) if claim["margin"] else None


def unlike_fit(claim: Mapping[str, str], arms: Arms, used: set[str]) -> str:
    """Why generalisation cannot be compared, where an arm of the claim fits its training images
    much less than another; empty elsewhere."""
    if "generalisation" not in claim["metric"]:
        return ""
    fit = {arm: arms.values(arm, "train_rsum").mean() for arm in sorted(used)}
    best = max(fit.values())
    below = [f"{arm} has {value:.0f}" for arm, value in fit.items() if value < best - FIT]
    return (f"RSUM on training images must be within {FIT} of the best arm's {best:.0f}, or what "
            f"is kept of it on test cannot be compared; {', '.join(below)}") if below else ""


def levels(case: Case) -> str:
    """The confidence levels of a case: for the claim, and against it."""
    of_for = {sample.level for sample in case.support}
    against = {sample.level for group in case.against for sample in group}
    for_claim, against_it = (", ".join(f"{100 * level:.4g} %" for level in sorted(found))
                             for found in (of_for, against))
    return for_claim if for_claim == against_it else f"{for_claim}; against {against_it}"
