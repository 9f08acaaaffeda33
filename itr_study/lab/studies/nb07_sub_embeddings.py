"""The arms of notebook 07: parts of DVSE switched on and off, numbers of heads, bounds, balances.

Labels: "dvse/mask+var+ort" is DVSE whole, "dvse/single" has no heads at all, "dvse/heads" has heads
and nothing that keeps them apart; "K=6", "bound=0.4" and "balance=0.6" *are* "dvse/mask+var+ort".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, field_validator
from torch import Tensor

from itr_study.evaluation.pointing import detected_objects, pointing
from itr_study.evaluation.search import Searcher
from itr_study.lab.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.lab.studies.nb08_reranking import RERANKED  # FR on top
from itr_study.lab.studies.parameters import Names, Parameters, by_profile, like
from itr_study.losses import OUTPUT_LOSSES
from itr_study.metrics.attention import rank_map, region_cosines
from itr_study.metrics.correlation import head_correlation, mean_correlation
from itr_study.metrics.entropy import TEMPERATURE, score_entropy
from itr_study.metrics.retrieval_sets import r_precision
from itr_study.metrics.truth import Truth
from itr_study.models.base import ModelOutput
from itr_study.models.subembeddings import MOST_HEADS
from itr_study.training.collapse import TENTH
from itr_study.training.objective import BALANCE

# What the heads of trained models do: how alike they are, how sure, where they look.
#
#     whole = study.searcher(study.first(subembeddings.component_arms, subembeddings.WHOLE))
#     entropies({"DVSE": whole})          a line for each image and head

NEVER = TENTH / 2  # of images; a head on in fewer, or off in fewer, does not choose


def output_of(searcher: Searcher) -> ModelOutput:
    """What a model says of all images and texts of a split at once, heads included."""
    return searcher.model.score(searcher.images, searcher.texts)


def parts_of(searcher: Searcher, *names: str) -> list[Tensor]:
    """Fields of that, such as residuals, (I, K, D). ValueError for a model that has none."""
    found = vars(output_of(searcher))
    if lacking := [name for name in names if found[name] is None]:
        raise ValueError(f"{' and '.join(lacking)} are of models with several vectors of an image, "
                         f"such as dvse or pvse; {type(searcher.model).__name__} gives none: take "
                         "one of these")
    return [found[name] for name in names]


def entropies(searchers: Mapping[str, Searcher], temperature: float = TEMPERATURE) -> pd.DataFrame:
    """Embedding entropy (dvse Eq. 2) of every image: by each head against all texts of a split.

    Returns: kind (the name of the model, with "each head" where it has several), image, head (from
             1), nats, noise; a text that has several embeddings stands for its closest one.
    """
    tables = []
    for name, searcher in searchers.items():
        (heads,) = parts_of(searcher, "head_scores")  # (K, I, T)
        kind = name if len(heads) == 1 else f"{name}, each head"
        for head, scores in enumerate(heads.numpy(), 1):
            found = score_entropy(scores, searcher.split.image_of_text, temperature)
            tables.append(pd.DataFrame({"kind": kind, "image": np.arange(len(scores)),
                                        "head": head, "nats": found.nats, "noise": found.noise}))
    return pd.concat(tables, ignore_index=True)


def correlations(searchers: Mapping[str, Searcher], image: int) -> dict[str, np.ndarray]:
    """Fig. 6: |cosine| of what the heads of one image add, (K, K) for each model."""
    return {name: head_correlation(parts_of(one, "residuals")[0][image:image + 1])[0]
            for name, one in searchers.items()}


def mean_correlations(searchers: Mapping[str, Searcher],
                      finished: bool = False) -> dict[str, float]:
    """The same off the diagonal, over all images and their heads that are on: a picture is of one.
    NaN for a model that has no two heads on in any image.

    Args:    finished: of the vectors that are compared, in which the whole has its part, too.
    """
    vectors, means = "subembeddings" if finished else "residuals", {}
    for name, one in searchers.items():
        values, mask = parts_of(one, vectors, "mask")
        pairs = (mask.sum(dim=1) > 1).any()
        means[name] = mean_correlation(values, mask) if pairs else math.nan
    return means


def image_precision(searcher: Searcher) -> float:
    """R-Precision of image queries in percent: how many of an image's m texts are among its first
    m. (A text has one image, so that its R-Precision is its R@1.)"""
    split = searcher.split
    truth = Truth(split.image_of_text, len(split.image_ids))
    return 100 * r_precision(searcher.scores, truth)["i2t_r_precision"]


def mask_table(searcher: Searcher) -> pd.DataFrame:
    """How often each head of a model is on, over the images of a split: head, on (share), chooses
    (whether it is on for some images and off for others: for at least 5 % of them each)."""
    on = parts_of(searcher, "mask")[0].numpy().mean(axis=0)
    return pd.DataFrame({"head": np.arange(1, len(on) + 1), "on": on,
                         "chooses": (on > NEVER) & (on < 1 - NEVER)})


def maps_of(searcher: Searcher) -> dict[str, np.ndarray]:
    """Where the heads of DVSE look, (I, K, R): the softmax over regions, and the paper's rank map
    of regions by their cosine with a sub-embedding.

    Raises:  ValueError for a model without heads, and one whose regions are not projected to where
             its vectors lie, such as pvse.
    """
    output = output_of(searcher)
    if output.attention is None or not output.attention.shape[1] \
            or output.text_subembeddings is not None:
        raise ValueError("maps are those of heads that look at projected regions, such as dvse's "
                         f"with heads >= 1; got {type(searcher.model).__name__} without: take one "
                         "with")
    batch = searcher.encoded.image_batch(np.arange(searcher.encoded.n_images))
    projected = searcher.model.image.regions(batch.regions).detach()
    mask = batch.region_mask.numpy()
    cosines = region_cosines(output.subembeddings, projected)
    return {"attention": output.attention.numpy(), "rank map": rank_map(cosines, mask[:, None])}


def head_frames(searcher: Searcher) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The vectors that each head gives all images of a split, beside the one of each text: "head 1"
    -> images (I, D), texts (T, D), whose inner products are the head's scores. For the map.

    Raises:  ValueError for a model without heads, and one that gives a text several vectors.
    """
    output = output_of(searcher)
    if output.subembeddings is None or output.text_subembeddings is not None:
        raise ValueError("the heads of a map are those of a model with several vectors for an "
                         "image and one for a text, such as dvse; got "
                         f"{type(searcher.model).__name__}")
    return {f"head {head}": (vectors.numpy(), searcher.texts.numpy())
            for head, vectors in enumerate(output.subembeddings.unbind(dim=1), start=1)}


