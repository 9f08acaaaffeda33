"""The arms of notebook 09: stronger models, each with the losses that claims are about.

Labels: "<model>/<loss>", the loss as in the sweeps; "dspe" is the base `structure`, whose terms
within the views stay beside the loss. Runs that are put together: `ensembles`.
"""

from collections.abc import Callable, Collection
from types import SimpleNamespace

import pandas as pd

from itr_study.checks import check_choice
from itr_study.ledger.reported import load_claims, reported_differences
from itr_study.runs.config import RunConfig
from itr_study.studies.arms import TERMS, ArmRun, base_config, over_seeds
from itr_study.studies.bases import base_tables, datasets_with_bases, own_rates, side_weights
from itr_study.studies.bcls import COMPARED
from itr_study.studies.dvse import RERANKED  # FR on top

BASES = {"saf": "saf", "sgr": "sgr", "vse_infinity": "vse_infinity", "dan": "dan",
         "dspe": "structure"}  # model of a label -> base
# The losses with which learning rates are searched: first that of a model's base, which all losses
# of it take, then those that sum up far fewer terms and may have their own (`bases.own_rates`).
SEARCHED = {"saf": ("hardest",), "sgr": ("hardest",), "vse_infinity": ("hardest",),
            "dan": ("sum", "top5"), "dspe": ("sum", "top5")}


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
                    **{"settings.learning_rate": rate}), RERANKED))
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
    that of the base, but for losses that have their own in this model (`bases.own_rates`), and so
    is the weight of what stays (`bases.side_weights`).

    Raises:  ValueError for a label that is none of `stronger_labels`.
    """
    check_choice(f"arm of the stronger models on {dataset}", label, stronger_labels(dataset))
    model, _, loss = label.partition("/")
    start = base_config(dataset, BASES[model], parameters)
    weights = side_weights(dataset, BASES[model])
    rest = [term.model_dump() | {"weight": weights.get(loss, term.weight)}
            for term in start.objective[1:]]
    rate = own_rates(dataset, BASES[model]).get(loss, start.settings.learning_rate)
    return start.with_(**{"settings.learning_rate": rate}, objective=[
        *(TERMS[term] for term in COMPARED[loss]), *rest])


def _over_seeds(label: str, dataset: str, parameters: SimpleNamespace, seeds: int) -> list[ArmRun]:
    return over_seeds(label, stronger_config(label, dataset, parameters), seeds, RERANKED)


def printed_gains(arms: Collection[str]) -> pd.DataFrame:
    """What the papers print for the differences of some arms that a claim is about.

    Returns: arm_a, arm_b, reported (the six recalls added up, or RSUM, which is that, in the first
             table that prints them), place (paper and table).
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
