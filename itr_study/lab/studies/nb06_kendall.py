"""The arms of notebook 06: soft negatives, the Kendall loss by sliding windows, and their rivals.

"windows" is SW-HS alone, "bcls" is soft negatives with it, the paper's whole objective.
"""

import math
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt, model_validator

from itr_study.lab.studies.arms import TERMS, ArmRun, in_one_model, plugged_in, weighed
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
from itr_study.metrics.intervals import range_by_chance

DEFAULTS = {"relaxation": LOSSES["kendall_window"]().relaxation,
            "stride": LOSSES["kendall_window"]().stride, "scale": LOSSES["triplet_soft"]().scale}
BRANCHES = {"hardest": ("hardest",), "soft": ("soft",), "windows": ("windows",),
            "bcls": ("soft", "windows")}
# Every way to rank of this package, on one model: each is one line of the comparison.
COMPARED = BRANCHES | {
    "sum": ("sum",), "top5": ("top5",), "info_nce": ("info_nce",), "sigmoid": ("sigmoid",),
    "listwise": ("listwise",), "hardest+listwise": ("hardest", "listwise"),
    "hardest+listnet": ("hardest", "listnet"), "soft+listwise": ("soft", "listwise"),
    "soft+listwise+windows": ("soft", "listwise", "windows"), "ladder": ("ladder",),
    "hardest+sam": ("hardest", "sam")}


class KendallClaims(Parameters):
    """Parameters of notebooks 06 and 12: what claims are about."""

    term_seeds: PositiveInt = by_profile("runs of the papers' terms alone and together", 1, 3, 12)
    alphas: list[Width] = by_profile("sizes of a window, cosine of labels, 0 to below 2",
                                     [0.2, 0.4], *2 * [[0.0, 0.1, 0.2, 0.3, 0.4, 0.6]])
    betas: list[Annotated[float, Field(gt=0, le=WIDEST - DEFAULTS["relaxation"])]] = by_profile(
        "strides of a window, cosine of labels, above 0",
        [0.1, 0.6], *2 * [[0.05, 0.1, 0.2, 0.3, 0.6]])
    gammas: list[Factor] = by_profile("sharpness of soft negatives, per unit of score, above 0",
                                      [10.0, 50.0], *2 * [[10.0, 20.0, 50.0, 100.0, 200.0]])
    sweep_seeds: PositiveInt = by_profile("runs of each beta, gamma, way to take pairs", 1, 1, 5)
    alpha_seeds: PositiveInt = by_profile("runs of each alpha, and of the larger margin", 1, 1, 10)
    bcls_settings: Names = by_profile("models that soft + windows is given to", *PLUGGED_IN,
                                      among=searched_settings)
    bcls_seeds: PositiveInt = by_profile("runs of each of these models", 1, 1, 5)


class ComparedLosses(Parameters):
    """Parameters of notebooks 12 and 13: every way to rank of this package."""

    compared: Names = by_profile(
        "losses of the comparison",
        ["hardest", "soft", "bcls", "hardest+listwise", "ladder", "hardest+sam"], *2 * [[
            "sum", "hardest", "soft", "top5", "info_nce", "sigmoid", "listwise", "hardest+listwise",
            "hardest+listnet", "windows", "bcls", "soft+listwise", "soft+listwise+windows",
            "ladder", "hardest+sam"]], among=COMPARED)
    compared_seeds: PositiveInt = by_profile("runs of each of these", 1, 1, 12)


class KendallParameters(KendallClaims, title="06_kendall"):
    """Parameters of notebook 06."""

    weights: list[Factor] = by_profile("of the windows beside soft negatives, above 0",
                                       [0.3], [0.3, 1.0, 3.0], [0.1, 0.3, 1.0, 3.0, 10.0])
    weight_seeds: PositiveInt = by_profile("runs of each weight", 1, 1, 5)
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
    batch_seeds: PositiveInt = by_profile("runs of each of these", 1, 1, 5)
    compared: Names = by_profile("rivals on graded labels in section 7",
                                 *3 * [["ladder", "hardest+sam"]], among=COMPARED)
    compared_seeds: PositiveInt = by_profile("runs of each of these", 1, 2, 12)

    @model_validator(mode="after")
    def check_grid(self) -> Self:
        alpha, beta = max(self.grid_alphas), max(self.grid_betas)
        if beta > WIDEST - alpha:
            raise ValueError(f"grid_betas must be at most {WIDEST:g} - alpha, got {beta:g} and "
                             f"alpha {alpha:g} in grid_alphas: labels are cosines, so that no "
                             "window would move; take smaller ones of either")
        self.check_within("grid_ends", [f"alpha={alpha:g},beta={beta:g}"
                                        for alpha in self.grid_alphas for beta in self.grid_betas],
                          "grid_alphas", "grid_betas")
        return self


def changed(term: str, **arguments: float) -> dict[str, Any]:
    """A term of TERMS with other arguments; the defaults are left out, so that runs are shared."""
    chosen = {name: value for name, value in arguments.items() if value != DEFAULTS[name]}
    return TERMS[term] | ({"arguments": chosen} if chosen else {})


def branch_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Tables VIII and IX, Fig. 4: the branches alone and together, and the hardest negative."""
    return in_one_model(dataset, parameters, parameters.term_seeds, BRANCHES)


def alpha_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Fig. 5 (a), (b): alpha, size of a window and relaxation; the default's runs are "bcls"."""
    return in_one_model(dataset, parameters, parameters.alpha_seeds, {
        f"alpha={alpha:g}": ("soft", changed("windows", relaxation=alpha))
        for alpha in parameters.alphas})


