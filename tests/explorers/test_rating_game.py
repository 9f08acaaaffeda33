"""You are the judge, without a browser: agreement worked by hand; nothing is told too early."""


import numpy as np
import pytest
from PIL import Image

from itr_study.data.base import Judgements, RetrievalDataset, Split
from itr_study.explorers.rating_game import (
    CLASSES,
    LEAST,
    UNDEFINED,
    YouJudge,
    compute_agreement,
    compute_interval,
    draw_evenly,
    load_pairs,
    sample_pairs,
)

GRADES = np.tile([1.0, 2.0, 3.0, 4.0], 10)[:, None]  # one rater of 40 pairs


def picture(image):
    return Image.new("RGB", (400, 200), (image % 256, 0, 0))


def made(ratings=GRADES, **named):
    pairs = len(ratings)
    return YouJudge(**dict(images=range(pairs), texts=[f"text {n}" for n in range(pairs)],
                           ratings=ratings, picture=picture, scores={}) | named)


def rate_all(one, grade_of, pairs=20):
    for _ in range(pairs):
        one.handle("rate", {"grade": grade_of(one), "pair": one.place + 1})
        assert one.problem == ""


def theirs(one):
    return int(one.ratings[one.place, 0])


def test_tau_and_its_interval_by_hand():
    """Four of five pairs in order and the last two swapped, C = 9, D = 1, m = n = 5:
    2 x 5 x 8 / (25 x 4) = 0.8; of two raters the second is upside down: 0. Equal grades, two of
    them alike: C = 9, m = 4: 2 x 4 x 9 / (25 x 3) = 0.96, where tau-b would be 1."""
    ratings = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    tau, low, high = compute_agreement(np.array([1, 2, 3, 5, 4]), ratings)
    half = 1.96 * np.sqrt(0.437 / (5 - 4))
    assert tau == pytest.approx(0.8)
    assert (low, high) == pytest.approx((np.tanh(np.arctanh(0.8) - half),
                                         np.tanh(np.arctanh(0.8) + half)), abs=1e-4)
    assert compute_agreement(np.arange(5), np.hstack([ratings, ratings[::-1]]))[0] == 0
    alike = np.minimum(ratings, 4)
    assert compute_agreement(alike[:, 0], alike)[0] == pytest.approx(0.96)


def test_few_pairs_say_little_even_where_they_agree():
    widths = [np.diff(compute_interval(1.0, pairs)).item() for pairs in (5, 10, 20)]
    assert widths == sorted(widths, reverse=True) and widths[0] > 0.8 and widths[2] < 0.02
    assert compute_interval(1.0, 5)[1] == 1 and compute_interval(-1.0, 5)[0] == -1


def test_as_many_of_each_grade_are_drawn_as_can_be():
    even = GRADES[draw_evenly(GRADES, 20, seed=1)].ravel()
    assert np.unique(even, return_counts=True)[1].tolist() == [5, 5, 5, 5]
    rare = np.array([[1.0]] * 30 + [[2.0]] * 2 + [[3.0]] * 3 + [[4.0]])
    chosen = draw_evenly(rare, 20, seed=1)
    assert np.unique(rare[chosen], return_counts=True)[1].tolist() == [14, 2, 3, 1]
    assert len(set(chosen.tolist())) == 20
    assert draw_evenly(rare, 20, 1).tolist() == chosen.tolist() != draw_evenly(rare, 20, 2).tolist()
    orders = [draw_evenly(GRADES, 20, seed) for seed in range(20)]  # they must not tell the grade
    assert any(len(set(GRADES[order[:4], 0])) < 4 for order in orders)
    assert all((np.diff(order) < 0).any() for order in orders)


def test_nothing_of_the_others_is_shown_before_a_rating():
    """With other ratings of the same grade, all that is shown is the same."""
    agreed = np.repeat(GRADES, 3, axis=1)
    torn = np.clip(agreed + [-1, 0, 1], 1, 4)
    one, other = made(agreed), made(torn)
    for step in range(3):
        for shown in ("stage", "controls", "problem"):  # the sentence tells how all agree
            assert one.view()[shown] == other.view()[shown], (step, shown)
        for each in (one, other):
            each.handle("open")
            assert "Rate the pair first" in each.problem and each.stage()["others"] == ""
            each.handle("rate", {"grade": 2})


def test_agreement_is_shown_from_five_on_and_is_one_for_equal_ratings():
    one = made(scores={"good": GRADES.ravel(), "bad": -GRADES.ravel(), "flat": np.ones(40)})
    for rated in range(LEAST):
        assert one.stage()["agreements"] == []
        assert one.numbers()["rated"] == f"{rated} of 20 pairs"
        assert one.stage()["waits"] == LEAST - rated
        one.handle("rate", {"grade": theirs(one)})
    assert one.stage()["waits"] == 0
    rate_all(one, theirs, 15)
    values = {each["name"]: each["value"] for each in one.stage()["agreements"]}
    assert values == pytest.approx({"you": 1, "good": 1, "bad": -1})
    assert list(values) == ["you", "good", "bad"]  # sorted; one rater has nobody beside
    assert one.numbers()["τ-c, flat"] == "not defined"
    assert one.numbers()["τ-c, you"] == "1.00 [0.99, 1.00]"


