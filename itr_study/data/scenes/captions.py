"""Write captions of `scenes`, English of varied form and detail; score how far each holds anywhere.

A caption means a tuple of assertions. How far one holds in a picture is in [0, 1]:

    Has(pattern)             best thing: the fraction of the named attributes that it has
    Related(a, how, b)       best ordered pair: mean of (a fits, b fits, the relation holds)
    Count(pattern, number)   max(0, 1 - |found - number| / number), found = things that fit wholly
    Where(places)            1 if the picture's place is among them, else 0

The relevance of the caption is the mean over its assertions, at most MOST for a picture that it was
not written for. Assertions are scored one by one: two of them may be met by the same thing.
"""

from collections.abc import Callable
from itertools import chain, permutations
from typing import NamedTuple

import numpy as np

from itr_study.data.scenes import words
from itr_study.data.scenes.styles import STYLES, USUAL, Style
from itr_study.data.scenes.words import ANY, ATTRIBUTES, RELATIONS, bits
from itr_study.data.scenes.world import MOST_THINGS, TOUCHING, Dice, Scene, Thing, relations

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
    said = dict.fromkeys((type(a), a) for meaning in meanings for a in meaning)
    groups = [[a for of, a in said if of is kind] for kind in (Has, Related, Count, Where)]
    column = {(type(a), a): n for n, a in enumerate(chain(*groups))}
    columns = [[column[type(a), a] for a in meaning] for meaning in meanings]
    lengths, score = np.array([len(c) for c in columns]), _scorer(*groups)
    means = np.zeros((len(world.place), len(meanings)), np.float32)
    for first in range(0, len(means), _BLOCK):
        block = slice(first, first + _BLOCK)
        scored = score(World(*(part[block] for part in world)))  # (I, A)
        for position in range(lengths.max()):
            texts = np.flatnonzero(lengths > position)
            means[block, texts] += scored[:, [columns[t][position] for t in texts]]
    means /= lengths.astype(np.float32)
    return means


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


# Sentences: {a} and {b} are descriptions of things, {n} is a number of them.

ONE = ("{a}", "there is {a}", "a picture of {a}", "a picture with {a}", "{a} can be seen",
       "you can see {a}", "here is {a}", "the picture shows {a}", "we are looking at {a}",
       "somebody has drawn {a}")
TWO = ("{a} and {b}", "{a} together with {b}", "there is {a} and there is {b}",
       "{a} as well as {b}", "a picture of {a} and {b}", "both {a} and {b} can be seen",
       "{b} and also {a}")
MANY = ("{list}", "there is {list}", "a picture of {list}", "we see {list}", "{list} are shown")
MORE = (", and {c}", ", with {c} elsewhere", ", besides {c}", ", and there is also {c}")
HOW_MANY = ("{n}", "there are {n}", "a picture of {n}", "{n} can be seen", "we count {n}",
            "exactly {n}", "somebody has drawn {n}")
ONE_OF = (", one of them {a}", ", among them {a}", ", {a} being one of them")
ONLY_ONE = ("only {n}", "there is just {n}", "a single {noun}", "{n} and no other")
SOME = ("some {nouns}", "a few {nouns}", "several {nouns}", "a picture of some {nouns}",
        "{nouns} of different kinds", "various {nouns}")

# Templates of a relation between {a} and {b}; "the" forms are {the_a}, {the_b}.
RELATED = {
    "left": ("{a} to the left of {b}", "{a} is left of {b}", "{b} with {a} on its left",
             "to the left of {b} there is {a}", "on the left {a}, on the right {b}",
             "{the_a} is on the left of {the_b}"),
    "right": ("{a} to the right of {b}", "{a} is right of {b}", "{b} with {a} on its right",
              "to the right of {b} there is {a}", "{the_a} is on the right of {the_b}"),
    "above": ("{a} above {b}", "{a} is higher than {b}", "{b} with {a} over it",
              "above {b} there is {a}", "{the_a} is above {the_b}", "{a} floats over {b}"),
    "below": ("{a} below {b}", "{a} is lower than {b}", "{b} with {a} beneath it",
              "below {b} there is {a}", "{the_a} is below {the_b}"),
    "on": ("{a} on {b}", "{a} on top of {b}", "{a} sits on {b}", "{b} carries {a}",
           "{b} with {a} on top", "{the_a} rests on {the_b}", "{a} is standing on {b}"),
    "under": ("{a} under {b}", "{a} supports {b}", "{the_b} sits on top of {the_a}"),
    "inside": ("{a} inside {b}", "{a} in {b}", "{a} is within {b}", "{b} with {a} inside it",
               "{b} contains {a}", "{the_a} is inside {the_b}"),
    "around": ("{a} around {b}", "{a} encloses {b}", "{the_a} is around {the_b}"),
    "beside": ("{a} next to {b}", "{a} beside {b}", "{a} and {b} side by side",
               "{a} is beside {b}"),
}
BESIDE = bits(RELATIONS, "left", "right")
ANYTHING = ("things", "objects", "shapes", "toys")
Said = tuple[str, list[Assertion]]  # a text, and what it asserts


