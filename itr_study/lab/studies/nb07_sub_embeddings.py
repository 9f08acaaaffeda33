"""The arms of notebook 07: parts of DVSE switched on and off, numbers of heads, bounds, balances.

Labels: "dvse/mask+var+ort" is DVSE whole, "dvse/single" has no heads at all, "dvse/heads" has heads
and nothing that keeps them apart; "K=6", "bound=0.4" and "balance=0.6" *are* "dvse/mask+var+ort".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from itr_study.evaluation.pointing import detected_objects, pointing
from itr_study.evaluation.search import Searcher
from itr_study.lab.studies.arms import ArmRun, Maker, base_config, over_seeds
from itr_study.lab.studies.nb08_reranking import RERANKED  # FR on top
from itr_study.lab.studies.parameters import Names, Parameters, by_profile
from itr_study.losses import OUTPUT_LOSSES
from itr_study.metrics.attention import head_correlation, mean_correlation, rank_map, region_cosines
from itr_study.metrics.retrieval_sets import r_precision
from itr_study.metrics.truth import Truth
from itr_study.models.base import ModelOutput
from itr_study.models.subembeddings import MOST_HEADS
from itr_study.training.collapse import TENTH
from itr_study.training.objective import BALANCE

NEVER = TENTH / 2  # of images; a head on in fewer, or off in fewer, does not choose


def output_of(searcher: Searcher) -> ModelOutput:
    """Score all images and texts of a split at once, heads included."""
    return searcher.model.score(searcher.images, searcher.texts)


def parts_of(searcher: Searcher, *names: str) -> list[Tensor]:
    """Take fields of that, such as residuals, (I, K, D); ValueError if the model has none."""
    found = vars(output_of(searcher))
    if lacking := [name for name in names if found[name] is None]:
        raise ValueError(f"{' and '.join(lacking)} are of models with several vectors of an image, "
                         f"such as dvse or pvse; {type(searcher.model).__name__} gives none: take "
                         "one of these")
    return [found[name] for name in names]


def head_cosines(searchers: Mapping[str, Searcher]) -> pd.DataFrame:
    """Compute |cosine| of what the heads of the first image add (dvse Fig. 6), a line a head.

    Gives arm, head, "1" to "K", and of all images the mean |cosine| of two heads that are on:
    `residuals`, and `finished` of the vectors that are compared (NaN if none has two on).
    """
    tables = []
    for arm, searcher in searchers.items():
        residuals, vectors, mask = parts_of(searcher, "residuals", "subembeddings", "mask")
        pairs = (mask.sum(dim=1) > 1).any()
        means = [mean_correlation(values, mask) if pairs else math.nan
                 for values in (residuals, vectors)]
        matrix = head_correlation(residuals[:1])[0]
        heads = np.arange(1, 1 + len(matrix))
        tables.append(pd.DataFrame(matrix, columns=heads.astype(str)).assign(
            residuals=means[0], finished=means[1]))
        tables[-1].insert(0, "head", heads)
        tables[-1].insert(0, "arm", arm)
    return pd.concat(tables, ignore_index=True)


def image_precision(searcher: Searcher) -> float:
    """Compute how many of an image's m texts are among its first m, in percent (R-Precision)."""
    split = searcher.split
    truth = Truth(split.image_of_text, len(split.image_ids))
    return 100 * r_precision(searcher.scores, truth)["i2t_r_precision"]


def mask_table(searcher: Searcher) -> pd.DataFrame:
    """Count how often each head is on: `on`, a share of the split's images.

    `chooses`: whether it is on for at least 5 % of them, and off for 5 %.
    """
    on = parts_of(searcher, "mask")[0].numpy().mean(axis=0)
    return pd.DataFrame({"head": np.arange(1, len(on) + 1), "on": on,
                         "chooses": (on > NEVER) & (on < 1 - NEVER)})


def maps_of(searcher: Searcher) -> dict[str, np.ndarray]:
    """Map where heads look, (I, K, R): their softmax, and the paper's rank map by cosine.

    Raises: ValueError: a model without heads, or one, such as pvse, whose regions are not projected
        into the space of its vectors.
    """
    output = output_of(searcher)
    if output.attention is None or not output.attention.shape[1] \
            or output.text_subembeddings is not None:
        raise ValueError("maps are those of heads that look at projected regions, such as dvse's "
                         "with heads >= 1 and text_heads = 1; got "
                         f"{type(searcher.model).__name__} without: take one with")
    batch = searcher.encoded.image_batch(np.arange(searcher.encoded.n_images))
    projected = searcher.model.image.regions(batch.regions).detach()
    mask = batch.region_mask.numpy()
    cosines = region_cosines(output.subembeddings, projected)
    return {"attention": output.attention.numpy(), "rank map": rank_map(cosines, mask[:, None])}


