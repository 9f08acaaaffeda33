"""The page's side alone, in a real browser without a kernel: what it sends, when, and what it draws
of what Python says. A false model records messages; it answers when a test says so."""

import json

import numpy as np
import pytest

from itr_study.explorers import EmbeddingMap, Looking, PushPull, Search
from itr_study.explorers.push_pull import Item
from itr_study.explorers.widget import STATIC, module_of
from tests.evaluation.looking import searcher
from tests.explorers.searchers import two_searchers
from tests.explorers.test_embedding_map import cross
from tests.explorers.test_judge import made as judge
from tests.explorers.test_push_pull import THREE
from tests.explorers.test_training import ROWS, Said, Training
from tests.explorers.test_who_moved import made as who_moved
from tests.posix import posix_only
from tests.test_browser import page  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.browser, pytest.mark.slow, posix_only]
# Draws it as often as asked; window.sent has what was sent, window.answer gives another view.
OPEN = """async ([module, view, times]) => {
  const { default: { render } } = await import(URL.createObjectURL(
    new Blob([module], { type: "text/javascript" })));
  const listeners = new Set(), lives = new Set();
  const heard = (name) => name === "comm_live_update" ? lives : listeners;
  window.restart = () => [...lives].forEach((f) => f());
  window.sent = []; window.view = view;
  const model = { get: () => window.view, send: (message) => window.sent.push(message),
    on: (name, f) => heard(name).add(f), off: (name, f) => heard(name).delete(f) };
  window.answer = (changed) => {
    window.view = { ...window.view, ...changed }; [...listeners].forEach((f) => f());
  };
  document.body.replaceChildren();
  for (let i = 0; i < times; i++) render({ model, el: document.body });
}"""


def opened(page, one, times=1):  # noqa: F811
    page.evaluate(OPEN, [module_of(one.drawing),
                         json.loads(json.dumps(one.view() | {"serial": 0})), times])
    return page.locator(".itr-explorer")


def sent(page):  # noqa: F811
    return page.evaluate("window.sent")


def answer(page, one, serial):  # noqa: F811
    page.evaluate("view => window.answer(view)", one.view() | {"serial": serial})


def test_what_the_page_does(page):  # noqa: F811
    """In one browser, for it starts slowly."""
    for step in (one_message_at_a_time_and_only_the_newest_of_each_thing,
                 two_views_of_one_explorer_know_their_answers,
                 keys_on_whatever_can_be_focused_stay_in_the_explorer,
                 arrows_of_push_and_pull_point_where_the_loss_pushes,
                 the_first_model_stands_on_the_left,
                 a_key_rates_the_pair_that_is_seen,
                 upwards_is_upwards_on_the_map,
                 numbers_stay_in_the_rectangle,
                 numbers_stay_on_the_map_where_the_rectangle_is_too_small,
                 numbers_of_points_beside_each_other_do_not_hide_each_other,
                 colours_follow_the_system_where_there_is_no_theme,
                 a_count_that_goes_on_leaves_what_is_read_alone,
                 curves_rise_with_what_they_show,
                 before_the_first_epoch_there_are_epochs_and_no_values,
                 a_match_among_results_is_marked,
                 a_word_shows_its_own_map_when_pointed_at_and_stays_when_focused,
                 a_file_that_cannot_be_read_is_said_and_one_can_be_chosen_twice,
                 a_kernel_that_was_restarted_is_said_at_once,
                 a_button_that_is_off_keeps_the_focus_and_does_nothing,
                 a_button_that_is_pressed_is_not_made_anew,
                 two_clicks_on_a_grade_rate_one_pair,
                 scores_beyond_the_line_are_written,
                 silence_is_told_and_an_answer_ends_it,
                 what_was_lost_does_not_silence_what_comes_after,
                 a_look_that_was_lost_is_made_again,
                 a_slider_says_what_stands_in_its_place,
                 only_who_asked_something_is_told_of_silence):  # the last: it stops the clock
        step(page)


