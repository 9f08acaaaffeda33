"""Words as numbers: a tokenizer for captions, and a vocabulary fitted on training texts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

import numpy as np

PADDING, UNKNOWN = "<padding>", "<unknown>"
# Alternatives in order: numbers with inner marks (1,000 6:30 1/2); the clitics n't and 's; a
# word before n't; any other word, with inner hyphens and apostrophes (t-shirt, o'clock).
TOKEN = re.compile(r"\d+(?:[.,:/]\d+)+|n't\b|'s\b|[^\W_]+?(?=n't\b)"
                   r"|[^\W_]+(?:-[^\W_]+)*(?:'(?!s\b)[^\W_]+)?")


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words, punctuation dropped.

    Digits and hyphenated words stay whole; 's and n't are words of their own, as in the Penn
    Treebank and in GloVe, whether or not the annotator put a space before them.

    Example:
        >>> tokenize("The dog's 2 T-shirts aren't red .")
        ['the', 'dog', "'s", '2', 't-shirts', 'are', "n't", 'red']
    """
    plain = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'")
    return TOKEN.findall(plain)


def check_query(text: str) -> None:
    """Raise ValueError where a text holds no word."""
    if not tokenize(text):
        raise ValueError(f"the query {text!r} holds no word; write what the picture shows")


class Vocabulary:
    """Words with their ids: 0 is padding, 1 every unknown word, then the words themselves.

    Args:    words: distinct words without the two special ones, in order of their ids from 2.
    Raises:  ValueError: a word is given twice, or is one of the special ones.
    """

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

    def unknown(self, words: Iterable[str]) -> list[str]:
        """List the words that are not in it, which are all read as one unknown word."""
        return [word for word in words if word not in self]

    def __len__(self) -> int:
        """Number of ids, the two special ones included."""
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._id
