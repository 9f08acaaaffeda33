"""Differences and means in words: for titles, and for tables that a person reads.

A title says what is settled, and against whom; it never calls the highest mean the best. Settled
is a difference whose interval over at least five paired seeds lies on one side of zero, as in the
ledger.
"""

from collections.abc import Sequence

import pandas as pd

from itr_study.digits import counted, digits_for, signed, with_interval
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.verdict import rate_of
from itr_study.metrics.intervals import LEVEL
from itr_study.plots.names import joined, name_of
from itr_study.plots.tables import title_of

DASH, NOTHING = "–", "one arm, and nothing to hold it against"
EACH = f"(each at {100 * LEVEL:g} %)"  # several arms beside one: no level for all of them together


def readable(differences: pd.DataFrame) -> pd.DataFrame:
    """Differences as `Study.compare` gives them, for the eye: names and titles in the place of
    code, numbers as text of two decimals or, where they are tiny, more."""
    ends = ["difference", "low", "high"]
    digits = [max(2, digits_for(*row)) for row in differences[ends].to_numpy()]
    texts = {name: [DASH if pd.isna(value) else signed(value, count) for value, count in
                    zip(differences[name], digits, strict=True)] for name in ends}
    shown = differences.assign(comparison=differences["comparison"].map(name_of),
                               metric=differences["metric"].map(title_of), **texts)
    return shown[["comparison", "metric", "n", *ends, "verdict"]]


def settled(differences: pd.DataFrame) -> str:
    """How many differences an interval settles, and which way: "settled: 3 higher, 2 lower"; and
    how many rest on collapsed runs, which settle nothing."""
    higher, lower, fallen = ((differences["verdict"] == verdict).sum()
                             for verdict in ("higher", "lower", "collapsed"))
    return f"settled: {higher} higher, {lower} lower" + f", {fallen} collapsed" * bool(fallen)


def standing(beside: pd.DataFrame) -> str:
    """How arms stand beside one of them, of `Study.beside`: who is above it, who is below, who
    cannot be told apart from it; and that several were held against it one by one, where so.

    Example:
        >>> table = pd.DataFrame({
        ...     "arm_a": ["hardest", "sum"], "arm_b": "soft", "metric": "test_rsum", "n": 5,
        ...     "verdict": ["undecided", "lower"], "reference_mean": 294.2, "level": 0.95})
        >>> standing(table)
        'RSUM: sum is below soft (294); hardest cannot be told apart from it (each at 95 %)'
        >>> standing(table.assign(n=1))
        'RSUM of soft, hardest and sum: one seed settles nothing (5 are needed)'
    """
    if beside.empty:
        return NOTHING
    first = beside.iloc[0]
    mean = f"{first['reference_mean']:.{0 if first['reference_mean'] >= 100 else 1}f}"
    reference = f"{name_of(first['arm_b'])} ({mean})"
    if beside["n"].max() < FEWEST:
        return f"{drawn_of(beside)}: {too_few(beside['n'].max())}"
    said = finding(beside, f"{{}} {{be}} above {reference}", f"{{}} {{be}} below {reference}",
                   f"{{}} cannot be told apart from {reference}")
    before, named, after = said.partition(reference)
    said = f"{title_of(first['metric'])}: {before}{named}{after.replace(reference, 'it')}"
    return said + f" {EACH}" * bool(named and len(beside) > 1 and first["level"] == LEVEL)


def drawn_of(beside: pd.DataFrame) -> str:
    """What is held against what, where nothing more can be said of it.

    Example:
        >>> table = pd.DataFrame({"arm_a": ["margin=0.1", "margin=0.5"], "arm_b": "margin=0.2",
        ...                       "metric": "test_rsum"})
        >>> drawn_of(table), drawn_of(table.assign(arm_b=list("xy")))
        ('RSUM by margin', 'RSUM of x, margin = 0.1 and margin = 0.5')
    """
    first = beside.iloc[0]
    names = [name_of(arm) for arm in (first["arm_b"], *beside["arm_a"])]
    metric, symbols = title_of(first["metric"]), {name.partition(" = ")[0] for name in names}
    if len(symbols) == 1 < len(names):
        return f"{metric} by {symbols.pop()}"
    return f"{metric} of " + (listed(names, len(names) + 1) if len(names) <= MOST_NAMES else
                              f"{len(names)} arms")


def finding(differences: pd.DataFrame, higher: str, lower: str,
            undecided: str = "{} cannot be told", of: str = "arm_a",
            collapsed: str = "{} collapsed") -> str:
    """What some differences settle, as one sentence for a title.

    Args:    differences: as `Study.compare` gives them; higher ... collapsed: what is said of
             those with this verdict, {} for their names and {be} for is or are; of: the column
             of the names. Collapsed arms are named last: nothing rests on them.

    Example:
        >>> table = pd.DataFrame({"arm_a": ["k=2", "k=5", "k=8"], "n": 5,
        ...                       "verdict": ["undecided", "lower", "lower"]})
        >>> finding(table, "RSUM rises at {}", "RSUM falls at {}")
        'RSUM falls at top-5 and top-8; top-2 cannot be told'
        >>> finding(table.assign(n=3, verdict="undecided (3 seeds)"), "{} is above", "{} is below")
        '3 seeds settle nothing (5 are needed)'
    """
    if differences.empty:
        return NOTHING
    pairs = differences["n"].max()
    if pairs < FEWEST:
        return too_few(pairs)
    verdicts = differences["verdict"].str.split().str[0]
    sayings = {"higher": higher, "lower": lower, "undecided": undecided, "collapsed": collapsed}
    parts = []
    for verdict, saying in sayings.items():
        names = [name_of(arm) for arm in differences.loc[verdicts == verdict, of]]
        if names:
            parts.append(saying.format(listed(names, len(differences)),
                                       be="is" if len(names) == 1 else "are"))
    return "; ".join(parts)


