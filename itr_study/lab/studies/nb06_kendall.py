"""The arms of notebook 06: soft negatives, the Kendall loss by sliding windows, and their rivals.

"windows" is SW-HS alone, "bcls" is soft negatives with it, the paper's whole objective.
"""

import math
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, PositiveInt, model_validator

from itr_study.lab.studies.arms import (
    TERMS,
    ArmRun,
    has_labels,
    in_one_model,
    labelled,
    plugged_in,
    swept,
    weighed,
)
from itr_study.lab.studies.parameters import (
    PLUGGED_IN,
    WIDEST,
    Factor,
    Names,
    Parameters,
    Width,
    by_profile,
    searched_settings,
)
from itr_study.losses import LOSSES
from itr_study.relevance import RELEVANCE

DEFAULTS = {"relaxation": LOSSES["kendall_window"]().relaxation,
            "stride": LOSSES["kendall_window"]().stride, "scale": LOSSES["triplet_soft"]().scale}
BRANCHES = {"hardest": ("hardest",), "soft": ("soft",), "windows": ("windows",),
            "bcls": ("soft", "windows")}
# Every way to rank of this package, on one model: each is one line of the comparison.
COMPARED = {label: BRANCHES.get(label, tuple(label.split("+"))) for label in (
    "sum", "hardest", "soft", "top5", "info_nce", "sigmoid", "listwise", "hardest+listwise",
    "hardest+listnet", "windows", "bcls", "soft+listwise", "soft+listwise+windows", "ladder",
    "hardest+sam", "info_nce+soft_labels", "recall_at_k", "hardest+recall_at_k")}
GRADERS = [name for name in RELEVANCE if name not in ("binary", "sentence")]


class KendallClaims(Parameters):
    """Parameters of notebooks 06 and 12: what claims are about."""

    term_seeds: PositiveInt = by_profile("runs of the papers' terms alone and together", 1, 5, 12)
    alphas: list[Width] = by_profile("sizes of a window, cosine of labels, 0 to below 2",
                                     [0.2, 0.4], [0.0, 0.2, 0.4, 0.6],
                                     [0.0, 0.1, 0.2, 0.3, 0.4, 0.6])
    betas: list[Annotated[float, Field(gt=0, le=WIDEST - DEFAULTS["relaxation"])]] = by_profile(
        "strides of a window, cosine of labels, above 0",
        [0.1, 0.6], [0.05, 0.1, 0.3, 0.6], [0.05, 0.1, 0.2, 0.3, 0.6])
    gammas: list[Factor] = by_profile("sharpness of soft negatives, per unit of score, above 0",
                                      [10.0, 50.0], [10.0, 20.0, 50.0, 200.0],
                                      [10.0, 20.0, 50.0, 100.0, 200.0])
    sweep_seeds: PositiveInt = by_profile("runs of each beta, gamma, way to take pairs", 1, 5, 5)
    alpha_seeds: PositiveInt = by_profile("runs of each alpha, and of the larger margin", 1, 5, 10)
    bcls_settings: Names = by_profile("models that soft + windows is given to", *PLUGGED_IN,
                                      among=searched_settings)
    bcls_seeds: PositiveInt = by_profile("runs of each of these models", 1, 5, 5)
    window_labels: Names = by_profile("sources of the windows' labels besides sentence",
                                      ["cider"], ["cider", "exact"], ["cider"],
                                      among=GRADERS)
    window_label_seeds: PositiveInt = by_profile("runs of each source", 1, 5, 5)

    @model_validator(mode="after")
    def check_labels(self) -> Self:
        """A profile may name labels for all data; `label_arms` leaves out what a data set lacks."""
        if "window_labels" in self.explicit:
            self.check_within("window_labels", [
                name for name in GRADERS if has_labels(self.dataset, name)])
        return self


class ComparedLosses(Parameters):
    """Parameters of notebooks 12 and 13: every way to rank of this package."""

    compared: Names = by_profile(
        "losses of the comparison",
        ["hardest", "soft", "bcls", "hardest+listwise", "ladder", "hardest+sam"],
        *2 * [list(COMPARED)], among=COMPARED)
    compared_seeds: PositiveInt = by_profile("runs of each of these", 1, 5, 12)


