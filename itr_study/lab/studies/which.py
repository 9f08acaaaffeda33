"""Which ranking loss should I use? Losses by two measures at once, and what intervals settle.

    pairs = every_pair(rows, study.collapsed)
    both = study.compare(rows, pairs, ["test_rsum", EXPERTS.metric], level_of(rows))
    advice(both, (FINDING, EXPERTS))
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import pandas as pd

from itr_study.data import DATASETS
from itr_study.evaluation.measures import measure_columns
from itr_study.lab.ledger.paired import FEWEST
from itr_study.lab.ledger.verdict import adjusted
from itr_study.lab.runs.config import RunConfig, training_vectors
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb13_forgive import SECOND, in_base, parts_of
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.wording import NOTHING, quoted, too_few
from itr_study.plots.names import name_of

MATCHES, GRADED = "trained on matches alone", "on graded labels, too"
LEAK = "leak: labels of the encoder it reads"


def second_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """The losses compared, in the model of the second judge: "clean_gru/<loss>". What there is of
    them is shown; nobody trains them for the board."""
    return in_base(dataset, SECOND, parameters,
                   {label: COMPARED[label] for label in parameters.compared})


def settled_arms(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of arms with FEWEST runs at least: one with fewer is behind no other, and would be
    advised beside those that are settled to be good."""
    if rows.empty:
        return rows
    return rows[rows.groupby("arm")["seed"].transform("nunique") >= FEWEST]


def trained_on(config: str) -> str:
    """What a run is trained on, in words.

    Args:    config: of its row, as JSON.
    """
    run = RunConfig.model_validate_json(config)
    if all(term.labels == "binary" for term in run.terms):
        return MATCHES
    read = {run.sentences, (run.tokens or "").removeprefix("wordpiece:")}
    return LEAK if training_vectors(run) & read else GRADED


def every_pair(rows: pd.DataFrame, collapsed: Mapping[str, str]) -> list[tuple[str, str]]:
    """Every arm with every other, both ways round; none with collapsed runs: nothing settles that
    it is behind another, and it would be advised.

    Args:    collapsed: run -> why its scores have, empty where they have not (`Study.collapsed`).
    """
    fallen = set(rows.loc[[bool(collapsed.get(run)) for run in rows["run"]], "arm"])
    return list(permutations([arm for arm in rows["arm"].unique() if arm not in fallen], 2))


def level_of(rows: pd.DataFrame) -> float:
    """The level at which an arm is held against all others: it may be behind any of them."""
    return adjusted(max(rows["arm"].nunique() - 1, 1))


def exceeded(differences: pd.DataFrame) -> list[str]:
    """The arms that another arm is settled to exceed by every metric.

    Args:    differences: of every arm less every other, as `Study.compare` gives them.
    """
    higher = differences["verdict"].eq("higher").groupby(
        [differences["arm_a"], differences["arm_b"]]).all()
    return sorted(set(higher[higher].index.get_level_values("arm_b")))


def unbeaten(differences: pd.DataFrame, metric: str) -> list[str]:
    """The arms that no other is settled to exceed by a metric. Args: as `exceeded`."""
    of_metric = differences[differences["metric"] == metric]
    return [arm for arm in of_metric["arm_b"].unique()
            if arm not in exceeded(of_metric)]


class Purpose(NamedTuple):
    """What a measure is looked at for: "to find the match"; what it is called; who judges."""

    metric: str
    to: str
    name: str
    whom: str = ""


FINDING = Purpose("test_rsum", "find the match", "RSUM")
# Who judges the rest of the list and made no training labels: people, or what is known.
EXPERTS = Purpose("test_human_expert_tau_c", "agree with experts", "agreement with experts",
                  "people")
KNOWN = Purpose("test_i2t_tau_exact", "agree with exact relevance",
                "agreement with exact relevance", "exact relevance")
CAPTIONS = Purpose("test_i2t_tau_cider", "agree with CIDEr", "agreement with CIDEr", "CIDEr")


def fair_judge(dataset: str) -> Purpose:
    """Choose who judges the rest of the list: what is known, else people, else other captions of
    the same image (CIDEr), which no loss compared is trained on but `sam`."""
    record = DATASETS[dataset]
    return KNOWN if "exact" in record.graded_by else EXPERTS if record.judged_by else CAPTIONS


def fair_columns(dataset: str) -> list[str]:
    """List the columns of rows that hold what that judge says, both ways where it has two."""
    part = {KNOWN: "ndcg_exact", EXPERTS: "human", CAPTIONS: "tau_cider"}[fair_judge(dataset)]
    return [f"test_{name}" for name in measure_columns(dataset, "test", 1) if part in name]


def advice(differences: pd.DataFrame, purposes: tuple[Purpose, Purpose]) -> str:
    """For each of two purposes the losses that are settled to be behind none; of those of the
    first, the ones that are behind none of them in the second, too.

    Args:    differences: as `exceeded`.

    Example: a is above b in x, b above a in y, c is behind both in both
        >>> verdicts = {("a", "b"): "hl", ("b", "a"): "lh", ("a", "c"): "hh", ("c", "a"): "ll",
        ...             ("b", "c"): "hh", ("c", "b"): "ll"}
        >>> table = pd.DataFrame([
        ...     {"arm_a": a, "arm_b": b, "metric": metric, "n": 5,
        ...      "verdict": {"h": "higher", "l": "lower"}[letter]}
        ...     for (a, b), letters in verdicts.items() for metric, letter in zip("xy", letters)])
        >>> advice(table, (Purpose("x", "find it", "x"), Purpose("y", "agree", "y")))
        'To find it: a. To agree: b.'
    """
    if differences.empty:
        return NOTHING
    if (pairs := differences["n"].max()) < FEWEST:
        return too_few(pairs)
    one, other = purposes
    first, second = (unbeaten(differences, purpose.metric) for purpose in purposes)
    among = differences[differences["arm_a"].isin(first) & differences["arm_b"].isin(first)]
    both = unbeaten(among, other.metric)
    rest = f"; of these, to {other.to}, too: {in_words(both)}" \
        if 0 < len(both) < len(first) else ""
    return (f"To {one.to}: {in_words(first)}{rest}. "
            f"To {other.to}: {in_words(second)}.")


def in_words(arms: Sequence[str]) -> str:
    """Names of arms as a choice."""
    names = [quoted(name_of(parts_of(arm).loss)) for arm in arms]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def rate_table(same: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Dev RSUM of each loss at the common learning rate and at multiples of it, seed 0.

    Args:    same, other: rows of `bcls.compared_arms` and of `bcls.compared_rate_arms`.
    """
    tried = pd.concat([same[same["seed"] == 0].assign(arm=lambda rows: rows["arm"] + "@1"), other])
    tried[["method", "rate"]] = tried["arm"].str.rsplit("@", n=1, expand=True)
    tried["rate"] = tried["rate"].astype(float)
    return tried.pivot(index="method", columns="rate", values="dev_rsum")
