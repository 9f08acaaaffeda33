"""The words of `scenes`: what things and places there are, and what English calls them."""

from functools import cache

SHAPES = ("ball", "block", "triangle", "star", "heart", "diamond", "ring", "moon", "house", "tree",
          "fish", "boat")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black")
SIZES = ("small", "medium", "large")
TEXTURES = ("plain", "striped", "dotted", "checked")
ATTRIBUTES = (SHAPES, COLOURS, SIZES, TEXTURES)  # the order of a thing's attributes everywhere
PLACES = ("meadow", "beach", "snow", "desert", "night", "room", "sunset", "sea")
RELATIONS = ("left", "right", "above", "below", "on", "under", "inside", "around")


@cache
def bits(values: tuple[str, ...], *chosen: str) -> int:
    """Write a set of values as an integer: bit i stands for values[i]."""
    return sum(1 << values.index(value) for value in chosen)


ANY = tuple((1 << len(values)) - 1 for values in ATTRIBUTES)  # nothing said about it

# Words for one value. Nouns are singular; PLURALS has the irregular ones.
NOUNS = {
    "ball": ("ball", "ball", "circle", "disc"), "block": ("block", "square", "box"),
    "triangle": ("triangle", "triangle", "pyramid"), "star": ("star",), "heart": ("heart",),
    "diamond": ("diamond", "diamond", "rhombus"), "ring": ("ring", "ring", "hoop"),
    "moon": ("moon", "crescent"), "house": ("house", "house", "hut", "cottage"),
    "tree": ("tree", "tree", "fir"), "fish": ("fish",),
    "boat": ("boat", "boat", "ship", "sailboat"),
}
PLURALS = {"fish": "fish", "box": "boxes", "rhombus": "rhombuses"}
SIZE_WORDS = {"small": ("small", "little", "tiny"), "medium": ("medium-sized",),
              "large": ("large", "big", "huge")}
TEXTURE_WORDS = {"plain": ("plain", "solid"), "striped": ("striped", "stripy"),
                 "dotted": ("dotted", "spotted"), "checked": ("checked", "chequered")}
TEXTURE_TAILS = {"striped": ("with stripes",), "dotted": ("with dots", "with spots"),
                 "checked": ("with a checked pattern",)}
COLOUR_WORDS = {"red": ("red", "red", "scarlet"), "purple": ("purple", "violet"),
                "black": ("black", "black", "dark")}

# Vaguer words, each with the set of values it covers: these make captions ambiguous.
VAGUE_NOUNS = (("thing", ANY[0]), ("object", ANY[0]), ("shape", ANY[0]), ("toy", ANY[0]),
               ("round thing", bits(SHAPES, "ball", "ring")),
               ("pointed shape", bits(SHAPES, "triangle", "star", "diamond", "tree")))
VAGUE_COLOURS = (("warm-coloured", bits(COLOURS, "red", "orange", "yellow")),
                 ("reddish", bits(COLOURS, "red", "orange", "pink")),
                 ("cool-coloured", bits(COLOURS, "green", "blue", "purple")),
                 ("pale", bits(COLOURS, "white", "yellow", "pink")))
VAGUE_TEXTURES = (("patterned", ANY[3] - bits(TEXTURES, "plain")),)

# Phrases for places; one phrase may suit several places.
_OUTSIDE = ((1 << len(PLACES)) - 1) - bits(PLACES, "room")
PLACE_PHRASES = tuple((phrase, bits(PLACES, *places)) for phrase, *places in (
    ("in a meadow", "meadow"), ("on the grass", "meadow"), ("in a green field", "meadow"),
    ("on the beach", "beach"), ("by the water", "beach"), ("on the sand", "beach", "desert"),
    ("in the snow", "snow"), ("in winter", "snow"), ("on a snowy day", "snow"),
    ("in the desert", "desert"), ("among the dunes", "desert"),
    ("at night", "night"), ("under the night sky", "night"), ("in the dark", "night"),
    ("in a room", "room"), ("indoors", "room"), ("against a wall", "room"),
    ("at sunset", "sunset"), ("in the evening light", "sunset"),
    ("under water", "sea"), ("at the bottom of the sea", "sea"),
    ("late in the day", "sunset", "night"), ("on a bright day", "meadow", "beach", "desert"),
)) + (("outdoors", _OUTSIDE), ("outside", _OUTSIDE))

NUMBERS = ("no", "one", "two", "three", "four", "five")


def plural(noun: str) -> str:
    """Give the plural of a noun or of an adjective and noun: "round things"."""
    return PLURALS.get(noun, noun + "s")


def with_article(phrase: str) -> str:
    """Put "a" or "an" before a phrase."""
    return f"{'an' if phrase[0] in 'aeio' else 'a'} {phrase}"
