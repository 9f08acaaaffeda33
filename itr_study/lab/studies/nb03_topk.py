"""The arms of notebook 03: k, the embedding dimension, settings, learning rates."""

from pathlib import Path
from typing import Self

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt, model_validator

from itr_study.data import DATASETS
from itr_study.evaluation.evaluate import evaluate
from itr_study.features.texts import EncodedData
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.studies.arms import (
    TABLE_IV,
    TERMS,
    ArmRun,
    base_config,
    has_option,
    over_seeds,
    with_loss,
)
from itr_study.lab.studies.bases import base, frozen_rates, tried_rates
from itr_study.lab.studies.parameters import (
    SETTINGS,
    Factor,
    Names,
    Parameters,
    by_profile,
    searched_settings,
)
from itr_study.models.cca import fit_cca

# The old baseline of notebook 03: CCA in closed form, with both its numbers chosen on dev.

LEAST = 8  # directions; then twice as many, up to all that there are
REGULARISATIONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def cca_config(dataset: str, parameters: Parameters) -> RunConfig:
    """Build the config whose features CCA reads: over Fisher vectors, as in the paper."""
    return base_config(dataset, "two_branch+fisher", parameters)


def cca_of(config: RunConfig, root: Path | str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit `cca_baseline` to the data of a run; root: folder of the data sets."""
    return cca_baseline(encoded_data(config, root))


def cca_baseline(data: EncodedData) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit CCA on train, size and regularisation chosen by RSUM on dev; as `fit_cca`.

    Source: topk paper, Tables I to III: CCA over Fisher vectors (Klein et al., CVPR 2015).
    Returns: the search (size, regularisation, dev_rsum), and a row of the best: these,
        test_<metric>, and at_edge, whether the grid ends there; all directions that exist are no
        end of it.
    """
    fits = {strength: fit_cca(data.splits["train"], regularisation=strength)
            for strength in REGULARISATIONS}
    search = pd.DataFrame([
        (size, strength, evaluate(model.first(size), data.splits["dev"]).table["rsum"])
        for strength, model in fits.items() for size in sizes(model.size)],
        columns=["size", "regularisation", "dev_rsum"])
    size, strength = search.loc[search["dev_rsum"].idxmax(), ["size", "regularisation"]]
    model = fits[strength]
    at_edge = (size == LEAST < model.size
               or strength in (min(REGULARISATIONS), max(REGULARISATIONS)))
    found = evaluate(model.first(int(size)), data.splits["test"]).table
    best = {"arm": "cca", "size": int(size), "regularisation": strength, "at_edge": bool(at_edge)}
    return search, pd.DataFrame([best | {f"test_{name}": value for name, value in found.items()}])


def sizes(most: int) -> list[int]:
    """List the numbers of directions that are tried.

    Example:
        >>> sizes(40), sizes(5)
        ([8, 16, 32, 40], [5])
    """
    tried = []
    while LEAST * 2 ** len(tried) < most:
        tried.append(LEAST * 2 ** len(tried))
    return [*tried, most]


class TopkClaims(Parameters):
    """Parameters of notebooks 03 and 12: what claims are about."""

    k_seeds: PositiveInt = by_profile("runs of each k", 1, 5, 10)
    ks: list[PositiveInt] = by_profile(
        "negatives in the mean, 1 and up", [1, 5], *2 * [[1, 2, 3, 4, 5, 6, 8, 10]])
    dims: list[PositiveInt] = by_profile("sizes d of the embedding", [200, 500], [
        200, 350, 500, 650, 800], list(range(200, 801, 50)))
    dim_seeds: PositiveInt = by_profile("runs of each d, and on parts of train", 1, 5, 5)
    settings: Names = by_profile("rows of Table IV", ["two_branch+fisher", "vsepp+gru"], [
        "two_branch+fisher", "two_branch+sentence", "vsepp+gru"], SETTINGS, among=searched_settings)
    setting_seeds: PositiveInt = by_profile("runs of each loss of Table IV", 1, 5, 5)

    @model_validator(mode="after")
    def check_ks(self) -> Self:
        """Refuse a k that no match of a batch has negatives for."""
        if (largest := max(self.ks)) > 1:
            batch = base(self.dataset, "two_branch").settings.batch_size
            if largest >= batch:
                raise ValueError(f"ks must be below {batch}, got {largest}: in a batch of {batch} "
                                 f"pairs a match has at most {batch - 1} negatives")
        return self


class TopkParameters(TopkClaims, title="03_topk"):
    """Parameters of notebook 03."""

    rates: list[Factor] = by_profile(
        "learning rates tried for Table IV, []: those of each setting", [2e-3], [], [], empty=True)
    best_seeds: PositiveInt = by_profile("runs of the best model", 1, 1, 5)
    input_seeds: NonNegativeInt = by_profile(
        "runs of each loss with the paper's own inputs, 0: none", 0, 0, 5)


def k_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the runs of Fig. 6: k of the mean; apart, the sum and the k-th alone."""
    start = base_config(dataset, "two_branch", parameters)
    terms: dict[str, tuple] = {f"k={k}": ({"loss": "topk", "arguments": {"k": k}}, k)
                               for k in parameters.ks}
    terms |= {"sum": (TERMS["sum"], "sum"), "kth=5": ({"loss": "kth", "arguments": {"k": 5}}, None)}
    return [arm for label, (term, k) in terms.items() for arm in over_seeds(
        label, start.with_(**{"objective.0": term}), parameters.k_seeds, k=k)]


def d_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the runs of Fig. 7: the embedding dimension at k = 5."""
    start = base_config(dataset, "two_branch", parameters)
    return [arm for d in parameters.dims for arm in over_seeds(
        f"d={d}", start.with_(**{"model_arguments.size": d}), parameters.dim_seeds, d=d)]


def part_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List k = 5 on a half and a quarter of the training images, in as many steps as on all.

    None of data that cannot be cut: Flickr8k and `scenes` can.
    """
    start, arms = base_config(dataset, "two_branch", parameters), []
    for left_out, times in (("half", 2), ("three_quarters", 4)):
        if has_option(dataset, "leave_out") and "leave_out" not in start.data_options:
            option = {"leave_out": left_out}
        elif DATASETS[dataset].generated:
            whole = start.data_options.get("train", DATASETS[dataset].load.__kwdefaults__["train"])
            option = {"train": whole // times}
        else:
            return []
        arms += over_seeds(f"k=5, without {left_out}", start.with_(**{
            "data_options": start.data_options | option,
            "settings.epochs": times * start.settings.epochs}), parameters.dim_seeds,
            left_out=left_out)
    return arms


def setting_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the runs of Table IV: each setting with each loss at its frozen rate."""
    rates = frozen_rates(dataset, parameters.rates_here)
    return [arm for name in parameters.settings for loss in TABLE_IV for arm in over_seeds(
        f"{name}/{loss}", with_loss(dataset, name, parameters, loss, rates[name][loss]),
        parameters.setting_seeds, setting=name, loss=loss)]


def rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the search behind `frozen_rates`: each setting, loss and rate, one seed.

    Without `parameters.rates` the grid of each setting is the one of its base file.
    """
    grids = {} if parameters.rates else tried_rates(dataset, parameters.rates_here)
    return [arm for name in parameters.settings for loss in TABLE_IV
            for rate in parameters.rates or grids[name] for arm in over_seeds(
                f"{name}/{loss}/{rate:g}", with_loss(dataset, name, parameters, loss, rate), 1,
                setting=name, loss=loss, rate=rate)]


def best_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the runs of the best single model, as frozen in the base configs."""
    best = base_config(dataset, "best", parameters)
    return over_seeds("largest model", best, parameters.best_seeds)


def input_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Two-branch over the paper's own inputs (Sec. IV-A-3): HGLMM, ten crops of photographs.

    Ten crops take the rates of "two_branch+fisher", HGLMM those of its own search.
    """
    rates = frozen_rates(dataset, parameters.rates_here)
    inputs: dict[str, tuple[str, dict[str, str]]] = {"two_branch+hglmm": ("two_branch+hglmm", {})}
    if not (parameters.images or DATASETS[dataset].generated):
        inputs["two_branch+ten"] = "two_branch+fisher", {"images": "lite0:pooled:ten"}
    return [arm for label, (name, changes) in inputs.items() for loss in TABLE_IV
            for arm in over_seeds(f"{label}/{loss}", with_loss(
                dataset, name, parameters, loss, rates[name][loss]).with_(**changes),
                parameters.input_seeds, setting=label, loss=loss)]


ARMS = (k_arms, d_arms, part_arms, rate_arms, setting_arms, best_arms, input_arms)