class Caption(NamedTuple):
    """A text, and what it says."""

    text: str
    meaning: Meaning


class Noun(NamedTuple):
    """A noun phrase without article, singular and plural, and the pattern it names."""

    one: str
    many: str
    pattern: Pattern

    @property
    def a(self) -> str:
        """The singular with "a" or "an"."""
        return words.with_article(self.one)


def captions(scene: Scene, count: int, *key: int, style: Style = STYLES[USUAL]) -> list[Caption]:
    """Write `count` captions of different kinds, each true of the scene."""
    dice = Dice(*key)
    kinds = [kind for _ in range(count // len(style.deck) + 1)
             for kind in dice.shuffled(style.deck)]
    things = dice.shuffled(scene.things)  # captions start from different things in turn
    return [_finish(*_WRITERS[kind](scene, things[i % len(things):] + things, dice, style), scene,
                    dice, style) for i, kind in enumerate(kinds[:count])]


def _finish(text: str, meaning: list[Assertion], scene: Scene, dice: Dice, style: Style) -> Caption:
    """Say where it is, by chance or where nothing else is said; add capital and full stop."""
    if not meaning or dice.chance(style.where):
        phrase, places = _covering(words.PLACE_PHRASES, scene.place, dice)
        text = f"{phrase}, {text}" if dice.chance(0.25) else f"{text} {phrase}"
        meaning = [*meaning, Where(places)]
    text = text[0].upper() + text[1:] + ("." if dice.chance(0.6) else "")
    return Caption(text, tuple(meaning))


def describe(thing: Thing, dice: Dice, style: Style, share: float = 1.0) -> Noun:
    """Name a thing by some of its attributes, at least one; share: of the style's detail."""
    detail = share * style.detail
    while True:
        noun, nouns, shape = _noun(thing, dice, style.vague)
        colour, colours = _colour(thing, dice, 0.85 * detail, style.vague)
        size, sizes = _size(thing, dice, 0.5 * detail)
        texture, tail, textures = _texture(thing, dice, detail, style.vague)
        pattern = Pattern(shape, colours, sizes, textures)
        if pattern != Pattern():
            break
    adjectives = [size, colour, texture] if dice.chance(0.3) else [size, texture, colour]
    one, many = (" ".join(filter(None, [*adjectives, name, tail])) for name in (noun, nouns))
    return Noun(one, many, pattern)


def _covering(options: tuple[tuple[str, int], ...], value: int, dice: Dice) -> tuple[str, int]:
    """One of the words whose set of values holds this one."""
    return dice.pick([option for option in options if option[1] >> value & 1])


def _noun(thing: Thing, dice: Dice, vague: float) -> tuple[str, str, int]:
    if dice.chance(0.1 * vague):
        noun, allowed = _covering(words.VAGUE_NOUNS, thing.shape, dice)
        return noun, words.plural(noun), allowed
    noun = dice.pick(words.NOUNS[words.SHAPES[thing.shape]])
    return noun, words.plural(noun), 1 << thing.shape


def _colour(thing: Thing, dice: Dice, chance: float, vague: float) -> tuple[str, int]:
    if not dice.chance(chance):
        return "", words.ANY[1]
    name = words.COLOURS[thing.colour]
    if name != "black" and dice.chance(0.12 * vague):  # all others have vague words
        return _covering(words.VAGUE_COLOURS, thing.colour, dice)
    return dice.pick(words.COLOUR_WORDS.get(name, (name,))), 1 << thing.colour


def _size(thing: Thing, dice: Dice, chance: float) -> tuple[str, int]:
    name = words.SIZES[thing.size]
    if not dice.chance(chance * (0.2 if name == "medium" else 1)):
        return "", words.ANY[2]
    return dice.pick(words.SIZE_WORDS[name]), 1 << thing.size


def _texture(thing: Thing, dice: Dice, detail: float, vague: float) -> tuple[str, str, int]:
    """Word before the noun, words after it, and the set of textures."""
    name = words.TEXTURES[thing.texture]
    if not dice.chance((0.2 if name == "plain" else 0.6) * detail):
        return "", "", words.ANY[3]
    if name != "plain" and dice.chance(0.15 * vague):
        word, values = _covering(words.VAGUE_TEXTURES, thing.texture, dice)
        return word, "", values
    if name in words.TEXTURE_TAILS and dice.chance(0.35):
        return "", dice.pick(words.TEXTURE_TAILS[name]), 1 << thing.texture
    return dice.pick(words.TEXTURE_WORDS[name]), "", 1 << thing.texture


def _one(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    noun = describe(things[0], dice, style, share=1.3)
    return dice.pick(ONE).format(a=noun.a), [Has(noun.pattern)]


def _two(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    a, b = describe(things[0], dice, style), describe(things[1], dice, style)
    return dice.pick(TWO).format(a=a.a, b=b.a), [Has(a.pattern), Has(b.pattern)]


def _related(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    a, b = _pair(scene, things[0], dice)
    held = [name for name in RELATIONS if relations(a, b) & bits(RELATIONS, name)]
    how = "on" if "on" in held else "under" if "under" in held else dice.pick(held)
    allowed = bits(RELATIONS, how)
    if how in ("left", "right") and dice.chance(0.3):
        how, allowed = "beside", BESIDE
    first, second = describe(a, dice, style, 0.9), describe(b, dice, style, 0.9)
    text = dice.pick(RELATED[how]).format(
        a=first.a, b=second.a, the_a="the " + first.one, the_b="the " + second.one)
    meaning: list[Assertion] = [Related(first.pattern, allowed, second.pattern)]
    third = [thing for thing in things if thing is not a and thing is not b]
    if third and dice.chance(style.more):
        also = describe(third[0], dice, style, 0.8)
        text += dice.pick(MORE).format(c=also.a)
        meaning.append(Has(also.pattern))
    return text, meaning


def _pair(scene: Scene, thing: Thing, dice: Dice) -> tuple[Thing, Thing]:
    """The thing and another, in either order; rather one that it touches."""
    pairs = [(thing, other) for other in scene.things if other is not thing]
    pairs += [(b, a) for a, b in pairs]
    touching = [pair for pair in pairs if relations(*pair) & TOUCHING]
    return dice.pick(touching if touching and dice.chance(0.7) else pairs)


def _number(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    """How many things there are, and one of them."""
    n = len(scene.things)
    nouns = f"{words.NUMBERS[n]} {dice.pick(ANYTHING)}"
    noun = describe(things[0], dice, style)
    text = dice.pick(HOW_MANY).format(n=nouns) + dice.pick(ONE_OF).format(a=noun.a)
    return text, [Count(Pattern(), n), Has(noun.pattern)]


def _number_of(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    """How many things fit a short description: more than one where the scene allows it."""
    options = [describe(thing, dice, style, share=0.6) for thing in things[:4]]
    noun = max(options, key=lambda option: how_many(scene, option.pattern))
    n = how_many(scene, noun.pattern)
    if n == 1:
        text = dice.pick(ONLY_ONE).format(n=f"one {noun.one}", noun=noun.one)
    else:
        number = dice.pick(("a pair of", "a couple of", "two")) if n == 2 else words.NUMBERS[n]
        text = dice.pick(HOW_MANY[:-2]).format(n=f"{number} {noun.many}")
    return text, [Count(noun.pattern, n)]


def how_many(scene: Scene, pattern: Pattern) -> int:
    """Count the things of the scene that fit the pattern wholly."""
    return sum(all(allowed >> value & 1 for allowed, value in zip(pattern, thing, strict=False))
               for thing in scene.things)


def _all(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    """Every thing, each in few words."""
    nouns = [describe(thing, dice, style, share=0.7) for thing in dice.shuffled(scene.things)]
    listed = ", ".join(noun.a for noun in nouns[:-1]) + " and " + nouns[-1].a
    return dice.pick(MANY).format(list=listed), [Has(noun.pattern) for noun in nouns]


def _some(scene: Scene, things: list[Thing], dice: Dice, style: Style) -> Said:
    """Say only where it is: suits many pictures (a hub)."""
    return dice.pick(SOME).format(nouns=dice.pick(ANYTHING)), []


_WRITERS = {"one": _one, "two": _two, "related": _related, "number": _number,
            "number of": _number_of, "all": _all, "some": _some}