def head_frames(searcher: Searcher) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Give the vectors of each head for the map: "head 1" -> images (I, D), texts (T, D).

    Raises: ValueError: a model without heads, or one that gives a text several vectors.
    """
    output = output_of(searcher)
    if output.subembeddings is None or output.text_subembeddings is not None:
        raise ValueError("the heads of a map are those of a model with several vectors for an "
                         "image and one for a text, such as dvse with text_heads = 1; "
                         f"got {type(searcher.model).__name__}")
    return {f"head {head}": (vectors.numpy(), searcher.texts.numpy())
            for head, vectors in enumerate(output.subembeddings.unbind(dim=1), start=1)}


def pointing_rows(searchers: Sequence[Searcher]) -> pd.DataFrame:
    """Measure on generated data how heads look at objects.

    Gives arm (the map), seed (the place of the searcher), focus (how much of a head's map is on one
    object) and coverage (how many objects the heads cover), in percent.
    """
    records = []
    for seed, searcher in enumerate(searchers):
        encoded = searcher.encoded
        mask = encoded.image_batch(np.arange(encoded.n_images)).region_mask.numpy()
        shown = detected_objects(searcher.dataset, searcher.split, mask)
        records += [(name, seed, 100 * found.focus.mean(), 100 * found.coverage.mean())
                    for name, found in pointing(maps_of(searcher), shown, mask).items()]
    return pd.DataFrame(records, columns=["arm", "seed", "focus", "coverage"])


BASE = "dvse"
WHOLE, SINGLE, TEXTS = "dvse/mask+var+ort", "dvse/single", "dvse/texts=6"
BOUND = OUTPUT_LOSSES["orthogonality"]().bound
# What a model without a part changes of the base. Without "ort" the orthogonality has no weight,
# but its place: the curve then says how alike heads are.
WITHOUT: dict[str, tuple[str, Any]] = {
    "heads": ("model_arguments.heads", 0), "mask": ("model_arguments.mask", "off"),
    "var": ("objective.0.arguments", {"weights": "equal"}), "ort": ("objective.1.weight", 0.0)}
# Table V, rows 1 to 7: the parts that each has not.
COMPONENTS: dict[str, tuple[str, ...]] = {
    WHOLE: (), "dvse/var+ort": ("mask",), "dvse/ort": ("mask", "var"),
    "dvse/heads": ("mask", "var", "ort"), SINGLE: ("heads", "var", "ort"),
    "dvse/mask+var": ("ort",), "dvse/mask+ort": ("var",)}
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
# Two of these find more than ours on Flickr8k; there the whole model is held against a single one.
READINGS = {"sigmoid": "s=sigmoid", "last": "text=last"}
# Captions drawn to all of their image, joined. RSUM on dev of scenes, profile quick, seed 0, by its
# weight: 364.9 at 0, 365.5 at 0.1, 366.9 at 0.3, 370.1 at 1, 370.3 at 3, 373.1 at 10, 372.4 at 30.
JOINED = {"objective.1": {"loss": "dense_to_sparse", "weight": 10.0}}
TOGETHER = {"settings.texts_per_image": 5}

Heads = Annotated[int, Field(ge=0, le=MOST_HEADS)]
Several = Annotated[int, Field(ge=1, le=MOST_HEADS)]
Balance = Annotated[float, Field(gt=0, le=1)]


class SubEmbeddingClaims(Parameters):
    """Parameters of notebooks 07 and 12: what claims are about."""

    components: Names = by_profile(
        'rows of Table V, such as "dvse/heads"', *2 * [[WHOLE, "dvse/heads", SINGLE]],
        list(COMPONENTS), among=COMPONENTS, rivals=[WHOLE, SINGLE])
    heads: list[Heads] = by_profile(
        "sub-embeddings of an image, 0: a single embedding", [0, 2, 6], [0, 2, 4, 6],
        [0, 2, 4, 6, 8, 10, 12], rivals=[0])
    bounds: list[NonNegativeFloat] = by_profile(
        "bounds of the orthogonality (β), |cosine|, 0 and up", [0.0, 0.4], [0.0, 0.2, 0.4, 1.0],
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    balances: list[Balance] = by_profile(
        "weights of the ranking loss (η), above 0, 1 at most", [0.6, 1.0], [0.2, 0.4, 0.6, 1.0],
        [0.2, 0.4, 0.6, 0.8, 1.0])
    pvse_heads: list[Several] = by_profile(
        "embeddings of PVSE, 1 and up", [1, 2], [1, 4], [1, 2, 4])
    readings: Names = by_profile("readings whose heads are compared with one embedding",
                                 [], [], list(READINGS), among=READINGS, empty=True)


class SubEmbeddingParameters(SubEmbeddingClaims, title="07_sub_embeddings"):
    """Parameters of notebook 07."""

    seeds: PositiveInt = by_profile("runs of each model", 1, 5, 5)
    other_seeds: PositiveInt = by_profile("runs of each choice that no claim names", 1, 5, 3)
    dense_seeds: NonNegativeInt = by_profile("runs of each model of section 11, 0: none", 1, 5, 0)
    choices: Names = by_profile("what the paper leaves open, chosen otherwise", ["mask=loss"], [
        "s=sigmoid", "ort=mean"], list(CHOICES), among=CHOICES)


def component_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Table V: those of `parameters.components`."""
    return [run for label in parameters.components
            for run in _seeded(label, dataset, parameters, _component(label))]


