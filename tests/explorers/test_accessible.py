"""Every explorer can be used and read by everybody: in Chromium, light and dark as JupyterLab's own
themes are, in the columns that cells have in windows of 1,280 and of 1,920 pixels; and on pages
that know nothing of JupyterLab."""

from pathlib import Path

import pytest
from jupyterlab.commands import get_app_dir

from itr_study.explorers import EmbeddingMap, Looking, PushPull, Search, WhoMoved, YouJudge
from itr_study.explorers.widget import STATIC
from tests.evaluation.looking import searcher
from tests.explorers.searchers import two_searchers
from tests.explorers.test_page_alone import answer, opened, sent
from tests.explorers.test_training import Said, Training
from tests.posix import posix_only

pytestmark = [pytest.mark.browser, pytest.mark.slow, posix_only]
COLUMNS = {1280: 848, 1920: 1488}  # of a cell's output, beside the list of files
THEMES = Path(get_app_dir()) / "themes" / "@jupyterlab"
USED = {"button", "checkbox", "combobox", "slider", "textbox", "listbox", "option", "application",
        "image", "progressbar", "group", "alert"}  # roles that mean nothing without a name
NAMELESS_BY_RIGHT = {"alert"}
TEXT, EDGE = 4.5, 3.0  # WCAG 2.2: contrast of texts (1.4.3), of what shows the focus (1.4.11)
# Colours as they are seen: alpha and opacity are laid over what lies below.
SEEN = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (css) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
};
const over = ([r, g, b, a], below) =>
  [...[r, g, b].map((c, i) => c * a + below[i] * (1 - a)), 1];
