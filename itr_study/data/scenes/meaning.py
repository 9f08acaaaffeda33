"""What a caption of `scenes` says, and how much of it holds in any picture: exact relevance.

A caption means a tuple of assertions. How far one holds in a picture is in [0, 1]:

    Has(pattern)             best thing: the fraction of the named attributes that it has
    Related(a, how, b)       best ordered pair: mean of (a fits, b fits, the relation holds)
    Count(pattern, number)   max(0, 1 - |found - number| / number), found = things that fit wholly
    Where(places)            1 if the picture's place is among them, else 0

The relevance of the caption is the mean over its assertions: 1 for the pictures it was written
for (a match, by image id), at most MOST for any other. Assertions are judged one by one: two of
them may be met by the same thing.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from itr_study.data.scenes.words import ANY, ATTRIBUTES
from itr_study.data.scenes.world import MOST_THINGS, Scene, relations

MOST = 1 - 1e-4  # for a picture that a caption fits by accident
_BLOCK = 32  # pictures scored at a time: bounds memory


class Pattern(NamedTuple):
    """A description: for each attribute the set of values (bits) it allows; ANY = not named."""

    shape: int = ANY[0]
    colour: int = ANY[1]
    size: int = ANY[2]
    texture: int = ANY[3]


class Has(NamedTuple):
    pattern: Pattern


class Related(NamedTuple):
    first: Pattern
    how: int  # set of RELATIONS (bits), any of them will do
    second: Pattern


class Count(NamedTuple):
    pattern: Pattern
    number: int  # >= 1


class Where(NamedTuple):
    places: int  # set of PLACES (bits)


Assertion = Has | Related | Count | Where
Meaning = tuple[Assertion, ...]


class World(NamedTuple):
    """Scenes as arrays, padded to MOST_THINGS."""

    attributes: np.ndarray  # (I, O, 4) int64
    present: np.ndarray  # (I, O) bool
    related: np.ndarray  # (I, O, O) int64, bits of RELATIONS
    place: np.ndarray  # (I,) int64


def as_world(scenes: list[Scene]) -> World:
    """The scenes as arrays."""
    shape = (len(scenes), MOST_THINGS)
    world = World(np.zeros((*shape, 4), np.int64), np.zeros(shape, bool),
                  np.zeros((*shape, MOST_THINGS), np.int64),
                  np.array([scene.place for scene in scenes], np.int64))
    for i, scene in enumerate(scenes):
        for o, thing in enumerate(scene.things):
            world.attributes[i, o] = thing[:4]
            world.present[i, o] = True
            world.related[i, o, :len(scene.things)] = [relations(thing, b) for b in scene.things]
    return world


def meaning_scores(world: World, meanings: list[Meaning]) -> np.ndarray:
    """How much of each meaning holds in each picture: (I, T) float32 in [0, 1].

    Equal assertions of different captions are scored once.
    """
    groups: dict[type, dict[Assertion, int]] = {kind: {} for kind in _SCORERS}
    for meaning in meanings:
        for a in meaning:
            groups[type(a)].setdefault(a, len(groups[type(a)]))
    start, offsets = 0, {}
    for kind, found in groups.items():
        offsets[kind], start = start, start + len(found)
    columns = [[offsets[type(a)] + groups[type(a)][a] for a in m] for m in meanings]
    scorers = [_SCORERS[kind](list(found)) for kind, found in groups.items() if found]
    result = np.empty((len(world.place), len(meanings)), np.float32)
    for first in range(0, len(result), _BLOCK):
        block = World(*(part[first:first + _BLOCK] for part in world))
        scored = np.concatenate([scorer(block) for scorer in scorers], axis=1)
        result[first:first + _BLOCK] = _means(scored, columns)
    return result


def _means(scored: np.ndarray, columns: list[list[int]]) -> np.ndarray:
    """(I, A) scores of assertions and T lists of columns -> (I, T) means."""
    lengths = np.array([len(c) for c in columns])
    total = np.zeros((len(scored), len(columns)), np.float32)
    for position in range(lengths.max()):
        texts = np.flatnonzero(lengths > position)
        total[:, texts] += scored[:, [columns[t][position] for t in texts]]
    return total / lengths.astype(np.float32)


class _Fits:
    """How well each of P patterns describes each thing."""

    def __init__(self, patterns: list[Pattern]) -> None:
        allowed = np.array(patterns, np.int64).reshape(-1, 4)  # (P, 4)
        named = allowed != np.array(ANY)  # (P, 4)
        self.n_named = named.sum(axis=1).astype(np.int8)  # (P,)
        self.tables = [  # for each attribute (values, P): is this value named and allowed
            ((allowed[:, a] >> np.arange(len(values))[:, None] & 1) * named[:, a]).astype(np.int8)
            for a, values in enumerate(ATTRIBUTES)]

    def hits(self, world: World) -> np.ndarray:
        """(I, O, P) int8: how many of the named attributes each thing has."""
        return sum(table[world.attributes[:, :, a]] for a, table in enumerate(self.tables))

    def __call__(self, world: World) -> np.ndarray:
        """(I, O, P) float32: the fraction it has; 1 where nothing is named."""
        fraction = self.hits(world) / np.maximum(self.n_named, 1).astype(np.float32)
        return np.where(self.n_named, fraction, np.float32(1))


def _score_has(assertions: list[Has]):
    fits = _Fits([a.pattern for a in assertions])
    return lambda world: (fits(world) * world.present[:, :, None]).max(axis=1)


def _score_related(assertions: list[Related]):
    patterns = {p: None for a in assertions for p in (a.first, a.second)}
    patterns = {p: i for i, p in enumerate(patterns)}
    fits = _Fits(list(patterns))
    first = np.array([patterns[a.first] for a in assertions])
    second = np.array([patterns[a.second] for a in assertions])
    how = np.array([a.how for a in assertions])

    def score(world: World) -> np.ndarray:
        fit = fits(world) / np.float32(3)  # (I, O, P)
        fit_a, fit_b = fit[:, :, first], fit[:, :, second]  # (I, O, A)
        best = np.zeros((len(fit), len(how)), np.float32)
        for a, b in permutations(range(MOST_THINGS), 2):
            holds = (world.related[:, a, b, None] & how) != 0  # (I, A)
            total = fit_a[:, a] + fit_b[:, b] + holds * np.float32(1 / 3)
            total[~(world.present[:, a] & world.present[:, b])] = 0
            np.maximum(best, total, out=best)
        return best

    return score


def _score_count(assertions: list[Count]):
    fits = _Fits([a.pattern for a in assertions])
    number = np.array([a.number for a in assertions], np.float32)

    def score(world: World) -> np.ndarray:
        whole = (fits.hits(world) == fits.n_named) & world.present[:, :, None]
        return np.maximum(0, 1 - np.abs(whole.sum(axis=1) - number) / number).astype(np.float32)

    return score


def _score_where(assertions: list[Where]):
    places = np.array([a.places for a in assertions])
    return lambda world: (places >> world.place[:, None] & 1).astype(np.float32)


_SCORERS = {Has: _score_has, Related: _score_related, Count: _score_count, Where: _score_where}