def pointing_rows(searchers: Sequence[Searcher]) -> pd.DataFrame:
    """How much of a head's map lies on one object, and how many objects the heads of an image
    cover, on generated data: map, seed (the place of the searcher), focus, coverage, percent."""
    records = []
    for seed, searcher in enumerate(searchers):
        encoded = searcher.encoded
        mask = encoded.image_batch(np.arange(encoded.n_images)).region_mask.numpy()
        shown = detected_objects(searcher.dataset, searcher.split, mask)
        records += [(name, seed, 100 * found.focus.mean(), 100 * found.coverage.mean())
                    for name, found in pointing(maps_of(searcher), shown, mask).items()]
    return pd.DataFrame(records, columns=["arm", "seed", "focus", "coverage"])


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


Heads = Annotated[int, Field(ge=0, le=MOST_HEADS)]
Several = Annotated[int, Field(ge=1, le=MOST_HEADS)]
Balance = Annotated[float, Field(gt=0, le=1)]


class SubEmbeddingClaims(Parameters):
    """Parameters of notebooks 07 and 12: what claims are about."""

    components: Names = by_profile(
        'rows of Table V, such as "dvse/heads"', *2 * [[WHOLE, "dvse/heads", SINGLE]],
        list(COMPONENTS), among=COMPONENTS)
    heads: list[Heads] = by_profile(
        "sub-embeddings of an image, 0: a single embedding", *2 * [[0, 2, 6]],
        [0, 2, 4, 6, 8, 10, 12])
    bounds: list[NonNegativeFloat] = by_profile(
        "bounds of the orthogonality (β), |cosine|, 0 and up", [0.0, 0.4], [0.4, 1.0],
        [0.0, 0.2, 0.4, 0.6, 1.0])
    balances: list[Balance] = by_profile(
        "weights of the ranking loss (η), above 0, 1 at most", *2 * [[0.6, 1.0]],
        [0.2, 0.4, 0.6, 0.8, 1.0])
    pvse_heads: list[Several] = by_profile(
        "embeddings of PVSE, 1 and up", [1, 2], [1, 4], [1, 2, 4])

    @field_validator("components")
    @classmethod
    def check_components(cls, values: Names) -> Names:
        if missing := {WHOLE, SINGLE} - set(values):
            raise ValueError(f"components are held against {WHOLE} and {SINGLE}: name "
                             f"{' and '.join(sorted(missing))}, too")
        return values

    @field_validator("heads")
    @classmethod
    def check_heads(cls, values: list[int]) -> list[int]:
        if 0 not in values:
            raise ValueError(f"heads = {values} are held against a single embedding: name 0, too")
        return values


