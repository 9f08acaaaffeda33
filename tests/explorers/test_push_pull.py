"""Push and pull without a browser: arrows are gradients, steps follow them, refusals are sentences.
"""


import numpy as np
import pytest
import torch

from itr_study.explorers.push_pull import (
    BOUND,
    DOG,
    SLIDERS,
    STEP,
    ZERO,
    Item,
    PushPull,
    count_comparisons,
)
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
    assert list(one.numbers().values())[:4] == ["Hardest", "0.300", "1 of 3", "1 of 3"]
    assert one.numbers()["matches first"] == "no"


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
        compared, wrong = slow_pairs(scores, relevance, gap)
        assert count_comparisons("kendall", {"relaxation": gap}, scores, relevance) == {
            "pairs compared": f"{compared} of 36", "pairs in the wrong order": str(wrong)}
    every, parted, wrong = slow_windows(scores, relevance, 0.2, 0.1)
    assert count_comparisons("kendall_window", {}, scores, relevance) == {
        "windows with texts above and below": f"{parted} of {every}",
        "windows in the wrong order": str(wrong)}
    assert parted >= wrong > 0 and count_comparisons("topk", {}, scores, relevance) == {}
    assert count_comparisons("kendall", {}, scores[:1], relevance[:1]) == {}


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
    assert one.matches_first() and one.numbers()["matches first"] == "yes" and one.note == ""
    assert one.numbers()["steps"] == str(one.steps) != "0"
    assert {item.relevance for item in one.selected[:2]} == {1.0}
    still = PushPull(THREE)
    still.handle("set-margin", 0.0)
    still.handle("drag", {"item": 1, "score": 0.5})  # a tie, without a margin: the hinge is 0
    still.handle("run")
    assert not still.matches_first() and still.note == ZERO


def test_at_the_ends_of_all_scores_nothing_moves_and_it_is_said():
    """InfoNCE always has a gradient: it pushes on where no score can go."""
    one = PushPull([Item("match", 1.0, 1.0), Item("other", 0.0, -1.0)], "info_nce")
    one.handle("set-temperature", 0.5)
    assert one.push("info_nce").up.all()
    one.handle("step")
    assert one.scores.tolist() == [1.0, -1.0] and one.problem == "" and one.note == BOUND
    one.handle("drag", {"item": 1, "score": 0.5})
    one.handle("step")
    assert one.scores[1] < 0.5 and one.note == ""


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


def test_a_list_too_short_for_a_loss_says_so_in_its_line_alone():
    one = PushPull(THREE)
    lines = {line["name"]: line for line in one.stage()["losses"]}
    assert "k = 5, but a query has only 2 negatives" in lines["Top-k"]["problem"]
    assert lines["Sum"]["problem"] == "" and lines["Sum"]["signs"] == [1, -1, 0]
    one.handle("loss", "topk")
    assert "only 2 negatives" in one.numbers()["value"]
    one.handle("step")
    assert "only 2 negatives" in one.problem


@pytest.mark.parametrize(("items", "said"), [
    ((), "at least one match"), (THREE[1:], "got 0 matches among 2 texts"),
    (THREE[:1], "got 1 matches among 1 texts"),
    ((*THREE, Item("x", 1.5, 0.0)), "relevance of 'x'"),
    ((*THREE, Item("x", 0.5, 3.0)), "score of 'x'")])
def test_a_list_that_is_none_is_refused(items, said):
    with pytest.raises(ValueError, match=said):
        PushPull(items)


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
