"""A page checks guesses as `check_answer` does, and says the same."""

import json
import math
from hashlib import sha256

import pytest
from bs4 import BeautifulSoup

from itr_study.lab import course
from itr_study.lab.course import Exercise, check_answer, exercises
from tools.site.build import check_field

JUDGE = "return input.map(([exercise, texts]) => texts.map((text) => " \
    "load('check').judge(exercise, text)));"


def told(one: Exercise) -> dict:
    """What the page knows of an exercise."""
    html = check_field(one).removeprefix("```{raw} html\n").removesuffix("\n```")
    return json.loads(BeautifulSoup(html, "html.parser").div["data-exercise"])


def guesses_at(one: Exercise, answer: float | str) -> dict[str, float | str | None]:
    """A guess of each kind by what is typed."""
    made = {"many": "many", "": None, "nan": float("nan"), "inf": float("inf"), "1e300": 1e300,
            "12abc": "12abc", "-1e299": -1e299, "0": 0, "-0.0": -0.0}
    if isinstance(answer, str):
        return made | {letter: letter for letter in "abcd"} | {" B ": " B ", "ab": "ab"}
    places = (answer + side * one.width for side in (0, 0.2, -0.2, 1.2, -1.2, 3, -7))
    return made | {repr(place): place for place in places}


@pytest.mark.parametrize("real", [True, False], ids=["digests of the file", "of a known answer"])
def test_verdicts_and_words_are_those_of_python(node, monkeypatch, real):
    answers = {name: one.choices[-1] if one.choices else 17.3 * one.width
               for name, one in exercises().items()}
    asked = dict(exercises()) if real else {
        name: Exercise(**vars(one) | {"digests": one.digests_of(answers[name])})
        for name, one in exercises().items()}
    guesses = {name: guesses_at(one, answers[name]) for name, one in asked.items()}
    found = node(JUDGE, [[told(one), list(guesses[name])] for name, one in asked.items()])
    monkeypatch.setattr(course, "exercises", lambda: asked)
    kinds = set()
    for (name, given), pairs in zip(guesses.items(), found, strict=True):
        for (text, guess), (kind, words) in zip(given.items(), pairs, strict=True):
            reply = check_answer(name, guess)
            assert (kind == "right") == reply.right and kind == asked[name].judge(guess), text
            ours = words.split(", got ")[0]  # Python has no text where a number was typed
            assert reply.sentence.startswith(ours) and ours, (text, words)
            if isinstance(guess, str) and kind == "other":
                assert reply.sentence.startswith(words)
            kinds.add(kind)
    assert kinds >= {"right", "wrong", "absent", "other"} and ("nearly" in kinds or real)


def test_bins_are_those_of_python(node):
    """Guesses of every size, of a number whose bins have an awkward width."""
    one = Exercise("99.1", "", unit="m", width=0.3)
    guesses = [sign * math.pi * 10.0**n for n in range(-3, 14) for sign in (1, -1)]
    answers = {guess: Exercise(**vars(one) | {"digests": one.digests_of(guess)})
               for guess in guesses}
    found = node(JUDGE, [[told(made), [repr(guess)]] for guess, made in answers.items()])
    assert [kind for ((kind, _),) in found] == ["right"] * len(guesses)


def test_digests_are_sha256(node):
    texts = ["x" * n for n in range(0, 200, 3)]
    assert node("return input.map(load('check').sha256);", texts) == [
        sha256(text.encode()).hexdigest() for text in texts]


def test_a_page_holds_no_answer():
    for one in exercises().values():
        assert set(told(one)) == {"name", "label", "width", "choices", "digests", "largest",
                                  "sentences"}
        assert told(one)["digests"] == list(one.digests)
