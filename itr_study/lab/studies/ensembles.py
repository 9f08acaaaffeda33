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
from itr_study.lab.studies.nb08_reranking import kept_grid, scale_rows, with_rerankers
from itr_study.lab.studies.results import kept_table
from itr_study.lab.studies.study import Groups, Study

PAIR, BOTH = ("saf", "sgr"), "sgraf"
TWICE = "vse_infinity"  # the model of which "+ Listwise*" takes two
TWO = "*"  # behind an arm: two of its runs
ENDINGS = ("collapsed", "flattened")  # what `curve_metrics.milestones` says of a run
# Of a run, kept for an ensemble: the same in both members, or told apart in `_of_members`.
SHARED = ("dataset", "status", "data", "arithmetic", "config")


def pairs_of(runs: Sequence[ArmRun], seeds: int, two_run_seeds: int = 0) -> Groups:
    """List which two runs of `stronger_arms` make an ensemble: (label, seed) -> its members.

    "sgraf/<loss>" are SAF and SGR of the same loss, at so many `seeds`; "vse_infinity/<loss>*" are
    seeds 0 and 1 under seed 0, 2 and 3 under 2, so that no two of them share a run.
    """
    known = {(run.factors["setting"], run.factors["loss"], run.config.seed): run for run in runs}
    pairs = {}
    for (model, loss, seed), run in known.items():
        other, following = known.get((PAIR[1], loss, seed)), known.get((model, loss, seed + 1))
        if model == PAIR[0] and seed < seeds and other is not None:
            pairs[f"{BOTH}/{loss}", seed] = (run, other)
        if model == TWICE and seed % 2 == 0 and seed + 1 < two_run_seeds and following is not None:
            pairs[run.label + TWO, seed] = (run, following)
    return pairs


def ensembles(study: Study, pairs: Groups, rows: pd.DataFrame,
              figure: str = "ensembles") -> pd.DataFrame:
    """Give the ensembles of `pairs_of` as `ensemble_rows` has them, in the order of the pairs.

    Those that `figure` keeps are taken from there (`Study.of_models`). Without rows of its members
    there is no ensemble: then there is no row, and the columns of `rows`, which keep their types
    when joined.
    """
    made = study.of_models(figure, rows, pairs, lambda making: ensemble_rows(
        rows, making, study.searcher, study.collapsed))
    if made.empty:
        return rows.head(0)
    factors = [_factors(arm, pairs[arm, seed]) for arm, seed in zip(made.arm, made.seed,
                                                                    strict=True)]
    return _with_endings(made, rows).assign(**pd.DataFrame(factors))


def _factors(label: str, runs: Sequence[ArmRun]) -> dict[str, Any]:
    """Give the factors of an ensemble from those of its members."""
    settings = tuple(dict.fromkeys(run.factors.get("setting") for run in runs))
    named = BOTH if settings == PAIR else f"{settings[0]}{TWO}" if len(settings) == 1 else label
    return {"setting": named, "loss": runs[0].factors.get("loss")}


def ensemble_rows(rows: pd.DataFrame, pairs: Groups, searcher: Callable[[ArmRun], Searcher],
                  collapsed: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """Measure ensembles: a row each, without what an ensemble has not, such as dev_rsum.

    Args:
        rows: of the members, as `Study.train` gives them: a pair of which one has no row is left
            out.
        pairs: of `pairs_of`.
        searcher: of a run on test (`Study.searcher`).
        collapsed: of `Study`; `run` names a member that has, so that `Study.compare` hears of it.
    Returns: arm, seed, what is measured on test, and `minutes`, those of both; without any
        ensemble, no row and the columns of `rows`, which keep their types when joined.
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
    """Put together what the rows of the members say."""
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
    """Read the ensembles that notebook 09 saved with a figure, or none."""
    kept = kept_table(figures, dataset, f"09_stronger_models__{figure}", rows)
    if kept is None:
        return rows.head(0)
    return _with_endings(kept[kept["members"].notna()], rows)  # single models may be there, too


def ledger_rows(figures: Path | str | None, dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Add to runs what the ledger judges beside: ensembles, re-ranked runs, the scales of FR."""
    rows = with_rerankers(pd.concat(
        [rows, kept_ensembles(figures, dataset, rows)], ignore_index=True))
    return pd.concat([rows, scale_rows(kept_grid(figures, dataset, rows), rows)], ignore_index=True)


def _with_endings(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Say of ensembles how their members ended, as `rows` has it."""
    known = rows.drop_duplicates("run").set_index("run")
    ended = {name: [max(known[name].loc[runs.split(" + ")]) for runs in table["members"]]
             for name in ENDINGS if name in known}  # the largest: "" is of those that have not
    return table.assign(seen=table["seen"].fillna(""), **ended)


def with_costs(rows: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Add what the model of each row costs (`timing.model_costs`), NaN if nobody has measured it.

    `parameters` are in millions; the others are `score_seconds` and `memory_mb`. Two models cost
    all parameters and seconds, and the larger memory: one is scored after the other.
    """
    known, names = costs.set_index("arm"), ["parameters", "score_seconds"]
    single = rows[rows["members"].isna()] if "members" in rows else rows
    model_of, found = single.set_index("run")["setting"], []
    for row in rows.to_dict("records"):
        members = row.get("members")
        parts = known.reindex([row["setting"]] if pd.isna(members) else
                              model_of.loc[members.split(" + ")])
        found.append(parts[names].sum(min_count=len(parts)).to_dict() | {
            "memory_mb": parts["memory_mb"].max(skipna=False)})
    return rows.join(pd.DataFrame(found, rows.index))
