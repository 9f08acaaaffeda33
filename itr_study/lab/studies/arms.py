"""What plans are made of: base configs of a profile, terms, arms over seeds.

An arm is a label of the ledger and its factors (loss, setting, k ...), with one run per seed;
labels are explained in ledger/reported/README.md.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.data import DATASETS, brings_features, check_root
from itr_study.data.box_table import KEPT
from itr_study.encoders.nanodet import network_file
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of
from itr_study.lab.runs.sweeps import ended_row, sweep
from itr_study.lab.studies.bases import base, frozen_rates, tuned_rates
from itr_study.lab.studies.parameters import Parameters
from itr_study.models import MODELS
from itr_study.relevance.exact import Exact
from itr_study.training.objective import SENTENCE_COSINES

# The losses of Table IV, "hardest" being ours: the paper compares the sum with top-5, which
# changes two things at once.
TERMS: dict[str, dict[str, Any]] = {
    "sum": {"loss": "triplet_sum"},
    "hardest": {"loss": "triplet_hardest"},
    "top5": {"loss": "topk", "arguments": {"k": 5}},
    "soft": {"loss": "triplet_soft"},
    "info_nce": {"loss": "info_nce"},
    "sigmoid": {"loss": "sigmoid"},
    "listwise": {"loss": "smooth_ndcg", "labels": "sentence"},
    "listnet": {"loss": "listnet", "labels": "sentence"},
    "approx_ndcg": {"loss": "approx_ndcg", "labels": "sentence"},
    "windows": {"loss": "kendall_window"} | SENTENCE_COSINES,  # SW-HS
    "kendall": {"loss": "kendall"} | SENTENCE_COSINES,  # every pair that differs by more than alpha
    "ladder": {"loss": "ladder"} | SENTENCE_COSINES,
    "sam": {"loss": "semantic_margin", "labels": "cider"},
    "recall_at_k": {"loss": "recall_at_k"},
    # Highest mean dev RSUM of eleven, 0.01 to 1000, beside info_nce on scenes (quick, five seeds):
    # 378 without, 381 at CUSA's 0.1, 387 at 10, 392, 390 at 100, 358 at 1000. No other is chosen.
    "soft_labels": {"loss": "soft_labels", "labels": "sentence", "weight": 30.0},
}
# Columns of rows that say what an arm varies.
FACTORS = ("setting", "loss", "labels", "reranker", "k", "d", "rate", "weight", "tau", "alpha",
           "beta", "gamma", "batch", "heads", "bound", "balance", "noise", "vagueness", "left_out",
           "margin", "tuned")
GIVEN = "given"  # images: the published features beside the data
TABLE_IV = ("sum", "hardest", "top5")


class ArmRun(NamedTuple):
    """One run of an arm."""

    label: str  # name of its arm in the ledger
    config: RunConfig
    needs: tuple[str, ...] = ()  # measures that its row needs (`asked` in evaluation.measures)
    factors: Mapping[str, Any] = MappingProxyType({})  # what the arm varies, of FACTORS


Maker = Callable[[str, Parameters], list[ArmRun]]  # of (dataset, parameters of a notebook)


def base_config(dataset: str, name: str, parameters: Parameters, **changes: Any) -> RunConfig:
    """Build a base config at the size of the profile, on the data and images asked.

    0 epochs and an empty `scenes` leave the base as it is. Images "given" are features that come
    with the data. A dev split no larger than the part a base looks at is looked at whole.
    """
    sized: dict[str, Any] = {}
    scenes = parameters.scenes if DATASETS[dataset].generated else {}
    options = scenes | parameters.data_options
    if images := parameters.images:
        sized["images"] = images
    if images == GIVEN:
        if not DATASETS[dataset].features:
            known = " and ".join(name for name, record in DATASETS.items() if record.features)
            raise ValueError(f"images='given' are features published with {known}, and {dataset} "
                             "has none: leave images out, or name a network, such as lite0")
        options |= {"features": DATASETS[dataset].features}
    if options:
        sized["data_options"] = options
    config = base(dataset, name, parameters.rates_here, **sized | changes)
    if ":nanodet:" in config.images and dataset not in KEPT and network_file() is None:
        config = config.with_(images="lite0:grid:one")  # regions without the detector
    config = of_epochs(config, parameters.epochs)
    dev = config.data_options.get("dev") if DATASETS[dataset].generated else None
    return config if dev is None or dev > config.settings.dev_images else config.with_(
        **{"settings.dev_images": 0})


def of_epochs(config: RunConfig, epochs: int) -> RunConfig:
    """Train so many epochs, at least the last with the objective; 0 leaves a config as it is."""
    warm = min(config.settings.warmup_epochs, epochs - 1)
    return config.with_(**{"settings.epochs": epochs, "settings.warmup_epochs": warm},
                        **{} if warm else {"warmup_objective": ()}) if epochs else config


def reading(parameters: Parameters, root: Path | str | None) -> Parameters:
    """Choose images "given" if none are chosen and features come with the data; rates tuned here.

    Without a folder of real data the rates are those of its settings.
    """
    check_root(parameters.dataset, root)
    if not parameters.images and parameters.data_options.get("features", True) and brings_features(
            parameters.dataset, root):
        parameters = parameters.model_copy(update={"images": GIVEN})
    if root is None and not DATASETS[parameters.dataset].generated:
        return parameters
    return parameters.with_rates(tuned_rates(parameters.dataset, lambda: dataset_of(
        base_config(parameters.dataset, "two_branch", parameters), root),
        parameters.images == GIVEN))


def over_seeds(label: str, config: RunConfig, seeds: int, needs: tuple[str, ...] = (),
               **factors: Any) -> list[ArmRun]:
    """Repeat a run for seeds 0 … seeds-1: arms share seeds, so differences are paired."""
    return [ArmRun(label, config.with_(seed=seed), needs, factors) for seed in range(seeds)]


def with_loss(dataset: str, name: str, parameters: Parameters, loss: str, rate: float) -> RunConfig:
    """Build a setting with one loss at a learning rate."""
    return base_config(dataset, name, parameters, **{
        "objective.0": TERMS[loss], "settings.learning_rate": rate})


def sum_of(start: RunConfig, *terms: str | dict[str, Any]) -> RunConfig:
    """Give a config these terms (or names of TERMS) as objective, each of weight 1."""
    return start.with_(objective=[TERMS[term] if isinstance(term, str) else term for term in terms])


def in_one_model(dataset: str, parameters: Parameters, seeds: int,
                 objectives: Mapping[str, Sequence[str | dict[str, Any]]],
                 factors: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> list[ArmRun]:
    """List the runs of the sweeps' model with each of these objectives.

    objectives: label -> its terms, as in `sum_of`; factors: label -> those of the arm; one without
    has its label as its loss.
    """
    start = base_config(dataset, "two_branch", parameters)
    return [arm for label, terms in objectives.items() for arm in over_seeds(
        label, sum_of(start, *terms), seeds, **factors.get(label, {"loss": label}))]


def swept(dataset: str, parameters: Parameters, seeds: int, factor: str, values: Sequence[float],
          terms: Callable[[float], Sequence[str | dict[str, Any]]]) -> list[ArmRun]:
    """List the runs of the sweeps' model for each value of one factor: "tau=0.01"."""
    labels = {f"{factor}={value:g}": value for value in values}
    return in_one_model(dataset, parameters, seeds,
                        {label: terms(value) for label, value in labels.items()},
                        {label: {factor: value} for label, value in labels.items()})


