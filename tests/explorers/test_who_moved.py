"""Who moved, without a browser: ranks, gains and lines worked by hand; refusals are sentences."""

import threading
from concurrent.futures import wait
from math import log2
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from itr_study.data.base import Split
from itr_study.explorers import who_moved
from itr_study.explorers.messages import parse_place
from itr_study.explorers.who_moved import POLL, Moves, WhoMoved
from itr_study.metrics import ndcg_rows, per_query, ranks
from itr_study.metrics.truth import Truth
from itr_study.plots.retrieval import relevance_colours

SECONDS = 120  # of patience, on a busy machine
# 30 texts; the first is of image 0, the others of image 1. For image 0 the first model has them in
# order, the second upside down; for image 1 both are alike.
OWNER = np.array([0] + [1] * 29)
FALLING = 1 - np.arange(30) / 100
A = np.stack([FALLING, FALLING[::-1]])
B = np.stack([FALLING[::-1], FALLING[::-1]])
TEXTS = [f"text {n}" for n in range(30)]


def made(**named):
    return WhoMoved(**dict(scores_a=A, scores_b=B, image_of_text=OWNER, texts=TEXTS,
                           names=("one", "two")) | named)


def shown(one, control="go"):
    return next(found for found in one.controls() if found["name"] == control)


def test_gains_are_places_of_the_first_match_or_ndcg():
    moves = Moves(A, B, OWNER, TEXTS)
    assert moves.gains("i2t", "rank").tolist() == [1 - 30, 0]
    assert moves.gains("i2t", "ndcg") == pytest.approx([1 / log2(31) - 1, 0])
    # text 0: its image has 1.0 of 1.0, 0.71 by the one, 0.71 of 0.71, 0.71 by the other: a tie
    assert moves.gains("t2i", "rank")[0] == 1 - 2


def test_ndcg_of_one_query_is_that_of_all_of_them_which_are_not_counted_before():
    """Every list sorted took 42 s of 5,000 images and 25,000 texts, before anything was seen."""
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(7), 3)
    relevance = random.random((7, 21))
    relevance[owner, np.arange(21)] = 1
    given = random.normal(size=(2, 7, 21)).round(1)  # some tie
    moves = Moves(*given, owner, [f"text {n}" for n in range(21)], relevance)
    one = [(way, query) for way, most in (("i2t", 7), ("t2i", 21)) for query in range(most)]
    found = [moves.measure_query(*query) for query in one]
    assert moves.ndcgs is None
    truth = Truth(owner, 7, lambda images: relevance[images])
    true = [per_query(scores, truth, ndcg_rows())[0] for scores in given]
    for (way, query), (places, graded) in zip(one, found, strict=True):
        assert graded == pytest.approx([each[way][query] for each in true], abs=1e-12)
        assert places == [int(each.by_direction(way)[query]) for each in (
            ranks(scores, owner) for scores in given)]
        assert graded == pytest.approx([
            each[query] for each in moves.measure(way, "ndcg")], abs=1e-12)


def test_relevance_that_is_none_is_refused_before_anything_is_sorted():
    with pytest.raises(ValueError, match=r"relevance must lie in \[0, 1\], found 0.0 to 2.0"):
        Moves(A, B, OWNER, TEXTS, np.linspace(0, 2, 60).reshape(2, 30))
    with pytest.raises(ValueError, match="relevance must lie in"):
        Moves(A, B, OWNER, TEXTS, np.full((2, 30), np.nan))


def test_equal_scores_count_against_the_match():
    equal = np.ones((2, 30))
    moves = Moves(equal, B, OWNER, TEXTS)
    found = moves.results("i2t", 0).set_index("result")  # also a match that is first in neither
    assert found.loc[0, ["rank_a", "rank_b"]].tolist() == [30, 30] and found.loc[0, "match"]
    assert moves.measure("i2t", "rank")[0][0] == 30
    one = made(scores_a=equal)
    one.handle("query", "1")
    line = one.stage()["results"][-1]
    assert line["beyond"] == [True, True] and line["text"] == "text 0"


def test_texts_find_pictures_called_by_their_first_text():
    found = Moves(A, B, OWNER, TEXTS).results("t2i", 5)  # of image 1: 0.95, 0.76; then 0.76, 0.76
    assert found["result"].tolist() == [0, 1] and found["text"].tolist() == ["text 0", "text 1"]
    assert found["match"].tolist() == [False, True]
    assert found["rank_a"].tolist() == [1, 2] == found["rank_b"].tolist()  # the tie counts against


def test_lines_leave_at_the_edge_with_their_true_rank():
    one = made()
    one.handle("query", "1")
    results = {line["key"]: line for line in one.stage()["results"]}
    assert results[0]["ranks"] == [1, 30] and results[0]["rows"] == [0, 29]
    assert results[0]["beyond"] == [False, True] and results[0]["match"]
    assert results[29]["beyond"] == [True, False] and not results[29]["match"]
    assert sum(any(line["beyond"]) for line in results.values()) == 20
    assert results[0]["says"] == ("“text 0”: match; one: rank 1, score 1.000; two: rank 30, "
                                  "score 0.710")