const behind = (node) => {
  const layers = [];
  for (let n = node; n; n = n.parentElement) layers.push(rgba(getComputedStyle(n).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const light = (colour) => colour.slice(0, 3).map((c) => c / 255).map((c) =>
  c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => {
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const opacity = (node) => { // of the node with all that it lies in
  let all = 1;
  for (let n = node; n; n = n.parentElement) all *= Number(getComputedStyle(n).opacity);
  return all;
};
"""
PALE = "() => {" + SEEN + """
  const pale = [], root = document.querySelector(".itr-explorer");
  const judge = (node, css, text) => {
    const below = behind(node), [r, g, b, a] = rgba(css);
    const seen = contrast(over([r, g, b, a * opacity(node)], below), below);
    if (seen < LEAST) pale.push(`${text.trim().slice(0, 40)}: ${seen.toFixed(2)}`);
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, text = walker.currentNode.data;
    if (!text.trim() || !node.checkVisibility() || node.closest(
      "[aria-disabled=true], title, option"))
      continue;
    const look = getComputedStyle(node);
    judge(node, node.closest("svg") ? look.fill : look.color, text);
  }
  for (const node of root.querySelectorAll("select, input[type=text]")) {
    judge(node, getComputedStyle(node).color, node.value || "a line to write");
    if (node.placeholder)
      judge(node, getComputedStyle(node, "::placeholder").color, node.placeholder);
  }
  return pale;
}""".replace("LEAST", str(TEXT))
# Of what has the focus: why it cannot be seen, "" where it can; null outside the explorer.
FOCUSED = "() => {" + SEEN + """
  const node = document.activeElement, look = getComputedStyle(node);
  if (!node.closest(".itr-explorer")) return null;
  const wide = parseFloat(look.outlineWidth), below = behind(node.parentElement);
  const seen = look.outlineStyle === "none" ? 0 : contrast(rgba(look.outlineColor), below);
  const what = node.dataset.key ?? node.outerHTML.slice(0, 60);
  return [what, wide >= 2 && seen >= LEAST ? "" : `${wide} px, contrast ${seen.toFixed(2)}`];
}""".replace("LEAST", str(EDGE))
WIDE = """() => [document.scrollingElement, ...document.querySelectorAll(".itr-explorer *")]
  .filter((node) => !node.closest("svg, select") && node.scrollWidth > node.clientWidth + 1
    && (node === document.scrollingElement
      || ["auto", "scroll"].includes(getComputedStyle(node).overflowX)))
  .map((node) => `${node.className || node.tagName}: ${node.scrollWidth} > ${node.clientWidth}`)"""


CUT = """() => [...document.querySelectorAll(".itr-explorer svg text")].filter((node) => {
  const at = node.getBoundingClientRect(), box = node.ownerSVGElement.getBoundingClientRect();
  return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
}).map((node) => node.textContent)"""
# A canvas knows nothing of style sheets: its frame must have the colour of lines.
AXES = "() => {" + SEEN + """
  const pen = document.querySelector("canvas").getContext("2d");
  const [r, g, b] = pen.getImageData(pen.canvas.width - 1, 30, 1, 1).data;
  const wanted = rgba(getComputedStyle(document.querySelector(".itr-stage"))
    .getPropertyValue("--itr-line"));
  return [r, g, b].every((c, i) => Math.abs(c - wanted[i]) < 9) ? null : `${[r, g, b]}, ${wanted}`;
}"""


def judged() -> YouJudge:
    """With enough ratings to show who agrees, and one pair of which the others' grade is shown."""
    models = two_searchers()
    one = YouJudge.of(models["one"].dataset, models)
    for grade in (1, 2, 3, 4, 1, 2):
        one.handle("rate", {"grade": grade})
    one.handle("back")
    one.handle("open")
    return one


def ranked_map() -> EmbeddingMap:
    one = EmbeddingMap.of(two_searchers())
    one.handle("colour", "rank")
    return one


MAKERS = {
    "push_pull": lambda: PushPull(),
    "search": lambda: Search(two_searchers()),
    "who_moved": lambda: WhoMoved.of(two_searchers()),
    "looking": lambda: Looking({name: searcher(name) for name in ("saf", "vse_infinity")}),
    "judge": judged, "map": ranked_map, "training": lambda: Training(Said("running"))}


def dressed(page, theme):
    """An empty page in a theme of JupyterLab."""
    page.set_content("<!doctype html><html lang='en'><title>explorers</title><body></body></html>")
    for sheet in (THEMES / f"theme-{theme}-extension" / "index.css", STATIC / "shell.css"):
        page.add_style_tag(content=sheet.read_text(encoding="utf-8"))
    page.evaluate("""theme => {
      document.body.dataset.jpThemeLight = String(theme === "light");
      Object.assign(document.body.style, { margin: 0, background: "var(--jp-layout-color0)" });
    }""", theme)


# Pages without JupyterLab's variables: (what the system is set to, what VS Code says of its
# theme, the colours of its themes "Dark Modern" and "Light Modern"), whether they are dark.
ELSEWHERE = {
    "a page, light": ("light", None, {}, False), "a page, dark": ("dark", None, {}, True),
    "VS Code, dark": ("light", "vscode-dark", {
        "editor-foreground": "#cccccc", "editor-background": "#1f1f1f", "focusBorder": "#0078d4"},
        True),
    "VS Code, light": ("dark", "vscode-light", {
        "editor-foreground": "#3b3b3b", "editor-background": "#ffffff", "focusBorder": "#005fb8"},
        False)}


def bare(page, system, kind, colours):
    """An empty page without JupyterLab."""
    page.emulate_media(color_scheme=system)
    page.set_content("<!doctype html><html lang='en'><title>explorers</title><body></body></html>")
    page.add_style_tag(content=(STATIC / "shell.css").read_text(encoding="utf-8"))
    page.evaluate("""([kind, colours]) => {
      document.body.style.width = "848px";
      if (kind) document.body.dataset.vscodeThemeKind = kind;
      for (const [name, value] of Object.entries(colours))
        document.documentElement.style.setProperty(`--vscode-${name}`, value);
    }""", [kind, colours])


def shown(page, one):
    """The explorer on the page, with all that the page asked for."""
    opened(page, one)
    for _ in range(9):
        open_ = [message for message in sent(page) if message["name"] != "poll"]
        if page.locator(".itr-explorer").get_attribute("data-busy") != "1":
            break
        one.handle(open_[-1]["name"], open_[-1]["value"])
        answer(page, one, open_[-1]["serial"])
    return page.locator(".itr-explorer")


def nameless(page):
    """What has a role and no name, as the browser tells it to a screen reader."""
    told = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"image": "image", "img": "image", "comboboxselect": "combobox"}
    found = []
    for node in told:
        role = node.get("role", {}).get("value", "").lower()
        name = node.get("name", {}).get("value", "")
        if not node["ignored"] and roles.get(role, role) in USED - NAMELESS_BY_RIGHT and not name:
            found.append((role, node.get("backendDOMNodeId")))
    return found


def unseen(page, pane):
    """All that Tab comes to, and why its focus cannot be seen."""
    page.evaluate("document.activeElement.blur()")
    found = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None and found:
            break
        if at is not None:
            found[at[0]] = at[1]
    assert found
    return {what: why for what, why in found.items() if why}


def test_every_explorer_is_looked_at():
    assert set(MAKERS) == {file.stem for file in STATIC.glob("*.js")} - {"shell"}


def test_everybody_can_use_and_read_every_explorer(page):
    """In one browser, for it starts slowly."""
    explorers = {kind: make() for kind, make in MAKERS.items()}
    wrong = []
    for theme in ("light", "dark"):
        dressed(page, theme)
        for window, column in COLUMNS.items():
            page.set_viewport_size({"width": window, "height": 900})
            page.evaluate("wide => { document.body.style.width = `${wide}px`; }", column)
            for kind, one in explorers.items():
                pane = shown(page, one)
                faults = {"no name": nameless(page), "pale": page.evaluate(PALE),
                          "too wide": page.evaluate(WIDE), "cut": page.evaluate(CUT),
                          "axes": page.evaluate(AXES) if kind == "map" else None,
                          "focus": unseen(page, pane) if window == 1280 else None}
                wrong += [(kind, theme, window, *fault) for fault in faults.items() if fault[1]]
    assert not wrong, "\n".join(map(str, wrong))


PAPER = "() => {" + SEEN + """
  const root = document.querySelector(".itr-explorer");
  return [light(behind(root)) < 0.2, getComputedStyle(root).colorScheme];
}"""


def test_everybody_can_read_every_explorer_elsewhere(page):
    """In a page made from a notebook, and in VS Code; dark where these are."""
    explorers = {kind: make() for kind, make in MAKERS.items()}
    wrong = []
    for where, (*how, dark) in ELSEWHERE.items():
        bare(page, *how)
        for kind, one in explorers.items():
            pane = shown(page, one)
            paper = page.evaluate(PAPER)
            faults = {"pale": page.evaluate(PALE), "focus": unseen(page, pane),
                      "axes": page.evaluate(AXES) if kind == "map" else None,
                      "paper": paper if paper != [dark, "dark" if dark else "light"] else None}
            wrong += [(kind, where, *fault) for fault in faults.items() if fault[1]]
    assert not wrong, "\n".join(map(str, wrong))


def test_what_went_wrong_is_told_to_those_who_cannot_see_it(page):
    one = MAKERS["who_moved"]()
    pane = shown(page, one)
    box = pane.get_by_label("Query")
    box.fill("a dog")
    box.press("Enter")
    message = sent(page)[-1]
    one.handle(message["name"], message["value"])
    answer(page, one, message["serial"])
    assert "must be a whole number" in pane.get_by_role("alert").text_content()