def one_message_at_a_time_and_only_the_newest_of_each_thing(page):  # noqa: F811
    one = PushPull(THREE)
    opened(page, one)
    for key, times in (("item-1", 4), ("item-2", 2)):
        for _ in range(times):
            page.locator(f"[data-key={key}]").press("ArrowLeft")
    (first,) = sent(page)
    assert first["value"] == {"item": 1, "score": 0.58}
    answer(page, one, "of another page")
    assert len(sent(page)) == 1  # not the answer that is waited for
    answer(page, one, first["serial"])
    second = sent(page)[1]
    assert second["value"] == {"item": 1, "score": 0.52} and len(sent(page)) == 2
    assert page.locator(".itr-explorer").get_attribute("data-busy") == "1"
    answer(page, one, second["serial"])
    third = sent(page)[2]
    assert third["value"] == {"item": 2, "score": -0.04}
    answer(page, one, third["serial"])
    assert len(sent(page)) == 3
    assert page.locator(".itr-explorer").get_attribute("data-busy") == "0"


def two_views_of_one_explorer_know_their_answers(page):  # noqa: F811
    """With serials that are alike, the answer to the second would equal the one before it, and
    would never be sent."""
    one = PushPull(THREE)
    panes = opened(page, one, times=2)
    for place in (0, 1):
        panes.nth(place).get_by_role("button", name="Step", exact=True).click()
    mine, other = (message["serial"] for message in sent(page))
    assert mine != other
    answer(page, one, mine)
    assert [panes.nth(place).get_attribute("data-busy") for place in (0, 1)] == ["0", "1"]
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(set(ids)) == len(ids)


def silence_is_told_and_an_answer_ends_it(page):  # noqa: F811
    page.clock.install()
    one = PushPull(THREE)
    pane = opened(page, one)
    pane.get_by_role("button", name="Step", exact=True).click()
    page.clock.fast_forward(9_000)
    assert pane.locator(".itr-problem").text_content() == ""
    page.clock.fast_forward(2_000)
    assert "The kernel does not answer" in pane.locator(".itr-problem").text_content()
    answer(page, one, sent(page)[0]["serial"])
    assert pane.locator(".itr-problem").text_content() == ""


def what_was_lost_does_not_silence_what_comes_after(page):  # noqa: F811
    """A connection that broke takes a message with it, and no answer comes."""
    page.clock.install()
    one = PushPull(THREE)
    pane = opened(page, one)
    step = pane.get_by_role("button", name="Step", exact=True)
    step.click()
    page.clock.fast_forward(9_000)
    step.click()
    assert len(sent(page)) == 1  # an answer may still come
    page.clock.fast_forward(2_000)
    assert "The kernel does not answer" in pane.locator(".itr-problem").text_content()
    step.click()
    step.click()
    _, second = sent(page)  # one at a time again
    answer(page, one, second["serial"])
    third = sent(page)[2]
    answer(page, one, third["serial"])
    assert pane.locator(".itr-problem").text_content() == ""
    assert pane.get_attribute("data-busy") == "0" and len(sent(page)) == 3


def a_look_that_was_lost_is_made_again(page):  # noqa: F811
    page.clock.install()
    opened(page, Training(Said("running")))
    page.clock.run_for(50_000)
    assert [message["name"] for message in sent(page)] == ["poll"]
    page.clock.run_for(30_000)
    assert [message["name"] for message in sent(page)] == ["poll", "poll"]


def a_button_that_is_off_keeps_the_focus_and_does_nothing(page):  # noqa: F811
    """Without the focus the next key would be the notebook's."""
    one = Search(two_searchers())
    one.handle("go", 2)
    pane = opened(page, one)
    previous = pane.get_by_role("button", name="Previous")
    previous.focus()
    for times in (1, 2):
        page.keyboard.press("Enter")
        message = sent(page)[-1]
        assert message["name"] == "back" and len(sent(page)) == 1
        one.handle("back") if times == 1 else None
        answer(page, one, message["serial"])
        assert previous.get_attribute("aria-disabled") == "true"
        assert previous.evaluate("node => node === document.activeElement")
    page.keyboard.press("Tab")  # past the slider, to what is on
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert sent(page)[-1]["name"] == "on"


