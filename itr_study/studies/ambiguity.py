"""Queries that have near duplicates, and how runs do on them: does forgiving help there (topk)?

    split = caption_split(study.dataset, ["minilm"], absent)
    rows = by_ambiguity(rows, ambiguous_queries(split))       ambiguous_rsum, clear_rsum
"""

import numpy as np
import pandas as pd

from itr_study.data.batches import EncodedSplit
from itr_study.evaluation.percent import percent
from itr_study.ledger.judges import on_judge
from itr_study.ledger.reported import load_claims, split_list
from itr_study.metrics import Ranks
from itr_study.metrics.recall import KS
from itr_study.studies.results import ranks_of

LEAST = 0.8  # cosine of two captions' sentence vectors
ROWS = 1000  # captions compared with all others at a time


def ambiguous_queries(split: EncodedSplit, least: float = LEAST) -> Ranks:
    """Which images (I,) and texts (T,) another image could be meant by: a caption of that one has a
    cosine of `least` or more with the text, or with a caption of the image.

    Args:    split: with label vectors of MiniLM.
    """
    vectors, owner = np.asarray(split.label_vectors["minilm"], np.float32), split.image_of_text
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = np.concatenate([
        ((vectors[at:at + ROWS] @ vectors.T >= least)
         & (owner[at:at + ROWS, None] != owner)).any(axis=1) for at in range(0, len(owner), ROWS)])
    images = np.zeros(split.n_images, bool)
    np.logical_or.at(images, owner, texts)
    return Ranks(images, texts)


def by_ambiguity(rows: pd.DataFrame, ambiguous: Ranks) -> pd.DataFrame:
    """The rows with two more columns: ambiguous_rsum and clear_rsum, RSUM over the queries that are
    ambiguous and over the others; what is searched is the same for both. NaN for arms that no claim
    compares so (`claimed_so`): of their runs no ranks are published.

    Args:    rows: as `train_arms` gives them; ambiguous: of the test split.
    Raises:  ValueError where one kind of query is missing, or ranks are of another split.
    """
    both = ambiguous.i2t, ambiguous.t2i
    for direction, chosen in zip(("images", "texts"), both, strict=True):
        if chosen.all() or not chosen.any():
            raise ValueError(f"{chosen.sum()} of {len(chosen)} {direction} are ambiguous: there is "
                             "nothing to compare")
    columns: dict[str, list[float]] = {"ambiguous_rsum": [], "clear_rsum": []}
    claimed = rows[rows["arm"].isin(claimed_so())]
    for row in claimed.to_dict("records"):
        ranks = ranks_of(row)
        if (len(ranks.i2t), len(ranks.t2i)) != tuple(map(len, both)):
            raise ValueError(f"run {row['run']} has ranks of {len(ranks.i2t)} images and "
                             f"{len(ranks.t2i)} texts, not of this split")
        for name, wanted in zip(columns, (True, False), strict=True):
            columns[name].append(sum(
                percent(float((side[chosen == wanted] <= k).mean()))
                for side, chosen in zip((ranks.i2t, ranks.t2i), both, strict=True) for k in KS))
    return rows.join(pd.DataFrame(columns, claimed.index, dtype=float))


def claimed_so() -> set[str]:
    """The arms that claims compare by these columns, those of the second judge among them."""
    claims = load_claims()
    by_them = claims[claims["metric"].str.contains("ambiguous_rsum")]
    arms = {arm for column in ("arm_a", "arm_b") for arms in by_them[column]
            for arm in split_list(arms)}
    return arms | set(map(on_judge, arms))
