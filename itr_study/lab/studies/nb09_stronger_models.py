"""The arms of notebook 09: stronger models, each with the losses that claims are about.

Labels: "<model>/<loss>", the loss as in the sweeps; "dspe" is the base `structure`, whose terms
within the views stay beside the loss. Runs that are put together: `ensembles`.
"""

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace

import pandas as pd

from itr_study.checks import check_choice
from itr_study.lab.ledger.reported import load_claims, reported_differences
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import TERMS, ArmRun, base_config, over_seeds, sum_of, with_loss
from itr_study.lab.studies.bases import frozen_rates, own_rates, rate_in, side_weights
from itr_study.lab.studies.nb02_pairwise import Ladder, Rung, rung_config, worth
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb08_reranking import RERANKED  # FR on top

# The ladder from `clean_gru` up to `best_clean`, the best single model without a leak: what each
# step is worth on dev, one at a time.
#
# Trained with the hardest negative alone, the better of the two losses on the upper rungs of
# `ladder`, where the mean of weights was tried, too. No rate here was searched but that of the
# start: each rung keeps it, and a network that is fine-tuned has a hundredth of it. Regions of
# two networks, 7 x 7 and 9 x 9, cannot be joined along D, so that rungs with a grid or a network
# that is trained have one network. There all cells of an image lack the same features, as their
# mean does below: else more would change. Those rungs and ten crops are dear, with what they
# stand on: a step over 81 cells costs 7 to 12 times as much as over their mean, and a run that
# trains the last stages takes 40 minutes of a core, of the bigger network 66.

LOSS = "hardest"
TRAINED = {"settings.learning_rate_factors": {"network": 0.01}}  # a first guess
ALIKE = {"model_arguments.dropout_alike": True}
PHOTOGRAPHS = Ladder("clean_gru", {
    "clean_gru": Rung("", {}),
    "batches of 64": Rung("clean_gru", {"settings.batch_size": 64}),
    "half as long again": Rung("batches of 64", {"settings.epochs": 36,
                                                 "settings.warmup_epochs": 15}),
    "a third network": Rung("half as long again", {
        "images": "lite0:pooled:flip+lite1:pooled:flip+lite2:pooled:flip"}),
    "wider embedding": Rung("clean_gru", {"model_arguments.size": 512}, dear=True),
    "smaller network alone": Rung("clean_gru", {"images": "lite0:pooled:one"}, dear=True),
    "bigger network alone": Rung("clean_gru", {"images": "lite2:pooled:one"}, dear=True),
    "ten crops": Rung("smaller network alone", {"images": "lite0:pooled:ten"}, dear=True),
    "learnt pool of its grid": Rung("smaller network alone", {
        "images": "lite0:grid:one", "model_arguments.pool": "gpo"} | ALIKE, dear=True),
    "cells dropped": Rung("learnt pool of its grid", {"model_arguments.region_dropout": 0.2},
                          dear=True),
    "last stages trained": Rung("smaller network alone", {
        "images": "lite0:stage7:one"} | ALIKE | TRAINED, dear=True),
    "last stages, mirrored": Rung("last stages trained", {"images": "lite0:stage7:flip"},
                                  dear=True),
    "bigger's last stages": Rung("bigger network alone", {
        "images": "lite2:stage7:one"} | ALIKE | TRAINED, dear=True),
}, "a third network")
SCENES = Ladder("vsepp+gru", {
    "vsepp+gru": Rung("", {}),
    "mean of weights": Rung("vsepp+gru", {"settings.average": 3}),
    "wider embedding": Rung("vsepp+gru", {"model_arguments.size": 256}),
    "learnt pool": Rung("vsepp+gru", {"model_arguments.pool": "gpo"}),
    "regions dropped": Rung("learnt pool", {"model_arguments.region_dropout": 0.2}),
}, "vsepp+gru")
LADDERS = {"flickr8k": PHOTOGRAPHS, "scenes": SCENES}  # on other data that of scenes
# Whose scores are added to those of the best rung: the base FISHER, and all runs of both.
FISHER = "two_branch+fisher"
TOGETHER, ALL = "best_clean and Two-branch (Fisher)", "all runs of both"


