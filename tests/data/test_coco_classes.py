"""Which words of a caption name a class of COCO."""

import doctest
from collections import Counter

import pytest

from itr_study.data import box_table as module
from itr_study.data.box_table import class_names, coco_classes, named_classes
from itr_study.data.vocabulary import tokenize


def names(caption: str) -> list[tuple[str, str]]:
    words = tokenize(caption)
    return [(" ".join(words[n.start:n.stop]), class_names()[n.number])
            for n in named_classes(caption)]


def test_there_are_80_classes_in_the_order_of_detectors():
    assert not doctest.testmod(module).failed
    every = class_names()
    assert len(every) == len(set(every)) == 80
    known = {0: "person", 1: "bicycle", 2: "car", 8: "boat", 14: "bird", 15: "cat", 16: "dog",
             32: "sports ball", 36: "skateboard", 52: "hot dog", 60: "dining table",
             79: "toothbrush"}
    assert {number: every[number] for number in known} == known


def test_no_word_names_two_classes_and_every_class_has_one():
    words = Counter(word for some in coco_classes().values() for word in some)
    assert max(words.values()) == 1 and all(coco_classes().values())
    for word in words:  # as tokenize writes words, or they would never be found
        assert tokenize(word.replace("_", " ")) == word.split("_")


def test_every_class_is_named_by_its_own_name_but_for_two():
    ambiguous = {"orange", "mouse", "remote"}  # a colour, an animal, far away
    for name in class_names():
        assert (names(f"there is a {name} here") == [(name, name)]) == (name not in ambiguous)


@pytest.mark.parametrize("caption, expected", [
    ("Two men and a woman ride bikes .", [("men", "person"), ("woman", "person"),
                                          ("bikes", "bicycle")]),
    ("A German Shepherd puppy", [("german shepherd", "dog"), ("puppy", "dog")]),
    ("A man eats a hot dog", [("man", "person"), ("hot dog", "hot dog")]),
    ("A dirt bike and a mountain bike", [("dirt bike", "motorcycle"),
                                         ("mountain bike", "bicycle")]),
    ("A soccer ball", [("soccer ball", "sports ball")]),
    ("The dog's ball", [("dog", "dog"), ("ball", "sports ball")]),
    ("Along the train tracks", []), ("An orange sky over the hill", []), ("", []),
])
def test_captions_by_hand(caption, expected):
    assert names(caption) == expected