def test_queries_are_sorted_by_gain_harm_or_number():
    one = made()
    assert one.query == 1 and one.sort == "gain"  # gains nothing; the other is harmed
    one.handle("sort", "harm")
    assert one.query == 0 and shown(one)["value"] == 1
    one.handle("next")
    assert one.query == 1 and shown(one)["value"] == 2
    one.handle("previous")
    assert one.query == 0
    one.handle("go", 2)
    assert one.query == 1
    one.handle("sort", "order")
    assert one.query == 0 and one.selected["query"].unique().tolist() == [0]
    one.handle("direction", "t2i")
    assert shown(one)["max"] == 30 and one.selected["direction"].unique().tolist() == ["t2i"]


@pytest.mark.parametrize("written", ["1250", "1,250", " 1250 ", "1 250", "1'250", "1\u202f250",
                                     "01250"])
def test_a_number_is_read_as_people_write_it(written):
    assert parse_place("Query", written, 2000) == 1249


def test_ndcg_may_sort_otherwise_than_ranks():
    """Image 0: a nearly perfect text takes the place of the match, which costs a rank and little
    NDCG; image 1: a useless one rises below the match, which costs no rank and more NDCG."""
    owner, texts = np.array([0, 1, 0, 1]), list("abcd")
    relevance = np.array([[1, 0.99, 1, 0.0], [0.9, 1, 0.0, 1]])
    a = np.array([[0.9, 0.8, 0.3, 0.1], [0.8, 0.9, 0.1, 0.7]])
    b = np.array([[0.8, 0.9, 0.3, 0.1], [0.1, 0.9, 0.8, 0.7]])
    one = made(scores_a=a, scores_b=b, image_of_text=owner, texts=texts, relevance=relevance)
    one.handle("sort", "harm")
    assert one.query == 0
    one.handle("measure", "ndcg")
    assert one.query == 1 and one.problem == ""


def test_the_page_goes_on_while_ndcg_is_counted(monkeypatch):
    """At 5,000 images and 25,000 texts of graded relevance it takes most of a minute."""
    go, one, fresh = threading.Event(), made(), Moves.count_ndcg

    def slow(moves, show):
        show(moves.queries / 4)
        assert go.wait(SECONDS)
        fresh(moves, show)

    monkeypatch.setattr(Moves, "count_ndcg", slow)
    monkeypatch.setattr(who_moved, "SOON", 0.2)
    one.handle("sort", "harm")
    one.handle("measure", "ndcg")
    stage = one.stage()
    assert stage["counted"] == 0.25 and stage["poll"] == POLL
    assert shown(one, "measure")["value"] == "ndcg" and one.measure == "rank"
    one.handle("go", 2)  # all else goes on
    one.handle("poll")
    assert one.query == 1 and one.measure == "rank" and one.problem == ""
    one.handle("measure", "rank")  # the reader wants it no more, but may have to be told
    assert one.stage()["counted"] is None and one.stage()["poll"] == POLL
    one.handle("measure", "ndcg")
    go.set()
    wait([one.task], SECONDS)
    one.handle("poll")
    assert one.measure == "ndcg" and one.stage()["counted"] is None and one.stage()["poll"] == 0
    assert one.numbers()["two better by NDCG"] == "0 of 2"


@pytest.mark.parametrize("went_on", [True, False])
def test_a_reader_who_went_on_stays_at_the_query(monkeypatch, went_on):
    go, one, fresh = threading.Event(), made(), Moves.count_ndcg
    monkeypatch.setattr(Moves, "count_ndcg", lambda moves, show: go.wait(SECONDS) and fresh(
        moves, show))
    monkeypatch.setattr(who_moved, "SOON", 0.0)
    one.handle("go", 2)
    one.handle("measure", "ndcg")
    if went_on:
        one.handle("go", 1)
        one.handle("direction", "t2i")
        one.handle("query", "2")
    go.set()
    wait([one.task], SECONDS)
    one.handle("poll")
    assert one.measure == "ndcg" and one.problem == ""
    assert (one.query == 1 and one.way == "t2i") if went_on else one.place == 0


def test_a_count_that_fails_is_told_to_those_who_wait_for_it_no_more(monkeypatch):
    go, one = threading.Event(), made()

    def full(moves, show):
        assert go.wait(SECONDS)
        raise MemoryError("no room")

    monkeypatch.setattr(Moves, "count_ndcg", full)
    monkeypatch.setattr(who_moved, "SOON", 0.0)
    one.handle("measure", "ndcg")
    one.handle("measure", "rank")
    one.handle("poll")
    assert one.problem == "" and one.stage()["poll"] == POLL
    go.set()
    wait([one.task], SECONDS)
    assert one.stage()["poll"] == POLL
    one.handle("poll")
    assert one.problem == "NDCG of all queries could not be counted. MemoryError: no room"
    assert one.measure == "rank" and one.stage()["poll"] == 0
    one.handle("poll")  # a late one: what was said stays, and is not said of anything else
    one.handle("next")
    assert one.problem == ""