def weighed(dataset: str, parameters: Parameters, first: str, second: str) -> list[ArmRun]:
    """Add a second term with each of `parameters.weights`: "soft+0.3×windows"."""
    labels = {f"{first}+{weight:g}×{second}": float(weight) for weight in parameters.weights}
    return in_one_model(dataset, parameters, parameters.weight_seeds, {
        label: (first, TERMS[second] | {"weight": weight}) for label, weight in labels.items()},
        {label: {"weight": weight} for label, weight in labels.items()})


def has_labels(dataset: str, source: str) -> bool:
    """Tell whether data can have a source's labels: exact ones if generated, none of own files."""
    return source not in ("clip", "features", *[Exact.name] * (not DATASETS[dataset].generated))


def has_option(dataset: str, option: str) -> bool:
    """Say whether a data set can be loaded with an option."""
    return option in inspect.signature(DATASETS[dataset].load).parameters


def labelled(dataset: str, parameters: Parameters, seeds: int, loss: str, terms: Sequence[str],
             sources: Sequence[str]) -> list[ArmRun]:
    """Give the last term the labels of each source that the data can have: "bcls(cider)"."""
    *first, last = terms
    usual = TERMS[last]  # with the arguments of its own source
    labels = {f"{loss}({source})": source for source in sources if has_labels(dataset, source)}
    return in_one_model(dataset, parameters, seeds, {
        label: (*first, usual if source == usual["labels"]
                else {"loss": usual["loss"], "labels": source})
        for label, source in labels.items()},
        {label: {"loss": loss, "labels": source} for label, source in labels.items()})


def plugged_in(dataset: str, parameters: Parameters, settings: Sequence[str], seeds: int,
               label: str, terms: Sequence[str]) -> list[ArmRun]:
    """List each setting of Table IV with the hardest negative and other terms, at its one rate."""
    arms = []
    for name in settings:
        rate = frozen_rates(dataset, parameters.rates_here)[name]["hardest"]
        alone = with_loss(dataset, name, parameters, "hardest", rate)
        arms += over_seeds(f"{name}/hardest", alone, seeds, setting=name, loss="hardest")
        arms += over_seeds(f"{name}/{label}", sum_of(alone, *terms), seeds, setting=name,
                           loss=label)
    return arms


def train_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None, workers: int = 2,
               device: str = "auto", weights: bool = False) -> pd.DataFrame:
    """Train missing runs; return a row per run with its factors and `model` in words.

    With `weights` a run is also trained if this machine lacks its model.
    """
    rows = sweep([arm.config for arm in arms], root=root, workers=workers, device=device,
                 needs=[arm.needs for arm in arms], weights=weights)
    return _named(rows, arms)