def ladder_of(dataset: str) -> Ladder:
    """The ladder of a data set; that of scenes changes no images, so that any data can climb it."""
    return LADDERS.get(dataset, SCENES)


def best_clean_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Every rung, and the base FISHER, as "rung/hardest", over `parameters.best_clean_seeds` seeds,
    of dear rungs `parameters.dear_seeds`; none where these are 0."""
    if not parameters.best_clean_seeds:
        return []
    seeds = {name: parameters.dear_seeds if rung.dear else parameters.best_clean_seeds
             for name, rung in ladder_of(dataset).rungs.items()}
    return [arm for name, count in (seeds | {FISHER: parameters.best_clean_seeds}).items()
            for arm in over_seeds(f"{name}/{LOSS}", best_clean_config(dataset, name, parameters),
                                  count)]


def best_clean_config(dataset: str, name: str, parameters: SimpleNamespace) -> RunConfig:
    """A rung, or FISHER, at the rate that was searched for LOSS, seed 0."""
    if name == FISHER:
        return with_loss(dataset, FISHER, parameters, LOSS, frozen_rates(dataset)[FISHER][LOSS])
    ladder = ladder_of(dataset)
    config = rung_config(dataset, name, parameters, ladder)
    rate = rate_in(dataset, ladder.start, LOSS, config.settings.learning_rate)
    return sum_of(config, LOSS).with_(**{"settings.learning_rate": rate})


def best_arm(dataset: str) -> str:
    """The arm of the rung that is taken."""
    return f"{ladder_of(dataset).best}/{LOSS}"


def steps(dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What each rung adds on dev, as `ladder.worth` has it; rows: of `best_clean_arms`."""
    return worth(rows, ladder_of(dataset).rungs)


def put_together(dataset: str, runs: Sequence[ArmRun]) -> dict[tuple[str, int], tuple[ArmRun, ...]]:
    """Which runs make one model, (label, seed) -> its members, as `ensembles.ensemble_rows` takes
    them: TOGETHER of the best rung and of FISHER at each seed, ALL of all runs of both."""
    best, fisher = ([run for run in runs if run.label == label]
                    for label in (best_arm(dataset), f"{FISHER}/{LOSS}"))
    pairs = {(TOGETHER, one.config.seed): (one, other)
             for one, other in zip(best, fisher, strict=True)}
    return pairs | {(ALL, 0): (*best, *fisher)} if len(best) > 1 else pairs


def why_none(dataset: str, parameters: SimpleNamespace) -> str:
    """Why no rung is trained here, and how one trains them; a line for people."""
    dear = [rung.dear for rung in ladder_of(dataset).rungs.values()]
    more = f", with dear_seeds = 1 {sum(dear)} others, too" * any(dear)
    return (f"nothing of this ladder is trained: best_clean_seeds is {parameters.best_clean_seeds}."
            f" With 1 it trains {len(dear) - sum(dear)} rungs and {FISHER}{more}")


BASES = {"saf": "saf", "sgr": "sgr", "vse_infinity": "vse_infinity", "dan": "dan",
         "dspe": "structure"}  # model of a label -> base
# The losses with which learning rates are searched: first that of a model's base, which all losses
# of it take, then those that sum up far fewer terms and may have their own (`bases.own_rates`).
SEARCHED = {"saf": ("hardest",), "sgr": ("hardest",), "vse_infinity": ("hardest",),
            "dan": ("sum", "top5"), "dspe": ("sum", "top5")}


STRONGER_LABELS = [f"{model}/{loss}" for model in BASES for loss in COMPARED]


# Parameters that hold names, and what they may choose from, as in `parameters.NAMES`.
STRONGER: dict[str, Callable[[str, SimpleNamespace], list[str]]] = {
    "stronger": lambda _dataset, _parameters: STRONGER_LABELS,
    "shown": lambda _dataset, _parameters: STRONGER_LABELS,
    "rate_models": lambda _dataset, _parameters: list(BASES)}


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

    Raises:  ValueError for a label that is none of STRONGER_LABELS.
    """
    check_choice("arm of the stronger models", label, STRONGER_LABELS)
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