def test_each_rater_is_held_against_the_others():
    """Two agree, the third is upside down: on all pairs the two have, against one like them and one
    upside down, 0; the third has -1 against both."""
    one = made(np.hstack([GRADES, GRADES, 5 - GRADES]), raters=("a", "b", "c"))
    rate_all(one, theirs)
    values = {each.name: each.value for each in one.agreements()[0]}
    assert values == pytest.approx({"a": 0, "b": 0, "c": -1, "you": 1 / 3})


def test_a_rating_stays_once_one_has_seen_the_others():
    one = made(np.hstack([GRADES, GRADES[::-1]]))
    one.handle("rate", {"grade": 3, "pair": 1})
    assert one.place == 1  # on to the next
    one.handle("rate", {"grade": 4, "pair": 1})  # a second thought, of the first
    assert one.given == {0: 4} and one.place == 1
    one.handle("back")
    assert [grade["chosen"] for grade in one.stage()["grades"]] == [False, False, False, True]
    one.handle("open")
    said = one.ratings[0]
    assert one.stage()["others"] == f"You: 4, expert 1: {said[0]:.0f}, expert 2: {said[1]:.0f}"
    one.handle("rate", {"grade": 1})
    assert "your rating stays" in one.problem and one.given == {0: 4} and one.stage()["fixed"]
    one.handle("forward")
    assert one.stage()["others"] == "" and not one.stage()["fixed"]


def test_rating_goes_on_to_the_next_without_a_rating():
    one = made()
    one.handle("forward")
    one.handle("rate", {"grade": 1})
    assert one.place == 2
    one.handle("back")
    one.handle("back")
    one.handle("rate", {"grade": 1})
    assert one.place == 2  # the second has one already
    for _ in range(18):
        one.handle("rate", {"grade": 1})
    assert len(one.given) == 20 and one.place == 19  # none is left: it stays
    one.handle("forward")
    assert "no pair beyond" in one.problem and one.place == 19


def test_what_is_selected_is_what_was_rated():
    one = made(np.hstack([GRADES, GRADES]), raters=("ann", "bob"))
    rate_all(one, lambda _: 2, 3)
    found = one.selected
    assert found.columns.tolist() == ["pair", "image", "text", "you", "ann", "bob"]
    assert found["pair"].tolist() == [1, 2, 3] and found["you"].tolist() == [2, 2, 2]
    assert found["ann"].tolist() == [GRADES[image, 0] for image in found["image"]]
    assert found["text"].tolist() == [f"text {image}" for image in found["image"]]


@pytest.mark.parametrize(("wrong", "said"), [
    ({"texts": ["a"]}, "got 40, 1 and (40, 1)"), ({"ratings": GRADES[:, 0]}, "(pairs, raters)"),
    ({"ratings": GRADES + 1}, "ratings must be 1, 2, 3 or 4"),
    ({"ratings": np.where(GRADES > 3, np.nan, GRADES)}, "at least one for each pair"),
    ({"scores": {"x": np.ones(3)}}, "scores of 'x' must be 40 finite numbers"),
    ({"scores": {"x": np.full(40, np.nan)}}, "finite"), ({"raters": ("a", "b")}, "1 names"),
    ({"count": 4}, "count must be an integer >= 5")])
def test_what_are_no_rated_pairs_is_refused(wrong, said):
    with pytest.raises(ValueError) as caught:
        made(**{"images": range(40), "texts": ["a"] * 40} | wrong)
    assert said in str(caught.value)


IMAGES, TEXTS = tuple(f"i{n}" for n in range(8)), tuple(f"t{n}" for n in range(8))
SPLIT = Split("test", IMAGES, TEXTS, tuple(f"words {n}" for n in range(8)), np.arange(8))
RELEVANCE = np.tile([0.1, 0.4, 0.7, 0.9999], (8, 2))


def dataset(name="toy", **named):
    return RetrievalDataset(name, {"test": SPLIT}, lambda image: picture(3), "f" * 64, **named)


def test_exact_relevance_is_the_judge_where_it_is_known():
    rows, columns, grades = sample_pairs(RELEVANCE, SPLIT.image_of_text, seed=0)
    assert len(rows) == 64 - 8 and (rows != columns).all()  # own texts are left out
    assert grades.ravel().tolist() == (columns % 4 + 1).tolist()
    one = YouJudge.of(dataset(relevance=lambda split: RELEVANCE), {"exact": RELEVANCE})
    assert one.raters == ("exact relevance",)
    assert np.unique(one.ratings, return_counts=True)[1].tolist() == [5, 5, 5, 5]
    assert one.texts[0] in SPLIT.texts and one.images[0] in IMAGES
    ((agreement,), _) = one.agreements()
    assert agreement.name == "exact" and agreement.value == pytest.approx(1)


