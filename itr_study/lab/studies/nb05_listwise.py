"""The arms of notebook 05: Smooth-NDCG with a pairwise loss, its temperature, labels and rivals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pandas as pd
from pydantic import PositiveInt, model_validator
from torch import Tensor

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.lab.ledger.paired import FEWEST, sign
from itr_study.lab.runs.config import build_objective
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.run import build_model
from itr_study.lab.studies.arms import (
    TERMS,
    ArmRun,
    base_config,
    has_labels,
    in_one_model,
    labelled,
    over_seeds,
    plugged_in,
    sum_of,
    swept,
    weighed,
)
from itr_study.lab.studies.parameters import (
    PLUGGED_IN,
    Factor,
    Names,
    Parameters,
    by_profile,
    searched_settings,
)
from itr_study.lab.studies.timing import STEPS
from itr_study.losses import LOSSES
from itr_study.metrics.intervals import student_interval
from itr_study.models.base import ModelOutput
from itr_study.relevance import RELEVANCE
from itr_study.training.devices import choose_device
from itr_study.training.loop import fit
from itr_study.training.objective import Objective


class LoggedObjective(Objective):
    """An objective that keeps the numbers of every batch in `steps`; rows keep those of epochs."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective.terms)
        self.steps: list[dict[str, float]] = []

    def forward(self, output: ModelOutput, batch: Batch,
                split: EncodedSplit) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch and its report, and log both."""
        value, report = super().forward(output, batch, split)
        self.steps.append({"loss": value.item()} | {name: number.item()
                                                    for name, number in report.items()})
        return value, report


def batch_log(arms: Sequence[ArmRun], root: Path | str | None = None,
              device: str = "auto") -> pd.DataFrame:
    """Train some runs now, without a warm-up, and log every batch.

    Returns: One line per batch: arm, seed, step (from 1), loss, and what the objective reports.
    """
    logs = []
    for arm in arms:
        config, data = arm.config, encoded_data(arm.config, root, str(choose_device(device)))
        objective = LoggedObjective(build_objective(config.objective))
        fit(build_model(config, data.inputs), objective, data, config.settings, seed=config.seed,
            device=device)
        steps = range(1, len(objective.steps) + 1)
        logs.append(pd.DataFrame(objective.steps).assign(arm=arm.label, seed=config.seed,
                                                         step=steps))
    return pd.concat(logs, ignore_index=True)


TAU = LOSSES["smooth_ndcg"]().temperature  # the paper's, and the loss's default
BOTH = ("hardest", "listwise")
# ApproxNDCG with its usual alpha = 10 is Smooth-NDCG at tau = 0.1 but for a constant: one arm.
SAME_ARM = {"hardest+approx_ndcg": "tau=0.1"}
AS_LONG = 5  # %, within which a training step takes the same time (margin of claim topk-eq12-cost)


class ListwiseClaims(Parameters):
    """Parameters of notebooks 05 and 12: what claims are about."""

    seeds: PositiveInt = by_profile("runs of each combination of losses", 1, 5, 5)
    term_seeds: PositiveInt = by_profile("runs of the papers' terms alone and together", 1, 5, 12)
    losses: Names = by_profile("pairwise losses that Smooth-NDCG is added to", ["sum", "hardest"],
                               *2 * [["sum", "hardest", "top5"]], among=TERMS)
    plug_in_settings: Names = by_profile("models that Smooth-NDCG is added to", *PLUGGED_IN,
                                         among=searched_settings)
    plug_in_seeds: PositiveInt = by_profile("runs of each of these models", 1, 5, 5)
    taus: list[Factor] = by_profile(
        "temperatures of Smooth-NDCG, units of score, above 0", [0.01, 0.1],
        [0.001, 0.01, 0.03, 0.1, 1.0], [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0])
    tau_seeds: PositiveInt = by_profile("runs of each temperature", 1, 5, 5)
    label_sources: Names = by_profile(
        "who says how relevant a pair is", ["sentence", "cider", "binary"],
        ["sentence", "cider", "exact", "binary"], ["sentence", "cider", "binary"], among=RELEVANCE)

    @model_validator(mode="after")
    def check_sources(self) -> Self:
        """A profile may name labels for all data; `label_arms` leaves out what a data set lacks."""
        if "label_sources" in self.explicit:
            self.check_within("label_sources", [
                name for name in RELEVANCE if has_labels(self.dataset, name)])
        return self


class ListwiseParameters(ListwiseClaims, title="05_listwise"):
    """Parameters of notebook 05."""

    weights: list[Factor] = by_profile("of Smooth-NDCG added to the hardest negative, above 0",
                                       [0.3], [0.3, 1.0, 3.0], [0.1, 0.3, 1.0, 3.0, 10.0])
    weight_seeds: PositiveInt = by_profile("runs of each weight", 1, 5, 5)


def plug_in_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return Tables II-IV: every setting with the hardest negative, and with Smooth-NDCG added."""
    return plugged_in(dataset, parameters, parameters.plug_in_settings, parameters.plug_in_seeds,
                      "hardest+listwise", BOTH)


