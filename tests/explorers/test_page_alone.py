"""The page's side alone, in a real browser without a kernel: what it sends, when, and what it draws
of what Python says. A false model records messages; it answers when a test says so."""

import json

import pytest

from itr_study.explorers import Looking, PushPull, Search
from itr_study.explorers.push_pull import Item
from itr_study.explorers.widget import read_module
from tests.evaluation.looking import searcher
from tests.explorers.searchers import two_searchers
from tests.explorers.test_embedding_map import cross
from tests.explorers.test_push_pull import THREE
from tests.explorers.test_rating_game import made as judge
from tests.explorers.test_training import ROWS, Said, Training
from tests.explorers.test_who_moved import made as who_moved
from tests.posix import posix_only

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


def opened(page, one, times=1):
    page.evaluate(OPEN, [read_module(one.drawing),
                         json.loads(json.dumps(one.view() | {"serial": 0})), times])
    return page.locator(".itr-explorer")


def sent(page):
    return page.evaluate("window.sent")


def answer(page, one, serial):
    page.evaluate("view => window.answer(view)", one.view() | {"serial": serial})


def test_what_the_page_does(page):
    """In one browser, for it starts slowly."""
    for step in (one_message_at_a_time_and_only_the_newest_of_each_thing,
                 keys_on_whatever_can_be_focused_stay_in_the_explorer,
                 arrows_of_push_and_pull_point_where_the_loss_pushes,
                 a_key_rates_the_pair_that_is_seen,
                 upwards_is_upwards_on_the_map,
                 numbers_stay_in_the_rectangle,
                 a_count_that_goes_on_leaves_what_is_read_alone,
                 results_of_another_query_are_drawn_with_the_nodes_that_are_there,
                 each_list_is_read_downwards,
                 curves_rise_with_what_they_show,
                 a_match_among_results_is_marked,
                 a_word_shows_its_own_map_when_pointed_at_and_stays_when_focused,
                 a_file_that_cannot_be_read_is_said_and_one_can_be_chosen_twice,
                 a_button_that_is_off_keeps_the_focus_and_does_nothing,
                 a_button_that_is_pressed_is_not_made_anew,
                 two_clicks_on_a_grade_rate_one_pair,
                 scores_beyond_the_line_are_written,
                 silence_is_told_and_an_answer_ends_it,
                 what_was_lost_does_not_silence_what_comes_after):  # the last two stop the clock
        step(page)


def one_message_at_a_time_and_only_the_newest_of_each_thing(page):
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


def silence_is_told_and_an_answer_ends_it(page):
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


def what_was_lost_does_not_silence_what_comes_after(page):
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


def a_button_that_is_off_keeps_the_focus_and_does_nothing(page):
    """Without the focus the next key would be the notebook's."""
    one = Search(two_searchers())
    one.handle("go", 2)
    pane = opened(page, one)
    previous = pane.get_by_role("button", name="Previous query")
    previous.focus()
    for times in (1, 2):
        page.keyboard.press("Enter")
        message = sent(page)[-1]
        assert message["name"] == "previous" and len(sent(page)) == 1
        one.handle("previous") if times == 1 else None
        answer(page, one, message["serial"])
        assert previous.get_attribute("aria-disabled") == "true"
        assert previous.evaluate("node => node === document.activeElement")
    page.keyboard.press("Tab")  # past the slider, to what is on
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert sent(page)[-1]["name"] == "next"


def a_button_that_is_pressed_is_not_made_anew(page):
    """An answer between the two halves of a click would else swallow it."""
    one = Search(two_searchers())
    pane = opened(page, one)
    pane.get_by_role("button", name="Next query").hover()
    page.mouse.down()
    one.handle("go", 2)  # now Previous is on
    answer(page, one, 0)
    page.mouse.up()
    assert [message["name"] for message in sent(page)] == ["next"]
    previous = pane.get_by_role("button", name="Previous query")
    assert previous.get_attribute("aria-disabled") == "false"


def two_clicks_on_a_grade_rate_one_pair(page):
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


def scores_beyond_the_line_are_written(page):
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


def keys_on_whatever_can_be_focused_stay_in_the_explorer(page):
    """JupyterLab takes keys by the nearest mark: "d d" would delete the cell."""
    for one in (PushPull(THREE), judge(), who_moved(), cross(), Training(Said("running")),
                Looking({"saf": searcher("saf")})):
        opened(page, one)
        lacking = page.evaluate("""[...document.querySelectorAll("button,input,select,[tabindex]")]
          .filter((node) => !node.closest("[data-lm-suppress-shortcuts=true]"))
          .map((node) => node.dataset.key)""")
        assert not lacking and page.locator("[data-lm-suppress-shortcuts=true]").count()


