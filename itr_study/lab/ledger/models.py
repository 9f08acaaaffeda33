"""On which model the verdicts rest, and what a second model says of the same claim."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.ledger.verdict import HELD, units_of

FIRST, SECOND = "two_branch+sentence", "vsepp+gru"  # of the sweeps; nearest to the papers' own
SENTENCES = ", minilm"  # how the words of a model with FIRST's input end
DECIDED = ("reproduced", "contradicted")
SAME = ["paper", "kind", "metric", "margin", "arm_a", "arm_b"]  # of one claim on two models
FILE = "12_claims__ledger.csv"


def resting(table: pd.DataFrame) -> str:
    """How many of the decided verdicts rest on one model alone, as a sentence; claims of the papers
    and counter-checks of ours are never added up. What two judges judged rests on none alone.

    Args:    table: a ledger of one data set, as `ledger` gives it.
    """
    single = table[table["origin"] != "composite"]
    decided = single[single["outcome"].isin(DECIDED)]
    if decided.empty:
        held = single[single["outcome"].isin(HELD.values())].groupby("origin").size()
        counts = " and ".join(f"{count} {origin}s" for origin, count in held.items())
        rest = f"; {counts} are {' or '.join(HELD.values())}" * bool(counts)
        return f"No measured verdict is decided here{rest}."
    alone = decided["model"].mask(judged_twice(decided), "")
    if (alone == "").all():
        return "Every decided verdict was judged on two models."
    model = most_frequent(alone[alone != ""])
    counts = [f"{(alone[part.index] == model).sum()} of {len(part)} decided {origin}s"
              for origin, part in decided.groupby("origin")]
    seen = "; MiniLM made the labels, too, and has seen the captions" * model.endswith(SENTENCES)
    return f"{' and '.join(counts)} rest on one model alone, {plain(model)}{seen}."


def judged_twice(table: pd.DataFrame) -> pd.Series:
    """Which claims of a ledger have two verdicts (`lab.ledger.judges`)."""
    if "second_outcome" not in table:
        return pd.Series(False, table.index)
    return (table["second_outcome"] != "") & (table["first_outcome"] != "not tested")


def first_judged(table: pd.DataFrame) -> pd.DataFrame:
    """A ledger with what the first judge says in the place of the headline."""
    ours = {name: table[f"first_{name}"] for name in ("ours", "outcome", "model")
            if f"first_{name}" in table}
    return table.assign(**ours)


def most_frequent(models: pd.Series) -> str:
    """The model that stands most often in a column."""
    return models.value_counts().idxmax()


def plain(model: str) -> str:
    """A model without its image features.

    Example:
        >>> plain("Two-branch on lite0:pooled:flip, minilm")
        'Two-branch with MiniLM'
    """
    label, _, inputs = model.partition(" on ")
    return f"{label} with {inputs.rpartition(', ')[2].replace('minilm', 'MiniLM')}"


def kept_ledger(folders: Iterable[Path]) -> pd.DataFrame:
    """The ledger as notebook 12 last left it in the first of the folders that has it, such as
    `Study.kept_in`; empty where none has."""
    path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
    return pd.DataFrame(columns=["id", "origin", "outcome", "model", "ours", "statement"]) \
        if path is None else pd.read_csv(path, keep_default_na=False)


def twice_judged(table: pd.DataFrame) -> pd.DataFrame:
    """Claims that were tested on both FIRST and SECOND, the same arms by the same metric: what each
    says, side by side.

    Returns: claim (the id on FIRST), statement, unit, and for each of the two models (its name) our
             difference and, under "verdict of …", its outcome.
    """
    from itr_study.plots.names import name_of  # here: the ledger must not wait for matplotlib

    ours = first_judged(table)[["id", "ours", "outcome", "model"]]
    claims = load_claims().merge(ours, on="id")
    claims = claims[(claims["arm_a"] != "") & (claims["outcome"] != "not tested")]
    model = claims["arm_a"].map(model_of).mask(  # arms that name no setting are of the data's base
        ~claims["arm_a"].str.contains("/") & ~claims["model"].str.endswith(SENTENCES), "")
    bare = claims.assign(arm_a=claims["arm_a"].map(without), arm_b=claims["arm_b"].map(without))
    first, second = (bare.loc[model == name, [*SAME, "id", "statement", "ours", "outcome"]]
                     for name in (FIRST, SECOND))
    first["statement"] = first["statement"].str.replace(rf": {re.escape(FIRST)}.*$", "", regex=True)
    first.insert(first.columns.get_loc("statement") + 1, "unit",
                 list(map(units_of, first["metric"], first["margin"])))
    both = first.merge(second.drop(columns=["id", "statement"]), on=SAME,
                       suffixes=("_first", "_second"))
    names = {f"{column}_{place}": f"{words}{name_of(name)}"
             for place, name in (("first", FIRST), ("second", SECOND))
             for column, words in (("ours", ""), ("outcome", "verdict of "))}
    return both[["id", "statement", "unit", *names]].rename(columns={"id": "claim", **names})


def model_of(arms: str) -> str:
    """The setting that all arms of a claim name; arms that name none are those of FIRST."""
    settings = {arm.rpartition("/")[0] or FIRST for arm in split_list(arms)}
    return settings.pop() if len(settings) == 1 else ""


def without(arms: str) -> str:
    """The arms without their setting."""
    return "; ".join(arm.rpartition("/")[2] for arm in split_list(arms))