def too_few(pairs: int) -> str:
    """What is said of fewer paired seeds than the ledger asks for."""
    return f"{pairs} seeds settle nothing ({FEWEST} are needed)" if pairs > 1 \
        else f"one seed settles nothing ({FEWEST} are needed)"


def findings(differences: pd.DataFrame, higher: str, lower: str,
             undecided: str = "{} cannot be told", of: str = "arm_a",
             collapsed: str = "{} collapsed") -> str:
    """`finding` of each group of differences, such as losses and models, on a line each; groups of
    which the same is to be said share theirs.

    Args:    differences: with the column group, its words for the title; the others as `finding`.

    Example:
        >>> table = pd.DataFrame({"group": ["added to a loss"] * 2 + ["added to a model"], "n": 5,
        ...     "arm_a": ["sum", "soft", "vsepp+gru"], "verdict": ["higher", "lower", "higher"]})
        >>> print(findings(table, "raised for {}", "lowered for {}"))
        added to a loss: raised for sum; lowered for soft;
        added to a model: raised for “VSE++, GRU”
        >>> findings(table.assign(n=3, verdict="undecided (3 seeds)"), "+", "-")
        'added to a loss and added to a model: 3 seeds settle nothing (5 are needed)'
    """
    groups: dict[str, list[str]] = {}
    for group, part in differences.groupby("group", sort=False):
        said = finding(part, higher, lower, undecided, of, collapsed)
        groups.setdefault(said, []).append(group)
    return ";\n".join(f"{joined(names)}: {words}" for words, names in groups.items())


def measured(difference: pd.Series) -> str:
    """One line of `Study.compare` with its interval, and whether that settles it.

    Example:
        >>> line = {"difference": 4.04, "low": 1.2, "high": 6.9, "n": 5, "verdict": "higher"}
        >>> measured(pd.Series(line)), measured(pd.Series(line | {"verdict": "collapsed"}))
        ('+4.0 [+1.2, +6.9]', '+4.0 [+1.2, +6.9] (collapsed)')
        >>> measured(pd.Series(line | {"n": 1, "verdict": "undecided (one seed)"}))
        '+4.0 (one seed)'
    """
    low, high, verdict = difference["low"], difference["high"], difference["verdict"]
    text = with_interval(difference["difference"], low, high) if difference["n"] > 1 \
        else signed(difference["difference"])
    few = verdict.partition("(")[2].rstrip(")")
    return text if verdict in ("higher", "lower") else f"{text} ({few or verdict})"


def trained_at(rows: pd.DataFrame) -> str:
    """At which learning rates some runs were trained, for a note: the same pair of arms may stand
    elsewhere at other rates.

    Args:    rows: as `Study.train` gives them.
    Example:
        >>> config = '{"settings": {"learning_rate": 0.004}}'
        >>> rows = pd.DataFrame({"arm": ["top5", "hardest"], "config": config})
        >>> rows.loc[1, "config"] = config.replace("4", "1")
        >>> trained_at(rows.head(1)), trained_at(rows)
        ('learning rate 0.004', 'learning rates: top-5 0.004, hardest 0.001')
    """
    configs = rows.groupby("arm", sort=False)["config"].first()
    rates = configs.map(rate_of)
    return f"learning rate {rates.iloc[0]:g}" if rates.nunique() == 1 else \
        "learning rates: " + ", ".join(f"{quoted(name_of(arm))} {rate:g}"
                                       for arm, rate in rates.items())


MOST_NAMES, ALL = 6, 4  # in a title; so many that "all" says it sooner


def listed(names: Sequence[str], of: int) -> str:
    """Names in a sentence, or their number where they are many; `of`: how many there could be.

    Example:
        >>> listed(["k = 3", "k = 4", "k = 10"], 9), listed(["soft", "VSE++, GRU: soft"], 2)
        ('k = 3, 4 and 10', 'soft and “VSE++, GRU: soft”')
        >>> listed(list("abcd"), 4), listed(list("abcdefgh"), 9)
        ('all 4', '8 of 9')
    """
    if len(names) == of >= ALL:
        return f"all {of}"
    if len(names) > MOST_NAMES:
        return f"{len(names)} of {of}"
    symbol, equals, _ = names[0].partition(" = ")
    if equals and all(name.startswith(symbol + equals) for name in names):
        names = [names[0], *(name.removeprefix(symbol + equals) for name in names[1:])]
    return joined([*map(quoted, names)])


def quoted(name: str) -> str:
    """A name as it stands in a sentence: in quotation marks where it holds signs of its own."""
    return f"“{name}”" if ", " in name or ": " in name else name


def pairs_of(differences: pd.DataFrame) -> str:
    """How many paired seeds stand behind some differences, as `Study.compare` gives them.

    Example:
        >>> pairs_of(pd.DataFrame({"n": [5, 5]})), pairs_of(pd.DataFrame({"n": [10, 5]}))
        ('5 paired seeds', '5 to 10 paired seeds')
    """
    fewest, most = differences["n"].min(), differences["n"].max()
    return counted(fewest, "paired seed", most)


def intervals_over(differences: pd.DataFrame) -> str:
    """Which intervals are drawn around some differences, for a note; one seed has none.

    Example:
        >>> intervals_over(pd.DataFrame({"n": [5, 10]})), intervals_over(pd.DataFrame({"n": [1]}))
        ('95 % intervals over 5 to 10 paired seeds', 'one seed, no interval')
    """
    return f"{100 * LEVEL:g} % intervals over {pairs_of(differences)}" \
        if differences["n"].max() > 1 else "one seed, no interval"
