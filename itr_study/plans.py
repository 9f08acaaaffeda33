"""Which runs each notebook trains. An arm is a label of the ledger with one run per seed.

    knobs = choose("03_topk", "quick")
    rows = train_arms(k_arms("scenes", knobs), root=None)     one row per run, with its arm

Arms of topk and of the pairwise losses stand here, those of the other papers in plans_<paper>.py;
labels are explained in reported/README.md; numbers come from profiles.toml, base configs from
bases/<dataset>.toml.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from itr_study.arms import (
    TABLE_IV,
    TERMS,
    Arm,
    base_config,
    frozen_rates,
    over_seeds,
    with_loss,
)
from itr_study.checks import check_choice
from itr_study.configs import RunConfig
from itr_study.losses import LOSSES
from itr_study.plans_bcls import (
    alpha_arms,
    bcls_plug_in_arms,
    beta_arms,
    branch_arms,
    compared_arms,
    compared_rate_arms,
    gamma_arms,
    sampling_arms,
)
from itr_study.plans_listwise import (
    added_arms,
    label_arms,
    plug_in_arms,
    rival_arms,
    tau_arms,
    term_arms,
)
from itr_study.profiles import choose
from itr_study.sweeps import sweep


def k_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Fig. 6: k of the mean, with the sum over all negatives and the k-th one alone apart."""
    start = base_config(dataset, "two_branch", knobs)
    terms = {f"k={k}": {"loss": "topk", "arguments": {"k": k}} for k in knobs.ks}
    terms |= {"sum": TERMS["sum"], "kth=5": {"loss": "kth", "arguments": {"k": 5}}}
    return [arm for label, term in terms.items()
            for arm in over_seeds(label, start.with_(**{"objective.0": term}), knobs.seeds)]


def d_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Fig. 7: the embedding dimension at k = 5."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for d in knobs.dims for arm in over_seeds(
        f"d={d}", start.with_(**{"model_arguments.size": d}), knobs.dim_seeds)]


def setting_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Table IV: every setting with every loss, each at its frozen learning rate."""
    rates = frozen_rates(dataset)
    return [arm for name in knobs.settings for loss in TABLE_IV for arm in over_seeds(
        f"{name}/{loss}", with_loss(dataset, name, knobs, loss, rates[name][loss]),
        knobs.setting_seeds)]


def rate_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """The search behind `frozen_rates`: three learning rates of each setting and loss, one seed."""
    return [Arm(f"{name}/{loss}/{rate:g}", with_loss(dataset, name, knobs, loss, rate))
            for name in knobs.settings for loss in TABLE_IV for rate in knobs.rates]


def loss_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: every loss of the registry's pairwise kind in the knob sweeps' model."""
    start = base_config(dataset, "two_branch", knobs)
    return [arm for loss in knobs.losses for arm in over_seeds(
        loss, start.with_(**{"objective.0": TERMS[loss]}), knobs.seeds)]


def margin_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: the margin of the hardest-negative loss; the default's runs are "hardest"."""
    start, default = base_config(dataset, "two_branch", knobs), LOSSES["triplet_hardest"]().margin
    terms = {f"margin={margin:g}": TERMS["hardest"] | (
        {} if margin == default else {"arguments": {"margin": margin}}) for margin in knobs.margins}
    return [arm for label, term in terms.items()
            for arm in over_seeds(label, start.with_(**{"objective.0": term}), knobs.margin_seeds)]