def added_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return several losses, alone and with Smooth-NDCG, in the sweeps' model."""
    return in_one_model(dataset, parameters, parameters.seeds, {
        label: terms for loss in parameters.losses
        for label, terms in ((loss, (loss,)), (f"{loss}+listwise", (loss, "listwise")))})


def term_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return Tables V-VII: the terms alone and together."""
    return in_one_model(dataset, parameters, parameters.term_seeds, {
        "hardest": ("hardest",), "listwise": ("listwise",), "hardest+listwise": BOTH})


def explored_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return one run of two models of `term_arms`, for notebook 10."""
    return in_one_model(dataset, parameters, 1, {"hardest": ("hardest",), "hardest+listwise": BOTH})


def tau_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return Figs. 7-9: the temperature of Smooth-NDCG added to the hardest negative.

    At the default temperature the runs are those of "hardest+listwise", trained once.
    """
    return swept(dataset, parameters, parameters.tau_seeds, "tau", parameters.taus,
                 lambda tau: ("hardest", TERMS["listwise"] | (
                     {} if tau == TAU else {"arguments": {"temperature": tau}})))


def early_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return, beyond the paper, the collapse of notebook 02, without and with Smooth-NDCG."""
    start = base_config(dataset, "collapse", parameters)
    return [arm for label, terms in (("hardest", BOTH[:1]), ("hardest+listwise", BOTH))
            for arm in over_seeds(f"{label}, rate=very_high", sum_of(start, *terms),
                                  parameters.seeds, loss=label)]


def weight_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return weights of Smooth-NDCG in Eq. 22; at 1 the runs are those of "hardest+listwise"."""
    return weighed(dataset, parameters, "hardest", "listwise")


def label_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return sources of the labels; "exact" is left out on data that does not know it."""
    return [arm for loss, terms in (("hardest+listwise", BOTH), ("listwise", BOTH[1:]))
            for arm in labelled(dataset, parameters, parameters.seeds, loss, terms,
                                parameters.label_sources)]


def alternative_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Return what else ranks lists: a softmax over the batch, ListNet, ApproxNDCG."""
    return in_one_model(dataset, parameters, parameters.seeds, {
        "info_nce": ("info_nce",), "hardest+listnet": ("hardest", "listnet"),
        "hardest+approx_ndcg": ("hardest", "approx_ndcg")})


def drawn_arms() -> list[ArmRun]:
    """Return what is drawn batch by batch (Figs. 5a and 6).

    The terms alone and together, one seed, always on a few generated scenes (five whole batches),
    since nothing of it is kept.
    """
    return term_arms("scenes", ListwiseParameters.of(epochs=12, term_seeds=1, scenes={
        "train": 128, "dev": 10, "test": 10}))


CLAIMED = (plug_in_arms, added_arms, term_arms, early_arms, tau_arms, label_arms, alternative_arms)
ARMS = (*CLAIMED, weight_arms)


def longer_steps(rows: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Compare training steps of objectives, in percent of the second of each pair.

    Args:
        rows: of `timing.timed_rows`, whose rounds are paired.
        pairs: (arm, the one it is compared with); those that nobody has measured are left out.
    Returns: arm_a, arm_b, n, difference, low, high, verdict, as `Study.compare` has them, and
        margin; "same" if the whole interval is within that margin, as the ledger asks.
    """
    by_round = rows.pivot(index="seed", columns="arm", values=STEPS)
    records = []
    for arm, measure in pairs:
        if {arm, measure} <= set(by_round):
            percent = 100 * (by_round[arm] / by_round[measure] - 1).dropna()
            low, high = student_interval(percent.to_numpy())
            same = len(percent) >= FEWEST and max(-low, high) < AS_LONG
            records.append((arm, measure, len(percent), percent.mean(), low, high,
                            "same" if same else sign(low, high, len(percent)), AS_LONG))
    return pd.DataFrame(records, columns=["arm_a", "arm_b", "n", "difference", "low", "high",
                                          "verdict", "margin"])


def one_arm(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which an arm that was trained under two names is kept once, as in SAME_ARM.

    Raises: ValueError: the two are not the same to the last bit: they are two arms then.
    """
    named = rows.assign(arm=rows["arm"].replace(SAME_ARM))
    for (arm, seed), runs in named[named["arm"].isin(SAME_ARM.values())].groupby(["arm", "seed"]):
        if runs["test_rsum"].nunique() > 1:
            raise ValueError(f"{arm}, seed {seed}, has RSUM {runs['test_rsum'].tolist()} under its "
                             "two names, and should be one variant; see losses/approx_ndcg.py")
    return named.drop_duplicates(["arm", "seed"], ignore_index=True)
