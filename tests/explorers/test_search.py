"""Search without a browser: lists are those of the score matrix, and nothing bad breaks it."""

from base64 import b64encode
from copy import copy
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from itr_study.data.vocabulary import Unread
from itr_study.explorers import ranked, search
from itr_study.explorers.pictures import LARGEST
from itr_study.explorers.ranked import Asked
from itr_study.explorers.search import TOP, Search
from itr_study.metrics import first, ranks
from itr_study.metrics.answers import Level
from itr_study.rerank import RERANKERS
from tests.explorers.searchers import two_searchers


@pytest.fixture
def pane() -> Search:
    return Search(two_searchers())


def shown(pane: Search, side: int = 0) -> list[dict]:
    return pane.stage()["sides"][side]["hits"]


def file_of(picture: Image.Image, **changes) -> dict:
    target = BytesIO()
    picture.save(target, "png")
    return {"name": "mine.png", "size": len(target.getvalue()),
            "data": b64encode(target.getvalue()).decode()} | changes


def test_a_query_of_the_split_is_answered_by_its_scores(pane):
    for side, searcher in enumerate(two_searchers().values()):
        best = np.argsort(-searcher.scores[:, 0], kind="stable")[:TOP]
        assert [hit["index"] for hit in shown(pane, side)] == best.tolist()
        assert [hit["score"] for hit in shown(pane, side)] == pytest.approx(
            searcher.scores[best, 0], abs=1e-4)
        assert [hit["relevance"] for hit in shown(pane, side)] == pytest.approx(
            searcher.relevance[best, 0])
        found = ranks(searcher.scores, searcher.split.image_of_text)
        assert pane.stage()["sides"][side]["match"] == found.t2i[0]
    pane.handle("way", "i2t")
    best = np.argsort(-two_searchers()["one"].scores[0], kind="stable")[:TOP]
    assert [hit["index"] for hit in shown(pane)] == best.tolist()
    assert shown(pane)[0]["picture"] is None and pane.stage()["query"]["picture"]


def test_failures_come_first_and_then_what_two_models_disagree_on(pane):
    one, two = (ranks(each.scores, each.split.image_of_text).t2i
                for each in two_searchers().values())
    pane.handle("sort", "failures")
    assert pane.asked.item == int(np.argmax(one)) and pane.place == 0
    pane.handle("sort", "apart")
    apart = np.maximum(one / two, two / one)
    assert apart[pane.asked.item] == apart.max()
    pane.handle("next")
    assert pane.place == 1 and apart[pane.asked.item] == np.sort(apart)[-2]
    alone = Search({"one": two_searchers()["one"]})
    alone.handle("sort", "apart")
    assert "order must be one of plain, failures" in alone.problem


def test_the_hardest_negatives_are_the_best_without_the_matches(pane):
    pane.handle("way", "i2t")
    pane.handle("switch", "negatives")
    searcher = two_searchers()["one"]
    order = np.argsort(-searcher.scores[0], kind="stable")
    others = [t for t in order if searcher.split.image_of_text[t] != 0][:TOP]
    assert [hit["index"] for hit in shown(pane)] == others
    assert not any(hit["match"] for hit in shown(pane))


def test_hubs_are_found_most_often(pane):
    pane.handle("switch", "hubs")
    lists = first(two_searchers()["one"].scores, 10)["t2i"]
    counts = np.bincount(lists.ravel(), minlength=10)
    assert [hit["score"] for hit in shown(pane)] == sorted(counts, reverse=True)[:TOP]
    assert all(hit["hub"] and hit["relevance"] is None for hit in shown(pane))
    pane.handle("way", "i2t")  # of more texts than ten
    lists = first(two_searchers()["one"].scores, 10)["i2t"]
    counts = np.bincount(lists.ravel(), minlength=len(pane.split.texts))
    assert [hit["score"] for hit in shown(pane)] == sorted(counts, reverse=True)[:TOP]
    assert counts.min() < counts.max()