def head_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Table VI: numbers of heads, 0 is "K=none", a single one."""
    return [run for heads in parameters.heads for run in _seeded(
        f"K={heads or 'none'}", dataset, parameters,
        {"model_arguments.heads": heads} if heads else _component(SINGLE), heads=heads)]


def bound_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 8, how much correlation of heads is free (β); 0, 0.0 and -0.0 are one run."""
    return [run for bound in (bound + 0.0 for bound in parameters.bounds) for run in _seeded(
        f"bound={bound:g}", dataset, parameters,
        {} if bound == BOUND else {"objective.1.arguments": {"bound": bound}}, bound=bound)]


def balance_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 9, the weight η of the triplet loss; that of the orthogonality is 1 - η."""
    return [run for balance in parameters.balances for run in _seeded(
        f"balance={balance:g}", dataset, parameters, {} if balance == BALANCE else {
            "objective.0.weight": balance, "objective.1.weight": round(1 - balance, 9)},
        balance=balance)]


def choice_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List what the paper leaves open, each chosen otherwise than by us: "dvse/s=sigmoid"."""
    return [run for choice in parameters.choices for run in over_seeds(
        f"dvse/{choice}", base_config(dataset, BASE, parameters, **CHOICES[choice]),
        parameters.seeds if choice in READINGS.values() else parameters.other_seeds, RERANKED)]


def pvse_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Table III and its claim, PVSE with several numbers of embeddings: "pvse/K=2"."""
    start = base_config(dataset, "pvse", parameters)
    return [run for heads in parameters.pvse_heads for run in over_seeds(
        f"pvse/K={heads}", start.with_(**{"model_arguments.heads": heads}), parameters.seeds,
        RERANKED, heads=heads)]


def text_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List, beyond the paper, as many embeddings of a text as of an image: "dvse/texts=6"."""
    return _seeded(TEXTS, dataset, parameters, {"model_arguments.text_heads": 6})


def reading_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the whole and the single model in other readings: "dvse+sigmoid/single"."""
    return [run for reading in parameters.readings for label in (WHOLE, SINGLE)
            for run in over_seeds(label.replace("/", f"+{reading}/"), base_config(
                dataset, BASE, parameters, **CHOICES[READINGS[reading]], **_component(label)),
                parameters.seeds, RERANKED, reading=reading)]


def dense_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List models with all captions of an image in one batch: "dvse+five/single+joined"."""
    return [run for label, more in ((SINGLE, {}), (f"{SINGLE}+joined", JOINED), (WHOLE, {}))
            for run in over_seeds(label.replace("/", "+five/"), base_config(
                dataset, BASE, parameters, **_component(label.removesuffix("+joined")) | more
                | TOGETHER), parameters.dense_seeds)]


CLAIMED = (component_arms, head_arms, bound_arms, balance_arms, pvse_arms, text_arms, reading_arms)
ANYWHERE = (*CLAIMED, choice_arms)  # on data with fewer than five texts an image, too
ARMS: tuple[Maker, ...] = (*ANYWHERE, dense_arms)


def claimed_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List the arms that claims of notebook 12 name; none if `parameters.dvse_seeds` is 0."""
    own = parameters.model_copy(update={"seeds": parameters.dvse_seeds})
    return [run for make in CLAIMED for run in make(dataset, own)] if own.seeds else []


def _component(label: str) -> dict[str, Any]:
    """Collect what a row of Table V changes of the base."""
    return dict(WITHOUT[part] for part in COMPONENTS[label])


def _seeded(label: str, dataset: str, parameters: Parameters, changes: Mapping[str, Any],
            **factors: Any) -> list[ArmRun]:
    config = base_config(dataset, BASE, parameters, **changes)
    return over_seeds(label, config, parameters.seeds, RERANKED, **factors)
