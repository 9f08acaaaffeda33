// Push and pull: each text a row, its score on the line, the arrow of minus the gradient.

// In units of the drawing; on a phone a text stands above its line.
const LAYOUT = { row: 30, left: 326, wide: 832, right: 60, letters: 36, longest: 150, above: 0 };
const NARROW = 560, PHONE = { row: 46, left: 14, right: 20, letters: 60, longest: 70, above: 14 };
const SHORTEST = 14; // of an arrow; a shorter one would be hidden below its mark
const LOW = -0.2, HIGH = 1;
const UP = "var(--itr-up)", DOWN = "var(--itr-down)"; // signs and directions say it, too

const across = ({ left, wide, right }, score) =>
  left + ((Math.min(Math.max(score, LOW), HIGH) - LOW) / (HIGH - LOW)) * (wide - left - right);
function arrowOf(item, x, y, { left, wide, longest }) {
  if (!item.felt) return null;
  const way = Math.sign(item.up), colour = item.up > 0 ? UP : DOWN;
  const far = x + way * Math.max(Math.abs(item.up) * longest, SHORTEST);
  const to = Math.min(Math.max(far, left - SHORTEST), wide - 4); // what is next to it stays free
  return svg("g", { stroke: colour, fill: "none", "stroke-width": 3, class: "itr-arrow" }, [
    svg("line", { x1: x, y1: y, x2: to, y2: y }),
    svg("path", { d: `M${to - 7 * way},${y - 6} L${to},${y} L${to - 7 * way},${y + 6}` })]);
}

// Of each stage, where texts were moved to while Python has not answered yet: keys go on from there.
const moving = new WeakMap();

function handleOf(item, x, y, place, send, ahead, layout) {
  const move = (score) => {
    ahead.set(place, Math.min(1, Math.max(-1, Math.round(score * 100) / 100)));
    send("drag", { item: place, score: ahead.get(place) }, place);
  };
  const look = { fill: item.felt ? "var(--itr-ink)" : "var(--itr-paper)",
    stroke: "var(--itr-ink)", "stroke-width": 2 };
  const keys = { ArrowRight: 0.02, ArrowUp: 0.02, ArrowLeft: -0.02, ArrowDown: -0.02,
    PageUp: 0.1, PageDown: -0.1 };
  return svg("g", { transform: `translate(${x},${y})`, tabindex: 0, role: "slider",
    class: "itr-handle", "data-key": `item-${place}`, "aria-label": `score of ${item.text}`,
    "aria-valuemin": -1, "aria-valuemax": 1, "aria-valuenow": item.score,
    "aria-valuetext": `${fixed(item.score, 2)}, rank ${item.rank}, `
      + (item.felt ? (item.up > 0 ? "pulled up" : "pushed down") : "left alone"),
    onkeydown: (e) => {
      if (!(e.key in keys)) return;
      e.preventDefault();
      move((ahead.get(place) ?? item.score) + keys[e.key]);
    },
    onpointerdown: (e) => {
      e.currentTarget.focus();
      const toDrawing = e.currentTarget.ownerSVGElement.getScreenCTM().inverse();
      follow(e, (moved) => {
        const at = new DOMPoint(moved.clientX, moved.clientY).matrixTransform(toDrawing);
        const score = LOW + (at.x - layout.left) / (layout.wide - layout.left - layout.right)
          * (HIGH - LOW);
        move(Math.min(HIGH, Math.max(LOW, score))); // the line ends there
      });
    } }, [svg(...markOf(item.match, 7, look)),
    svg("circle", { r: 14, fill: "transparent", stroke: "none" })]);
}

function listOf(shown, send, ahead, layout) {
  const { row, left, wide, right, letters, above } = layout, high = shown.items.length * row + 40;
  const ends = { x1: across(layout, LOW), x2: across(layout, HIGH) };
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, role: "group",
    "aria-label": `Texts of one picture by their score, with the arrows of ${shown.loss}` });
  for (let tick = LOW; tick <= HIGH + 1e-9; tick += 0.2) {
    const x = across(layout, tick);
    node.append(svg("line", { class: "rule", x1: x, x2: x, y1: 0, y2: high - 36,
      opacity: above ? 0.4 : 1 }), svg("text", { x, y: high - 21, "text-anchor": "middle",
      class: "faint" }, fixed(tick, 1)));
  }
  node.append(svg("text", { x: across(layout, 0.4), y: high - 4, "text-anchor": "middle",
    class: "faint" }, "score"));
  shown.items.forEach((item, place) => {
    const y = (place + 0.5) * row + above, x = across(layout, item.score);
    const words = above ? { x: left - 12, y: y - 20 } : { x: 0, y: y + 4 };
    node.append(
      svg("line", { class: "rule", ...ends, y1: y, y2: y }),
      svg("text", words, [`${item.rank}. ${item.text.length > letters
        ? `${item.text.slice(0, letters - 2)} …` : item.text}`, svg("title", {}, item.text)]),
      svg("text", { x: above ? wide - 4 : left - 18, y: words.y, "text-anchor": "end",
        class: "faint" }, item.relevance.toFixed(2)));
    const arrow = arrowOf(item, x, y, layout);
    if (arrow) node.append(arrow);
    if (item.score < LOW) node.append(svg("text", { x: x + 13, y: y - 4, class: "faint" },
      `← ${fixed(item.score, 2)}`));
    node.append(handleOf(item, x, y, place, send, ahead, layout));
  });
  return node;
}

function tableOf(shown) {
  const says = { 1: "▲", "-1": "▼", 0: "·" };
  const spoken = { 1: "up", "-1": "down", 0: "alone" };
  const lines = shown.losses.map((one) => make("tr", { "aria-current": one.chosen || null }, [
    make("th", { scope: "row" }, one.chosen ? make("b", {}, one.name) : one.name),
    make("td", {}, one.problem ? "–" : one.value),
    one.problem ? make("td", { colspan: shown.items.length }, one.problem)
      : one.signs.map((sign, place) => make("td", { title: shown.items[place].text,
        "aria-label": spoken[sign],
        style: sign ? `color:${sign > 0 ? UP : DOWN}` : null }, says[sign]))].flat()));
  return make("table", {}, [
    make("caption", {},
      "Every loss, and the texts by rank: ▲ pulled up, ▼ pushed down, · left alone"),
    make("thead", {}, make("tr", {}, [make("th", { scope: "col" }, "Loss"),
      make("th", { scope: "col" }, "Value"),
      ...shown.items.map((item) => make("th", { scope: "col" }, String(item.rank)))])),
    make("tbody", {}, lines)]);
}

function draw(stage, shown, send) {
  if (!moving.has(stage) || send.idle()) moving.set(stage, new Map());
  const wide = stage.clientWidth, narrow = wide > 0 && wide < NARROW;
  const layout = narrow ? { ...PHONE, wide: wide - 12 } : LAYOUT; // less its padding
  renewChildren(stage, [
    make("p", { class: "itr-hint" },
      "Numbers: relevance; arrows: minus the gradient; hollow: left alone. ★ match, ● no match. "
      + "Drag a mark, or focus it and use the arrow keys. "
      + (shown.items.some((item) => item.score < LOW)
        ? `← and a number: a score below ${fixed(LOW, 1)}.` : "")),
    listOf(shown, send, moving.get(stage), layout), tableOf(shown)]);
}