def test_re_ranked_lists_are_those_of_fr_and_only_of_the_split(pane):
    pane.handle("rerank", True)
    after = np.asarray(RERANKERS["fast"](two_searchers()["one"].scores).t2i)[:, 0]
    assert [hit["index"] for hit in shown(pane)] == np.argsort(
        -after, kind="stable")[:TOP].tolist()
    pane.handle("next")
    assert pane.rerank and pane.note == ""
    pane.handle("write", "a red circle")  # nobody asked for a re-ranked list of it
    assert pane.problem == "" and not pane.rerank
    assert pane.note == search.NOT_AMONG
    pane.handle("write", "a blue circle")
    assert pane.note == ""
    pane.handle("rerank", True)
    assert "switch re-ranking off" in pane.problem and not pane.rerank


def test_new_words_and_new_pictures_have_no_match(pane):
    pane.handle("write", "a red circle above a blue square")
    hits = two_searchers()["one"].search_text("a red circle above a blue square", TOP)
    assert [hit["index"] for hit in shown(pane)] == [hit.index for hit in hits]
    assert pane.stage()["sides"][0]["match"] is None
    assert pane.numbers()["rank of the match, one"] == "unknown"
    assert {hit["match"] for hit in shown(pane)} == {None}
    pane.handle("write", two_searchers()["one"].split.texts[3])  # known by heart
    assert pane.asked == Asked("t2i", 3) and pane.place == 3
    pane.handle("next")
    pane.handle("write", f"  {two_searchers()['one'].split.texts[3]} ")  # as it is pasted
    assert pane.asked == Asked("t2i", 3)


def test_a_picture_of_the_reader_asks_or_is_refused_and_the_last_query_stays(pane, monkeypatch):
    pane.handle("upload", file_of(Image.new("RGB", (30, 20), "red")))
    assert "takes features that came with the data" in pane.problem and pane.asked.way == "t2i"
    assert label_of(pane, "upload") == "Your picture (these models take none)"
    take_pictures(monkeypatch)
    assert label_of(pane, "upload") == "Your picture"
    rising = np.arange(len(pane.split.texts), dtype=np.float32)
    for searcher in two_searchers().values():
        monkeypatch.setattr(searcher, "_score_picture", lambda picture: rising)
    pane.handle("upload", file_of(Image.new("RGB", (30, 20), "red")))
    assert pane.problem == "" and shown(pane)[0]["index"] == len(rising) - 1
    assert pane.stage()["query"]["text"] == "a picture of yours"
    before = pane.stage()
    for given, said in ((file_of(Image.new("RGB", (9, 9)), data=b64encode(b"x").decode()),
                         "mine.png cannot be read as a picture"),
                        ({"name": "huge.png", "size": LARGEST + 1, "data": None},
                         "huge.png has 7 MB; at most 7 MB are read")):
        pane.handle("upload", given)
        assert said in pane.problem and pane.stage() == before


def label_of(pane: Search, name: str) -> str:
    return next(one["label"] for one in pane.controls() if one["name"] == name)


def take_pictures(monkeypatch, *searchers):
    """As if a frozen network made the features of these, of all where none is named."""
    for searcher in searchers or two_searchers().values():
        monkeypatch.setattr(searcher.data, "image_encoders", [None])


@pytest.mark.parametrize(("words", "said"), [
    ("", "holds no word"), ("🐕 🐈", "holds no word"), ("word " * 10_000, "at most 2,000")])
def test_what_is_no_sentence_is_refused(pane, words, said):
    before = pane.stage()
    pane.handle("write", words)
    assert said in pane.problem and pane.stage() == before


def test_unknown_words_are_said(pane, monkeypatch):
    for searcher in two_searchers().values():
        monkeypatch.setattr(searcher.data, "unread",
                            lambda texts: [Unread(["zorb"], False, 0)])
    pane.handle("write", "a red zorb")
    assert pane.note.startswith("Not known to the model, which cannot read it: zorb.")


