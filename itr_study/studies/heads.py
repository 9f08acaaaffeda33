"""What the heads of trained models do: how alike they are, how sure, where they look.

    whole = study.searcher(study.first(subembeddings.component_arms, subembeddings.WHOLE))
    entropies({"DVSE": whole})          a line for each image and head
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from torch import Tensor

from itr_study.evaluation.pointing import detected_objects, pointing
from itr_study.evaluation.search import Searcher
from itr_study.metrics.attention import rank_map, region_cosines
from itr_study.metrics.correlation import head_correlation, mean_correlation
from itr_study.metrics.entropy import TEMPERATURE, score_entropy
from itr_study.metrics.retrieval_sets import r_precision
from itr_study.metrics.truth import Truth
from itr_study.models.base import ModelOutput
from itr_study.training.collapse import TENTH

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
