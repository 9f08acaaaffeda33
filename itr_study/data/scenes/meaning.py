"""What a caption of `scenes` says, and how much of it holds in any picture: exact relevance.

A caption means a tuple of assertions. How far one holds in a picture is in [0, 1]:

    Has(pattern)             best thing: the fraction of the named attributes that it has
    Related(a, how, b)       best ordered pair: mean of (a fits, b fits, the relation holds)
    Count(pattern, number)   max(0, 1 - |found - number| / number), found = things that fit wholly
    Where(places)            1 if the picture's place is among them, else 0

The relevance of the caption is the mean over its assertions, at most MOST for a picture that it was
not written for. Assertions are scored one by one: two of them may be met by the same thing.
"""

from collections.abc import Callable
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
    """A thing like this is there."""

    pattern: Pattern


class Related(NamedTuple):
    """One thing is in such a place as seen from another."""

    first: Pattern
    how: int  # set of RELATIONS (bits), any of them will do
    second: Pattern


class Count(NamedTuple):
    """So many things like this are there."""

    pattern: Pattern
    number: int  # >= 1


class Where(NamedTuple):
    """It is one of these places."""

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
    """Put scenes into arrays."""
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
    """Score how much of each meaning holds in each picture: (I, T) float32 in [0, 1]."""
    groups: dict[type, dict[Assertion, None]] = {kind: {} for kind in (Has, Related, Count, Where)}
    for a in (a for meaning in meanings for a in meaning):
        groups[type(a)][a] = None
    column = {(kind, a): n for n, (kind, a) in enumerate(
        (kind, a) for kind, group in groups.items() for a in group)}
    columns = [[column[type(a), a] for a in meaning] for meaning in meanings]
    score = _scorer(*map(list, groups.values()))
    result = np.empty((len(world.place), len(meanings)), np.float32)
    for first in range(0, len(result), _BLOCK):
        block = World(*(part[first:first + _BLOCK] for part in world))
        result[first:first + _BLOCK] = _means(score(block), columns)
    return result


def _means(scored: np.ndarray, columns: list[list[int]]) -> np.ndarray:
    """(I, A) scores of assertions and T lists of columns -> (I, T) means."""
    lengths = np.array([len(c) for c in columns])
    total = np.zeros((len(scored), len(columns)), np.float32)
    for position in range(lengths.max()):
        texts = np.flatnonzero(lengths > position)
        total[:, texts] += scored[:, [columns[t][position] for t in texts]]
    return total / lengths.astype(np.float32)


def _scorer(has: list[Has], related: list[Related], count: list[Count], where: list[Where]
            ) -> Callable[[World], np.ndarray]:
    """What scores all assertions in a block of pictures, (I, A), kind after kind."""
    patterns = list(dict.fromkeys([a.pattern for a in (*has, *count)]
                                  + [p for a in related for p in (a.first, a.second)]))
    row = {pattern: number for number, pattern in enumerate(patterns)}
    allowed = np.array(patterns, np.int64).reshape(-1, 4)  # (P, 4)
    named = allowed != np.array(ANY)
    n_named = named.sum(axis=1).astype(np.int8)  # (P,)
    tables = [  # for each attribute (values, P): is this value named and allowed
        ((allowed[:, a] >> np.arange(len(values))[:, None] & 1) * named[:, a]).astype(np.int8)
        for a, values in enumerate(ATTRIBUTES)]
    of_has, of_count, of_first, of_second = (
        np.array([row[p] for p in used], np.int64) for used in (
            [a.pattern for a in has], [a.pattern for a in count],
            [a.first for a in related], [a.second for a in related]))
    how = np.array([a.how for a in related], np.int64)
    number = np.array([a.number for a in count], np.float32)
    places = np.array([a.places for a in where], np.int64)

    def score(world: World) -> np.ndarray:
        present = world.present[:, :, None]
        hits = sum(table[world.attributes[:, :, a]] for a, table in enumerate(tables))  # (I, O, P)
        share = hits / np.maximum(n_named, 1).astype(np.float32)
        fits = np.where(n_named, share, np.float32(1))  # 1 where nothing is named
        best = np.zeros((len(fits), len(how)), np.float32)
        first, second = (fits[:, :, rows] / np.float32(3) for rows in (of_first, of_second))
        for a, b in permutations(range(MOST_THINGS), 2):
            holds = (world.related[:, a, b, None] & how) != 0  # (I, A)
            total = first[:, a] + second[:, b] + holds * np.float32(1 / 3)
            total[~(world.present[:, a] & world.present[:, b])] = 0
            np.maximum(best, total, out=best)
        found = ((hits[:, :, of_count] == n_named[of_count]) & present).sum(axis=1)
        return np.concatenate([
            (fits[:, :, of_has] * present).max(axis=1), best,
            np.maximum(0, 1 - np.abs(found - number) / number).astype(np.float32),
            (places >> world.place[:, None] & 1).astype(np.float32)], axis=1)

    return score
