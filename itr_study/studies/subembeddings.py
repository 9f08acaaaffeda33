"""The arms of notebook 07: parts of DVSE switched on and off, numbers of heads, bounds, balances.

Labels: "dvse/mask+var+ort" is DVSE whole, "dvse/single" has no heads at all, "dvse/heads" has heads
and nothing that keeps them apart; "K=6", "bound=0.4" and "balance=0.6" *are* "dvse/mask+var+ort".
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from itr_study.losses import OUTPUT_LOSSES
from itr_study.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.studies.dvse import RERANKED  # FR on top
from itr_study.training.objective import BALANCE

BASE = "dvse"
WHOLE, SINGLE = "dvse/mask+var+ort", "dvse/single"
BOUND = OUTPUT_LOSSES["orthogonality"]().bound
# Table V, rows 1 to 7. Without "var" every head counts alike; without "ort" the triplet loss is
# all; without "mask" every head is on.
COMPONENTS = (WHOLE, "dvse/var+ort", "dvse/ort", "dvse/heads", SINGLE, "dvse/mask+var",
              "dvse/mask+ort")
# Of these a claim needs five seeds: all of Table V, and of Table VI the smaller half.
DECIDING = {*COMPONENTS, "K=none", "K=2", "K=4", "K=6"}
# What the paper leaves open: a choice other than ours, one at a time.
CHOICES: dict[str, Mapping[str, Any]] = {
    "s=sigmoid": {"model_arguments.activation": "sigmoid"},
    "s=identity": {"model_arguments.activation": "identity"},
    "mask=loss": {"model_arguments.mask": "loss"},
    "score=mean": {"model_arguments.aggregate": "mean"},
    "text=last": {"model_arguments.text_attention": False},
    "sigma=gradient": {"objective.0.arguments": {"detach": False}},
    "sigma=softmax": {"objective.0.arguments": {"spread": "softmax"}},
    "ort=mean": {"objective.1.arguments": {"over": "mean"}},
    "ort=pair": {"objective.1.arguments": {"over": "pair"}}}


def component_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Table V: those of `parameters.components`."""
    return [run for label in parameters.components
            for run in _seeded(label, dataset, parameters, _component(label))]


def head_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Table VI: numbers of heads; 0 is "K=none", the single embedding of Table V."""
    return [run for heads in parameters.heads for run in _seeded(
        f"K={heads or 'none'}", dataset, parameters,
        {"model_arguments.heads": heads} if heads else _component(SINGLE))]


def bound_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 8: how much correlation of heads is free (the paper's β); 0, 0.0 and -0.0 are one run.
    """
    return [run for bound in (bound + 0.0 for bound in parameters.bounds) for run in _seeded(
        f"bound={bound:g}", dataset, parameters,
        {} if bound == BOUND else {"objective.1.arguments": {"bound": bound}})]


def balance_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 9: the weight of the triplet loss, one less it of the orthogonality (the paper's η)."""
    return [run for balance in parameters.balances for run in _seeded(
        f"balance={balance:g}", dataset, parameters, {} if balance == BALANCE else _balanced(
            balance))]


def choice_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """What the paper leaves open, each chosen otherwise than by us: "dvse/s=sigmoid" …"""
    return [run for choice in parameters.choices
            for run in _seeded(f"dvse/{choice}", dataset, parameters, CHOICES[choice])]


def pvse_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Table III and its claim: PVSE with several numbers of embeddings, "pvse/K=2"; with one there
    is nothing to keep apart."""
    start = base_config(dataset, "pvse", parameters)
    return [run for heads in parameters.pvse_heads for run in over_seeds(
        f"pvse/K={heads}", start.with_(**{"model_arguments.heads": heads}), parameters.seeds,
        RERANKED)]


CLAIMED: tuple[Maker, ...] = (component_arms, head_arms, bound_arms, balance_arms, pvse_arms)
SUBEMBEDDINGS: tuple[Maker, ...] = (*CLAIMED, choice_arms)  # of notebook 07


def claimed_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Notebook 12: the arms that claims name, over `parameters.dvse_seeds` and, of those that do
    not decide, `parameters.dvse_other_seeds`; none at all where both are 0, on any data."""
    own = SimpleNamespace(**vars(parameters) | {"seeds": parameters.dvse_seeds,
                                                "other_seeds": parameters.dvse_other_seeds})
    return [run for make in CLAIMED for run in make(dataset, own)] if (
        own.seeds or own.other_seeds) else []


def check_components(values: Sequence[str]) -> None:
    """Raise ValueError unless the parts of DVSE hold what every one is held against."""
    if missing := {WHOLE, SINGLE} - set(values):
        raise ValueError(f"components are held against {WHOLE} and {SINGLE}: name "
                         f"{' and '.join(sorted(missing))}, too")


def check_heads(values: Sequence[int]) -> None:
    """Raise ValueError unless the numbers of heads hold none at all, for the same reason."""
    if 0 not in values:
        raise ValueError(f"heads = {list(values)} are held against a single embedding: name 0, too")


def _component(label: str) -> dict[str, Any]:
    """What a row of Table V changes of the base."""
    parts = set(label.removeprefix("dvse/").split("+"))
    changes: dict[str, Any] = {} if "mask" in parts else {"model_arguments.mask": "off"}
    if "single" in parts:
        changes = {"model_arguments.heads": 0}
    if "var" not in parts:
        changes["objective.0.arguments"] = {"weights": "equal"}
    if "ort" not in parts:  # no weight, but its place: the curve then says how alike heads are
        changes["objective.1.weight"] = 0.0
    return changes


def _balanced(balance: float) -> dict[str, Any]:
    """The weights of both terms; with 1 the orthogonality is left out, 1 - balance as we write it.
    """
    return {"objective.0.weight": balance, "objective.1.weight": round(1 - balance, 9)}


def _seeded(label: str, dataset: str, parameters: SimpleNamespace,
            changes: Mapping[str, Any]) -> list[ArmRun]:
    seeds = parameters.seeds if label in DECIDING else parameters.other_seeds
    config = base_config(dataset, BASE, parameters, **changes)
    return over_seeds(label, config, seeds, RERANKED)
