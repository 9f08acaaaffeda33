"""The explorers of the page show what those of Python show after the same messages."""

import numpy as np
import pytest

from itr_study.explorers import PushPull, who_moved
from itr_study.losses import LOSSES
from itr_study.metrics import kendall_rows, ndcg_rows
from tools.site.graphs import write_losses
from tools.site.record import FIRST, Sizes, record

SHOW = """
const E = load("explorers"), bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
const { inflateSync } = load("node:zlib");
const inflated = (text) => new Uint8Array(inflateSync(bytes(text)));
const gallery = (data) => new E.Gallery(data, bytes, inflated(data.relevance));
const made = { push_pull: () => new E.PushPull(input.data, load("graph").open(input.losses)),
  who_moved: () => new E.WhoMoved(gallery(input.data)), judge: () => new E.Judge(input.data),
  search: () => new E.Search(gallery(input.data)),
  learning: () => new E.Learning(input.data) }[input.name]();
const views = [made.view()];
for (const [name, value] of input.messages) { made.handle(name, value); views.push(made.view()); }
return views;
"""
PUSHED = [["drag", {"item": 3, "score": 0.8}], ["loss", "topk"], ["set-margin", 0.3],
          ["step", None], ["loss", "kendall"], ["drag", {"item": 0, "score": -0.5}],
          ["loss", "kendall_window"], ["loss", "smooth_ndcg"], ["set-temperature", 0.1],
          ["run", None], ["step", None], ["start", None], ["loss", "sigmoid"],
          ["drag", {"item": 2, "score": 0.8}]]
MOVED = [["next-query", None], ["next", None], ["direction", "t2i"], ["sort", "harm"], ["go", 9],
         ["measure", "ndcg"], ["query", " 12 "], ["query", "none"], ["sort", "order"]]
RATED = [["rate", {"grade": 4, "pair": 1}], ["open", None], ["rate", {"grade": 2, "pair": 2}],
         ["back", None], ["back", None], ["open", None], ["rate", {"grade": 1, "pair": 1}],
         ["rate", {"grade": 1, "pair": 3}], ["rate", {"grade": 3, "pair": 4}], ["open", None],
         ["rate", {"grade": 2, "pair": 5}], ["rate", {"grade": 3, "pair": 6}], ["forward", None]]


def python_views(explorer, messages):
    views = [explorer.view()]
    for name, value in messages:
        explorer.handle(name, value)
        views.append(explorer.view())
    return views


def same(ours, theirs, place=""):
    """Assert that two views are the same, but for rounding, and pictures."""
    if isinstance(theirs, dict):
        for key in theirs.keys() - {"picture"}:
            same(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), (place, ours, theirs)
        for n, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{place}[{n}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=1e-4), place
    else:
        assert ours == theirs, (place, ours, theirs)


@pytest.mark.slow
def test_push_and_pull(node):
    names = ("triplet_hardest", "topk", "kendall", "kendall_window", "smooth_ndcg", "sigmoid")
    losses = write_losses({name: LOSSES[name] for name in names}, whole=False)
    explorer = PushPull()
    data = {"items": [list(item) for item in explorer.items]}
    shown = node(SHOW, {"name": "push_pull", "data": data, "losses": losses, "messages": PUSHED})
    for n, (ours, theirs) in enumerate(zip(shown, python_views(explorer, PUSHED), strict=True)):
        theirs["stage"]["losses"] = [one for one in theirs["stage"]["losses"]
                                     if one["name"] in {told["name"] for told in
                                                        losses["losses"].values()}]
        for view in (ours, theirs):
            view["stage"]["losses"].sort(key=lambda one: one["name"])
            view["controls"] = [one for one in view["controls"] if one["name"] not in
                                ("loss", "set-k", "set-relaxation", "set-stride")]  # fewer values
        same(ours, theirs, f"view {n}")


def test_measures_of_a_list_with_ties(node):
    draw = np.random.default_rng(0)
    rows = [(draw.integers(0, 4, 9) / 4, draw.integers(0, 3, 9) / 2) for _ in range(30)]
    found = node("const E = load('explorers'); return input.map(([s, r]) => "
                 "[E.ndcg(s, r), E.kendall(s, r, 'b'), E.kendall(s, r, 'c')]);",
                 [[scores.tolist(), relevance.tolist()] for scores, relevance in rows])
    scores, relevance = (np.array(part, np.float32) for part in zip(*rows, strict=True))
    for place, metric in enumerate((ndcg_rows(), kendall_rows("b"), kendall_rows("c"))):
        assert [row[place] for row in found] == pytest.approx(metric(scores, relevance).tolist())


@pytest.fixture(scope="module")
def recorded():
    return record(Sizes(train=60, dev=10, test=30, epochs=1))


@pytest.mark.slow
def test_who_moved(node, recorded, monkeypatch):
    monkeypatch.setattr(who_moved, "TOP", FIRST)
    shown = node(SHOW, {"name": "who_moved", "data": recorded.page["gallery"], "messages": MOVED})
    for n, (ours, theirs) in enumerate(zip(shown, python_views(recorded.moved, MOVED),
                                           strict=True)):
        if theirs["problem"]:  # of other words
            assert ours["problem"], n
            theirs["problem"] = ours["problem"]
        same(ours, theirs, f"view {n}")


@pytest.mark.slow
def test_you_are_the_judge(node, recorded):
    shown = node(SHOW, {"name": "judge", "data": recorded.page["judge"], "messages": RATED})
    for n, (ours, theirs) in enumerate(zip(shown, python_views(recorded.judge, RATED),
                                           strict=True)):
        same(ours, theirs, f"view {n}")


@pytest.mark.slow
def test_search_lists_what_both_models_find(node, recorded):
    gallery = recorded.page["gallery"]
    text = gallery["texts"][7]
    views = node(SHOW, {"name": "search", "data": gallery, "messages": [
        ["go", 8], ["write", " ".join(text.split()[:3])], ["take", {"index": 4}],
        ["write", "no such words"]]})
    for side, scores in zip(views[1]["stage"]["sides"], recorded.moved.moves.scores, strict=True):
        order = np.argsort(-scores[:, 7], kind="stable")
        assert [hit["index"] for hit in side["hits"]] == order[:9].tolist()
        assert side["match"] == 1 + order.tolist().index(gallery["owner"][7])
        assert [hit["match"] for hit in side["hits"]] == [
            gallery["owner"][7] == image for image in order[:9]]
        assert [hit["relevance"] for hit in side["hits"]] == pytest.approx(
            recorded.moved.moves.relevance[order[:9], 7].tolist())
    assert views[1]["stage"]["query"]["text"] == text
    assert all(word in views[2]["stage"]["query"]["text"] for word in text.split()[:3])
    assert views[3]["stage"]["query"]["text"] == gallery["ids"][4]
    assert "no text of the 150 has all of these words" in views[4]["problem"]


@pytest.mark.slow
def test_a_training_is_shown_step_by_step(node, recorded):
    data = recorded.page["learning"]
    views = node(SHOW, {"name": "learning", "data": data, "messages": [
        ["step", 1], ["play", None], ["poll", None], ["play", None], ["poll", None]]})
    assert len(data["losses"]) == 3  # of 300 texts
    assert [view["stage"]["step"] for view in views] == [0, 1, 1, 2, 0, 1]
    assert [view["stage"]["poll"] > 0 for view in views] == [False, False, True, False, True, True]
    assert views[1]["stage"]["images"] == data["images"][1] != data["images"][0]
    assert len(data["losses"]) == len(data["images"]) == len(data["texts"])
    assert data["losses"][-1] < data["losses"][0]