def sibling_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: other captions of the same image as negatives (published code) or matches,
    which is what they are by default: those runs are the ones of `loss_arms`."""
    start = base_config(dataset, "two_branch", knobs)
    ways = {"positive": {}, "negative": {"label_arguments": {"same_image": "negative"}}}
    return [arm for loss in ("sum", "hardest") for same, change in ways.items()
            for arm in over_seeds(f"{loss}, siblings {same}", start.with_(
                **{"objective.0": TERMS[loss] | change}), knobs.sibling_seeds)]


def collapse_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 02: the hardest negative from scratch at a high learning rate, and its remedies."""
    start = base_config(dataset, "collapse", knobs)
    warm = {"objective.0": TERMS["hardest"], "warmup_objective": [TERMS["sum"]],
            "settings.warmup_epochs": 1}
    slow = {"objective.0": TERMS["hardest"],
            "settings.learning_rate": start.settings.learning_rate / 10}
    changes = {"hardest": {"objective.0": TERMS["hardest"]}, "one epoch of sum first": warm,
               "a tenth of the rate": slow, "soft": {"objective.0": TERMS["soft"]},
               "top5": {"objective.0": TERMS["top5"]}}
    return [arm for label, change in changes.items()
            for arm in over_seeds(label, start.with_(**change), knobs.collapse_seeds)]


def best_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """The best single model of a data set, as frozen in its base configs."""
    return over_seeds("best", base_config(dataset, "best", knobs), knobs.best_seeds)


def first_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 00: one model, trained in about a minute."""
    return over_seeds("first", base_config(dataset, "first", knobs), 1)


def ledger_arms(dataset: str, knobs: SimpleNamespace) -> list[Arm]:
    """Notebook 12: every arm that the claims of the papers chosen name, each once.

    Papers share arms, such as "sum". Raises: ValueError where one label means two runs.
    """
    makers = {"topk": (k_arms, d_arms, setting_arms), "listwise": ARMS["05_listwise"],
              "bcls": BCLS}
    for paper in knobs.papers:
        check_choice("paper of the ledger", paper, makers)
    arms = {}
    for arm in (arm for paper in knobs.papers for make in makers[paper]
                for arm in make(dataset, knobs)):
        key = (arm.label, arm.config.seed)
        if arms.setdefault(key, arm).config != arm.config:
            raise ValueError(f"arm {arm.label!r}, seed {arm.config.seed}, names two runs; "
                             "give one of them another label")
    return list(arms.values())


def train_arms(arms: Sequence[Arm], *, root: Path | str | None = None,
               figures: Path | str | None = None, workers: int = 2) -> pd.DataFrame:
    """One row per arm and seed, trained where it is missing, with its label in `arm` and its
    model in words in `model`."""
    rows = sweep([arm.config for arm in arms], root=root, figures=figures, workers=workers)
    words = [f"{c.model} on {c.images}, {c.sentences or c.tokens}"
             for c in (arm.config for arm in arms)]
    return rows.assign(arm=[arm.label for arm in arms], model=words)


Maker = Callable[[str, SimpleNamespace], list[Arm]]
BCLS: tuple[Maker, ...] = (bcls_plug_in_arms, branch_arms, alpha_arms, beta_arms, sampling_arms,
                           gamma_arms, compared_arms)
ARMS: dict[str, tuple[Maker, ...]] = {
    "00_start_here": (first_arms,),
    "02_pairwise_losses": (loss_arms, margin_arms, sibling_arms, collapse_arms),
    "03_topk": (k_arms, d_arms, rate_arms, setting_arms, best_arms),
    "05_listwise": (plug_in_arms, added_arms, term_arms, tau_arms, label_arms, rival_arms),
    "06_kendall": (*BCLS, compared_rate_arms),
    "12_claims": (ledger_arms,),
}


def configs_of(notebook: str, dataset: str, profile: str) -> list[RunConfig]:
    """Every run of a notebook in a profile."""
    knobs = choose(notebook, profile)
    arms: Iterable[Arm] = (arm for make in ARMS[notebook] for arm in make(dataset, knobs))
    return [arm.config for arm in arms]


PLANS: dict[str, Callable[[str, str], list[RunConfig]]] = {
    notebook: lambda dataset, profile, notebook=notebook: configs_of(notebook, dataset, profile)
    for notebook in ARMS}