def beta_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Fig. 5 (c), (d): beta, the stride; the default's runs are "bcls"."""
    return in_one_model(dataset, parameters, parameters.sweep_seeds, {
        f"beta={beta:g}": ("soft", changed("windows", stride=beta)) for beta in parameters.betas})


def sampling_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Fig. 5, "w/o SW-HS", and what the paper leaves out: the Kendall loss of Eq. 17 on all pairs,
    that of Eq. 4 (no relaxation), and all pairs of all windows (Eq. 18)."""
    return in_one_model(dataset, parameters, parameters.sweep_seeds, {
        "soft+kendall": ("soft", "kendall"),
        "soft+kendall(plain)": ("soft", TERMS["kendall"] | {"arguments": {"relaxation": 0.0}}),
        "soft+sw": ("soft", TERMS["windows"] | {"arguments": {"hard": False}})})


def gamma_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Beyond the paper: gamma, how near soft negatives come to the hardest; without windows."""
    return in_one_model(dataset, parameters, parameters.sweep_seeds, {
        f"gamma={gamma:g}": (changed("soft", scale=gamma),) for gamma in parameters.gammas})


def window_weight_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Beyond the paper, which adds both terms with weight 1: the weight of the windows."""
    return weighed(dataset, parameters, "soft", "windows")


def grid_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Beyond Fig. 5, which moves alpha and beta one at a time: every pair of them, seed 0, and the
    pairs of `parameters.grid_ends`, the best and the worst of these on dev, with all seeds. On the
    axes the runs are those of `alpha_arms` and `beta_arms`."""
    objectives = {f"alpha={alpha:g},beta={beta:g}": (
        "soft", changed("windows", relaxation=alpha, stride=beta))
        for alpha in parameters.grid_alphas for beta in parameters.grid_betas}
    ends = {label: objectives[label] for label in parameters.grid_ends}
    rest = {label: terms for label, terms in objectives.items() if label not in ends}
    return [*in_one_model(dataset, parameters, 1, rest),
            *in_one_model(dataset, parameters, parameters.sweep_seeds, ends)]


def grid_ends(rows: pd.DataFrame) -> tuple[str, str]:
    """The arms of `grid_arms` that are best and worst on dev by seed 0, which all pairs have."""
    by_arm = rows[rows["seed"] == 0].set_index("arm")["dev_rsum"]
    return by_arm.idxmax(), by_arm.idxmin()


def span_of_singles(rows: pd.DataFrame, repeated: pd.DataFrame) -> str:
    """How far single runs of all pairs span on dev, beside what seeds alone would make of as many
    runs of one pair (`range_by_chance`): the highest of a table of one seed is no finding.

    Args:    rows: of `grid_arms`; repeated: of arms like them, which say how far seeds spread.
    """
    singles = rows.loc[rows["seed"] == 0, "dev_rsum"]
    spread = repeated.groupby("arm")["dev_rsum"].var().mean() ** 0.5
    text = f"{len(singles)} single runs span {np.ptp(singles):.1f} points of RSUM on dev"
    return text if np.isnan(spread) else (
        f"{text}, seeds alone about {spread * range_by_chance(len(singles)):.1f}")


def batch_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Beyond the papers: k, windows and lists live in the batch, so its size is a parameter of each
    of them. Learning rate and epochs stay: a batch of half the size takes twice the steps. The
    base's own size is always among them."""
    arms = in_one_model(dataset, parameters, parameters.batch_seeds, {
        loss: COMPARED[loss] for loss in parameters.batch_losses})
    sizes = sorted({*parameters.batches, arms[0].config.settings.batch_size})
    return [ArmRun(f"{arm.label}@batch={size}", arm.config.with_(**{"settings.batch_size": size}))
            for size in sizes for arm in arms]


def margin_check_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Are soft negatives a larger margin? The smooth maximum of n equal negatives lies log(n) /
    gamma above them: the hardest negative at a margin larger by that, n = 127 as in a batch."""
    margin = round(0.2 + math.log(127) / DEFAULTS["scale"], 3)
    return in_one_model(dataset, parameters, parameters.alpha_seeds, {
        f"hardest(margin={margin:g})": (TERMS["hardest"] | {"arguments": {"margin": margin}},)})


def bcls_plug_in_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Tables III-V: every setting with the hardest negative, and with the paper's objective."""
    return plugged_in(dataset, parameters, parameters.bcls_settings, parameters.bcls_seeds, "bcls",
                      BRANCHES["bcls"])


def compared_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Tables V-VII in 06, and all of them in 13: which ranking loss should I use? One model, seeds,
    budget."""
    return in_one_model(dataset, parameters, parameters.compared_seeds,
                        {label: COMPARED[label] for label in parameters.compared})


def compared_rate_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Its control: would another learning rate change the answer? Multiples of it, seed 0."""
    first = [arm for arm in compared_arms(dataset, parameters)
             if arm.config.seed == 0 and arm.label in parameters.rate_losses]
    return [ArmRun(f"{arm.label}@{times:g}", arm.config.with_(
        **{"settings.learning_rate": times * arm.config.settings.learning_rate}))
        for times in parameters.rate_factors for arm in first]


CLAIMED = (bcls_plug_in_arms, branch_arms, alpha_arms, beta_arms, sampling_arms, gamma_arms,
           margin_check_arms, compared_arms)
ARMS = (*CLAIMED, window_weight_arms, grid_arms, batch_arms)