class SubEmbeddingParameters(SubEmbeddingClaims, title="07_sub_embeddings"):
    """Parameters of notebook 07."""

    epochs: NonNegativeInt = like(Parameters, "epochs", smoke=6)  # five of them are warm-up
    seeds: PositiveInt = by_profile("runs of the parts and numbers of heads that decide", 1, 2, 5)
    other_seeds: PositiveInt = by_profile("runs of all else", 1, 1, 3)
    choices: Names = by_profile("what the paper leaves open, chosen otherwise", ["mask=loss"], [
        "s=sigmoid", "ort=mean"], list(CHOICES), among=CHOICES)


def component_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Table V: those of `parameters.components`."""
    return [run for label in parameters.components
            for run in _seeded(label, dataset, parameters, _component(label))]


def head_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Table VI: numbers of heads; 0 is "K=none", the single embedding of Table V."""
    return [run for heads in parameters.heads for run in _seeded(
        f"K={heads or 'none'}", dataset, parameters,
        {"model_arguments.heads": heads} if heads else _component(SINGLE))]


def bound_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Fig. 8: how much correlation of heads is free (the paper's β); 0, 0.0 and -0.0 are one run.
    """
    return [run for bound in (bound + 0.0 for bound in parameters.bounds) for run in _seeded(
        f"bound={bound:g}", dataset, parameters,
        {} if bound == BOUND else {"objective.1.arguments": {"bound": bound}})]


def balance_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Fig. 9: the weight of the triplet loss, one less it of the orthogonality (the paper's η)."""
    return [run for balance in parameters.balances for run in _seeded(
        f"balance={balance:g}", dataset, parameters, {} if balance == BALANCE else _balanced(
            balance))]


def choice_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """What the paper leaves open, each chosen otherwise than by us: "dvse/s=sigmoid" …"""
    return [run for choice in parameters.choices
            for run in _seeded(f"dvse/{choice}", dataset, parameters, CHOICES[choice])]


def pvse_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Table III and its claim: PVSE with several numbers of embeddings, "pvse/K=2"; with one there
    is nothing to keep apart."""
    start = base_config(dataset, "pvse", parameters)
    return [run for heads in parameters.pvse_heads for run in over_seeds(
        f"pvse/K={heads}", start.with_(**{"model_arguments.heads": heads}), parameters.seeds,
        RERANKED)]


CLAIMED: tuple[Maker, ...] = (component_arms, head_arms, bound_arms, balance_arms, pvse_arms)
ARMS: tuple[Maker, ...] = (*CLAIMED, choice_arms)


def claimed_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """Notebook 12: the arms that claims name, over `parameters.dvse_seeds` and, of those that do
    not decide, `parameters.dvse_other_seeds`; none at all where both are 0, on any data."""
    own = parameters.model_copy(update={"seeds": parameters.dvse_seeds,
                                        "other_seeds": parameters.dvse_other_seeds})
    return [run for make in CLAIMED for run in make(dataset, own)] if (
        own.seeds or own.other_seeds) else []


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


def _seeded(label: str, dataset: str, parameters: Parameters,
            changes: Mapping[str, Any]) -> list[ArmRun]:
    seeds = parameters.seeds if label in DECIDING else parameters.other_seeds
    config = base_config(dataset, BASE, parameters, **changes)
    return over_seeds(label, config, seeds, RERANKED)
