"""Names of losses, settings and arms for readers, and where they go in a picture."""

import re
from collections.abc import Sequence

from itr_study.losses import LOSSES, OUTPUT_LOSSES
from itr_study.models import MODELS

# Short names of losses in the labels of arms.
SHORT = {"sum": "triplet_sum", "hardest": "triplet_hardest", "soft": "triplet_soft",
         "listwise": "smooth_ndcg", "windows": "kendall_window", "sam": "semantic_margin"}
INPUTS = {"fisher": "Fisher", "sentence": "MiniLM", "gru": "GRU", "bigru-glove": "BiGRU, GloVe",
          "sigmoid": "sigmoid", "last": "last state", "five": "five captions",
          "ten": "Fisher, ten crops", "hglmm": "HGLMM"}
# Base configs that are shown under a name of their own; SGRAF is SAF and SGR together.
JUDGES = {"clean_gru": "Clean GRU", "dspe": "DSPE", "sgraf": "SGRAF",
          "text_frozen": "frozen", "text_last": "last layers", "text_all": "all layers"}
CONDITION = re.compile(r"(.+), (noise=|vagueness=|rate=|without )(\w[\w.]*)")  # of training
TWO = "*"  # behind an arm: the mean of the scores of two of its runs
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "tau": "τ", "bound": "bound β",
         "balance": "balance η", "texts": "embeddings of a text"}
RERANKED = {"fast": "FR", "fast_bank": "FR with a bank", "reciprocal": "RR", "multi": "MR"}
OTHER = {"bcls": "soft + windows", "top5": "top-5", "k=1": "hardest (k = 1)",
         "sw": "windows, all pairs",
         # parts of DVSE; K counts heads
         "mask": "mask", "var": "weights", "ort": "orthogonality", "heads": "heads alone",
         "single": "single embedding", "joined": "joined captions", "K=none": "K = none",
         # what the dvse paper leaves open, chosen otherwise
         "s=sigmoid": "sigmoid for tanh", "s=identity": "no tanh", "mask=loss": "mask in the loss",
         "score=mean": "mean over heads", "text=last": "texts by their last state",
         "sigma=gradient": "σ with a gradient", "sigma=softmax": "σ of the softmax",
         "ort=mean": "β bounds the mean", "ort=pair": "β bounds each pair"}
# One arm under two names: ApproxNDCG is Smooth-NDCG at this temperature, but for a constant.
TWICE = "τ = 0.1 (= ApproxNDCG)"
SAME = {"tau=0.1": TWICE, "hardest+approx_ndcg": TWICE}


def name_of(arm: str) -> str:
    """Name a loss, a setting or an arm for readers; leave any other name as it is.

    Example:
        >>> name_of("topk"), name_of("hardest+listwise"), name_of("bcls"), name_of("tau=0.01")
        ('top-k', 'hardest + Smooth-NDCG', 'soft + windows', 'τ = 0.01')
        >>> name_of("two_branch+fisher/top5"), name_of("k=5 − sum"), name_of("other images")
        ('Two-branch, Fisher: top-5', 'top-5 − sum', 'other images')
        >>> name_of("soft+0.3×windows"), name_of("alpha=0.2,beta=0.1"), name_of("sum@batch=64")
        ('soft + 0.3 × windows', 'α = 0.2, β = 0.1', 'sum, batches of 64')
        >>> name_of("clean_gru/hardest@fast"), name_of("clean_gru")
        ('Clean GRU: hardest, FR', 'Clean GRU')
        >>> name_of("dvse/mask+var+ort"), name_of("pvse/K=2"), name_of("bound=0.4")
        ('DVSE: mask + weights + orthogonality', 'PVSE: K = 2', 'bound β = 0.4')
        >>> name_of("hardest@fast"), name_of("hardest@fast(best 1<2)")
        ('hardest, FR', 'hardest, FR (best first < second)')
        >>> name_of("sgraf/bcls@fast"), name_of("vse_infinity/hardest*")
        ('SGRAF: soft + windows, FR', 'VSE∞: hardest, two runs')
        >>> name_of("clean_gru/bcls, noise=0.4"), name_of("top5, without near_duplicates")
        ('Clean GRU: soft + windows, 40 % wrong matches', 'top-5, without near-duplicates')
    """
    if " − " in arm:
        return " − ".join(map(name_of, arm.split(" − ")))
    if found := CONDITION.fullmatch(arm):
        return f"{name_of(found[1])}, " + (
            f"{100 * float(found[3]):g} % wrong matches" if found[2] == "noise=" else
            (found[2] + found[3]).replace("=", " ").replace("near_", "near-").replace("_", " "))
    before, _, reranker = arm.partition("@")
    if arm in RERANKED:
        return RERANKED[arm]
    method, bracket, scales = reranker.partition("(")
    if method in RERANKED:
        scales = re.sub("1([<=>])2", r"first \1 second", scales)
        return f"{name_of(before)}, {RERANKED[method]}{bracket and ' (' + scales}"
    if reranker.startswith("batch="):
        return f"{name_of(before)}, batches of {reranker.removeprefix('batch=')}"
    if arm.endswith(TWO):
        return f"{name_of(arm.removesuffix(TWO))}, two runs"
    if re.fullmatch(r"\w+=[\d.]+,\w+=[\d.]+", arm):
        return ", ".join(map(name_of, arm.split(",")))
    setting, slash, terms = arm.partition("/")
    model, plus, inputs = setting.partition("+")
    if model in MODELS or setting in JUDGES:
        named = JUDGES.get(setting) or MODELS[model].display_name + (
            f", {INPUTS.get(inputs, inputs)}" if plus else "")
        return f"{named}: {name_of(terms)}" if slash else named
    if arm in SAME:
        return SAME[arm]
    if arm.startswith("labels("):  # a label source, of which nothing is trained
        return arm.removeprefix("labels(").removesuffix(")")
    hyperparameter, equals, value = arm.partition("=")
    if equals and arm not in OTHER and re.fullmatch(r"[\d.e-]+(\(\w+\))?", value):
        value = value.replace("(", " (")  # of labels: "alpha=0.4(cider)"
        if hyperparameter == "k":
            return f"top-{value}"
        return (f"k-th, k = {value}" if hyperparameter == "kth"
                else f"{GREEK.get(hyperparameter, hyperparameter)} = {value}")
    names = [_term(term) for term in arm.split("+")]
    return arm if None in names else " + ".join(names)


def _term(term: str) -> str | None:
    """Name one of the losses that are added, with its brackets; None: no loss."""
    weight, times, weighed = term.partition("×")
    if times:
        return (name := _term(weighed)) and f"{weight} × {name}"
    loss, bracket, rest = term.partition("(")
    if loss in OTHER:
        name = OTHER[loss]
    elif (loss := SHORT.get(loss, loss)) in LOSSES | OUTPUT_LOSSES:
        name = (LOSSES | OUTPUT_LOSSES)[loss].display_name
    else:
        return None
    return f"{name} ({rest}" if bracket else name


def joined(names: Sequence[str]) -> str:
    """Join names in a sentence.

    Example:
        >>> joined(["RSUM"]), joined(["RSUM", "mass", "hit"])
        ('RSUM', 'RSUM, mass and hit')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
