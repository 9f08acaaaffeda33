"""How notebook 12 draws the ledger: which differences stand in which picture, and in what words."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from itr_study.digits import number
from itr_study.ledger.judges import JUDGE
from itr_study.ledger.paired import FEWEST
from itr_study.ledger.table import ORIGINS, TITLES, ledger_parts
from itr_study.ledger.units import unit_of
from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of
from itr_study.studies.timing import RERANKING

# One picture each: its name, what it is about.
TOPICS = {"sweeps": "k and d", "settings": "the losses in several settings",
          "listwise_retrieval": "+ Listwise and recall",
          "listwise_graded": "+ Listwise and graded truth",
          "listwise_training": "+ Listwise while training",
          "bcls_retrieval": "soft + windows and recall",
          "bcls_graded": "soft + windows and graded truth", "labels": "label sources",
          "dvse_gain": "what three re-rankers gain", "dvse_time": "what three re-rankers cost",
          "dvse_models": "FR on every model", "dvse_scales": "the scales of FR",
          "dvse_parts": "the parts of DVSE", "dvse_sweeps": "numbers of heads, β and η",
          "dvse_training": "heads while training"}

RIGHT = {"reproduced": "right here (reproduced)", "contradicted": "wrong here (contradicted)"}


def topic_of(part: pd.Series) -> str:
    """The picture that a difference stands in: a key of TOPICS."""
    paper, metric = part["id"].split("-")[0], part["metric"]
    arm = part["arm_a"].removeprefix(f"{JUDGE}/")  # judges share their pictures
    if arm.startswith("labels("):
        return "labels"
    if paper == "topk":
        return "settings" if "/" in arm else "sweeps"
    if paper == "dvse":
        if part["id"].startswith("dvse-tab4"):
            return "dvse_time" if metric == RERANKING else "dvse_gain"
        if "@" in arm + part.get("arm_b", ""):
            return "dvse_scales" if "@fast(" in arm else "dvse_models"
        return "dvse_training" if metric.startswith("last_") else (
            "dvse_parts" if "/" in arm else "dvse_sweeps")
    if metric.startswith("test_") and any(of in metric for of in ("ndcg_", "_tau", "human")):
        return f"{paper}_graded"
    recalls = metric == "test_rsum" or metric.startswith(("test_i2t_r", "test_t2i_r"))
    return f"{paper}_retrieval" if recalls or paper == "bcls" else f"{paper}_training"


def drawn_parts(claims: pd.DataFrame, rows: pd.DataFrame, table: pd.DataFrame,
                evidence: pd.DataFrame | None = None,
                elsewhere: Sequence[pd.DataFrame] = ()) -> pd.DataFrame:
    """Every difference behind the ledger, as `ledger_parts` gives it, with what its picture shows:
    topic (of TOPICS), unit, margin (of an equivalence), claim and label (in words), origin,
    verdict, and whether it is shown, which of each claim and unit the smallest and the largest are.
    Composites are left out: their parts are claims of their own. What a paper claims comes before
    what we ask beside it.

    Args:    claims, rows, evidence, elsewhere: as in `ledger`, which gives the table.
    """
    parts = ledger_parts(claims, rows, evidence, elsewhere)
    known = table[table["origin"] != "composite"].set_index("id")
    parts = parts[parts["id"].isin(known.index)].assign(
        origin=lambda all_: all_["id"].map(known["origin"]))
    about = known["statement"].map(named) + " (" + known["paper"] + ", " + known["place"] + ")"
    parts["claim"], parts["verdict"] = parts["id"].map(about), parts["outcome"]
    margins = parts["id"].map(known["margin"])
    parts["margin"] = pd.to_numeric(margins.str.rstrip("%"))
    parts["unit"] = list(map(unit_of, parts["metric"], margins))
    parts["label"] = [contrast(*row) for row in zip(parts["metric"], parts["arm_a"],
                                                    parts["arm_b"], strict=True)]
    parts["topic"] = parts.apply(topic_of, axis=1)
    parts[["low", "high"]] = parts[["low", "high"]].replace([np.inf, -np.inf], np.nan)
    ranks = parts.groupby(["id", "unit"])["difference"].rank(method="first")
    largest = parts.groupby(["id", "unit"])["difference"].transform("size")
    order = parts["origin"].map(ORIGINS.index)
    return parts.assign(shown=(ranks == 1) | (ranks == largest)).iloc[
        np.argsort(order, kind="stable")].reset_index(drop=True)


def named(statement: str) -> str:
    """The words of a claim, with the names of the models that it names.

    Example:
        >>> named("Top-5 performs better than the traditional loss: vsepp+gru")
        'Top-5 performs better than the traditional loss: VSE++, GRU'
    """
    return re.sub(r"\b[a-z_]+\+[a-z-]+\b", lambda found: name_of(found[0]), statement)


def ends_of(arm: str) -> str:
    """Of "mean(d=450|d=500|d=550)" the first and the last; "2 × …" for twice the value.

    Example:
        >>> ends_of("mean(d=450|d=500|d=550)"), ends_of("times(2|hardest)"), ends_of("sum")
        ('mean(d=450…d=550)', '2 × hardest', 'sum')
    """
    inner = arm.split("|")
    if arm.startswith("times("):
        return f"{inner[0][6:]} × {name_of(inner[1][:-1])}"
    return "…".join([inner[0], inner[-1]]) if len(inner) > 1 else arm


def contrast(metric: str, arm_a: str, arm_b: str) -> str:
    """A difference in words: its metric, its model where one is named, one arm less the other.

    Example:
        >>> contrast("test_rsum", "vsepp+gru/top5", "vsepp+gru/sum"), contrast("half_rsum", "soft",
        ...                                                                   "zero")
        ('RSUM, VSE++, GRU: top-5 − sum', 'half RSUM: soft')
    """
    metrics = title_of(metric).replace("_", " ").replace("rsum", "RSUM").replace("ndcg", "NDCG")
    arms = [ends_of(arm) for arm in (arm_a, arm_b) if arm != "zero"]  # "zero": a value, no gain
    setting = arms[0].partition("/")[0]
    if "/" in arms[0] and all(arm.startswith(f"{setting}/") for arm in arms):
        metrics += f", {name_of(setting)}"
        arms = [arm.removeprefix(f"{setting}/") for arm in arms]
    return f"{metrics}: {' − '.join(map(name_of, arms))}"


def tally(parts: pd.DataFrame, topic: str) -> str:
    """What the claims of a picture came to, and apart from them our checks, for its title."""
    said = []
    for origin in ORIGINS[:2]:
        outcomes = parts[parts["origin"] == origin].groupby("id")["outcome"].first()
        if len(outcomes):
            counts = ", ".join(f"{n} {RIGHT.get(outcome, outcome)}"
                               for outcome, n in outcomes.value_counts().items())
            said.append(f"{TITLES[origin].lower()}: {counts}")
    return f"On {topic}, " + "; ".join(said)


def settled_apart(standings: Sequence[str]) -> str:
    """How many differences are settled by themselves, for a note."""
    standings = list(standings)
    be = "is" if standings.count("for") == 1 else "are"
    return (f"of {len(standings)} differences {standings.count('for')} {be} settled for the claim, "
            f"{standings.count('against')} against it, each at 95 %")


def shared_luck(rows: pd.DataFrame, metrics: Sequence[str]) -> str:
    """How much luck two arms of one seed share, over all pairs of some arms, as a sentence: the
    mean correlation over seeds, and the variance of a paired difference as a share of that of an
    unpaired one.

    Args:    rows: as `Study.train` gives them, of arms that share their seeds.
    """
    said = []
    for metric in metrics:
        values = rows.pivot(index="seed", columns="arm", values=metric).dropna()
        if len(values) < FEWEST:
            return f"Too few seeds to say how much luck arms share ({FEWEST} are needed)."
        spreads, n = values.cov(), values.shape[1]
        between = (spreads.to_numpy().sum() - np.trace(spreads)) / (n - 1)  # sum over pairs, twice
        said.append(f"{title_of(metric)} {number(off_diagonal(values.corr()), 2)}, "
                    f"{100 * (1 - between / np.trace(spreads)):.0f} %")
    return (f"Over {n} losses of one model: mean correlation over {len(values)} seeds, and "
            f"variance of a paired difference in % of that of an unpaired one: {'; '.join(said)}.")


def off_diagonal(table: pd.DataFrame) -> float:
    """The mean of a symmetric table without its diagonal."""
    n = len(table)
    return float((table.to_numpy().sum() - np.trace(table)) / (n * (n - 1)))
