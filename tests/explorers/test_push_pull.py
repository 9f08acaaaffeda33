"""Push and pull without a browser: arrows are gradients, steps follow them, refusals are sentences.
"""

import json

import numpy as np
import pytest
import torch

from itr_study.explorers.push_pull import DOG, SLIDERS, STEP, Item, Push, PushPull, asked
from itr_study.losses import LOSSES

THREE = (Item("match", 1.0, 0.5), Item("near", 0.75, 0.6), Item("far", 0.25, 0.0))


def test_the_hardest_negative_and_the_match_alone_are_moved():
    """Worked by hand: [0.2 + 0.6 - 0.5]+ = 0.3; down with the one, up with the other, alike."""
    one = PushPull(THREE)
    push = one.push("triplet_hardest")
    assert push.value == pytest.approx(0.3) and push.up.tolist() == [1.0, -1.0, 0.0]
    items = one.stage()["items"]
    assert [item["felt"] for item in items] == [True, True, False]
    assert [item["rank"] for item in items] == [2, 1, 3]
    assert one.sentence().startswith("Hardest is 0.300: it pulls up 1 and pushes down 1 of 3 texts")
    assert "First stands “near”" in one.sentence()


def slow_pairs(scores, relevance, gap):
    """(pairs that are asked about, those of them that stand wrong), of cosines 2r - 1."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(len(scores))
             if 2 * relevance[a] - 2 * relevance[b] >= gap - 1e-9 and relevance[a] > relevance[b]]
    return len(pairs), sum(scores[a] < scores[b] for a, b in pairs)


def slow_windows(scores, relevance, size, stride):
    """(windows, those that part the list, those in which a text below scores higher)."""
    edges = np.arange(-1 + stride, 1 - size + 1e-9, stride)
    cosines, parted, wrong = 2 * relevance - 1, 0, 0
    for edge in edges:
        above = [s for s, c in zip(scores, cosines, strict=True)
                 if c >= edge + size - 1e-9 or c >= 1]
        below = [s for s, c in zip(scores, cosines, strict=True) if c < edge - 1e-9]
        parted += bool(above and below)
        wrong += bool(above and below and max(below) > min(above))
    return len(edges), parted, wrong


@pytest.mark.parametrize("seed", range(5))
def test_pairs_and_windows_that_are_asked_about_are_counted(seed):
    random = np.random.default_rng(seed)
    relevance = random.integers(0, 11, 9) / 10
    scores = relevance + random.normal(scale=0.4, size=9)
    for gap in (0.0, 0.2, 0.6):
        asks, wrong = slow_pairs(scores, relevance, gap)
        assert asked("kendall", {"relaxation": gap}, scores, relevance) == (
            f"It asks about {asks} of 36 pairs of texts; {wrong} of them stand the wrong way round."
        )
    every, parted, wrong = slow_windows(scores, relevance, 0.2, 0.1)
    assert asked("kendall_window", {}, scores, relevance) == (
        f"{parted} of its {every} windows part the list; in {wrong} of them a text below scores "
        "higher than one above.")
    assert parted >= wrong > 0 and asked("topk", {}, scores, relevance) == ""
    assert asked("kendall", {}, scores[:1], relevance[:1]) == ""


def test_the_sentence_says_which_pairs_and_windows_are_asked_about():
    one = PushPull(THREE)  # worked by hand: near stands above the match; far is below both
    one.handle("loss", "kendall")
    assert "It asks about 3 of 3 pairs of texts; 1 of them stand the wrong way round. First" in (
        one.sentence())
    one.handle("loss", "kendall_window")
    assert " part the list; in " in one.sentence()
    one.handle("loss", "triplet_hardest")
    assert "leaves the others alone. First stands" in one.sentence()


def test_relevance_is_read_on_the_scale_of_each_loss():
    """Losses on cosines see 2r - 1. Kendall's may know the order alone: so all of them are asked,
    and for one at least the scale must matter."""
    one, matters = PushPull(), 0
    relevance, losses = torch.tensor(one.relevance)[None], ("kendall", "kendall_window", "ladder")
    for loss in losses:
        found = []
        for labels in (2 * relevance - 1, relevance):
            given = torch.tensor(one.scores[None], requires_grad=True)
            value = LOSSES[loss]()(given, labels)
            value.backward()
            found.append([value.item(), *(-given.grad[0]).tolist()])
        push = one.push(loss)
        assert [push.value, *push.up.tolist()] == pytest.approx(found[0]), loss
        matters += found[0] != pytest.approx(found[1])
    assert matters


def test_the_longest_arrow_is_as_long_under_every_loss():
    for loss in LOSSES:
        ups = [item["up"] for item in PushPull(loss=loss).stage()["items"]]
        assert max(map(abs, ups)) == pytest.approx(1), loss


def test_no_step_leaves_the_scores_that_there_are():
    one = PushPull((Item("match", 1.0, 0.99), Item("other", 0.0, 0.995)), "triplet_sum")
    one.handle("step")
    assert one.problem == "" and one.scores.tolist() == [1.0, pytest.approx(0.965)]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_goes_down_every_loss(loss):
    one = PushPull(loss=loss)
    before, scores = one.push(loss), one.scores
    one.handle("step")
    moved = one.scores - scores
    assert one.problem == "" and one.push(loss).value < before.value
    assert np.abs(moved).max() == pytest.approx(STEP)
    np.testing.assert_array_equal(np.sign(moved), np.sign(before.up))


def test_stepping_ends_where_the_matches_are_first_or_nothing_moves():
    one = PushPull()
    one.handle("run")
    assert one.matches_first() and "all matches stand first" in one.sentence()
    assert {item.relevance for item in one.selected[:2]} == {1.0}
    still = PushPull(THREE, "ladder")
    still.handle("loss", "triplet_hardest")
    still.handle("set-margin", 0.0)
    still.handle("drag", {"item": 1, "score": 0.5})  # a tie, without a margin: the hinge is 0
    still.handle("run")
    assert not still.matches_first() and "content, and a match still stands" in still.sentence()


def test_at_the_ends_of_all_scores_nothing_moves_and_it_is_said():
    """InfoNCE is never content: it pushes on where no score can go."""
    one = PushPull([Item("match", 1.0, 1.0), Item("other", 0.0, -1.0)], "info_nce")
    one.handle("set-temperature", 0.5)
    assert one.push("info_nce").up.all()
    one.handle("step")
    assert one.scores.tolist() == [1.0, -1.0] and one.problem == ""
    assert one.sentence().startswith("InfoNCE pushes on, but all that it pushes stands at −1 or 1 "
                                     "already: nothing moves.")
    one.handle("drag", {"item": 1, "score": 0.5})
    one.handle("step")
    assert one.scores[1] < 0.5 and "nothing moves" not in one.sentence()


def test_why_it_rests_is_told_where_no_step_brings_the_match_first(monkeypatch):
    one = PushPull([Item("match", 1.0, -1.0), Item("other", 0.0, 1.0)], "info_nce")
    away = Push(1.0, np.array([-1.0, 1.0]))
    monkeypatch.setattr(one, "push", lambda loss: away)
    one.handle("run")
    assert one.said == ("After 0 steps InfoNCE pushes on, but all that it pushes stands at −1 or 1 "
                        "already, and a match still stands behind another text.")


def test_start_again_puts_the_scores_back():
    one = PushPull()
    one.handle("run")
    one.handle("start")
    assert one.scores.tolist() == [item.score for item in DOG]


def test_every_slider_sets_an_argument_of_its_loss_within_what_the_loss_takes():
    for loss, sliders in SLIDERS.items():
        one = PushPull(loss=loss)
        for name, (_, least, most, _) in sliders.items():
            for value in (least, most):
                one.handle(f"set-{name}", value)
                assert one.problem == "" and one.push(loss).problem == "", (loss, name, value)
        shown = {control["name"]: control["value"] for control in one.controls()
                 if control["kind"] == "range"}
        assert shown == {f"set-{name}": most for name, (_, _, most, _) in sliders.items()}
    assert set(SLIDERS) == set(LOSSES)


def test_another_argument_changes_what_is_drawn():
    one = PushPull(loss="topk")
    felt = [sum(item["felt"] for item in one.stage()["items"])]
    one.handle("set-k", 1)
    felt.append(sum(item["felt"] for item in one.stage()["items"]))
    assert felt == [7, 3]


def test_a_list_too_short_for_a_loss_says_so_in_its_line_alone():
    one = PushPull(THREE)
    lines = {line["name"]: line for line in one.stage()["losses"]}
    assert "k = 5, but a query has only 2 negatives" in lines["Top-k"]["problem"]
    assert lines["Sum"]["problem"] == "" and lines["Sum"]["signs"] == [1, -1, 0]
    one.handle("loss", "topk")
    assert "only 2 negatives" in one.sentence()
    one.handle("step")
    assert "only 2 negatives" in one.problem


@pytest.mark.parametrize(("name", "value", "said"), [
    ("loss", "nonsense", "loss must be one of"),
    ("drag", {"item": 10, "score": 0}, "there is no text of index 10"),
    ("drag", {"item": 0, "score": float("nan")}, "score"),
    ("drag", {"item": 0, "score": 2}, "score"),
    ("set-margin", -1, "margin")])
def test_what_cannot_be_is_refused_and_changes_nothing(name, value, said):
    one = PushPull()
    before = one.stage()
    one.handle(name, value)
    assert said in one.problem and one.stage() == before


@pytest.mark.parametrize(("items", "said"), [
    ((), "at least one match"), (THREE[1:], "got 0 matches among 2 texts"),
    (THREE[:1], "got 1 matches among 1 texts"),
    ((*THREE, Item("x", 1.5, 0.0)), "relevance of 'x'"),
    ((*THREE, Item("x", 0.5, 3.0)), "score of 'x'")])
def test_a_list_that_is_none_is_refused(items, said):
    with pytest.raises(ValueError, match=said):
        PushPull(items)


def test_all_that_is_shown_is_json_and_markup_stays_text():
    one = PushPull((*THREE, Item("<b>&\"'</b>", 0.5, 0.1)))
    assert json.loads(json.dumps(one.view(), allow_nan=False)) == one.view()
    assert one.stage()["items"][3]["text"] == "<b>&\"'</b>"


def test_the_picture_has_a_panel_for_each_of_four_losses():
    panels = PushPull(loss="info_nce").picture().axes
    assert [axes.get_title(loc="left") for axes in panels] == [
        "InfoNCE", "Hardest", "Top-k", "Smooth-NDCG"]
    assert len(panels[0].get_yticklabels()) == len(DOG)


def test_the_table_has_a_line_for_every_loss_and_text():
    table = PushPull(THREE).table()
    assert len(table) == 3 * len(LOSSES)
    hardest = table[table["loss"] == "Hardest"]
    assert hardest["up"].tolist() == [1, -1, 0] and hardest["felt"].tolist() == [True, True, False]
    assert hardest["value"].tolist() == pytest.approx([0.3] * 3)
    assert hardest["text"].tolist() == ["match", "near", "far"]
