"""The arms of notebook 09: stronger models, each with the losses that claims are about.

Labels: "<model>/<loss>", the loss as in the sweeps; "dspe" is the base `structure`, whose terms
within the views stay beside the loss. Runs that are put together: `ensembles`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt

from itr_study.checks import check_choice
from itr_study.lab.ledger.reported import load_claims, reported_differences
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.studies.arms import TERMS, ArmRun, base_config, over_seeds, sum_of, with_loss
from itr_study.lab.studies.bases import frozen_rates, own_rates, rate_in, side_weights
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb08_reranking import RERANKED  # FR on top
from itr_study.lab.studies.parameters import Factor, Names, Parameters, Scenes, by_profile, like

# Steps to the model `clean_gru`: what each adds on dev, one at a time. `best_clean` goes on
# from there. A run must take at most six minutes on one core, so that none has regions: 9 x 9
# vectors an image make a step of training 7 times as long.

START = "clean_gru_start"  # the base before the first step
STEP_LOSSES = ("sum", "hardest")  # the steps are chosen for both


class Step(NamedTuple):
    """One step from the step `below` it ("": the base that the steps start from).

    `changes` are fields of the config with their new values; a `dear` one has its own number of
    seeds.
    """

    below: str
    changes: Mapping[str, Any]
    dear: bool = False


TO_CLEAN_GRU: dict[str, Step] = {
    "first guess": Step("", {}),
    "learnt word vectors": Step("first guess", {"tokens": "words"}),
    "GRU in both directions": Step("first guess", {"model_arguments.text": "bigru"}),
    "GRU of 512 numbers": Step("first guess", {"model_arguments.text_size": 512,
                                        "model_arguments.hidden_dropout": 0.5}),
    "hidden image layer": Step("first guess", {"model_arguments.image_hidden": 1024,
                                         "model_arguments.hidden_dropout": 0.5}),
    "20 % of words dropped": Step("first guess", {"model_arguments.word_dropout": 0.2}),
    "more dropout": Step("first guess", {"model_arguments.dropout": 0.4,
                                         "model_arguments.image_dropout": 0.5}),
    "mean of 3 epochs' weights": Step("first guess", {"settings.average": 3}),
    "one image network": Step("first guess", {"images": "lite2:pooled:flip"}),
    "twice as long": Step("first guess", {"settings.epochs": 24, "settings.warmup_epochs": 10}),
    "three times as long": Step("twice as long", {"settings.epochs": 36,
                                                  "settings.warmup_epochs": 15}),
    "batches of 256": Step("first guess", {"settings.batch_size": 256}),
    "batches of 64": Step("first guess", {"settings.batch_size": 64}),
    "batches of 32": Step("first guess", {"settings.batch_size": 32}),
    "both directions, batches of 64": Step("batches of 64", {"model_arguments.text": "bigru"}),
}


class Steps(NamedTuple):
    """Steps from a base to a better one, each before those built on it; `best` is taken."""

    start: str
    steps: Mapping[str, Step]
    best: str


CLEAN_GRU = Steps(START, TO_CLEAN_GRU, "twice as long")


def clean_gru_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return every step with both losses: "step/loss"."""
    networks = ":" in base_config(dataset, START, parameters).images  # not features of the data
    return [arm for name, step in TO_CLEAN_GRU.items() if networks or "images" not in step.changes
            for loss in STEP_LOSSES for arm in over_seeds(
        f"{name}/{loss}", sum_of(step_config(dataset, name, parameters), loss),
        parameters.clean_gru_seeds, loss=loss)]


def worth(rows: pd.DataFrame, steps: Mapping[str, Step] = TO_CLEAN_GRU) -> pd.DataFrame:
    """Compute what each step adds on dev to the step below it, seed by seed.

    Of rows of `clean_gru_arms` with dev_rsum and minutes, a line per loss and step, in their order:
    group (the loss), label (the step), difference (mean over seeds), low, high (the smallest and
    the largest of them: no interval), n, dev_rsum, minutes (means).
    """
    of = {arm: part.set_index("seed") for arm, part in rows.groupby("arm")}
    records = []
    for loss in STEP_LOSSES:
        for name, step in steps.items():
            here, below = of.get(f"{name}/{loss}"), of.get(f"{step.below}/{loss}")
            if here is None or below is None:
                continue
            gains = (here["dev_rsum"] - below["dev_rsum"]).dropna()
            records.append((loss, name, gains.mean(), gains.min(), gains.max(), len(gains),
                            here["dev_rsum"].mean(), here["minutes"].mean()))
    return pd.DataFrame(records, columns=["group", "label", "difference", "low", "high", "n",
                                          "dev_rsum", "minutes"])


