"""Which explorers look at trained models, at how many, and how each is made of them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from itr_study.checks import not_among
from itr_study.evaluation.search import Searcher
from itr_study.explorers.embedding_map import EmbeddingMap
from itr_study.explorers.explorer import Explorer
from itr_study.explorers.judge import YouJudge
from itr_study.explorers.looking import Looking
from itr_study.explorers.search import Search
from itr_study.explorers.who_moved import WhoMoved

Searchers = Mapping[str, Searcher]  # by how a reader calls the model


class Made(NamedTuple):
    """How an explorer is made of the models, and how many it takes."""

    of: Callable[[Searchers], Explorer]
    least: int
    most: int | None  # None: any number


def _moved(searchers: Searchers) -> WhoMoved:
    first, second = searchers.values()
    return WhoMoved.of(first, second, tuple(searchers))


def _judge(searchers: Searchers) -> YouJudge:
    first = next(iter(searchers.values()))
    return YouJudge.of(first.dataset, {name: one.scores for name, one in searchers.items()},
                       split=first.name)


def _map(searchers: Searchers) -> EmbeddingMap:
    return EmbeddingMap.of(*searchers.values())


MADE: dict[type[Explorer], Made] = {
    Search: Made(Search, 1, 2), WhoMoved: Made(_moved, 2, 2), YouJudge: Made(_judge, 1, None),
    EmbeddingMap: Made(_map, 1, 2), Looking: Made(Looking, 1, None)}


def of_models(kind: type[Explorer], searchers: Searchers) -> Explorer:
    """An explorer of this class of some models over the same split.

    Args:    kind: Search, WhoMoved, YouJudge, Looking or EmbeddingMap (of two models the first is
             drawn, the second lends its ranks).
    Raises:  ValueError as `check_models`, and as the class itself.
    """
    check_models(kind, searchers)
    return MADE[kind].of(searchers)


def check_models(kind: type[Explorer], names: Mapping[str, object]) -> None:
    """Raise ValueError unless explorers of this class are made of models, and of so many."""
    if kind not in MADE:
        known = {each.__name__: each for each in MADE}
        raise ValueError(not_among("an explorer of models", getattr(kind, "__name__", repr(kind)),
                                   known))
    _, least, most = MADE[kind]
    if len(names) < least or (most is not None and len(names) > most):
        wanted = (f"{least}" if least == most else f"{least} to {most}" if most else
                  f"{least} or more")
        raise ValueError(f"{kind.__name__} takes {wanted} models, each under a name of its own; "
                         f"got {len(names)}: {', '.join(names)}")
