"""What plans are made of: base configs at the size of a profile, terms by name, arms over seeds.

An arm is a label of the ledger with one run per seed; labels are explained in
ledger/reported/README.md.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.data import DATASETS, brings_features
from itr_study.data.box_table import KEPT
from itr_study.encoders.weights import given_folder
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.sweeps import ended_row, sweep
from itr_study.lab.studies.bases import base, frozen_rates
from itr_study.models import MODELS
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
}
GIVEN = "given"  # images: the published features beside the data
TABLE_IV = ("sum", "hardest", "top5")


class ArmRun(NamedTuple):
    """One run of the ledger: its label, what is run, and the measures that its row needs, of those
    that are `asked` (`evaluation.measures`)."""

    label: str
    config: RunConfig
    needs: tuple[str, ...] = ()


Maker = Callable[[str, SimpleNamespace], list[ArmRun]]  # of (dataset, parameters of a notebook)


def base_config(dataset: str, name: str, parameters: SimpleNamespace, **changes: Any) -> RunConfig:
    """A base config at the size of the profile: `parameters.epochs` and, on generated data,
    `parameters.scenes`; 0 epochs and an empty `scenes` leave the base as it is. On any data
    `parameters.data_options`, of which there are mostly none, and with `parameters.images` in the
    place of those of the base, where it is given: "given" are features that come with the data. A
    dev split no larger than the part
    of it that a base looks at is looked at whole."""
    sized: dict[str, Any] = {}
    if parameters.epochs:
        sized["settings.epochs"] = parameters.epochs
    scenes = parameters.scenes if DATASETS[dataset].generated else {}
    options = scenes | parameters.data_options
    if images := getattr(parameters, "images", None):
        sized["images"] = images
        options |= {"features": DATASETS[dataset].features} if images == GIVEN else {}
    if options:
        sized["data_options"] = options
    config = base(dataset, name, **sized | changes)
    if ":nanodet:" in config.images and dataset not in KEPT and given_folder("nanodet") is None:
        config = config.with_(images="lite0:grid:one")  # regions without the detector
    part, dev = config.settings.dev_images, config.data_options.get("dev")
    return config if dev is None or dev > part else config.with_(**{"settings.dev_images": 0})


def images_of(dataset: str, root: Path | str | None, parameters: SimpleNamespace) -> str | None:
    """Choose the images that models read: what the parameter `images` says, else the published
    features beside the data, else None: those of each setting."""
    return getattr(parameters, "images", None) or (
        GIVEN if brings_features(dataset, root) else None)


def over_seeds(label: str, config: RunConfig, seeds: int,
               needs: tuple[str, ...] = ()) -> list[ArmRun]:
    """The same run for seeds 0 … seeds-1: arms share seeds, so that differences are paired."""
    return [ArmRun(label, config.with_(seed=seed), needs) for seed in range(seeds)]


def with_loss(dataset: str, name: str, parameters: SimpleNamespace, loss: str,
              rate: float) -> RunConfig:
    """A setting with one loss at a learning rate."""
    return base_config(dataset, name, parameters, **{
        "objective.0": TERMS[loss], "settings.learning_rate": rate})


def sum_of(start: RunConfig, *terms: str | dict[str, Any]) -> RunConfig:
    """The config with these terms, each of weight 1, as its objective: names of TERMS, or terms."""
    return start.with_(objective=[TERMS[term] if isinstance(term, str) else term
                                  for term in terms])


def in_one_model(dataset: str, parameters: SimpleNamespace, seeds: int,
                 objectives: Mapping[str, Sequence[str | dict[str, Any]]]) -> list[ArmRun]:
    """The sweeps' model with each of these objectives: label -> its terms, as in `sum_of`."""
    start = base_config(dataset, "two_branch", parameters)
    return [arm for label, terms in objectives.items()
            for arm in over_seeds(label, sum_of(start, *terms), seeds)]


def weighed(dataset: str, parameters: SimpleNamespace, first: str, second: str) -> list[ArmRun]:
    """Two terms, the second of each weight of `parameters.weights`: "soft+0.3×windows"."""
    return in_one_model(dataset, parameters, parameters.weight_seeds, {
        f"{first}+{weight:g}×{second}": (first, TERMS[second] | {"weight": float(weight)})
        for weight in parameters.weights})


def plugged_in(dataset: str, parameters: SimpleNamespace, settings: Sequence[str], seeds: int,
               label: str, terms: Sequence[str]) -> list[ArmRun]:
    """Every setting of Table IV with the hardest negative, and with other terms in its place.

    The learning rate is the one chosen for the hardest negative: the gain is no search's.
    """
    arms = []
    for name in settings:
        rate = frozen_rates(dataset)[name]["hardest"]
        alone = with_loss(dataset, name, parameters, "hardest", rate)
        arms += over_seeds(f"{name}/hardest", alone, seeds)
        arms += over_seeds(f"{name}/{label}", sum_of(alone, *terms), seeds)
    return arms


