"""Push and pull without a browser: arrows are gradients, steps follow them, refusals are sentences.
"""

import json

import numpy as np
import pytest
import torch

from itr_study.explorers.push_pull import STEP, PushPull
from itr_study.explorers.pushes import DOG, SLIDERS, Item
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


def test_relevance_is_read_on_the_scale_of_each_loss():
    """Of cosines 2r - 1: what Kendall's loss sees of 1, 0.75, 0.25 is 1, 0.5, -0.5."""
    one = PushPull(THREE)
    given = torch.tensor([[0.5, 0.6, 0.0]], dtype=torch.float64, requires_grad=True)
    LOSSES["kendall"]()(given, torch.tensor([[1.0, 0.5, -0.5]], dtype=torch.float64)).backward()
    np.testing.assert_allclose(one.push("kendall").up, -given.grad[0].numpy())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_goes_down_every_loss(loss):
    one = PushPull(loss=loss)
    before, scores = one.push(loss), one.scores
    one.hear("step")
    moved = one.scores - scores
    assert one.problem == "" and one.push(loss).value < before.value
    assert np.abs(moved).max() == pytest.approx(STEP)
    np.testing.assert_array_equal(np.sign(moved), np.sign(before.up))


def test_stepping_ends_where_the_matches_are_first_or_nothing_moves():
    one = PushPull()
    one.hear("run")
    assert one.matches_first() and "all matches stand first" in one.sentence()
    assert {item.relevance for item in one.selected[:2]} == {1.0}
    still = PushPull(THREE, "ladder")
    still.hear("loss", "triplet_hardest")
    still.hear("set-margin", 0.0)
    still.hear("drag", {"item": 1, "score": 0.5})  # a tie, without a margin: the hinge is 0
    still.hear("run")
    assert not still.matches_first() and "content, and a match still stands" in still.sentence()


def test_start_again_puts_the_scores_back():
    one = PushPull()
    one.hear("run")
    one.hear("start")
    assert one.scores.tolist() == [item.score for item in DOG]


def test_every_slider_sets_an_argument_of_its_loss_within_what_the_loss_takes():
    for loss, sliders in SLIDERS.items():
        one = PushPull(loss=loss)
        for name, (_, least, most, _) in sliders.items():
            for value in (least, most):
                one.hear(f"set-{name}", value)
                assert one.problem == "" and one.push(loss).problem == "", (loss, name, value)
        shown = {control["name"]: control["value"] for control in one.controls()
                 if control["kind"] == "range"}
        assert shown == {f"set-{name}": most for name, (_, _, most, _) in sliders.items()}
    assert set(SLIDERS) == set(LOSSES)


def test_another_argument_changes_what_is_drawn():
    one = PushPull(loss="topk")
    felt = [sum(item["felt"] for item in one.stage()["items"])]
    one.hear("set-k", 1)
    felt.append(sum(item["felt"] for item in one.stage()["items"]))
    assert felt == [7, 3]


def test_a_list_too_short_for_a_loss_says_so_in_its_line_alone():
    one = PushPull(THREE)
    lines = {line["name"]: line for line in one.stage()["losses"]}
    assert "k = 5, but a query has only 2 negatives" in lines["Top-k"]["problem"]
    assert lines["Sum"]["problem"] == "" and lines["Sum"]["signs"] == [1, -1, 0]
    one.hear("loss", "topk")
    assert "only 2 negatives" in one.sentence()
    one.hear("step")
    assert "only 2 negatives" in one.problem


@pytest.mark.parametrize(("name", "value", "said"), [
    ("loss", "nonsense", "loss must be one of"),
    ("drag", {"item": 10, "score": 0}, "there is no text 10"),
    ("drag", {"item": 0, "score": float("nan")}, "score"),
    ("drag", {"item": 0, "score": 2}, "score"),
    ("set-margin", -1, "margin")])
def test_what_cannot_be_is_refused_and_changes_nothing(name, value, said):
    one = PushPull()
    before = one.stage()
    one.hear(name, value)
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
