"""What a loss is: `RankingLoss`, and how any other module or function is read as one."""

import hashlib
import re
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from itr_study.checks import Registry, check_choice, kept_arguments, not_among
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import home
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
        joins: whether it reads `joined_vectors` of it: `fit` then encodes joined texts, too.

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
    joins: bool = False

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
        self.joins = getattr(function, "joins", False)
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


# A loss or model of the reader's own, in a file, is copied into the home under a digest of its
# content that its name has: runs of it are found again, another text of the file is another part.
OWN = re.compile(r"(\w+)@([0-9a-f]{12})")  # MyLoss@<digest>


class Parts(Registry[Any]):
    """Parts of the library, and by their names those kept of files."""

    def __missing__(self, name: str) -> Any:
        found = OWN.fullmatch(name)
        return own_part(*found.groups(), str(kept_in(found[2]))) if found else \
            super().__missing__(name)


def kept_in(digest: str) -> Path:
    """Locate the copy of a file; those of losses were in losses/ once."""
    kept, former = (home() / folder / f"{digest}.py" for folder in ("own", "losses"))
    return former if former.is_file() and not kept.is_file() else kept


def keep_part(path: Path, name: str) -> str:
    """Copy the file of a loss or model into the home; return the name that configs have for it.

    Raises: ValueError: no such file, it does not import, or has no such class or function.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {path}; write a loss, called as loss(scores, "
                         "relevance), or the class of a model into it, and name both: "
                         "my_loss.py:MyLoss")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    write_atomic(kept_in(digest), content)
    own_part(name, digest, str(kept_in(digest)))
    return f"{name}@{digest}"


@lru_cache(maxsize=32)
def own_part(name: str, digest: str, path: str) -> Callable[..., Any]:
    """Import what is kept: a class, or what builds a function's module; each has a version.

    Raises: ValueError: as `keep_part`, and where the copy is missing or damaged.
    """
    copy = Path(path)
    if not copy.is_file() or hashlib.sha256(copy.read_bytes()).hexdigest()[:12] != digest:
        raise ValueError(f"the file of {name}@{digest} is not in {copy.parent}, or damaged; "
                         f"compare it again: itr-study compare my_file.py:{name}")
    module_name = f"itr_study_own_{digest}"
    loader = SourceFileLoader(module_name, path)
    module = sys.modules[module_name] = ModuleType(module_name)
    try:
        loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"the file of {name} does not import: {type(error).__name__}: {error}; it "
                         "must stand alone, without other files of yours") from error
    defined = {key: value for key, value in vars(module).items() if callable(value)
               and getattr(value, "__module__", "") == module_name}
    if name not in defined:
        raise ValueError(not_among("class or function of that file", name, defined))
    part = defined[name]
    built: Any = part if isinstance(part, type) else lambda: OwnLoss(part)
    built.version = getattr(part, "version", None) or 1
    built.display_name = vars(part).get("display_name") or name
    return built