class KendallParameters(KendallClaims, title="06_kendall"):
    """Parameters of notebook 06."""

    weights: list[Factor] = by_profile("of the windows next to soft negatives, above 0",
                                       [0.3], [0.3, 1.0, 3.0], [0.1, 0.3, 1.0, 3.0, 10.0])
    weight_seeds: PositiveInt = by_profile("runs of each weight", 1, 5, 5)
    grid_alphas: list[Width] = by_profile(
        "alphas and betas that are trained in pairs, one seed",
        [0.2, 0.4], [0.0, 0.2, 0.4], [0.0, 0.1, 0.2, 0.3, 0.4, 0.6])
    grid_betas: list[Annotated[float, Field(gt=0, le=WIDEST)]] = by_profile(
        "of these pairs", [0.1, 0.6], [0.1, 0.3], [0.05, 0.1, 0.2, 0.3, 0.6])
    grid_ends: Names = by_profile(
        "best and worst pair by dev, seed 0, trained with all seeds", ["alpha=0.4,beta=0.6"], [],
        ["alpha=0.4,beta=0.6", "alpha=0,beta=0.1"], empty=True)
    batches: list[Annotated[int, Field(ge=2)]] = by_profile(
        "sizes of a batch, in pairs", [32], [64, 256], [64, 512])
    batch_losses: Names = by_profile(
        "losses that are trained with each of them", *2 * [["hardest", "bcls"]],
        ["hardest", "top5", "hardest+listwise", "bcls"], among=COMPARED)
    batch_seeds: PositiveInt = by_profile("runs of each of these", 1, 5, 5)
    compared: Names = by_profile("rivals on graded labels in section 5",
                                 *3 * [["ladder", "hardest+sam"]], among=COMPARED)
    compared_seeds: PositiveInt = by_profile("runs of each of these", 1, 5, 12)

    @model_validator(mode="after")
    def check_grid(self) -> Self:
        """Refuse a grid in which no window moves, and ends that are not in it."""
        alpha, beta = max(self.grid_alphas), max(self.grid_betas)
        if beta > WIDEST - alpha:
            raise ValueError(f"grid_betas must be at most {WIDEST:g} - alpha, got {beta:g} and "
                             f"alpha {alpha:g} in grid_alphas: labels are cosines, so that no "
                             "window would move; take smaller ones of either")
        self.check_within("grid_ends", self.grid, "grid_alphas", "grid_betas")
        return self

    @property
    def grid(self) -> dict[str, dict[str, float]]:
        """Every pair of alpha and beta by the label of its arm."""
        return {f"alpha={alpha:g},beta={beta:g}": {"alpha": alpha, "beta": beta}
                for alpha in self.grid_alphas for beta in self.grid_betas}


def changed(term: str | dict[str, Any], **arguments: float) -> dict[str, Any]:
    """Give a term, or a name of TERMS, other arguments; no defaults, so that runs are shared."""
    chosen = {name: value for name, value in arguments.items() if value != DEFAULTS[name]}
    term = TERMS[term] if isinstance(term, str) else term
    return term | ({"arguments": chosen} if chosen else {})


def branch_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Tables VIII and IX, Fig. 4: the branches alone and together, the hardest negative."""
    return in_one_model(dataset, parameters, parameters.term_seeds, BRANCHES)


def alpha_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 5 (a), (b): alpha, size of a window; the default's runs are "bcls"."""
    return swept(dataset, parameters, parameters.alpha_seeds, "alpha", parameters.alphas,
                 lambda alpha: ("soft", changed("windows", relaxation=alpha)))


def beta_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 5 (c), (d): beta, the stride; the default's runs are "bcls"."""
    return swept(dataset, parameters, parameters.sweep_seeds, "beta", parameters.betas,
                 lambda beta: ("soft", changed("windows", stride=beta)))