def step_config(dataset: str, name: str, parameters: Parameters,
                steps: Steps = CLEAN_GRU) -> RunConfig:
    """Return the config of a step: the base with its changes and those of all below it."""
    step = steps.steps[name]
    start = (step_config(dataset, step.below, parameters, steps) if step.below else
             base_config(dataset, steps.start, parameters))
    changes = {name: value for name, value in step.changes.items()
               if start.warmup_objective or name != "settings.warmup_epochs"}
    if "settings.average" in changes:  # a profile of fewer epochs has fewer weights
        changes["settings.average"] = min(changes["settings.average"], start.settings.epochs)
    return start.with_(**changes)


# Steps from `clean_gru` to `best_clean`, the best single model that has seen no captions, with the
# hardest negative alone. Each keeps the rate of the start; a network that is fine-tuned has a
# hundredth of it. Regions of two networks, 7 x 7 and 9 x 9, cannot be joined along D, so steps with
# a grid or a trained network have one. All cells of an image lack the same features there, as their
# mean does. `dear`: 81 cells cost 7 to 12 times as much as their mean; to train the last stages
# takes 40 minutes of a core, of the bigger network 66.

LOSS = "hardest"
TRAINED = {"settings.learning_rate_factors": {"network": 0.01}}  # a first guess
ALIKE = {"model_arguments.dropout_alike": True}
PHOTOGRAPHS = Steps("clean_gru", {
    "clean_gru": Step("", {}),
    "batches of 64": Step("clean_gru", {"settings.batch_size": 64}),
    "half as long again": Step("batches of 64", {"settings.epochs": 36,
                                                 "settings.warmup_epochs": 15}),
    "a third network": Step("half as long again", {
        "images": "lite0:pooled:flip+lite1:pooled:flip+lite2:pooled:flip"}),
    "wider embedding": Step("clean_gru", {"model_arguments.size": 512}, dear=True),
    "smaller network alone": Step("clean_gru", {"images": "lite0:pooled:one"}, dear=True),
    "bigger network alone": Step("clean_gru", {"images": "lite2:pooled:one"}, dear=True),
    "ten crops": Step("smaller network alone", {"images": "lite0:pooled:ten"}, dear=True),
    "learnt pool of its grid": Step("smaller network alone", {
        "images": "lite0:grid:one", "model_arguments.pool": "gpo"} | ALIKE, dear=True),
    "cells dropped": Step("learnt pool of its grid", {"model_arguments.region_dropout": 0.2},
                          dear=True),
    "last stages trained": Step("smaller network alone", {
        "images": "lite0:stage7:one"} | ALIKE | TRAINED, dear=True),
    "last stages, mirrored": Step("last stages trained", {"images": "lite0:stage7:flip"},
                                  dear=True),
    "bigger's last stages": Step("bigger network alone", {
        "images": "lite2:stage7:one"} | ALIKE | TRAINED, dear=True),
}, "a third network")
SCENES = Steps("vsepp+gru", {
    "vsepp+gru": Step("", {}),
    "mean of weights": Step("vsepp+gru", {"settings.average": 3}),
    "wider embedding": Step("vsepp+gru", {"model_arguments.size": 256}),
    "learnt pool": Step("vsepp+gru", {"model_arguments.pool": "gpo"}),
    "regions dropped": Step("learnt pool", {"model_arguments.region_dropout": 0.2}),
}, "vsepp+gru")
BEST_CLEAN = {"flickr8k": PHOTOGRAPHS, "scenes": SCENES}  # on other data that of scenes
# Whose scores are added to those of the best step: the base FISHER, and all runs of both.
FISHER = "two_branch+fisher"
TOGETHER, ALL = "best_clean and Two-branch (Fisher)", "all runs of both"


def steps_of(dataset: str) -> Steps:
    """Return the steps of a data set; other data take those of scenes, which changes no images."""
    return BEST_CLEAN.get(dataset, SCENES)


