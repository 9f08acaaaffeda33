"""The arms of notebook 09: stronger models, each with the losses that claims are about.

Labels: "<model>/<loss>", the loss as in the sweeps; "dspe" is the base `structure`, whose terms
within the views stay beside the loss. Two runs whose scores are averaged are an arm of their own:
"sgraf/<loss>" is "saf/<loss>" and "sgr/<loss>" of one seed, and "<arm>*" two runs of one arm.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pandas as pd

from itr_study.checks import check_choice
from itr_study.evaluation.ensemble import ensemble
from itr_study.evaluation.search import Searcher
from itr_study.ledger.reported import load_claims, reported_differences
from itr_study.runs.config import RunConfig
from itr_study.studies.arms import TERMS, ArmRun, base_config, over_seeds
from itr_study.studies.bases import base_tables, datasets_with_bases, own_rates
from itr_study.studies.bcls import COMPARED
from itr_study.studies.dvse import EDITION  # FR on top
from itr_study.studies.kept import kept_table

BASES = {"saf": "saf", "sgr": "sgr", "vse_infinity": "vse_infinity", "dan": "dan",
         "dspe": "structure"}  # model of a label -> base
# The losses with which learning rates are searched: first that of a model's base, which all losses
# of it take, then those that sum up far fewer terms and may have their own (`bases.own_rates`).
SEARCHED = {"saf": ("hardest",), "sgr": ("hardest",), "vse_infinity": ("hardest",),
            "dan": ("sum", "top5"), "dspe": ("sum", "top5")}
PAIR, BOTH = ("saf", "sgr"), "sgraf"
TWICE = "vse_infinity"  # the model of which "+ Listwise*" takes two
TWO = "*"  # behind an arm: two of its runs
ENDINGS = ("collapsed", "flattened")  # what `curve_metrics.milestones` says of a run
# Of a run, kept for an ensemble: the same in both members, or told apart in `_of_members`.
SHARED = ("dataset", "status", "data", "arithmetic", "config")


def stronger_labels(dataset: str) -> list[str]:
    """Every "<model>/<loss>" that a data set has a base for."""
    tables = base_tables(dataset) if dataset in datasets_with_bases() else {}
    return [f"{model}/{loss}" for model, base in BASES.items() if base in tables
            for loss in COMPARED]


def stronger_models(dataset: str) -> list[str]:
    """The models of these labels."""
    return list(dict.fromkeys(label.partition("/")[0] for label in stronger_labels(dataset)))


# Parameters that hold names, and what they may choose from, as in `parameters.NAMES`.
STRONGER: dict[str, Callable[[str, SimpleNamespace], list[str]]] = {
    "stronger": lambda dataset, _parameters: stronger_labels(dataset),
    "shown": lambda dataset, _parameters: stronger_labels(dataset),
    "rate_models": lambda dataset, _parameters: stronger_models(dataset)}


def stronger_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """What claims are about: the arms of `parameters.stronger` over `parameters.seeds`."""
    return [run for label in parameters.stronger for run in _over_seeds(
        label, dataset, parameters, parameters.seeds)]


def shown_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """What is shown and not judged: the arms of `parameters.shown`, seed 0."""
    return [run for label in parameters.shown
            for run in _over_seeds(label, dataset, parameters, 1)]


def stronger_rate_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The search of learning rates: each of `parameters.rate_models` with its losses of SEARCHED at
    the multiples `parameters.rate_factors` of their rate, seed 0, "<model>/<loss>/<rate>".
    `rates.rate_table` and `rates.chosen_rates` read its rows."""
    arms = []
    for model in parameters.rate_models:
        for label in (f"{model}/{loss}" for loss in SEARCHED[model]):
            config = stronger_config(label, dataset, parameters)
            usual = config.settings.learning_rate
            for rate in (float(f"{times * usual:g}") for times in parameters.rate_factors):
                arms.append(ArmRun(f"{label}/{rate:g}", config.with_(
                    **{"settings.learning_rate": rate}), EDITION))
    return arms


def stronger_rates(dataset: str, parameters: SimpleNamespace) -> dict[str, dict[str, float]]:
    """The rates at which the models of `parameters.rate_models` are trained, as `rates.rate_table`
    takes them: model -> each of its losses of SEARCHED -> rate."""
    return {model: {loss: stronger_config(f"{model}/{loss}", dataset, parameters)
                    .settings.learning_rate for loss in SEARCHED[model]}
            for model in parameters.rate_models}


