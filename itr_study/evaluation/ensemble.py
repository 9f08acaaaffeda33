"""The mean of several models' scores, measured like those of one model.

Use: `both = ensemble({"saf": study.searcher(saf), "sgr": study.searcher(sgr)})`, then `both.row`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from itr_study.evaluation.evaluate import encode, evaluate_scores, score
from itr_study.evaluation.measures import costs
from itr_study.evaluation.search import Searcher
from itr_study.metrics import Ranks
from itr_study.rerank import Bank

TOGETHER = " + "  # between the names of members in a table


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Names of the members, their mean scores (I, T) float32, and the parts of an `Evaluation`."""

    members: tuple[str, ...]
    scores: np.ndarray
    table: dict[str, float]
    ranks: Ranks
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        """The table after its members, such as "saf + sgr"."""
        return {"members": TOGETHER.join(self.members)} | self.table


def ensemble(members: Mapping[str, Searcher], measures: bool = True) -> Ensemble:
    """Average the scores of at least two models, as they are, and measure the mean.

    Source: SGRAF (Diao et al., AAAI 2021) is SAF and SGR; "+ Listwise*" of the listwise paper's
    tables is two models. Neither tells how; published code averages the scores.

    Args:
        members: trained models by name, on the same split; features and tokens may differ.
        measures: whether to take all measures of the data set, as a run does: on test also
            re-ranked, with the queries of dev as a bank if there is that split.
    Raises: ValueError: fewer than two members, a name with " + ", all splits in one, members that
        search different data, a score that is not a number.
    """
    check_members(members)
    searchers = list(members.values())
    first = searchers[0]
    scores = mean([one.scores for one in searchers])
    bank = None
    if measures and first.name == "test" and "dev" in first.data.splits:
        bank = bank_of(searchers)
    table, best = evaluate_scores(scores, first.encoded, first.dataset.name if measures else None,
                                  bank)
    spent = {column: table.pop(column) for column in costs() & set(table)}
    return Ensemble(tuple(members), scores, table, best, spent)


def mean(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Average matrices of one shape, holding one more."""
    total = matrices[0].copy()
    for matrix in matrices[1:]:
        total += matrix
    return total / np.float32(len(matrices))


def bank_of(searchers: Sequence[Searcher]) -> Bank:
    """Average the scores of the images and texts of dev with the texts and images searched."""
    images, texts = zip(*map(dev_scores, searchers), strict=True)
    return Bank(images=mean(images), texts=mean(texts))


def dev_scores(one: Searcher) -> tuple[np.ndarray, np.ndarray]:
    """Score dev's images with the texts searched, and the images searched with dev's texts."""
    if {"bank_images", "bank_texts"} <= one.known.keys():
        return one.known["bank_images"].numpy(), one.known["bank_texts"].numpy()
    images, texts = encode(one.model, one.data.splits["dev"])
    return (score(one.model, images, one.texts).numpy(),
            score(one.model, one.images, texts).numpy())


def check_members(members: Mapping[str, Searcher]) -> None:
    """Raise ValueError unless these are two models at least, by name, that search one split."""
    if len(members) < 2:
        raise ValueError(f"an ensemble needs at least two members, got {len(members)}: "
                         f"{', '.join(members) or 'none'}; evaluate takes one model alone")
    for name, one in members.items():
        if TOGETHER in name or not isinstance(one, Searcher):
            raise ValueError(f"members must be Searchers by names without {TOGETHER!r}, got "
                             f"{name!r}: a {type(one).__name__}; Searcher(model, dataset, data)")
        if one.name not in one.data.splits or one.texts is None:
            raise ValueError(f"{name} searches {searched(one)}, and an ensemble is measured on one "
                             "split with texts; give its Searcher name='test' or 'dev'")
    first, *others = members
    for name in others:
        one, other = members[first], members[name]
        if (one.dataset.fingerprint, one.name) != (other.dataset.fingerprint, other.name):
            raise ValueError(
                f"members must search one split of one data set: {first} searches "
                f"{searched(one)}, {name} searches {searched(other)}; take runs with the same "
                "dataset and data_options, and Searchers with the same name")


def searched(one: Searcher) -> str:
    """Describe what a member searches."""
    return (f"{one.name} of {one.dataset.name} ({len(one.split.image_ids)} images, "
            f"{len(one.split.texts)} texts, data {one.dataset.fingerprint[:8]})")