def test_the_numbers_are_those_of_the_query_and_of_all():
    one = made()
    one.handle("sort", "harm")
    assert one.numbers() == {
        "query": "Picture 1: “text 0”", "rank of the first match, one": "1", "NDCG, one": "1.000",
        "rank of the first match, two": "30", "NDCG, two": "0.202", "in both first 20": "10",
        "two better by rank of the first match": "0 of 2",
        "two worse by rank of the first match": "1 of 2"}


def test_colours_are_relevance_and_have_a_legend():
    relevance = np.full((2, 30), 0.5)
    relevance[OWNER, np.arange(30)] = 1
    one = made(relevance=relevance)
    one.handle("query", "1")
    stage = one.stage()
    by_key = {line["key"]: line for line in stage["results"]}
    assert by_key[0]["colour"] == stage["scale"]["colours"][-1] == "#fde725"
    assert by_key[7]["colour"] == stage["scale"]["colours"][0] == "#440154"
    assert stage["scale"]["ends"] == ["0.50", "1.00"] and "relevance 0.50" in by_key[7]["says"]
    assert made().stage()["scale"] is None  # match or not is said by shape and colour alone
    assert relevance_colours([0.0, 1.0]) == ["#440154", "#fde725"]


def test_pictures_are_small_and_opened_once():
    opened = []

    def picture(image):
        opened.append(image)
        return Image.new("RGB", (300, 200), (image * 100, 0, 0))

    one = made(pictures=picture)
    first = one.stage()["query"]["picture"]
    assert first.startswith("data:image/jpeg;base64,") and one.stage()["query"]["picture"] == first
    one.handle("direction", "t2i")
    results = one.stage()["results"]
    assert len({line["picture"] for line in results}) == 2 and len(opened) == 3
    assert made().stage()["query"]["picture"] is None


@pytest.mark.parametrize(("name", "value", "said"), [
    ("sort", "best", "order of queries must be one of gain, harm, order"),
    ("direction", "x", "direction must be one of"), ("measure", "x", "measure must be one of"),
    ("go", 3, "there is no place 3; they count from 1 to 2"),
    ("go", 0, "there is no place 0"), ("go", 1.5, "there is no place 1.5"),
    ("previous", None, "there is no place 0"),
    ("query", "3", "Query must be a whole number from 1 to 2; got '3'"), ("query", "0", "got '0'"),
    ("query", "-1", "got '-1'"), ("query", "1.0", "got '1.0'"), ("query", "a dog", "got 'a dog'"),
    ("query", "1,2", "got '1,2'"), ("query", "1 2", "got '1 2'"), ("query", "", "got ''")])
def test_what_cannot_be_is_refused_and_changes_nothing(name, value, said):
    one = made()
    before = one.stage()
    one.handle(name, value)
    assert said in one.problem and one.stage() == before


@pytest.mark.parametrize(("wrong", "said"), [
    ({"scores_b": B[:, :29]}, "got (2, 30) and (2, 29)"), ({"texts": TEXTS[:3]}, "of the 3 texts"),
    ({"relevance": np.ones((2, 2))}, "relevance must be (2, 30)"),
    ({"relevance": np.full((2, 30), 1.5)}, "[0, 1]"), ({"scores_a": np.full((2, 30), np.nan)},
                                                       "must not be NaN"),
    ({"names": ("one", "one")}, "names must be two that differ"), ({"names": "AB"}, "names must")])
def test_what_is_no_pair_of_models_is_refused(wrong, said):
    with pytest.raises(ValueError) as caught:
        made(**wrong)
    assert said in str(caught.value)


def searcher(scores, fingerprint="f" * 64, name="test", texts=True):
    """What `of` needs of a Searcher."""
    split = Split(name, (f"{name}/x", f"{name}/y"), tuple(map(str, range(30))),
                  tuple(TEXTS) if texts else (), OWNER)
    dataset = SimpleNamespace(name="toy", fingerprint=fingerprint,
                              open_image=lambda image: Image.new("RGB", (9, 9)))
    relevance = np.where(OWNER == np.arange(2)[:, None], 1, 0.25)
    return SimpleNamespace(name=name, dataset=dataset, split=split, scores=scores,
                           relevance=relevance)


def test_two_searchers_of_one_split_are_compared():
    one = WhoMoved.of({"one": searcher(A), "two": searcher(B)})
    assert one.low == 0.25 and one.moves.gains("i2t", "rank").tolist() == [-29, 0]
    assert one.stage()["query"]["picture"].startswith("data:image/jpeg")
    given = WhoMoved.of({"one": searcher(A), "two": searcher(B)}, np.ones((2, 30)))
    assert given.low == 0.9


def test_the_picture_has_both_lists():
    one = made()
    one.handle("sort", "harm")
    words = [text.get_text() for text in one.picture().findobj(Text)]
    assert {"one", "two", "text 0  1", "1  text 29", "rank 30"} <= set(words)
    assert "First results for picture 1" in words