def claimed_stronger_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 12: the arms of `parameters.stronger` over `parameters.stronger_seeds`; none at all
    where these are 0, on any data."""
    if not parameters.stronger_seeds:
        return []
    return stronger_arms(dataset, SimpleNamespace(
        **vars(parameters) | {"seeds": parameters.stronger_seeds}))


def stronger_config(label: str, dataset: str, parameters: SimpleNamespace) -> RunConfig:
    """The config of a label, seed 0: the model's base with the terms of the loss in the place of
    its first; what stands behind that, such as terms within the views, stays. The learning rate is
    that of the base, but for losses that have their own in this model (`bases.own_rates`).

    Raises:  ValueError for a label that is none of `stronger_labels`.
    """
    check_choice(f"arm of the stronger models on {dataset}", label, stronger_labels(dataset))
    model, _, loss = label.partition("/")
    start = base_config(dataset, BASES[model], parameters)
    rest = [term.model_dump() for term in start.objective[1:]]
    rate = own_rates(dataset, BASES[model]).get(loss, start.settings.learning_rate)
    return start.with_(**{"settings.learning_rate": rate}, objective=[
        *(TERMS[term] for term in COMPARED[loss]), *rest])


def _over_seeds(label: str, dataset: str, parameters: SimpleNamespace, seeds: int) -> list[ArmRun]:
    config = stronger_config(label, dataset, parameters)
    return [run._replace(edition=EDITION) for run in over_seeds(label, config, seeds)]


def ensembles(runs: Sequence[ArmRun], seeds: int) -> dict[tuple[str, int], tuple[ArmRun, ArmRun]]:
    """Which two runs make an ensemble: (label, seed) -> its members.

    Args:    runs: of `stronger_arms`; seeds: of these so many, from 0 on.
    Returns: "sgraf/<loss>" of SAF and SGR of the same loss and seed; "vse_infinity/<loss>*" of
             seeds 0 and 1 under seed 0, of 2 and 3 under 2, so that no two of them share a run.
    """
    known = {(run.label, run.config.seed): run for run in runs if run.config.seed < seeds}
    pairs = {}
    for (label, seed), run in known.items():
        model, _, loss = label.partition("/")
        other = known.get((f"{PAIR[1]}/{loss}", seed)) if model == PAIR[0] else None
        if other is not None:
            pairs[f"{BOTH}/{loss}", seed] = (run, other)
        following = known.get((label, seed + 1))
        if model == TWICE and seed % 2 == 0 and following is not None:
            pairs[label + TWO, seed] = (run, following)
    return pairs


def ensemble_rows(rows: pd.DataFrame, pairs: Mapping[tuple[str, int], tuple[ArmRun, ArmRun]],
                  searcher: Callable[[ArmRun], Searcher],
                  collapsed: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """The ensembles as rows beside those of their members: arm, seed, what is measured on test,
    and `minutes`, those of both, without what an ensemble has not, such as dev_rsum. Of none the
    columns are those of `rows`, so that these keep their types beside them.

    Args:    rows: of the members, as `Study.train` gives them: a pair of which one has no row is
             left out; pairs: of `ensembles`; searcher: of a run on test (`Study.searcher`);
             collapsed: run -> why its scores have, empty where they have not (`Study.collapsed`);
             `run` names a member that has, so that `Study.compare` hears of it.
    """
    ids = list(zip(rows["arm"], rows["seed"], strict=True))
    by_run = dict(zip(ids, rows.to_dict("records"), strict=True))
    records = []
    for (label, seed), runs in pairs.items():
        keys = [(run.label, run.config.seed) for run in runs]
        if not set(keys) <= set(by_run):
            continue
        members = [by_run[key] for key in keys]
        table = ensemble({f"{arm}, seed {number}": searcher(run) for (arm, number), run
                          in zip(keys, runs, strict=True)}).table
        records.append({"arm": label, "seed": seed, **_of_members(members, collapsed),
                        **{f"test_{name}": value for name, value in table.items()}})
    return pd.DataFrame(records) if records else rows.head(0)


def _of_members(members: Sequence[Mapping[str, Any]],
                collapsed: Mapping[str, str]) -> dict[str, Any]:
    """What is known of an ensemble from the rows of its members."""
    first = members[0]
    fallen = [row["run"] for row in members if collapsed.get(row["run"])]
    words = dict.fromkeys(word for row in members for word in str(row["seen"]).split())
    return {name: first[name] for name in SHARED if name in first} | {
        "run": (fallen or [first["run"]])[0], "seen": " ".join(words),
        "model": " and ".join(dict.fromkeys(row["model"] for row in members)),
        "members": " + ".join(row["run"] for row in members),
        "minutes": sum(row["minutes"] for row in members)}


def kept_ensembles(figures: Path | str | None, dataset: str, rows: pd.DataFrame,
                   figure: str = "ensembles") -> pd.DataFrame:
    """The ensembles that notebook 09 saved with a figure, or none; args as `kept_table`. Whether a
    member has collapsed, these rows say."""
    kept = kept_table(figures, dataset, f"09_stronger_models__{figure}", rows)
    if kept is None:
        return rows.head(0)
    kept = kept[kept["members"].notna()]  # single models may stand beside them
    known = rows.drop_duplicates("run").set_index("run")
    ended = {name: [max(known[name].loc[runs.split(" + ")]) for runs in kept["members"]]
             for name in ENDINGS if name in known}  # the largest: "" is of those that stand
    return kept.assign(seen=kept["seen"].fillna(""), **ended)


def are_those(kept: pd.DataFrame, pairs: Mapping[tuple[str, int], Sequence[ArmRun]],
              rows: pd.DataFrame) -> bool:
    """Whether these ensembles are all that `ensemble_rows` would make, each of the same runs."""
    run_of = {(row.arm, row.seed): row.run for row in rows.itertuples()}
    members = {key: [run_of.get((run.label, run.config.seed)) for run in runs]
               for key, runs in pairs.items()}
    wanted = {key: " + ".join(runs) for key, runs in members.items() if None not in runs}
    return wanted == ({(row.arm, row.seed): row.members for row in kept.itertuples()}
                      if len(kept) else {})


def printed_gains(arms: Collection[str]) -> pd.DataFrame:
    """What the papers print for the differences of some arms that a claim is about.

    Returns: arm_a, arm_b, reported (the six recalls added up, in the first table), place (of it).
    """
    records = []
    for claim in load_claims().to_dict("records"):
        if claim["kind"] != "difference" or not {claim["arm_a"], claim["arm_b"]} <= set(arms):
            continue
        printed = reported_differences(claim)
        table = printed["table"].iloc[0]  # such as "III@f30k", a data set's part of it
        records.append({"arm_a": claim["arm_a"], "arm_b": claim["arm_b"],
                        "reported": printed.loc[printed["table"] == table, "difference"].sum(),
                        "place": f"{claim['paper']}, Table {table.partition('@')[0]}"})
    return pd.DataFrame(records, columns=["arm_a", "arm_b", "reported", "place"])


def beside_printed(differences: pd.DataFrame, metric: str = "test_rsum") -> pd.DataFrame:
    """Differences of one metric as `Study.compare` gives them, with what is printed of the same
    arms in `reported` and `place`; NaN and "" where nothing is."""
    ours = differences[differences["metric"] == metric]
    printed = printed_gains({*ours["arm_a"], *ours["arm_b"]})
    found = ours.merge(printed, "left", on=["arm_a", "arm_b"])
    return found.assign(place=found["place"].fillna(""))


def with_costs(rows: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their model costs: `parameters`, in millions, `score_seconds` and
    `memory_mb` (NaN where nobody has measured it). Of two models all parameters and seconds, and
    the larger memory: one is scored after the other.

    Args:    costs: of `timing.model_costs`, of one data set.
    """
    known = costs.set_index("arm")
    names, adding = ["parameters", "score_seconds"], {}
    for arm in rows["arm"].unique():
        model, two = arm.partition("/")[0], arm.endswith(TWO)
        parts = known.reindex([*PAIR] if model == BOTH else [model] * (1 + two))
        adding[arm] = parts[names].sum(min_count=len(parts)).to_dict() | {
            "memory_mb": parts["memory_mb"].max(skipna=False)}
    return rows.assign(**{name: [adding[arm][name] for arm in rows["arm"]]
                          for name in (*names, "memory_mb")})