def a_button_that_is_pressed_is_not_made_anew(page):  # noqa: F811
    """An answer between the two halves of a click would else swallow it."""
    one = Search(two_searchers())
    pane = opened(page, one)
    pane.get_by_role("button", name="Next", exact=True).hover()
    page.mouse.down()
    one.handle("go", 2)  # now Previous is on
    answer(page, one, 0)
    page.mouse.up()
    assert [message["name"] for message in sent(page)] == ["on"]
    assert pane.get_by_role("button", name="Previous").get_attribute("aria-disabled") == "false"


def two_clicks_on_a_grade_rate_one_pair(page):  # noqa: F811
    """The second would rate a pair that nobody has seen; so would a key that is held."""
    one = judge()
    pane = opened(page, one)
    grade = pane.locator("[data-key=grade-2]")
    grade.hover()
    for times in (1, 2):
        page.mouse.down(click_count=times)
        page.mouse.up(click_count=times)
        message = sent(page)[0]
        one.handle("rate", message["value"]) if times == 1 else None
        answer(page, one, message["serial"])
    assert len(sent(page)) == 1 and one.stage()["rated"] == 1
    pane.locator("[data-key=card]").focus()
    page.keyboard.down("3")
    page.keyboard.down("3")  # held
    answer(page, one, sent(page)[-1]["serial"])
    page.keyboard.down("3")
    page.keyboard.up("3")
    assert [message["value"]["grade"] for message in sent(page)] == [2, 3]
    grade.focus()
    page.keyboard.down("Enter")
    page.keyboard.down("Enter")
    answer(page, one, sent(page)[-1]["serial"])
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert [message["value"]["grade"] for message in sent(page)] == [2, 3, 2]


def scores_beyond_the_line_are_written(page):  # noqa: F811
    """And no arrow lies over what stands beside the line; who drags stays on it."""
    pane = opened(page, PushPull([Item("match", 1.0, 1.0), Item("near", 0.5, -0.6),
                                  Item("far", 0.2, 0.9)], "info_nce"))
    assert pane.get_by_text("← −0.60", exact=True).count() == 1
    assert "a score below −0.2" in pane.locator(".itr-hint").text_content()
    ends = page.evaluate("""[...document.querySelectorAll(".itr-arrow line")].map((line) =>
      [line.getAttribute("x2"), line.ownerSVGElement.viewBox.baseVal.width].map(Number))""")
    assert ends and all(312 <= x < wide for x, wide in ends)
    mark = pane.locator("[data-key=item-2]")
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(1, box["y"])
    page.mouse.up()
    assert sent(page)[-1]["value"] == {"item": 2, "score": -0.2}
    opened(page, PushPull(THREE))
    assert page.get_by_text("←").count() == 0


def only_who_asked_something_is_told_of_silence(page):  # noqa: F811
    """A look of the page's own is left alone, for a kernel may be long at work; a press is not."""
    page.clock.install()
    pane = opened(page, Training(Said("running")))
    page.clock.run_for(17_000)
    assert [message["name"] for message in sent(page)] == ["poll"]
    assert pane.locator(".itr-problem").text_content() == ""
    pane.get_by_role("button", name="Stop and save").click()
    page.clock.run_for(11_000)
    assert "The kernel does not answer" in pane.locator(".itr-problem").text_content()


def a_slider_says_what_stands_in_its_place(page):  # noqa: F811
    """Epochs begin at 0, places of a slider at 1."""
    frame = np.eye(2), np.eye(2)
    one = EmbeddingMap({0: frame, 7: frame}, np.arange(2), ["a", "b"])
    pane = opened(page, one)
    slider = pane.get_by_label("Epoch")
    assert (slider.input_value(), pane.locator("output").text_content()) == ("2", "7")
    slider.press("ArrowLeft")
    one.handle("frame", 1)
    answer(page, one, sent(page)[-1]["serial"])
    assert (slider.get_attribute("aria-valuetext"),
            pane.locator("output").text_content()) == ("0", "0")
    assert pane.locator(".itr-sentence").text_content().startswith("Epoch 0 of 7: 2 images")


