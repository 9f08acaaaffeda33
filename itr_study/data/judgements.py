"""What people said of pairs of an image and a text: how well the one describes the other."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Judgements:
    """N pairs of an image and a text, each with what people said of it.

    ratings (N, raters) float64, NaN where absent, higher = describes it better; own (N,) bool: the
    text was written about this very image; tau: which of Kendall's coefficients such ratings are
    compared by, "b" or "c"; terms: licence and citation.
    """

    name: str
    image_ids: tuple[str, ...]
    text_ids: tuple[str, ...]
    ratings: np.ndarray
    own: np.ndarray
    tau: str
    terms: str = ""

    def __len__(self) -> int:
        return len(self.image_ids)

    def take(self, pairs: np.ndarray) -> "Judgements":
        """These pairs only, in this order; `pairs` are whole numbers in [0, N)."""
        return replace(self, image_ids=tuple(self.image_ids[n] for n in pairs),
                       text_ids=tuple(self.text_ids[n] for n in pairs),
                       ratings=self.ratings[pairs], own=self.own[pairs])
