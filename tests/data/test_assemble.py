import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itr_study.data.assemble import Caption, build_splits, caption_problems, fingerprint
from itr_study.data.base import DataReport, Split
from itr_study.data.vocabulary import tokenize


def splits(texts=("one", "two", "three")):
    captions = [Caption(image, f"{image}#{n}", text)
                for n, (image, text) in enumerate(zip(("b", "a", "b"), texts, strict=True))]
    return build_splits({"train": ["b"], "test": ["a"]}, captions, DataReport())


def test_texts_lie_image_by_image_in_the_order_given():
    built = splits()
    assert built["train"].texts == ("one", "three") and built["test"].texts == ("two",)
    assert built["train"].image_of_text.tolist() == [0, 0]


def test_captions_of_unknown_images():
    problems = caption_problems({"train": ["a"]}, [Caption("a", "1", "x"), Caption("c", "2", "y")])
    assert [(p.kind, p.where) for p in problems] == [("caption of an unknown image", "2")]


def test_fingerprint_sees_the_order_of_images_and_whose_a_text_is():
    """The rows of features lie in this order."""
    def of(*ids, owners=(0, 1, 1)):
        texts = ("1", "2", "3"), ("x", "y", "z")
        return fingerprint({"train": Split("train", ids, *texts, np.array(owners))}, [])

    assert of("a", "b") != of("b", "a") and of("a", "b") == of("a", "b")
    assert of("a", "b") != of("a", "b", owners=(0, 0, 1))


def test_fingerprint_sees_each_part():
    files = [("b.jpg", 10), ("a.jpg", 20)]
    prints = {
        fingerprint(splits(), files), fingerprint(splits(("one", "two", "3")), files),
        fingerprint(splits(), [("b.jpg", 11), ("a.jpg", 20)]),
        fingerprint(splits(), [("c.jpg", 10), ("a.jpg", 20)]),
        fingerprint({"train": splits()["train"]}, files),
        fingerprint(dict(reversed(splits().items())), files),
    }
    assert len(prints) == 6
    assert fingerprint(splits(), files) == fingerprint(splits(), files)


@pytest.mark.parametrize("text", ["", " \n", "????? ?? ???", "\u200b", "\ufeff\u2060", "...",
                                  "\U0001f600", "\u3002\uff1f"])
def test_captions_without_a_word_are_empty(text):
    (problem,) = caption_problems({"train": ["a"]}, [Caption("a", "1", text)])
    assert problem.kind == "empty caption"


@pytest.mark.parametrize("text", ["a d\0g", "a \ud83d dog", "\udcff", "\ude00 a smile"])
def test_captions_that_are_no_text_are_damaged(text):
    (problem,) = caption_problems({"train": ["a"]}, [Caption("a", "1", text)])
    assert problem.kind == "damaged caption" and problem.detail.isprintable()
    problem.detail.encode()


@given(st.text())
def test_any_caption_with_a_word_that_can_be_encoded_is_fine(text):
    found = caption_problems({"train": ["a"]}, [Caption("a", "1", text)])
    damaged = "\0" in text or text.encode("utf-8", "replace").decode() != text
    assert bool(found) == (damaged or not tokenize(text))
