import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from itr_study.data.vocabulary import Unread, Vocabulary, check_query, tokenize, unread


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


@pytest.mark.parametrize("text, words", [
    ("গান গুন", ["গান", "গুন"]),  # Bengali
    ("துணி-துணி", ["துணி-துணி"]),  # Tamil
    ("שָׁלוֹם כּוּלם", ["שָׁלוֹם", "כּוּלם"]),  # Hebrew with vowels
    ("ที่นี่", ["ที่นี่"]),  # Thai has no spaces
    ("نمی\u200cدانم", ["نمی\u200cدانم"]),
    ("ශ්\u200dරී\u200d .", ["ශ්\u200dරී"]),  # what joins counts inside a word only
    ("DİYARBAKIR I\u0307\xe7", ["diyarbakir", "i\xe7"]),
    ("cre\u0300me brûle\u0301e", ["cr\xe8me", "br\xfbl\xe9e"]),
    ("J\u030c \u01f0", ["\u01f0"] * 2),  # there is no capital of it
    ("well\u2010known check\u2011in \uff0dx", ["well-known", "check-in", "x"]),
    ("\u0643\u0640\u0640\u0644\u0628 \u0643\u0644\u0628", ["\u0643\u0644\u0628"] * 2),
    ("foot\xadball \u200efoot\ufeffball\u200f", ["football"] * 2),
    ("it`s isn\xb4t м\u02bcяч rock`", ["it", "'s", "is", "n't", "м'яч", "rock"]),
    ("the boy\u0301's, x's\u0301", ["the", "bo\xfd", "'s", "x'\u015b"]),
    ("\u2600\ufe0f 2\ufe0f \U0001f468\u200d\U0001f467", ["2"]),
])
def test_a_word_keeps_its_marks(text, words):
    assert tokenize(text) == [unicodedata.normalize("NFKC", word) for word in words]


HARD = st.text(st.sampled_from(
    "ans'`\u2019\xb4\u02bc\u2018-\u2010_ .,1\u0663IiJ\u0130\u0307\u0301\u03a3\u0915\u093f\u094d"
    "\u200c\u200d\xad\ufe0f\u20e3\ud83d"), max_size=12)


def letters(text):
    """Letters and digits without their marks, both sigmas one; what is an apostrophe is none."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).lower())
    return [c.replace("ς", "σ") for c in plain if c.isalnum() and c not in "\u02bc\u05f3"]


@example("1's_").via("an underscore ends a word")
@given(HARD | st.text(max_size=40))
def test_any_text_has_the_words_of_its_words_and_loses_no_letter(text):
    words = tokenize(text)
    assert tokenize(" ".join(words)) == words
    assert letters(" ".join(words)) == letters(text)


@given(HARD.map(lambda text: text.encode("ascii", "ignore").decode()))
def test_words_are_the_same_whatever_stands_behind_them(text):
    assert tokenize(text + " é") == [*tokenize(text), "é"]  # read by the other pattern


def test_words_of_real_captions_are_those_that_published_numbers_rest_on(real_data):
    before = re.compile(r"\d+(?:[.,:/]\d+)+|n't\b|'s\b|[^\W_]+?(?=n't\b)"
                        r"|[^\W_]+(?:-[^\W_]+)*(?:'(?!s\b)[^\W_]+)?")
    (path,) = real_data.glob("flickr8k/**/Flickr8k.token.txt")
    texts = [line.partition("\t")[2] for line in path.read_text().splitlines()]
    assert len(texts) == 40_460
    for text in texts:
        assert tokenize(text) == before.findall(text.lower())
    some = texts[::20]
    whole = " é ".join(some)
    assert [word for word in tokenize(whole) if word != "é"] == before.findall(
        " . ".join(some).lower())


@pytest.mark.parametrize("query, said", [
    ("", "holds no word"), ("\u200b\ufeff?", "holds no word"), (None, "a text, got NoneType"),
    (b"a dog", "must be a text, got bytes"), (["a"], "must be a text, got list"),
    ("a dog \udcff", "not UTF-8"), ("\ud83d a cat", "half of a character")])
def test_a_query_is_a_text_with_a_word(query, said):
    with pytest.raises(ValueError, match=said):
        check_query(query)


def test_what_is_unread_is_what_no_reader_reads():
    one, other = Vocabulary(["dog", "red"]), Vocabulary(["cat", "red"])
    texts = ["a red dog, a dog", "zebra", "?!"]
    assert one.unread(texts) == [(["a"], False, 0), (["zebra"], True, 0), ([], True, 0)]
    assert unread([one, other], texts) == one.unread(texts)
    assert unread([one, other], ["cat dog a"]) == [(["a"], False, 0)]
    assert unread([], texts) == [Unread([], False, 0)] * 3


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
