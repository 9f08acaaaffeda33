"""The arms of notebook 03: k, the embedding dimension, settings, learning rates."""

from types import SimpleNamespace

from itr_study.studies.arms import TABLE_IV, TERMS, ArmRun, base_config, over_seeds, with_loss
from itr_study.studies.bases import frozen_rates, tried_rates


def k_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 6: k of the mean, with the sum over all negatives and the k-th one alone apart."""
    start = base_config(dataset, "two_branch", parameters)
    terms = {f"k={k}": {"loss": "topk", "arguments": {"k": k}} for k in parameters.ks}
    terms |= {"sum": TERMS["sum"], "kth=5": {"loss": "kth", "arguments": {"k": 5}}}
    return [arm for label, term in terms.items()
            for arm in over_seeds(label, start.with_(**{"objective.0": term}), parameters.k_seeds)]


def d_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 7: the embedding dimension at k = 5."""
    start = base_config(dataset, "two_branch", parameters)
    return [arm for d in parameters.dims for arm in over_seeds(
        f"d={d}", start.with_(**{"model_arguments.size": d}), parameters.dim_seeds)]


def setting_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Table IV: every setting with every loss, each at its frozen learning rate."""
    rates = frozen_rates(dataset)
    return [arm for name in parameters.settings for loss in TABLE_IV for arm in over_seeds(
        f"{name}/{loss}", with_loss(dataset, name, parameters, loss, rates[name][loss]),
        parameters.setting_seeds)]


def rate_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The search behind `frozen_rates`: a grid of learning rates for each setting and loss, one
    seed. Without `parameters.rates` the grid of each setting is the one of its base file."""
    grids = {} if parameters.rates else tried_rates(dataset)
    return [ArmRun(f"{name}/{loss}/{rate:g}", with_loss(dataset, name, parameters, loss, rate))
            for name in parameters.settings for loss in TABLE_IV
            for rate in parameters.rates or grids[name]]


def best_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The best single model of a data set, as frozen in its base configs."""
    best = base_config(dataset, "best", parameters)
    return over_seeds("largest model", best, parameters.best_seeds)