def train_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None, workers: int = 2,
               device: str = "auto", weights: bool = False) -> pd.DataFrame:
    """One row per arm and seed, trained where it is missing, with its label in `arm` and its
    model in words in `model`; with `weights` trained where the trained model is missing, too."""
    rows = sweep([arm.config for arm in arms], root=root, workers=workers, device=device,
                 needs=[arm.needs for arm in arms], weights=weights)
    return _named(rows, arms)


def ended_arms(arms: Sequence[ArmRun], *, root: Path | str | None = None) -> pd.DataFrame:
    """The rows of those runs that have ended already, as `train_arms` has them; none is trained.
    """
    found = [(arm, ended_row(arm.config, root, arm.needs)) for arm in arms]
    kept = [(arm, row) for arm, row in found if row is not None]
    return _named(pd.DataFrame([row for _, row in kept]), [arm for arm, _ in kept])


def _named(rows: pd.DataFrame, arms: Sequence[ArmRun]) -> pd.DataFrame:
    words = [f"{MODELS[c.model].display_name} on {c.images}, {c.sentences or c.tokens}"
             for c in (arm.config for arm in arms)]
    return rows.assign(arm=[arm.label for arm in arms], model=words)


# How learning rates are chosen: the best on dev of a grid, which must lie inside it.
#
# A best rate at the edge of its grid says that a better one may lie beyond, and a comparison at
# such rates may be one of grids. `chosen_rates` refuses it. What was frozen before that rule
# stays until the grids are widened, and is marked wherever it is shown (`bases.at_edge`).

def rate_table(rows: pd.DataFrame, frozen: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The search behind the frozen learning rates: one line per setting, loss and rate.

    Args:    rows: of `topk.rate_arms` or `judges.judge_rate_arms`, arms named
             "<setting>/<loss>/<rate>", with dev_rsum; also of runs that diverged, whose rates were
             tried, with NaN.
             frozen: as `bases.frozen_rates` or, by setting, `judges.judge_rates` gives them.
    Returns: setting, loss, rate, seed, dev_rsum, best (highest on dev of its setting and loss,
             the smaller rate of equals), edge ("smallest" or "largest" rate tried, else ""),
             frozen (the rate that the sweeps use).
    """
    names = rows["arm"].str.rsplit("/", n=2, expand=True)
    table = pd.DataFrame({"setting": names[0], "loss": names[1], "rate": names[2].astype(float),
                          "seed": rows["seed"], "dev_rsum": rows["dev_rsum"].astype(float)})
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
    """The best rate of every setting and loss of a search: setting -> loss -> rate.

    Raises:  ValueError where a best rate is the smallest or the largest tried, and where all runs
             diverged, with the remedy.
    """
    if lost := without_best(table):
        raise ValueError(f"no learning rate is chosen for {', '.join(lost)}: all runs diverged; "
                         "try smaller rates")
    if beyond := at_the_edge(table):
        raise ValueError(f"a learning rate at the edge of its grid is not chosen: {beyond}; widen "
                         "the grid (`tried` in studies/bases, or the parameter `rates` of "
                         "notebook 03, `judge_factors` of 12) until every best lies inside")
    rates: dict[str, dict[str, float]] = {}
    for line in table[table["best"]].itertuples():
        rates.setdefault(line.setting, {})[line.loss] = line.rate
    return rates


def without_best(table: pd.DataFrame) -> list[str]:
    """What a search found no rate for: all its runs diverged."""
    found = table.groupby(["setting", "loss"], sort=False)["best"].any()
    return ["/".join(names) for names in found.index[~found]]


def at_the_edge(table: pd.DataFrame) -> str:
    """The best rates of a search that lie at an edge of what was tried, in words."""
    lines = []
    for line in table[table["best"] & (table["edge"] != "")].itertuples():
        grid = table.loc[(table["setting"] == line.setting) & (table["loss"] == line.loss), "rate"]
        tried = ", ".join(f"{rate:g}" for rate in grid)
        lines.append(f"{line.setting}/{line.loss} at {line.rate:g}, the {line.edge} of {tried}")
    return "; ".join(lines)


def rates_verdict(table: pd.DataFrame) -> str:
    """Whether the frozen rates are the best on dev of a search, and inside what was tried."""
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
        lines += [f"{len(edges)} of {cases} best rates lie at the edge of what was tried (§): a "
                  "better one may lie beyond."]
    return "\n".join(lines)