def sampling_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 5, "w/o SW-HS", and two ways to take pairs that the paper leaves out.

    They are the Kendall loss of Eq. 17 on all pairs, that of Eq. 4 (no relaxation), and all pairs
    of all windows (Eq. 18).
    """
    return in_one_model(dataset, parameters, parameters.sweep_seeds, {
        "soft+kendall": ("soft", "kendall"),
        "soft+kendall(plain)": ("soft", TERMS["kendall"] | {"arguments": {"relaxation": 0.0}}),
        "soft+sw": ("soft", TERMS["windows"] | {"arguments": {"hard": False}})})


def label_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond the paper, its losses and its rival on labels that saw no captions."""
    return [arm for loss in ("bcls", "soft+kendall", "ladder") for arm in labelled(
        dataset, parameters, parameters.window_label_seeds, loss,
        BRANCHES.get(loss, loss.split("+")), parameters.window_labels)]


def label_sweep_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List alpha and beta again, on the first of `parameters.window_labels`: "alpha=0.4(cider)"."""
    source, seeds = parameters.window_labels[0], parameters.window_label_seeds
    values = [("alpha", "relaxation", value) for value in parameters.alphas]
    values += [("beta", "stride", value) for value in parameters.betas]
    return [arm for factor, argument, value in values for arm in in_one_model(
        dataset, parameters, seeds, {f"{factor}={value:g}({source})": ("soft", changed(
            {"loss": "kendall_window", "labels": source}, **{argument: value}))},
        {f"{factor}={value:g}({source})": {factor: value, "labels": source}})]


def gamma_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond the paper, gamma: how near soft negatives, alone, come to the hardest."""
    return swept(dataset, parameters, parameters.sweep_seeds, "gamma", parameters.gammas,
                 lambda gamma: (changed("soft", scale=gamma),))


def window_weight_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond the paper, which adds both terms with weight 1, the weight of the windows."""
    return weighed(dataset, parameters, "soft", "windows")


def grid_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond Fig. 5, every pair of alpha and beta, seed 0.

    Pairs of `parameters.grid_ends`, the best and the worst of these on dev, have all seeds. On the
    axes the runs are those of `alpha_arms` and `beta_arms`.
    """
    return [arm for label, pair in parameters.grid.items() for arm in in_one_model(
        dataset, parameters, parameters.sweep_seeds if label in parameters.grid_ends else 1,
        {label: ("soft", changed("windows", relaxation=pair["alpha"], stride=pair["beta"]))},
        {label: pair})]


def grid_ends(rows: pd.DataFrame) -> tuple[str, str]:
    """Find the best and the worst arm of `grid_arms` on dev by seed 0, which all pairs have."""
    by_arm = rows[rows["seed"] == 0].set_index("arm")["dev_rsum"]
    return by_arm.idxmax(), by_arm.idxmin()


def batch_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond the papers, sizes of the batch, in which k, windows and lists are counted.

    Learning rate and epochs stay: a batch of half the size takes twice the steps. The base's own
    size is always among them.
    """
    arms = in_one_model(dataset, parameters, parameters.batch_seeds, {
        loss: COMPARED[loss] for loss in parameters.batch_losses})
    sizes = sorted({*parameters.batches, arms[0].config.settings.batch_size})
    return [ArmRun(f"{arm.label}@batch={size}", arm.config.with_(**{"settings.batch_size": size}),
                   factors={**arm.factors, "batch": size}) for size in sizes for arm in arms]


def margin_check_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the hardest negative at the larger margin that soft negatives may amount to.

    The smooth maximum of n equal negatives is log(n) / gamma above them; n = 127 as in a batch.
    """
    margin = round(0.2 + math.log(127) / DEFAULTS["scale"], 3)
    return in_one_model(dataset, parameters, parameters.alpha_seeds, {
        f"hardest(margin={margin:g})": (TERMS["hardest"] | {"arguments": {"margin": margin}},)})


def bcls_plug_in_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Tables III-V: every setting with the hardest negative and the paper's objective."""
    return plugged_in(dataset, parameters, parameters.bcls_settings, parameters.bcls_seeds, "bcls",
                      BRANCHES["bcls"])


def compared_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Tables V-VII in 06, and every loss in 13, in one model."""
    return in_one_model(dataset, parameters, parameters.compared_seeds,
                        {label: COMPARED[label] for label in parameters.compared})


CLAIMED = (bcls_plug_in_arms, branch_arms, alpha_arms, beta_arms, sampling_arms, gamma_arms,
           margin_check_arms, compared_arms, label_arms)
ARMS = (*CLAIMED, label_sweep_arms, window_weight_arms, grid_arms, batch_arms)
