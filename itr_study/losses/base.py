"""What a loss is: `RankingLoss`, and how any other module or function is read as one."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from itr_study.checks import check_choice, kept_arguments
from itr_study.losses._batch import read_batch, read_relevance

TAKES = ("scores", "output")


class RankingLoss(nn.Module):
    """A loss of one batch, without state: `forward(scores, relevance)` gives a 0-dim tensor.

    Called as loss(scores, relevance). Relevance (I, T) is 1 for a match; `forward` gets this
    matrix, while a caller may also give ids, equal for a match: (N,) of the N pairs of square
    scores, or a pair (image_ids, text_ids), (I,) and (T,); or nothing, if image i belongs to text i
    alone. A class of yours may leave out what has a default here.

    Attributes:
        name: in LOSSES, configs and reports. None: reported by the name of its class.
        display_name: in a plot's legend.
        version: part of a run's id, raised whenever its numbers change. None: it has none.
        relevance_scale: of the relevance it takes: "binary", "unit" ([0, 1]) or "cosine" ([-1, 1]);
            see `training.objective.MAPS`. None: any.
        symmetric: whether the transposes of scores and relevance have the same value.
        takes: "scores", (I, T), or "output", the whole ModelOutput instead of scores.

    Raises:
        ValueError: when built, for an argument out of the range that its class names; when called,
            for shapes that differ and relevance that is not on its scale.
    """

    name: str | None = None
    display_name: str | None = None
    version: int | None = None
    relevance_scale: str | None = None
    symmetric: bool = True
    takes: str = "scores"

    def __init__(self) -> None:  # torch's own takes any argument
        super().__init__()

    def __call__(self, scores: Any, relevance: object = None) -> Tensor:
        """Return the loss of relevance, ids or nothing; see the class."""
        of_pairs = getattr(scores, "scores", scores)  # of an output, its scores
        return super().__call__(scores, read_relevance(of_pairs, relevance, self.relevance_scale))

    def forward(self, scores: Any, relevance: Tensor) -> Tensor:
        """Check the batch and return its loss; a class of yours may have its own `forward`."""
        of_pairs, match = read_batch(getattr(scores, "scores", scores), relevance,
                                     self.relevance_scale)
        return self._loss(of_pairs if self.takes == "scores" else scores, relevance, match)

    def _loss(self, scores: Any, relevance: Tensor, match: Tensor) -> Tensor:
        """Loss () of scores (I, T) in float32 at least, or of an output; match (I, T) bool."""
        raise TypeError(f"{type(self).__name__} must define forward(scores, relevance)")

    def extra_repr(self) -> str:
        """Show the arguments."""
        return kept_arguments(self)

    def diagnose(self, scores: Any, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss and a dict of numbers to log, 0-dim tensors, sharing the work."""
        return self(scores, relevance), {}


class OwnLoss(RankingLoss):
    """Any module or function called as loss(scores, relevance): what it declares counts.

    It calls a module and owns none of its weights: those stay where their names are.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.name = getattr(function, "name", None) or getattr(function, "__name__",
                                                               type(function).__name__)
        self.version = getattr(function, "version", None)
        self.relevance_scale = getattr(function, "relevance_scale", None)
        self.symmetric = getattr(function, "symmetric", False)
        self.takes = getattr(function, "takes", "scores")
        self._call = partial(function)  # no submodule
        self._diagnose = getattr(function, "diagnose", super().diagnose)

    def forward(self, scores: Any, relevance: Tensor) -> Tensor:
        """Call the module or the function."""
        return self._call(scores, relevance)

    def diagnose(self, scores: Any, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what its own `diagnose` gives, if it has one."""
        return self._diagnose(scores, relevance)


def ranking_loss(loss: Callable[..., Tensor]) -> RankingLoss:
    """Return a loss itself if it is a RankingLoss, else read it as one; check what it takes."""
    read = loss if isinstance(loss, RankingLoss) else OwnLoss(loss)
    check_choice(f"what {read.name or type(read).__name__} takes", read.takes, TAKES)
    return read