def test_grades_begin_at_the_classes_whatever_the_relevance_is_kept_in():
    edges = np.array([end for end in CLASSES for _ in range(4)]).reshape(3, 4)
    for kind in (np.float32, np.float64):
        near = edges.astype(kind)
        near = np.concatenate([np.nextafter(near, kind(0)), near, np.nextafter(near, kind(1))])
        own = np.array([0, 0, 0, 0])  # the texts of image 0: left out
        rows, columns, grades = sample_pairs(near, own, seed=0)
        assert len(rows) == 8 * 4
        assert grades.ravel().tolist() == (1 + np.digitize(near, CLASSES))[rows, columns].tolist()


def test_pairs_that_experts_rated_come_before_exact_relevance():
    """Two pairs are an image with its own text, one is of another split: they are left out."""
    rows, columns = [*range(8), 0, 1], [*range(1, 8), 0, 0, 1]
    ratings = np.repeat(np.tile([1.0, 2, 3, 4, 1], 2)[:, None], 3, axis=1)
    judged = Judgements("expert", (*(IMAGES[n] for n in rows), "elsewhere"),
                        (*(TEXTS[n] for n in columns), "t0"), np.vstack([ratings, [[1, 1, 1]]]),
                        np.array([False] * 8 + [True] * 2 + [False]), "c")
    given = dataset(relevance=lambda split: RELEVANCE, judgements={"expert": judged})
    matrix = np.arange(64.0).reshape(8, 8)
    pairs = load_pairs(given, "test", {"all": matrix, "judged": matrix[rows, columns]})
    assert pairs["images"] == list(IMAGES) and pairs["ratings"].tolist() == ratings[:8].tolist()
    assert pairs["texts"][:2] == ["words 1", "words 2"] and pairs["raters"] == (
        "expert 1", "expert 2", "expert 3")
    assert pairs["scores"]["all"].tolist() == pairs["scores"]["judged"].tolist() == [
        matrix[row, column] for row, column in zip(rows[:8], columns[:8], strict=True)]


def test_data_that_nobody_judged_and_other_scores_are_refused():
    with pytest.raises(ValueError, match="nobody graded pairs of the test split of toy"):
        YouJudge.of(dataset())
    known = dataset(relevance=lambda split: RELEVANCE)
    with pytest.raises(ValueError, match=r"scores of 'x' must be \(8, 8\), of all images and"):
        YouJudge.of(known, {"x": np.ones(20)})
    with pytest.raises(ValueError, match="split must be one of test"):
        YouJudge.of(known, split="dev")


def test_the_picture_shows_the_others_without_a_reader_and_all_with_one():
    one = made(np.repeat(GRADES, 3, axis=1), scores={"good": GRADES.ravel()})
    (axes,) = one.picture().axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert set(names) == {"expert 1", "expert 2", "expert 3", "good"}
    rate_all(one, lambda one: 5 - theirs(one), 5)
    (axes,) = one.picture().axes
    assert axes.get_yticklabels()[-1].get_text() == "you"
    assert "5 pairs" in one.picture().get_supxlabel()


def test_the_same_grade_for_all_pairs_has_no_tau():
    """An interval around 0 would be made up: nothing was put above anything."""
    one = made(np.repeat(GRADES, 3, axis=1), scores={"good": GRADES.ravel()})
    rate_all(one, lambda _: 2, 6)
    assert one.numbers()["τ-c, you"] == "not defined"
    assert [each["name"] for each in one.stage()["agreements"]].count("you") == 0
    assert len(one.stage()["agreements"]) == 4
    assert UNDEFINED in one.picture().get_supxlabel().replace("\n", " ")
    one.handle("rate", {"grade": 3})
    assert one.numbers()["τ-c, you"] != "not defined"


@pytest.mark.parametrize(("name", "judges"), [
    ("scenes", "the exact relevance"), ("flickr8k", "the three experts of Flickr8k"),
    ("toy", "those who rated before")])
def test_who_judged_is_said_by_data_set(name, judges):
    one = YouJudge.of(dataset(name, relevance=lambda split: RELEVANCE), count=8)
    assert one.judges == judges and one.stage()["judges"] == judges
    assert one.controls()[-1]["label"] == f"Show the grade by {judges}"
    rate_all(one, theirs, 8)
    assert one.numbers()["compared with"] == judges
    one.handle("open")
    one.handle("rate", {"grade": 1})
    assert f"seen the grade by {judges}" in one.problem


@pytest.mark.parametrize("named", [{"scores": {"you": np.arange(40.0)}}, {"raters": ["you"]}])
def test_nobody_else_is_called_you(named):
    with pytest.raises(ValueError, match="'you' is the reader: give that rater or those scores"):
        made(**named)