def best_clean_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List every step, and the base FISHER, as "step/hardest"; dear ones over their own seeds."""
    if not parameters.best_clean_seeds:
        return []
    seeds = {name: parameters.dear_seeds if step.dear else parameters.best_clean_seeds
             for name, step in steps_of(dataset).steps.items()}
    return [arm for name, count in (seeds | {FISHER: parameters.best_clean_seeds}).items()
            for arm in over_seeds(f"{name}/{LOSS}", best_clean_config(dataset, name, parameters),
                                  count, setting=name, loss=LOSS)]


def best_clean_config(dataset: str, name: str, parameters: Parameters) -> RunConfig:
    """Make a step, or FISHER, at the rate that was searched for LOSS, seed 0."""
    if name == FISHER:
        rates = frozen_rates(dataset, parameters.rates_here)[FISHER]
        return with_loss(dataset, FISHER, parameters, LOSS, rates[LOSS])
    steps = steps_of(dataset)
    config = step_config(dataset, name, parameters, steps)
    usual = config.settings.learning_rate
    rate = rate_in(dataset, steps.start, LOSS, usual, parameters.rates_here)
    return sum_of(config, LOSS).with_(**{"settings.learning_rate": rate})


def put_together(dataset: str, runs: Sequence[ArmRun]) -> dict[tuple[str, int], tuple[ArmRun, ...]]:
    """List the members of ensembles by (label, seed), as `ensembles` takes them.

    TOGETHER is the best step and FISHER at each seed, ALL all runs of both.
    """
    best, fisher = ([run for run in runs if run.factors["setting"] == setting]
                    for setting in (steps_of(dataset).best, FISHER))
    pairs = {(TOGETHER, one.config.seed): (one, other)
             for one, other in zip(best, fisher, strict=True)}
    return pairs | {(ALL, 0): (*best, *fisher)} if len(best) > 1 else pairs


def why_none(dataset: str, parameters: Parameters) -> str:
    """Say why no step is trained here, and how one trains them."""
    dear = [step.dear for step in steps_of(dataset).steps.values()]
    more = f", with dear_seeds = 1 {sum(dear)} others, too" * any(dear)
    return (f"none of these steps is trained: best_clean_seeds is {parameters.best_clean_seeds}."
            f" With 1 it trains {len(dear) - sum(dear)} steps and {FISHER}{more}")


BASES = {"saf": "saf", "sgr": "sgr", "vse_infinity": "vse_infinity", "dan": "dan",
         "dspe": "structure"}  # model of a label -> base
# The losses with which learning rates are searched: first that of a model's base, which all losses
# of it take, then those that sum up far fewer terms and may have their own (`bases.own_rates`).
SEARCHED = {"saf": ("hardest",), "sgr": ("hardest",), "vse_infinity": ("hardest",),
            "dan": ("sum", "top5"), "dspe": ("sum", "top5")}

STRONGER_LABELS = {f"{model}/{loss}": (model, loss) for model in BASES for loss in COMPARED}
CLAIMED = ["saf/hardest", "saf/hardest+listwise", "saf/bcls", "sgr/hardest", "sgr/hardest+listwise",
           "sgr/bcls", "vse_infinity/hardest", "vse_infinity/hardest+listwise", "dan/sum",
           "dan/top5", "dspe/sum", "dspe/top5"]


class StrongerParameters(Parameters, title="09_stronger_models"):
    """Parameters of notebook 09."""

    scenes: Scenes = like(  # a run of SAF or SGR on these takes about 10 seconds of a core
        Parameters, "scenes", quick={"train": 200, "dev": 60, "test": 120})
    seeds: PositiveInt = by_profile("runs of each model and loss", 1, 5, 5)
    stronger: Names = by_profile(
        'models and losses that claims are about, such as "saf/bcls"',
        ["saf/hardest", "saf/hardest+listwise", "sgr/hardest", "sgr/hardest+listwise",
         "vse_infinity/hardest", "dan/sum", "dan/top5", "dspe/sum", "dspe/top5"],
        CLAIMED, CLAIMED, among=STRONGER_LABELS)
    shown: Names = by_profile("those that are shown with one seed", ["sgr/ladder"],
                              *2 * [["sgr/ladder", "sgr/hardest+sam"]], among=STRONGER_LABELS,
                              empty=True)
    rate_models: Names = by_profile(
        'models whose learning rate is searched, such as "saf"', [], [], list(BASES), empty=True,
        among=list(BASES))
    rate_factors: list[Factor] = by_profile("multiples of their base's rate that are tried, above "
                                            "0", *3 * [[0.5, 1.0, 2.0]])
    ensemble_seeds: NonNegativeInt = by_profile(
        "of SAF and SGR, how many are put together, 0: none", 1, 1, 5)
    two_run_seeds: NonNegativeInt = by_profile(  # five seeds give two: they settle nothing
        "of VSE∞, how many are put together two by two, 0: none", 0, 0, 0)
    clean_gru_seeds: NonNegativeInt = by_profile("of each step to clean_gru, 0: none", 0, 0, 2)
    best_clean_seeds: NonNegativeInt = by_profile("of each step to best_clean, 0: none", 1, 0, 3)
    dear_seeds: NonNegativeInt = by_profile("of its dear steps (section 8), 0: none", 0, 0, 0)


def stronger_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List what claims are about: `parameters.stronger` over `parameters.seeds`."""
    return [run for label in parameters.stronger for run in _over_seeds(
        label, dataset, parameters, parameters.seeds)]


