"""FR of one query at a time: beside a fixed bank of other queries, not beside the test set's."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from itr_study.metrics.scores import LazyScores, query_rows
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank.base import Matrix, checked, doubles, ranks_of_queries
from itr_study.rerank.lists import rivals, softplus


@dataclass(frozen=True, eq=False)
class Bank:
    """Scores of a fixed set of other queries with a gallery: what one query alone can be given.

    Such as those of another split's images and texts, scored with the gallery of the test.

    Args:
        images: (B, T) scores of B other images and the texts of the gallery.
        texts: (I, C) scores of the images of the gallery and C other texts.
    Raises: ValueError for scores that are not finite, not a matrix or empty.
    """

    images: Matrix
    texts: Matrix

    def __post_init__(self) -> None:
        for name in ("images", "texts"):
            object.__setattr__(self, name, checked(vars(self)[name], f"Bank.{name}"))


def check_bank(bank: Bank, shape: tuple[int, int]) -> None:
    """Raise ValueError unless the bank's scores are those of this gallery."""
    if not isinstance(bank, Bank):
        raise ValueError("bank must be itr_study.rerank.Bank(images=(B, T) scores, texts=(I, C) "
                         f"scores) of other queries; got {type(bank).__name__}")
    if bank.images.shape[1] != shape[1] or bank.texts.shape[0] != shape[0]:
        raise ValueError(
            f"bank must score the gallery of these scores, {shape[0]} images and {shape[1]} texts: "
            f"Bank.images (B, {shape[1]}) and Bank.texts ({shape[0]}, C); got "
            f"{tuple(bank.images.shape)} and {tuple(bank.texts.shape)}. A fold needs a bank of its "
            "own images and texts")


class Banked(LazyScores):
    """second A - log(exp first A + sum over the bank of exp first B): see `rivals`.

    Args:    scales: of each direction (first, second).
    """

    def __init__(self, given: Matrix, scales: dict[str, tuple[float, float]], bank: Bank) -> None:
        super().__init__(given)
        device = given.device if isinstance(given, Tensor) else "cpu"
        self.scales = scales
        self.rivals = {direction: [part.to(device) for part in rivals(matrix, direction, first)]
                       for direction, matrix, (first, _) in zip(
                           DIRECTIONS, (bank.images, bank.texts), scales.values(), strict=True)}

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        first, second = self.scales[direction]
        top, others = self.rivals[direction]
        given = query_rows(self.given, direction, queries)
        own = doubles(given)
        values = (second - first) * own - softplus(first * (top - own) + others.exp().log1p())
        return values if isinstance(given, Tensor) else values.numpy()

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        return ranks_of_queries(self, direction, image_of_text)