def arrows_of_push_and_pull_point_where_the_loss_pushes(page):
    opened(page, PushPull(THREE))  # the match up, the next down, the last alone
    ends = page.evaluate("""[...document.querySelectorAll(".itr-arrow line")].map((line) =>
      Math.sign(line.getAttribute("x2") - line.getAttribute("x1")))""")
    assert ends == [1, -1]
    said = [page.locator(f"[data-key=item-{n}]").get_attribute("aria-valuetext") for n in range(3)]
    assert said == ["0.50, rank 2, pulled up", "0.60, rank 1, pushed down",
                    "0.00, rank 3, left alone"]
    line = page.get_by_role("row", name="Hardest")
    assert line.get_by_role("cell").all_text_contents() == ["0.300", "▲", "▼", "·"]


def a_word_shows_its_own_map_when_pointed_at_and_stays_when_focused(page):
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
    assert one.selected.rows[1] in pane.locator(".itr-numbers").text_content()


def a_key_rates_the_pair_that_is_seen(page):
    one = judge()
    one.handle("forward")
    opened(page, one)
    page.locator("[data-key=card]").press("3")
    assert [(each["name"], each["value"]) for each in sent(page)] == [
        ("rate", {"grade": 3, "pair": 2})]


def upwards_is_upwards_on_the_map(page):
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


def numbers_stay_in_the_rectangle(page):
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


def a_count_that_goes_on_leaves_what_is_read_alone(page):
    one = who_moved()
    opened(page, one)
    assert page.locator("progress").count() == 0
    one.wanted = "ndcg"
    shown = None
    for share in (0.25, 0.5):
        one.share = share
        answer(page, one, 0)
        assert page.locator("progress").evaluate("node => node.value") == share
        if shown is None:
            shown = page.locator("[role=option]").first.element_handle()
    assert shown.evaluate("node => node.isConnected")
    one.wanted = ""
    answer(page, one, 0)
    assert page.locator("progress").count() == 0


def results_of_another_query_are_drawn_with_the_nodes_that_are_there(page):
    """Made anew for each step of a slider, they took a third of a frame, and much garbage.

    Whoever reads a result stays with it, though another node shows it now.
    """
    one = who_moved()
    one.handle("next")
    pane = opened(page, one)
    board, options = pane.locator("[role=listbox]"), pane.locator("[role=option]")
    page.evaluate("window.former = new Set(document.querySelectorAll('[role=listbox] *'))")
    pane.locator("[data-key=result-29]").focus()
    places, high = [places_of(one)], board.bounding_box()["height"]
    one.handle("previous")
    answer(page, one, 0)
    places.append(places_of(one))
    assert places[0].index(29) != places[1].index(29) and len(places[0]) > len(places[1])
    nodes = board.locator("*").evaluate_all("nodes => nodes.map(one => window.former.has(one))")
    assert len(nodes) > 100 and sum(nodes) / len(nodes) > 0.75  # others: stars, and words beyond
    results = one.stage()["results"]
    assert options.evaluate_all("nodes => nodes.map(node => node.ariaLabel)") == [
        line["says"] for line in results]
    says = results[places[1].index(29)]["says"]
    assert page.evaluate("document.activeElement.ariaLabel") == says
    assert pane.locator(".itr-detail").text_content() == says
    assert pane.locator("[role=option][tabindex='0']").evaluate_all(
        "nodes => nodes.map(node => [node.ariaLabel, node.ariaSelected])") == [[says, "true"]]
    assert board.bounding_box()["height"] == high  # what is below it does not jump
    page.evaluate("""() => { window.said = []; new MutationObserver((all) => said.push(...all))
      .observe(document.querySelector(".itr-detail"), { characterData: true, childList: true,
        subtree: true }); }""")
    page.keyboard.press("ArrowUp" if places[1].index(29) else "ArrowDown")
    assert page.evaluate("said.length") == 1  # a step is read out once
    one.handle("direction", "t2i")
    answer(page, one, 0)
    assert board.bounding_box()["height"] < high


def each_list_is_read_downwards(page):
    """First the left one, then what is in the right one alone."""
    one = who_moved()
    one.handle("query", "1")
    results, options = one.stage()["results"], opened(page, one).locator("[role=option]")
    right = [line for line in results if line["beyond"][0] and not line["beyond"][1]]
    left = [line for line in results if line not in right]
    down = sorted(right, key=lambda line: line["rows"][1])
    assert left and down != right and options.evaluate_all(
        "nodes => nodes.map(node => node.ariaLabel)") == [line["says"] for line in left + down]


def places_of(one):
    return [line["key"] for line in one.stage()["results"]]


def curves_rise_with_what_they_show(page):
    opened(page, Training(Said("running", rows=ROWS)))  # RSUM 100, then 130.5
    points = page.locator("polyline").first.get_attribute("points").split(" ")
    (left, low), (right, high) = ([float(at) for at in point.split(",")] for point in points)
    assert left < right and low > high  # pixels count downwards
    star = page.get_by_text("★", exact=True).first
    assert float(star.get_attribute("x")) == right


def a_file_that_cannot_be_read_is_said_and_one_can_be_chosen_twice(page):
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


def a_match_among_results_is_marked(page):
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