def shown_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List what is shown and not judged: `parameters.shown`, seed 0."""
    return [run for label in parameters.shown for run in _over_seeds(label, dataset, parameters, 1)]


def stronger_rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the search of learning rates, for `arms.rate_table`: "<model>/<loss>/<rate>", seed 0."""
    arms = []
    for model in parameters.rate_models:
        for loss in SEARCHED[model]:
            config = stronger_config(f"{model}/{loss}", dataset, parameters)
            usual = config.settings.learning_rate
            for rate in (float(f"{times * usual:g}") for times in parameters.rate_factors):
                arms += over_seeds(f"{model}/{loss}/{rate:g}", config.with_(
                    **{"settings.learning_rate": rate}), 1, RERANKED, setting=model, loss=loss,
                    rate=rate)
    return arms


def stronger_rates(dataset: str, parameters: Parameters) -> dict[str, dict[str, float]]:
    """Return the rates in use, for `arms.rate_table`: model -> its losses of SEARCHED -> rate."""
    return {model: {loss: stronger_config(f"{model}/{loss}", dataset, parameters)
                    .settings.learning_rate for loss in SEARCHED[model]}
            for model in parameters.rate_models}


def claimed_stronger_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List those of notebook 12, over `parameters.stronger_seeds`, 0: none."""
    if not parameters.stronger_seeds:
        return []
    return stronger_arms(dataset, parameters.model_copy(
        update={"seeds": parameters.stronger_seeds}))


def stronger_config(label: str, dataset: str, parameters: Parameters) -> RunConfig:
    """Make the config of a label, seed 0: the model's base with its first term replaced.

    Terms behind the first, such as those within the views, stay. The learning rate is that of the
    base, and so is the weight of what stays, but for losses that have their own in this model
    (`bases.own_rates`, `bases.side_weights`).

    Raises: ValueError: a label that is none of STRONGER_LABELS.
    """
    check_choice("variant of the stronger models", label, STRONGER_LABELS)
    model, loss = STRONGER_LABELS[label]
    start = base_config(dataset, BASES[model], parameters)
    weights = side_weights(dataset, BASES[model])
    rest = [term.model_dump() | {"weight": weights.get(loss, term.weight)}
            for term in start.objective[1:]]
    own = {} if BASES[model] in parameters.rates_here else own_rates(dataset, BASES[model])
    rate = own.get(loss, start.settings.learning_rate)
    return start.with_(**{"settings.learning_rate": rate}, objective=[
        *(TERMS[term] for term in COMPARED[loss]), *rest])


def _over_seeds(label: str, dataset: str, parameters: Parameters, seeds: int) -> list[ArmRun]:
    model, loss = STRONGER_LABELS[label]
    return over_seeds(label, stronger_config(label, dataset, parameters), seeds, RERANKED,
                      setting=model, loss=loss)


ARMS = (stronger_arms, shown_arms, stronger_rate_arms, clean_gru_arms, best_clean_arms)


def printed_gains(arms: Collection[str]) -> pd.DataFrame:
    """Return what papers print for differences of some arms that a claim is about.

    In columns arm_a, arm_b, reported (the six recalls added up, or RSUM, in the first table that
    prints them), place (paper and table).
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


def with_printed(differences: pd.DataFrame, metric: str = "test_rsum") -> pd.DataFrame:
    """Add to the differences of one metric what is printed: `reported` and its `place`."""
    ours = differences[differences["metric"] == metric]
    printed = printed_gains({*ours["arm_a"], *ours["arm_b"]})
    found = ours.merge(printed, "left", on=["arm_a", "arm_b"])
    return found.assign(place=found["place"].fillna(""))
