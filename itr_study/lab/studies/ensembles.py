"""Models whose scores are averaged: which runs, what the mean finds, and what it costs.

    members = pairs_of(study.arms(stronger_arms), 5, 4)    "sgraf/hardest", seed 0 -> two runs
    made = ensembles(study, members, rows)              a row for each, as saved or made now

Labels: "sgraf/<loss>" is "saf/<loss>" and "sgr/<loss>" of one seed, and "<arm>*" two runs of one
arm.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from itr_study.evaluation.ensemble import ensemble
from itr_study.evaluation.search import Searcher
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.results import kept_table, models_here
from itr_study.lab.studies.study import Study

Pairs = Mapping[tuple[str, int], Sequence[ArmRun]]  # (label, seed) -> members

PAIR, BOTH = ("saf", "sgr"), "sgraf"
TWICE = "vse_infinity"  # the model of which "+ Listwise*" takes two
TWO = "*"  # behind an arm: two of its runs
ENDINGS = ("collapsed", "flattened")  # what `curve_metrics.milestones` says of a run
# Of a run, kept for an ensemble: the same in both members, or told apart in `_of_members`.
SHARED = ("dataset", "status", "data", "arithmetic", "config")


def pairs_of(runs: Sequence[ArmRun], seeds: int, two_run_seeds: int = 0) -> Pairs:
    """Which two runs make an ensemble: (label, seed) -> its members.

    Args:    runs: of `stronger_arms`; seeds: of SAF and SGR, how many are put together, from 0 on;
             two_run_seeds: of VSE∞, how many are put together two by two.
    Returns: "sgraf/<loss>" of SAF and SGR of the same loss and seed; "vse_infinity/<loss>*" of
             seeds 0 and 1 under seed 0, of 2 and 3 under 2, so that no two of them share a run.
    """
    known = {(run.label, run.config.seed): run for run in runs}
    pairs = {}
    for (label, seed), run in known.items():
        model, _, loss = label.partition("/")
        other = known.get((f"{PAIR[1]}/{loss}", seed))
        if model == PAIR[0] and seed < seeds and other is not None:
            pairs[f"{BOTH}/{loss}", seed] = (run, other)
        following = known.get((label, seed + 1))
        if model == TWICE and seed % 2 == 0 and seed + 1 < two_run_seeds and following is not None:
            pairs[label + TWO, seed] = (run, following)
    return pairs


def ensembles(study: Study, pairs: Pairs, rows: pd.DataFrame,
              figure: str = "ensembles") -> pd.DataFrame:
    """The ensembles as `ensemble_rows` has them, in the order of the pairs. One that notebook 09
    saved of the same runs is taken from there, unless this machine has its models; of others the
    models that are missing are trained now.

    Args:    pairs: of `pairs_of`; rows: of the members: without one there is no ensemble; figure:
             with which they are saved.
    """
    kept = kept_ensembles(study.figures, study.dataset_name, rows, figure)
    run_of = {(row.arm, row.seed): row.run for row in rows.itertuples()}
    members = {key: [run_of.get((run.label, run.config.seed)) for run in runs]
               for key, runs in pairs.items()}
    wanted = {key: " + ".join(runs) for key, runs in members.items() if None not in runs}
    saved = {(row.arm, row.seed) for row in kept.itertuples()
             if wanted.get((row.arm, row.seed)) == row.members} if len(kept) else set()
    making = {key: pairs[key] for key in wanted
              if key not in saved or models_here(pairs[key], study.root)}
    if making:
        study.train([run for runs in making.values() for run in runs], weights=True)
    made = ensemble_rows(rows, making, study.searcher, study.collapsed)
    if not wanted:
        return rows.head(0)
    table = pd.concat([part for part in (made, kept) if len(part)]).drop_duplicates(
        ["arm", "seed"])  # what is made now comes first
    return table.set_index(["arm", "seed"]).loc[list(wanted)].reset_index()


def ensemble_rows(rows: pd.DataFrame, pairs: Pairs, searcher: Callable[[ArmRun], Searcher],
                  collapsed: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """The ensembles as rows beside those of their members: arm, seed, what is measured on test,
    and `minutes`, those of both, without what an ensemble has not, such as dev_rsum. Of none the
    columns are those of `rows`, so that these keep their types beside them.

    Args:    rows: of the members, as `Study.train` gives them: a pair of which one has no row is
             left out; pairs: of `pairs_of`; searcher: of a run on test (`Study.searcher`);
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