def keys_on_whatever_can_be_focused_stay_in_the_explorer(page):  # noqa: F811
    """JupyterLab takes keys by the nearest mark: "d d" would delete the cell."""
    for one in (PushPull(THREE), judge(), who_moved(), cross(), Training(Said("running")),
                Looking({"saf": searcher("saf")})):
        opened(page, one)
        lacking = page.evaluate("""[...document.querySelectorAll("button,input,select,[tabindex]")]
          .filter((node) => !node.closest("[data-lm-suppress-shortcuts=true]"))
          .map((node) => node.dataset.key)""")
        assert not lacking and page.locator("[data-lm-suppress-shortcuts=true]").count()


def arrows_of_push_and_pull_point_where_the_loss_pushes(page):  # noqa: F811
    opened(page, PushPull(THREE))  # the match up, the next down, the last alone
    ends = page.evaluate("""[...document.querySelectorAll(".itr-arrow line")].map((line) =>
      Math.sign(line.getAttribute("x2") - line.getAttribute("x1")))""")
    assert ends == [1, -1]
    said = [page.locator(f"[data-key=item-{n}]").get_attribute("aria-valuetext") for n in range(3)]
    assert said == ["0.50, rank 2, pulled up", "0.60, rank 1, pushed down",
                    "0.00, rank 3, left alone"]
    line = page.get_by_role("row", name="Hardest")
    assert line.get_by_role("cell").all_text_contents() == ["0.300", "▲", "▼", "·"]


def a_word_shows_its_own_map_when_pointed_at_and_stays_when_focused(page):  # noqa: F811
    one = Looking({"saf": searcher("saf")})
    pane = opened(page, one)
    rows, heat = one.stage()["rows"], pane.get_by_role("img", name="most at").first
    assert heat.get_attribute("src") == rows[0]["heat"]
    buttons = pane.get_by_role("group", name="The text").get_by_role("button")
    assert buttons.all_text_contents() == list(one.selected.rows)
    buttons.nth(2).hover()
    assert heat.get_attribute("src") == rows[2]["heat"] != rows[0]["heat"] and not sent(page)
    assert rows[2]["largest"][0]["weight"] in pane.get_by_role("table").text_content()
    buttons.nth(1).focus()
    (message,) = sent(page)
    assert (message["name"], message["value"]) == ("point", {"index": 1})
    one.handle(message["name"], message["value"])
    answer(page, one, message["serial"])
    assert len(sent(page)) == 1 and heat.get_attribute("src") == rows[1]["heat"]
    assert buttons.nth(1).get_attribute("aria-pressed") == "true"
    assert buttons.nth(1).evaluate("node => node === document.activeElement")
    assert "score" in pane.text_content() and one.selected.rows[1] in pane.locator(
        ".itr-sentence").text_content()


def the_first_model_stands_on_the_left(page):  # noqa: F811
    one = who_moved()
    one.handle("query", "1")
    opened(page, one)
    names = page.locator("svg[role=listbox] > text[font-weight=bold]")
    places = {name.text_content(): float(name.get_attribute("x")) for name in names.all()}
    assert places["one"] < places["two"]
    best = page.locator("[data-key=result-0]")  # rank 1 by the first model, its end on the left
    assert best.locator("text").first.text_content() == "1"
    assert float(best.locator("text").first.get_attribute("x")) < 400


def a_key_rates_the_pair_that_is_seen(page):  # noqa: F811
    one = judge()
    one.handle("forward")
    opened(page, one)
    page.locator("[data-key=card]").press("3")
    assert [(each["name"], each["value"]) for each in sent(page)] == [
        ("rate", {"grade": 3, "pair": 2})]


