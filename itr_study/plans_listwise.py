"""The arms of notebook 05: Smooth-NDCG beside a pairwise loss, its temperature, labels and rivals.

Labels: "hardest+listwise" is the sum of two terms; "<setting>/<terms>" names a setting of Table IV.
"""

from types import SimpleNamespace

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

TAU = LOSSES["smooth_ndcg"]().temperature  # the paper's, and the loss's default


def plug_in_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Tables II-IV: every setting with the hardest negative, alone and beside Smooth-NDCG.

    The learning rate is the one chosen for the hardest negative alone: the gain is no search's.
    """
    arms = []
    for name in knobs.plug_in_settings:
        alone = with_loss(dataset, name, knobs, "hardest", frozen_rates(dataset)[name]["hardest"])
        arms += over_seeds(f"{name}/hardest", alone, knobs.plug_in_seeds)
        arms += over_seeds(f"{name}/hardest+listwise", sum_of(alone, "hardest", "listwise"),
                           knobs.plug_in_seeds)
    return arms


def added_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Is + Listwise better, whatever the loss it is added to? In the knob sweeps' model."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for loss in knobs.losses for label, config in (
        (loss, sum_of(start, loss)), (f"{loss}+listwise", sum_of(start, loss, "listwise")))
        for arm in over_seeds(label, config, knobs.seeds)]


def term_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Tables V-VII: the terms alone and together."""
    start = base_config(dataset, "two_branch", knobs)
    terms = {"hardest": ("hardest",), "listwise": ("listwise",),
             "hardest+listwise": ("hardest", "listwise")}
    return [arm for label, names in terms.items()
            for arm in over_seeds(label, sum_of(start, *names), knobs.seeds)]


def tau_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Figs. 7-9: the temperature of Smooth-NDCG beside the hardest negative.

    At the default temperature the runs are those of "hardest+listwise", trained once.
    """
    start, arms = base_config(dataset, "two_branch", knobs), []
    for tau in knobs.taus:
        chosen = {} if tau == TAU else {"arguments": {"temperature": tau}}
        arms += over_seeds(f"tau={tau:g}", sum_of(start, "hardest", TERMS["listwise"] | chosen),
                           knobs.tau_seeds)
    return arms


def label_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Where the labels come from: sentence vectors (the paper); "cider", the control for leakage,
    whose maker saw no captions; "binary", a list of matches and the rest, without any relevance."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for source in knobs.label_sources for arm in over_seeds(
        f"hardest+listwise({source})", sum_of(start, "hardest", TERMS["listwise"] | {
            "labels": source}), knobs.seeds)]


def rival_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """What else ranks lists: a softmax over the batch, ListNet, ApproxNDCG."""
    start = base_config(dataset, "two_branch", knobs)
    terms = {"info_nce": ("info_nce",), "hardest+listnet": ("hardest", "listnet"),
             "hardest+approx_ndcg": ("hardest", "approx_ndcg")}
    return [arm for label, names in terms.items()
            for arm in over_seeds(label, sum_of(start, *names), knobs.seeds)]
