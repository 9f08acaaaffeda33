"""Words as numbers: a tokenizer for captions, and a vocabulary fitted on training texts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

PADDING, UNKNOWN = "<padding>", "<unknown>"
# What people type for an apostrophe: ´ and ` of a keyboard, letters of Ukrainian and Hebrew.
APOSTROPHE = re.compile("(?<=\\w)[`\u2018\u02bc\u05f3](?=\\w)")
HALF = re.compile(r"[\ud800-\udfff]")  # of a character, or of bytes: no encoder takes them
HYPHENS = dict.fromkeys((0x2010, 0x2011), "-")


def _words(letter: str, end: str) -> re.Pattern[str]:
    """Make the pattern of a word: 1,000 6:30 1/2; n't and 's; before n't; t-shirt, o'clock."""
    word = f"(?:{letter})+"
    return re.compile(rf"\d+(?:[.,:/]\d+)+|n't{end}|'s{end}|{word}?(?=n't{end})"
                      rf"|{word}(?:-{word})*(?:'(?!s{end}){word})?")


ASCII = _words(r"[^\W_]", r"(?![^\W_])")


@cache
def _beyond_ascii() -> tuple[re.Pattern[str], dict[int, str | None]]:
    """Make the pattern of words whose letters have marks, and what is not seen and dropped.

    A mark is no letter to Python; one that joins letters or keeps them apart counts within a word.
    """
    kinds = {code: unicodedata.category(chr(code))
             for code in (*range(0x20000), *range(0xE0000, 0xE0200))}  # the others have neither
    unseen = {code for code, kind in kinds.items() if kind == "Cf"} - {0x200B, 0x200C, 0x200D}
    unseen |= {0x640, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}  # stretch, or choose a form
    marks = "".join(chr(code) for code, kind in kinds.items()
                    if kind[0] == "M" and code not in unseen)
    more = f"[{marks}]|[\u200c\u200d]+(?=[^\\W_]|[{marks}])"
    return _words(rf"[^\W_](?:{more})*", rf"(?![^\W_]|{more})"), dict.fromkeys(unseen)


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words, punctuation dropped.

    Digits and hyphenated words stay whole, and so does a letter with its combining marks; 's and
    n't are words of their own, as in the Penn Treebank and in GloVe, whether or not the annotator
    put a space before them. A script without spaces has one word between two of them.

    Example:
        >>> tokenize("The dog's 2 T-shirts aren't red .")
        ['the', 'dog', "'s", '2', 't-shirts', 'are', "n't", 'red']
    """
    if text.isascii():
        return ASCII.findall(APOSTROPHE.sub("'", text.lower()))
    words, unseen = _beyond_ascii()
    plain = unicodedata.normalize("NFKC", text.translate(unseen).replace("\xb4", "`")).lower()
    plain = re.sub("i\u0307+", "i", plain.translate(HYPHENS).replace("\u2019", "'"))  # of İ
    return words.findall(APOSTROPHE.sub("'", unicodedata.normalize("NFKC", plain)))


def check_query(text: str) -> None:
    """Raise ValueError unless a query is a text, of Unicode, that holds a word."""
    if not isinstance(text, str):
        raise ValueError(f"a query must be a text, got {type(text).__name__}")
    if HALF.search(text):
        raise ValueError(f"the query {text!r} is no whole text: it holds bytes that are not UTF-8, "
                         "or half of a character; write it again")
    if not tokenize(text):
        raise ValueError(f"the query {text!r} holds no word; write what the picture shows")


class Unread(NamedTuple):
    """What is not read of one text: its unknown words, each once, and what is behind a cut."""

    words: list[str]
    nothing: bool  # whether none of its words is known
    cut: int  # pieces that are read of a text that has more, else 0


class TextReader(Protocol):
    """What turns texts into numbers. As it stands it knows every word and cuts nothing."""

    learns: bool = False  # whether it reads texts otherwise after other training captions

    def unread(self, texts: Sequence[str]) -> list[Unread]:
        """Say of each text what is not read of it."""
        return unread([self], texts)

    def _unknown(self, words: set[str]) -> set[str]:
        """Those of some words that it cannot read."""
        return set()

    def _cuts(self, texts: Sequence[str]) -> list[int]:
        """The field `cut` of each text."""
        return [0] * len(texts)


def unread(readers: Sequence[TextReader], texts: Sequence[str]) -> list[Unread]:
    """Say of each text what none of several readers reads; all is read where there is none."""
    words = [list(dict.fromkeys(tokenize(text))) for text in texts]
    unknown = {word for used in words for word in used}
    for reader in readers:
        unknown = reader._unknown(unknown)
    cuts = zip(*(reader._cuts(texts) for reader in readers), strict=True)
    return [Unread([word for word in used if word in unknown], unknown.issuperset(used), min(cut))
            for used, cut in zip(words, cuts, strict=True)] if readers else [
                Unread([], False, 0)] * len(texts)


class Vocabulary(TextReader):
    """Words with their ids: 0 is padding, 1 every unknown word, then the words themselves.

    Args:    words: distinct words without the two special ones, in order of their ids from 2.
    Raises:  ValueError: a word is given twice, or is one of the special ones.
    """

    learns = True

    def __init__(self, words: Iterable[str]) -> None:
        self.words = (PADDING, UNKNOWN, *words)
        self._id = {word: number for number, word in enumerate(self.words)}
        if len(self._id) != len(self.words):
            twice = [word for word, count in Counter(self.words).items() if count > 1]
            raise ValueError(f"words of a vocabulary must differ; given twice: {twice[:10]}")

    @classmethod
    def fit(cls, texts: Iterable[str], min_count: int = 1) -> "Vocabulary":
        """Take all words used at least min_count times; give training texts only.

        The order depends on nothing but the counts: most frequent first, equal ones by alphabet.

        Raises:  ValueError: min_count < 1, a single string for the texts, or no word left.

        Example:
            >>> Vocabulary.fit(["a dog", "a cat"]).words
            ('<padding>', '<unknown>', 'a', 'cat', 'dog')
        """
        if min_count < 1:
            raise ValueError(f"min_count must be >= 1, got {min_count}")
        if isinstance(texts, str):
            raise ValueError("texts must be several texts, got a single string; put it in a list")
        counts = Counter(word for text in texts for word in tokenize(text))
        words = sorted((w for w, n in counts.items() if n >= min_count),
                       key=lambda word: (-counts[word], word))
        if not words:
            raise ValueError(f"no word is used {min_count} times or more in the {counts.total()} "
                             "words given; lower min_count or give more texts")
        return cls(words)

    def encode(self, text: str) -> np.ndarray:
        """Read a text as ids (W,) int64, W >= 1: a text without any word is one unknown."""
        return np.array([self._id.get(word, 1) for word in tokenize(text)] or [1], np.int64)

    def _unknown(self, words: set[str]) -> set[str]:
        """Those that are all read as one unknown word."""
        return words - self._id.keys()

    def __len__(self) -> int:
        """Number of ids, the two special ones included."""
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._id