def upwards_is_upwards_on_the_map(page):  # noqa: F811
    one = cross()
    opened(page, one)
    names = [message["value"] for message in sent(page)]
    assert names == [["places/1", "shade/kind/1"]]  # asked for once
    answer(page, one, sent(page)[0]["serial"])
    box, before = page.locator("[data-key=rectangle]"), one.stage()["rectangle"]
    top = box.evaluate("node => parseFloat(node.style.top)")
    box.press("ArrowUp")
    message = sent(page)[-1]
    assert message["name"] == "brush" and message["value"]["x"] == pytest.approx(before["x"])
    assert message["value"]["y"][0] > before["y"][0]
    assert box.evaluate("node => parseFloat(node.style.top)") < top


def numbers_stay_in_the_rectangle(page):  # noqa: F811
    """Those of points at its right and upper edge stand on the other side of their point."""
    one = cross()
    one.handle("brush", {"x": [-3.01, 3.01], "y": [-1.01, 1.01]})
    opened(page, one)
    outside = page.evaluate("""() => {
      const at = document.querySelector("[data-key=rectangle]").getBoundingClientRect();
      return [...document.querySelectorAll("[aria-hidden=true] > span")].filter((node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        return left < at.left - 1 || right > at.right + 1 || top < at.top - 1
          || bottom > at.bottom + 1;
      }).map((node) => node.textContent);
    }""")
    assert page.locator("[aria-hidden=true] > span").count() == 4 and not outside


def numbers_stay_on_the_map_where_the_rectangle_is_too_small(page):  # noqa: F811
    one = cross()
    right = one.stage()["rectangle"]["x"]
    places = one.data.plane.places[one.name]
    x, y = places[places[:, 0].argmax()].tolist()
    one.handle("window", {"x": 0.0, "y": y, "half": max(x / 0.999, 1e-3)})
    one.handle("brush", {"x": [x - 0.01, x + 0.01], "y": [y - 0.01, y + 0.01]})
    assert right != one.stage()["rectangle"]["x"]
    opened(page, one)
    outside = page.evaluate("""() => {
      const spans = [...document.querySelectorAll("[aria-hidden=true] > span")];
      const at = spans[0].parentNode.parentNode.getBoundingClientRect();
      return spans.filter((node) => node.getBoundingClientRect().right > at.right + 1).length;
    }""")
    assert page.locator("[aria-hidden=true] > span").count() and not outside


def numbers_of_points_beside_each_other_do_not_hide_each_other(page):  # noqa: F811
    frame = np.array([[1.0, 0.0], [-1.0, 0.1]]), np.array([[1.0, 0.02], [-1.0, 0.12]])
    one = EmbeddingMap({0: frame}, np.arange(2), ["a", "b"])
    one.handle("brush", {"x": [-9, 9], "y": [-9, 9]})
    opened(page, one)
    hidden = page.evaluate("""() => {
      const all = [...document.querySelectorAll("[aria-hidden=true] > span")]
        .map((node) => node.getBoundingClientRect());
      return all.filter((a, n) => all.slice(0, n).some((b) => a.left < b.right - 2
        && b.left < a.right - 2 && a.top < b.bottom - 2 && b.top < a.bottom - 2)).length;
    }""")
    assert page.locator("[aria-hidden=true] > span").count() == 4 and hidden == 0


def colours_follow_the_system_where_there_is_no_theme(page):  # noqa: F811
    """Also those of a map that is shown already."""
    page.add_style_tag(content=(STATIC / "shell.css").read_text(encoding="utf-8"))
    one = cross()
    opened(page, one)
    for system in ("dark", "light"):
        page.emulate_media(color_scheme=system)
        wanted = one.stage()["legend"][system][0]
        rgb = ", ".join(str(int(wanted[at:at + 2], 16)) for at in (1, 3, 5))
        page.wait_for_function("""colour => [...document.querySelectorAll("span")].some((node) =>
          node.textContent === "■" && node.style.color === colour)""", arg=f"rgb({rgb})")


def a_count_that_goes_on_leaves_what_is_read_alone(page):  # noqa: F811
    one = who_moved()
    opened(page, one)
    assert page.locator("progress").count() == 0
    one.wanted = "ndcg"
    shown = None
    for share in (0.25, 0.5):
        one.task.share = share
        answer(page, one, 0)
        assert page.locator("progress").evaluate("node => node.value") == share
        if shown is None:
            shown = page.locator("[role=option]").first.element_handle()
    assert shown.evaluate("node => node.isConnected")
    one.wanted = ""
    answer(page, one, 0)
    assert page.locator("progress").count() == 0