def test_a_sentence_that_nothing_fits_is_told_so_and_one_of_the_split_is_not(pane, monkeypatch):
    one, two = two_searchers().values()
    monkeypatch.setitem(vars(one), "level", Level(9.0, 0.1, 0.5, 50))
    monkeypatch.setitem(vars(two), "level", Level(-9.0, 0.1, 0.5, 50))
    pane.handle("write", "a giraffe")
    first, second = (side["refusal"] for side in pane.stage()["sides"])
    assert first.startswith("nothing here fits (the best score") and "below 9.00" in first
    assert second == ""
    pane.handle("next")
    assert [side["refusal"] for side in pane.stage()["sides"]] == ["", ""]


def test_a_result_asks_back(pane):
    wanted = shown(pane)[0]
    pane.handle("take", {"index": wanted["index"]})
    assert pane.asked == Asked("i2t", wanted["index"])
    pane.handle("take", {"index": 10_000})
    assert "must be an index in" in pane.problem and pane.asked.way == "i2t"


def test_the_next_cell_reads_what_is_shown_and_a_file_never_replaces_another(
        pane, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(pane.selected["model"]) == ["one"] * TOP + ["two"] * TOP
    pane.handle("export")
    pane.handle("next")
    pane.handle("export")
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["search-1.csv", "search-2.csv"]
    saved = pd.read_csv(files[1])
    assert list(saved["id"]) == list(pane.selected["id"]) and f"{files[1]}" in pane.note
    assert set(saved["query"]) == {pane.split.texts[1]} and not saved["reranked"].any()


def save_in_vain(pane):
    before = pane.stage(), pane.sentence()
    pane.handle("export")
    assert "nothing could be saved in the folder where this notebook works" in pane.problem
    assert "os.chdir" in pane.problem and (pane.stage(), pane.sentence()) == before


def test_a_folder_where_nobody_may_write_is_said(pane, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(search.Path, "touch", refused)
    save_in_vain(pane)
    assert "(Permission denied)" in pane.problem


def test_a_table_that_breaks_off_leaves_no_file(pane, tmp_path, monkeypatch):
    def half(path, data):
        with open(path, "wb") as file:
            file.write(data[:len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(search.Path, "write_bytes", half)
    save_in_vain(pane)
    assert "No space left on device" in pane.problem and not list(tmp_path.iterdir())


def test_whatever_has_the_name_already_stays(pane, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search-1.csv").mkdir()
    (tmp_path / "search-2.csv").write_text("mine")
    pane.handle("export")
    assert pane.problem == "" and "search-3.csv" in pane.note
    assert (tmp_path / "search-2.csv").read_text() == "mine"


def test_hubs_are_counted_in_the_direction_that_is_shown(pane, monkeypatch):
    counted, real = [], ranked.first_with_scores
    monkeypatch.setattr(ranked, "first_with_scores", lambda *given: (counted.append(given[2]),
                                                                     real(*given))[1])
    pane.handle("switch", "hubs")
    pane.stage()
    pane.numbers()
    assert counted == ["t2i"] * 2  # once a model
    pane.handle("way", "i2t")
    pane.stage()
    assert counted == ["t2i"] * 2 + ["i2t"] * 2


def test_two_galleries_are_refused():
    one = two_searchers()["one"]
    other = copy(one)
    other.split = replace(one.split, image_ids=tuple(f"x{i}" for i in one.split.image_ids))
    with pytest.raises(ValueError, match="the same images and texts: .* one searches 10 "):
        Search({"one": one, "other": other})
    for models, got in (({}, "none"), (dict.fromkeys("abc", one), "a, b, c"), ([one], "Searcher")):
        with pytest.raises(ValueError, match=f"Search takes 1 to 2 models by name, .* got .*{got}"):
            Search(models)
    silent = copy(one)
    silent.split = replace(one.split, texts=())
    with pytest.raises(ValueError, match="has no texts"):
        Search({"silent": silent})


def test_the_picture_is_a_grid_with_a_row_for_each_model(pane):
    titles = [axes.get_title(loc="left") for axes in pane.picture().axes]
    assert titles.count("one") == titles.count("two") == 1
