import numpy as np
import pytest

from itr_study.data.vocabulary import Vocabulary, tokenize


@pytest.mark.parametrize("text, words", [
    ("A Dog , running .", ["a", "dog", "running"]),
    ("the dog's ball", ["the", "dog", "'s", "ball"]),
    ("the dog 's ball", ["the", "dog", "'s", "ball"]),
    ("He doesn't see", ["he", "does", "n't", "see"]),
    ("He does n't see", ["he", "does", "n't", "see"]),
    ("It isn\u2019t his", ["it", "is", "n't", "his"]),
    ("T-shirt and merry-go-round", ["t-shirt", "and", "merry-go-round"]),
    ("a bird's-eye view", ["a", "bird", "'s", "eye", "view"]),
    ("five o'clock", ["five", "o'clock"]),
    ("2 boys' bikes", ["2", "boys", "bikes"]),
    ("1,000 people at 6:30.", ["1,000", "people", "at", "6:30"]),
    ("the 23rd 4x4 mp3", ["the", "23rd", "4x4", "mp3"]),
    ("a 4-wheeler -- red/yellow", ["a", "4-wheeler", "red", "yellow"]),
    ("caf\u00e9 na\u00efve", ["caf\u00e9", "na\u00efve"]),
    ("\"quoted\" ''words'' it.", ["quoted", "words", "it"]),
    ("snake_case", ["snake", "case"]),
    (" ... ' - & ", []),
    ("", []),
])
def test_tokenize(text, words):
    assert tokenize(text) == words


def test_order_is_by_count_then_alphabet_whatever_the_order_of_texts():
    texts = ["the cat", "a dog", "the dog ran", "the zoo"]
    words = ("<padding>", "<unknown>", "the", "dog", "a", "cat", "ran", "zoo")
    assert Vocabulary.fit(texts).words == Vocabulary.fit(texts[::-1]).words == words


def test_encode():
    vocabulary = Vocabulary.fit(["a dog", "a cat"])
    ids = vocabulary.encode("A cat bites a dog !")
    assert ids.dtype == np.int64 and ids.tolist() == [2, 3, 1, 2, 4]
    assert vocabulary.encode("...").tolist() == [1]  # no text is empty
    assert vocabulary.encode("<padding> <unknown>").tolist() == [1, 1]
    assert len(vocabulary) == 5 and "cat" in vocabulary and "bites" not in vocabulary
    assert Vocabulary(vocabulary.words[2:]).encode("a cat").tolist() == [2, 3]


def test_min_count():
    assert Vocabulary.fit(["a dog", "a cat"], min_count=2).words[2:] == ("a",)
    with pytest.raises(ValueError, match="no word is used 3 times or more in the 4 words"):
        Vocabulary.fit(["a dog", "a cat"], min_count=3)
    with pytest.raises(ValueError, match="min_count must be >= 1"):
        Vocabulary.fit(["a"], min_count=0)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="single string"):
        Vocabulary.fit("a dog")
    with pytest.raises(ValueError, match="must differ.*'a'"):
        Vocabulary(["a", "b", "a"])
