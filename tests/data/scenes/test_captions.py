"""Captions: true of their own picture, varied, and about different parts of it."""

import re
from collections import Counter

import pytest

from itr_study.data.scenes.captions import Count, captions, how_many
from itr_study.data.scenes.styles import STYLES, USUAL
from itr_study.data.scenes.words import PLACES, plural, with_article
from itr_study.data.scenes.world import family, relations
from tests.oracles import scenes as oracle


@pytest.fixture(scope="module")
def written():
    """Scenes with their captions."""
    scenes = [scene for g in range(50) for scene in family(3, g)]
    return [(scene, captions(scene, 6, 3, i)) for i, scene in enumerate(scenes)]


@pytest.fixture(scope="module", params=range(len(STYLES)))
def in_style(request):
    """The same scenes, fewer of them, with captions of each style in turn."""
    scenes = [scene for g in range(25) for scene in family(3, g)]
    return [(scene, captions(scene, 6, 3, i, style=STYLES[request.param]))
            for i, scene in enumerate(scenes)]


def test_the_usual_style_is_the_default(written):
    scene, found = written[0]
    assert captions(scene, 6, 3, 0, style=STYLES[USUAL]) == found
    assert captions(scene, 6, 3, 0, style=STYLES[0]) != found


def test_true_of_their_own_picture(in_style):
    for scene, found in in_style:
        for caption in found:
            assert oracle.relevance(caption.meaning, scene, relations) == 1, caption


def test_every_caption_says_something(in_style):
    assert all(caption.meaning for _, found in in_style for caption in found)


def test_counts_agree_with_the_text(in_style):
    for scene, found in in_style:
        for caption in found:
            for a in caption.meaning:
                if isinstance(a, Count):
                    assert how_many(scene, a.pattern) == a.number


def test_texts_are_clean_english(in_style):
    for _, found in in_style:
        for text, _ in found:
            assert re.fullmatch(r"[A-Z][a-z,\- ]*\.?", text), text
            assert "  " not in text and " ," not in text and not text.endswith(" "), text
            assert not re.search(r"\ba [aeio]|\ban [^aeio]", text), text


def test_texts_are_varied(written):
    texts = [caption.text for _, found in written for caption in found]
    assert len(set(texts)) > 0.95 * len(texts)
    kinds = Counter(tuple(type(a).__name__ for a in c.meaning) for _, f in written for c in f)
    assert len(kinds) >= 10 and kinds.most_common(1)[0][1] < 0.35 * len(texts)
    assert sum(len(set(found)) == len(found) for _, found in written) > 0.95 * len(written)


def test_some_captions_suit_many_pictures_and_many_suit_one(written):
    scenes = [scene for scene, _ in written]
    fits = [sum(oracle.relevance(c.meaning, scene, relations) == 1 for scene in scenes)
            for _, found in written[:15] for c in found]
    assert max(fits) > len(scenes) // 4  # hubs: outdoors
    assert 0.3 < sum(n <= 2 for n in fits) / len(fits) < 0.9
    assert len(scenes) > len(PLACES) * 8


def test_words():
    assert plural("fish") == "fish" and plural("box") == "boxes" and plural("star") == "stars"
    assert with_article("orange tree") == "an orange tree"
    assert with_article("tree") == "a tree"
