"""The arms of notebook 06: soft negatives, the Kendall loss by sliding windows, and their rivals.

"windows" is SW-HS alone, "bcls" is soft negatives with it, the paper's whole objective.
"""

from types import SimpleNamespace
from typing import Any

from itr_study.arms import (
    TERMS,
    Arm,
    base_config,
    frozen_rates,
    over_seeds,
    sum_of,
    with_loss,
)
from itr_study.losses import LOSSES

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


def changed(term: str, **arguments: float) -> dict[str, Any]:
    """A term of TERMS with other arguments; the defaults are left out, so that runs are shared."""
    chosen = {name: value for name, value in arguments.items() if value != DEFAULTS[name]}
    return TERMS[term] | ({"arguments": chosen} if chosen else {})


def branch_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Tables VIII and IX, Fig. 4: the branches alone and together, and the hardest negative."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for label, names in BRANCHES.items()
            for arm in over_seeds(label, sum_of(start, *names), knobs.seeds)]


def alpha_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Fig. 5 (a), (b): alpha, size of a window and relaxation; the default's runs are "bcls"."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for alpha in knobs.alphas for arm in over_seeds(
        f"alpha={alpha:g}", sum_of(start, "soft", changed("windows", relaxation=alpha)),
        knobs.sweep_seeds)]


def beta_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Fig. 5 (c), (d): beta, the stride; the default's runs are "bcls"."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for beta in knobs.betas for arm in over_seeds(
        f"beta={beta:g}", sum_of(start, "soft", changed("windows", stride=beta)),
        knobs.sweep_seeds)]


def sampling_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Fig. 5, "w/o SW-HS", and what the paper leaves out: the Kendall loss of Eq. 17 on all pairs,
    that of Eq. 4 (no relaxation), and all pairs of all windows (Eq. 18)."""
    start = base_config(dataset, "two_branch", knobs)
    terms = {"soft+kendall": TERMS["kendall"],
             "soft+kendall(plain)": TERMS["kendall"] | {"arguments": {"relaxation": 0.0}},
             "soft+sw": TERMS["windows"] | {"arguments": {"hard": False}}}
    return [arm for label, term in terms.items()
            for arm in over_seeds(label, sum_of(start, "soft", term), knobs.sweep_seeds)]


def gamma_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Beyond the paper: gamma, how near soft negatives come to the hardest; without windows."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for gamma in knobs.gammas for arm in over_seeds(
        f"gamma={gamma:g}", sum_of(start, changed("soft", scale=gamma)), knobs.sweep_seeds)]


def bcls_plug_in_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Tables III-V: every setting with the hardest negative, and with the paper's objective.

    The learning rate is the one chosen for the hardest negative: the gain is no search's.
    """
    arms = []
    for name in knobs.bcls_settings:
        alone = with_loss(dataset, name, knobs, "hardest", frozen_rates(dataset)[name]["hardest"])
        arms += over_seeds(f"{name}/hardest", alone, knobs.bcls_seeds)
        arms += over_seeds(f"{name}/bcls", sum_of(alone, "soft", "windows"), knobs.bcls_seeds)
    return arms


def compared_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Tables V-VII, and beyond: which ranking loss should I use? One model, seeds, budget."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for label in knobs.compared
            for arm in over_seeds(label, sum_of(start, *COMPARED[label]), knobs.seeds)]
