"""What a loss is: `RankingLoss`, and how any other module is read as one."""

from collections.abc import Callable

from torch import Tensor, nn

from itr_study.checks import check_choice, kept_arguments
from itr_study.losses._batch import read_relevance

TAKES = ("scores", "output")


class RankingLoss(nn.Module):
    """A loss of one batch, without state: `forward(scores, relevance)` gives a 0-dim tensor.

    Called as loss(scores, relevance). Relevance (I, T) is 1 for a match; `forward` gets this
    matrix, while a caller may also give ids, equal for a match: (N,) of the N pairs of square
    scores, or a pair (image_ids, text_ids), (I,) and (T,); or nothing, if image i belongs to text i
    alone. A class of yours may leave out what has a default here.

    Raises:
        ValueError: when built, for an argument out of the range that its class names; when called,
            for shapes that differ and relevance that is not on its scale.

    Attributes:
        name: in LOSSES, configs and reports. None: reported by the name of its class.
        display_name: how a plot's legend calls it.
        version: part of a run's id, raised whenever its numbers change. None: it has none.
        relevance_scale: of the relevance it takes, "binary", "unit" ([0, 1]) or "cosine"
            ([-1, 1]); see `training.objective.ACCEPTED`. None: any.
        symmetric: whether images and texts are treated the same, so that the transposes of scores
            and relevance have the same value.
        takes: "scores", (I, T), or "output", the whole ModelOutput, in the place of scores.
    """

    name: str | None = None
    display_name: str | None = None
    version: int | None = None
    relevance_scale: str | None = None
    symmetric: bool = True
    takes: str = "scores"

    def __init__(self) -> None:  # torch's own takes any argument
        super().__init__()

    def __call__(self, scores: Tensor, relevance: object = None) -> Tensor:
        of_pairs = getattr(scores, "scores", scores)  # of an output, its scores
        return super().__call__(scores, read_relevance(of_pairs, relevance, self.relevance_scale))

    def extra_repr(self) -> str:
        return kept_arguments(self)

    def diagnose(self, scores: Tensor, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """`diagnose` returns the value of the loss plus a dict of numbers to log (0-dim tensors,
        by name), and shares the work. Without numbers of its own a loss leaves it as it is."""
        return self(scores, relevance), {}


class OwnLoss(RankingLoss):
    """Any module called as loss(scores, relevance), read as a RankingLoss: what it declares counts,
    the rest is left open.

    It calls the module and owns none of its weights: those stay where their names are.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.name = getattr(module, "name", type(module).__name__)
        self.version = getattr(module, "version", None)
        self.relevance_scale = getattr(module, "relevance_scale", None)
        self.symmetric = getattr(module, "symmetric", False)
        self.takes = getattr(module, "takes", "scores")
        self.forward = module.__call__
        self.diagnose = getattr(module, "diagnose", self.diagnose)


class FunctionLoss(RankingLoss):
    """A function of (scores, relevance), reported by its name.

    Args:
        function: of two tensors (I, T); gives a 0-dim tensor.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.name = getattr(function, "__name__", type(function).__name__)
        self.symmetric = getattr(function, "symmetric", False)
        self.takes = getattr(function, "takes", "scores")
        self.function = function

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        return self.function(scores, relevance)


def ranking_loss(module: nn.Module) -> RankingLoss:
    """The module itself if it is a RankingLoss, else read as one.

    Raises: ValueError where it takes neither scores nor outputs.
    """
    loss = module if isinstance(module, RankingLoss) else OwnLoss(module)
    check_choice(f"what {loss.name or type(loss).__name__} takes", loss.takes, TAKES)
    return loss