def ended_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None) -> pd.DataFrame:
    """Return the rows of runs that have ended, as `train_arms` does; train none."""
    found = [(arm, ended_row(arm.config, root, arm.needs)) for arm in arms]
    kept = [(arm, row) for arm, row in found if row is not None]
    return _named(pd.DataFrame([row for _, row in kept]), [arm for arm, _ in kept])


def _named(rows: pd.DataFrame, arms: Sequence[ArmRun]) -> pd.DataFrame:
    words = [f"{MODELS[c.model].display_name} on {c.images}, {c.sentences or c.tokens}"
             for c in (arm.config for arm in arms)]
    varied = {name: [arm.factors.get(name) for arm in arms] for name in FACTORS
              if any(name in arm.factors for arm in arms)}
    return rows.assign(arm=[arm.label for arm in arms], model=words, **varied)


# How learning rates are chosen: the best on dev of a grid, which must lie inside it.
#
# A best rate at the edge of its grid says that a better one may lie beyond, and a comparison at
# such rates may be one of grids: `chosen_rates` refuses it.

def rate_table(rows: pd.DataFrame, frozen: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Tabulate a search of learning rates: one line per setting, loss and rate.

    Args:
        rows: of `nb03_topk.rate_arms` or `nb12_claims.second_base_rate_arms`: setting, loss, rate,
            seed, dev_rsum (NaN for runs that diverged).
        frozen: setting -> loss -> rate (`bases.frozen_rates`, `nb12_claims.second_base_rates`).
    Returns: with best (highest on dev of its setting and loss, the smaller rate of equals), edge
        ("smallest" or "largest" rate tried, else "") and frozen (bool: what the sweeps use).
    """
    table = rows[["setting", "loss", "rate", "seed", "dev_rsum"]].astype({"dev_rsum": float})
    table = table.sort_values(["setting", "loss", "rate"], kind="stable", ignore_index=True)
    groups = table.dropna(subset="dev_rsum").groupby(["setting", "loss"])["dev_rsum"]
    table["best"] = table.index.isin(groups.idxmax())
    grids = table.groupby(["setting", "loss"])["rate"]
    ends = [table["rate"] <= grids.transform("min"), table["rate"] >= grids.transform("max")]
    table["edge"] = np.select(ends, ["smallest", "largest"], "")
    table["frozen"] = [np.isclose(frozen[line.setting][line.loss], line.rate)
                       for line in table.itertuples()]
    return table


def chosen_rates(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Choose the best rates of a search: setting -> loss -> rate.

    Raises: ValueError: a best rate at an edge of those tried, or all runs diverged; says the
        remedy.
    """
    if lost := without_best(table):
        raise ValueError(f"no learning rate is chosen for {', '.join(lost)}: all runs diverged; "
                         "try smaller rates")
    if beyond := at_the_edge(table):
        raise ValueError(f"a learning rate at the edge of its grid is not chosen: {beyond}; widen "
                         "the grid (`tried` in studies/bases, or the parameter `rates` of "
                         "notebook 03, `second_factors` of 12) until every best lies inside. If "
                         "`itr-study tune` did, dev may be too small, or the training too short")
    rates: dict[str, dict[str, float]] = {}
    for line in table[table["best"]].itertuples():
        rates.setdefault(line.setting, {})[line.loss] = line.rate
    return rates


def without_best(table: pd.DataFrame) -> list[str]:
    """List what a search found no rate for: all its runs diverged."""
    found = table.groupby(["setting", "loss"], sort=False)["best"].any()
    return ["/".join(names) for names in found.index[~found]]


def at_the_edge(table: pd.DataFrame) -> str:
    """Describe the best rates of a search that are at an edge of those tried."""
    lines = []
    for line in table[table["best"] & (table["edge"] != "")].itertuples():
        grid = table.loc[(table["setting"] == line.setting) & (table["loss"] == line.loss), "rate"]
        tried = ", ".join(f"{rate:g}" for rate in grid)
        lines.append(f"{line.setting}/{line.loss} at {line.rate:g}, the {line.edge} of {tried}")
    return "; ".join(lines)


def rates_verdict(table: pd.DataFrame) -> str:
    """Say whether the frozen rates are the best on dev, and inside what was tried."""
    best, cases = table[table["best"]], table.groupby(["setting", "loss"]).ngroups
    wrong, edges = best[~best["frozen"]], best[best["edge"] != ""]
    if len(best) == cases and wrong.empty:
        lines = [f"All {cases} frozen learning rates are the best of this search on dev."]
    else:
        lines = [f"{len(best) - len(wrong)} of {cases} frozen learning rates are the best of "
                 "this search on dev; these are not:"]
        lines += [f"  {line.setting}/{line.loss}: {line.rate:g} is best here"
                  for line in wrong.itertuples()]
        lines += [f"  {name}: all runs diverged" for name in without_best(table)]
    if len(edges):
        lines += [f"{len(edges)} of {cases} best rates lie at the edge of what was tried: a "
                  "better one may lie beyond."]
    return "\n".join(lines)
