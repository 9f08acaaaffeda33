// Who moved: the first results of one query under two models; a line for each result.

const WIDE = 900, LEFT = 376, RIGHT = 524, TEXT = 40, HEAD = 30; // in units of the drawing
const FAR = 19, GAP = 22; // height of a row beyond the first results, and of the rule above these
const HINT = "Point at a result, or go through them with the up and down keys. ★ match, ● no match.";

function placesOf(shown) {
  const row = shown.results.some((one) => one.picture) ? 36 : 24;
  const first = Math.min(shown.top, shown.results.length), rule = HEAD + first * row + GAP / 2;
  const yOf = (place, beyond) => beyond
    ? rule + GAP / 2 + (place - first + 0.5) * FAR : HEAD + (place + 0.5) * row;
  const ends = shown.results.flatMap((one) => one.rows.map((r, i) => yOf(r, one.beyond[i])));
  const far = shown.results.some((one) => one.beyond.some((beyond) => beyond));
  return { yOf, rule, far, row, high: Math.max(...ends) + row };
}

function lineOf(one, from, to, at) {
  const middle = (LEFT + RIGHT) / 2;
  const path = (look) => svg("path", {
    d: `M${LEFT},${from} C${middle},${from} ${middle},${to} ${RIGHT},${to}`, ...look });
  return svg("g", { "data-at": at }, [ // an edge, for the brightest and the darkest are hard to see on some paper
    path({ stroke: "var(--itr-faint)", "stroke-width": one.match ? 6 : 4.5 }),
    path({ stroke: one.colour, "stroke-width": one.match ? 4 : 2.8 }),
    path({ stroke: "transparent", "stroke-width": 12 })]);
}

function endOf(one, side, y, row) {
  const x = side ? RIGHT : LEFT, way = side ? 1 : -1, beyond = one.beyond[side];
  const said = (at, words, faint) => svg("text", { x: x + way * at, y: y + 4,
    class: faint ? "faint" : null }, words);
  const parts = [svg("rect", { x: side ? x : 0, width: side ? WIDE - x : x, y: y - row / 2 + 1,
    height: row - 2, fill: "transparent" }), markOf(one.match, 6, { fill: one.colour,
    stroke: "var(--itr-ink)", "stroke-width": 1.5,
    transform: `translate(${x},${y})${beyond ? " scale(0.75)" : ""}` })];
  if (beyond) {
    const rank = `rank ${one.ranks[side].toLocaleString("en")}`;
    parts.push(said(17, rank, true));
    return side === 0 && one.beyond[1] ? [...parts, said(88, one.text)] : parts;
  }
  parts.push(said(17, String(one.ranks[side])));
  if (!one.picture) return [...parts, said(TEXT, one.text)];
  parts.push(svg("image", { href: one.picture, x: side ? x + TEXT : x - TEXT - 34, y: y - 17,
    width: 34, height: 34, "aria-hidden": "true" }), said(TEXT + 42, one.text));
  return parts;
}

const lit = new WeakMap(); // of each stage, the key of the result that is read

function resultsOf(shown, stage) {
  const { yOf, rule, far, row, high } = placesOf(shown);
  const node = svg("svg", { viewBox: `0 0 ${WIDE} ${high}`, width: WIDE, role: "listbox",
    "aria-label": shown.label, onpointerleave: () => light(null),
    onpointerover: ({ target }) => light(
      shown.results[target.closest("[data-at]")?.dataset.at]?.key ?? null) });
  const lines = svg("g", { fill: "none" }), ends = svg("g"), parts = new Map();
  const light = (key) => {
    if (key === lit.get(stage)) return;
    lit.set(stage, key);
    for (const [other, { groups, focus }] of parts) {
      for (const group of groups) group.style.opacity = key === null || key === other ? "" : 0.18;
      focus.setAttribute("aria-selected", String(key === other));
    }
    stage.querySelector(".itr-detail").textContent = key === null ? HINT : parts.get(key).one.says;
  };
  const stop = (key) => { // the one that Tab comes to
    for (const [other, { focus }] of parts) focus.setAttribute("tabindex", key === other ? 0 : -1);
  };
  const step = (event, at) => {
    const all = [...parts.values()], to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0,
      End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all[Math.min(Math.max(to, 0), all.length - 1)].focus.focus();
  };
  shown.results.forEach((one, at) => {
    const [from, to] = one.rows.map((place, side) => yOf(place, one.beyond[side]));
    const own = one.beyond[0] && !one.beyond[1] ? 1 : 0; // where its text stands, or stands first
    const sides = [from, to].map((y, side) => svg("g", { "data-at": at,
      "text-anchor": side ? "start" : "end", ...side !== own ? { "aria-hidden": "true" } : {
      role: "option", "aria-label": one.says, "aria-selected": "false", "data-key":
      `result-${one.key}`, tabindex: -1, onkeydown: (event) => step(event, at),
      onfocus: () => { stop(one.key); light(one.key); }, onblur: () => light(null) } },
    endOf(one, side, y, one.beyond[side] ? FAR : row)));
    const groups = [lineOf(one, from, to, at), ...sides];
    parts.set(one.key, { one, groups, focus: sides[own] });
    lines.append(groups[0]);
    ends.append(...sides);
  });
  stop(shown.results.some((one) => one.key === lit.get(stage)) ? lit.get(stage)
    : shown.results[0].key);
  lit.set(stage, null);
  node.append(...shown.names.map((name, side) => svg("text", { x: side ? RIGHT + 17 : LEFT - 17,
    y: 16, "text-anchor": side ? "start" : "end", "font-weight": "bold" }, name)), lines, ends);
  if (far) node.append(
    svg("line", { class: "rule", x1: 0, x2: WIDE, y1: rule, y2: rule, "stroke-dasharray": "4 3" }),
    svg("text", { x: WIDE, y: rule + 16, "text-anchor": "end", class: "faint" },
      `beyond the first ${shown.top}`));
  return node;
}

const last = new WeakMap(); // of each stage, what is drawn, without how far a count is

function countOf(share) {
  return share === null ? [] : ["NDCG of all queries is being counted: ", make("progress", { max: 1,
    value: share, "aria-label": "NDCG of all queries that are counted" }),
  ` ${Math.round(100 * share)} %`];
}

function draw(stage, shown, send) {
  const { counted, poll, ...rest } = shown, now = JSON.stringify(rest);
  if (last.get(stage) === now) // a count that goes on leaves the rest alone, and who reads it
    return stage.querySelector(".itr-counted").replaceChildren(...countOf(counted));
  last.set(stage, now);
  const detail = make("p", { class: "itr-hint itr-detail", "aria-live": "polite",
    style: "min-height:4.2em" }, HINT);
  const asking = make("p", { style: "margin:0" }, shown.query.words);
  const picture = shown.query.picture
    ? make("img", { src: shown.query.picture, alt: "", style: "max-height:110px" }) : null;
  const results = resultsOf(shown, stage);
  stage.lastChild?.remove(); // the former results; what stands above them is kept
  renewChildren(stage, [make("p", { class: "itr-hint itr-counted" }, countOf(counted)),
    make("div", { style: "display:flex;gap:16px;align-items:flex-start" },
      [picture, make("div", {}, [asking, shown.scale && scaleOf(shown.scale), detail])])]);
  stage.append(results);
}