def curves_rise_with_what_they_show(page):  # noqa: F811
    opened(page, Training(Said("running", rows=ROWS)))  # RSUM 100, then 130.5
    points = page.locator("polyline").first.get_attribute("points").split(" ")
    (left, low), (right, high) = ([float(at) for at in point.split(",")] for point in points)
    assert left < right and low > high  # pixels count downwards
    star = page.get_by_text("★", exact=True).first
    assert float(star.get_attribute("x")) == right


def before_the_first_epoch_there_are_epochs_and_no_values(page):  # noqa: F811
    opened(page, Training(Said("running", rows=[])))
    for place in (0, 1):
        words = page.locator("svg").nth(place).locator("text").all_text_contents()
        assert "no epoch has ended yet" in words and "0.5" not in words
        assert [word for word in words if word.isdigit()] == ["0", "1", "2", "3", "4"]
    assert page.locator("polyline").count() == 0


def a_file_that_cannot_be_read_is_said_and_one_can_be_chosen_twice(page):  # noqa: F811
    """Chromium tells nobody of a choice that equals the last one: none must be left."""
    one, given = Search(two_searchers()), {"name": "a.png", "mimeType": "image/png", "buffer": b"x"}
    pane = opened(page, one)
    for times in (1, 2):
        with page.expect_file_chooser() as chooser:
            pane.get_by_label("Your picture").click()
        assert pane.get_by_label("Your picture").evaluate("node => node.files.length") == 0
        chooser.value.set_files(given)
        page.wait_for_function("count => window.sent.length === count", arg=times)
        assert sent(page)[-1]["value"]["name"] == "a.png"
        answer(page, one, sent(page)[-1]["serial"])
    page.evaluate("""FileReader.prototype.readAsDataURL = function () {
      window.reader = this;
    }; 0""")
    pane.get_by_label("Your picture").set_input_files(given)
    assert pane.get_attribute("data-busy") == "1"  # while it is read, and nothing is sent yet
    page.evaluate("""() => { const one = window.reader;
      Object.defineProperty(one, "error", { value: new DOMException("gone") });
      one.onerror(); one.onloadend(); }""")
    said = pane.locator(".itr-problem").text_content()
    assert said.startswith("a.png could not be read (gone)") and len(sent(page)) == 2
    assert pane.get_attribute("data-busy") == "0"


def a_kernel_that_was_restarted_is_said_at_once(page):  # noqa: F811
    """Jupyter tells all widgets; an answer, should there be one, ends it."""
    one = PushPull(THREE)
    pane = opened(page, one)
    pane.get_by_role("button", name="Step", exact=True).click()
    page.evaluate("window.restart()")
    problem = pane.locator(".itr-problem")
    assert "not alive any more" in problem.text_content()
    assert "Run its cell again" in problem.text_content()
    answer(page, one, "elsewhere")
    assert problem.text_content() == ""
    pane.get_by_role("button", name="Step", exact=True).click()
    assert problem.text_content() == "" and len(sent(page)) == 2
    page.evaluate("window.restart()")
    pane.get_by_role("button", name="Step", exact=True).click()
    assert "not alive any more" in problem.text_content()


def a_match_among_results_is_marked(page):  # noqa: F811
    one = Search(two_searchers())
    one.handle("way", "i2t")
    opened(page, one)
    hits = one.stage()["sides"][0]["hits"]
    boxes = page.locator(".itr-side").first.locator(".itr-hit")
    for hit, box in zip(hits, boxes.all(), strict=True):
        assert box.locator("b").text_content().strip() == f"{hit['rank']} {'✗✓'[hit['match']]}"
        assert ("itr-right" in box.get_attribute("class")) == hit["match"]
    boxes.nth(2).get_by_role("button").click()
    assert sent(page)[-1]["value"] == {"index": hits[2]["index"]}
