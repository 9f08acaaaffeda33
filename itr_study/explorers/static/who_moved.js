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

function lineOf(one, [from, to], look) {
  const middle = (LEFT + RIGHT) / 2;
  const d = `M${LEFT},${from} C${middle},${from} ${middle},${to} ${RIGHT},${to}`;
  const path = (stroke, width) => ["path", { d, stroke, "stroke-width": width }];
  return ["g", look, [ // an edge, for the brightest and the darkest are hard to see on some paper
    path("var(--itr-faint)", one.match ? 6 : 4.5), path(one.colour, one.match ? 4 : 2.8),
    path("transparent", 12)]];
}

function endOf(one, side, row) { // from where the line ends
  const way = side ? 1 : -1, beyond = one.beyond[side];
  const said = (at, words, faint) => ["text", { x: way * at, y: 4, class: faint ? "faint" : null },
    words];
  const parts = [["rect", { x: side ? 0 : -LEFT, width: LEFT, y: 1 - row / 2, height: row - 2,
    fill: "transparent" }], markOf(one.match, 6, { fill: one.colour, stroke: "var(--itr-ink)",
    "stroke-width": 1.5, transform: beyond ? "scale(0.75)" : null })];
  if (beyond) {
    const rank = `rank ${one.ranks[side].toLocaleString("en")}`;
    parts.push(said(17, rank, true));
    return side === 0 && one.beyond[1] ? [...parts, said(88, one.text)] : parts;
  }
  parts.push(said(17, String(one.ranks[side])));
  if (!one.picture) return [...parts, said(TEXT, one.text)];
  return [...parts, said(TEXT + 42, one.text), ["image", { href: one.picture,
    x: side ? TEXT : -TEXT - 34, y: -17, width: 34, height: 34, "aria-hidden": "true" }]];
}

function resultsOf(shown, board) {
  const { lit, stop } = board, { yOf, rule, far, row, high } = placesOf(shown);
  const lines = [], ends = [];
  board.high = Math.max(board.high, high);
  shown.results.forEach((one, at) => {
    const ys = one.rows.map((place, side) => yOf(place, one.beyond[side]));
    const own = one.beyond[0] && !one.beyond[1] ? 1 : 0; // where its text stands, or stands first
    const look = { "data-at": at,
      style: lit === null || lit === one.key ? null : "opacity:0.18" };
    lines.push(lineOf(one, ys, look));
    ends.push(...ys.map((y, side) => ["g", { ...look, "text-anchor": side ? "start" : "end",
      transform: `translate(${side ? RIGHT : LEFT},${y})`,
      ...side !== own ? { "aria-hidden": "true" } : { role: "option", "aria-label": one.says,
        "aria-selected": String(one.key === lit), "data-key": `result-${one.key}`,
        "data-lm-suppress-shortcuts": "true", tabindex: one.key === stop ? 0 : -1 } },
    endOf(one, side, one.beyond[side] ? FAR : row)]));
  });
  const heads = shown.names.map((name, side) => ["text", { x: side ? RIGHT + 17 : LEFT - 17, y: 16,
    "text-anchor": side ? "start" : "end", "font-weight": "bold" }, name]);
  const beyond = far ? [["line", { class: "rule", x1: 0, x2: WIDE, y1: rule, y2: rule,
    "stroke-dasharray": "4 3" }], ["text", { x: WIDE, y: rule + 16, "text-anchor": "end",
    class: "faint" }, `beyond the first ${shown.top}`]] : [];
  return ["svg", { viewBox: `0 0 ${WIDE} ${board.high}`, width: WIDE, role: "listbox",
    "aria-label": shown.label },
  [...heads, ["g", { fill: "none" }, lines], ["g", {}, ends], ...beyond]];
}

function countOf(share) {
  return share === null ? "" : [["span", {}, "NDCG of all queries is being counted: "], ["progress",
    { max: 1, value: share, "aria-label": "NDCG of all queries that are counted" }],
  ["span", {}, ` ${Math.round(100 * share)} %`]];
}

// Of each stage: what is shown; `lit` and `stop`, the keys of the result that is read and of the one
// that Tab comes to; how high the drawing is. It does not shrink from query to query: what is below
// it stays there, and a browser lays out less anew.
const boards = new WeakMap();

function boardOf(stage) {
  const board = { shown: null, lit: null, stop: null, high: 0, scale: [] };
  const keyOf = (node) => board.shown.results[node?.closest("[data-at]")?.dataset.at]?.key ?? null;
  const light = (key, stop = board.stop) => {
    if (key === board.lit && stop === board.stop) return;
    Object.assign(board, { lit: key, stop });
    paint(stage, board);
  };
  const inside = (node) => Boolean(node?.closest?.("[role=listbox]"));
  const hear = (name, listen) => stage.addEventListener(name, listen);
  for (const name of ["pointerover", "pointermove"]) // the results may have changed below it
    hear(name, ({ target }) => inside(target) && light(keyOf(target)));
  hear("pointerout", ({ target, relatedTarget }) =>
    inside(target) && !inside(relatedTarget) && light(null));
  hear("focusin", ({ target }) => inside(target) && light(keyOf(target), keyOf(target)));
  hear("focusout", ({ relatedTarget }) => inside(relatedTarget) || light(null));
  hear("keydown", (event) => {
    const all = [...stage.querySelectorAll("[role=option]")], at = all.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
  });
  boards.set(stage, board);
  return board;
}

function paint(stage, board) {
  const { shown, lit } = board, read = shown.results.find((one) => one.key === lit);
  const picture = shown.query.picture ? [["img", { src: shown.query.picture, alt: "",
    style: "max-height:110px" }]] : [];
  fill(stage, [["p", { class: "itr-hint itr-counted" }, countOf(shown.counted)],
    ["div", { style: "display:flex;gap:16px;align-items:flex-start" }, [...picture, ["div", {}, [
      ["p", { style: "margin:0" }, shown.query.words], ...board.scale,
      ["p", { class: "itr-hint itr-detail", "aria-live": "polite", style: "min-height:4.2em" },
        read ? read.says : HINT]]]]],
    resultsOf(shown, board)]);
}

function draw(stage, shown, send) {
  const board = boards.get(stage) ?? boardOf(stage), { results } = shown;
  const has = (key) => results.some((one) => one.key === key);
  if (JSON.stringify(shown.scale) !== JSON.stringify(board.shown?.scale))
    board.scale = shown.scale ? [scaleOf(shown.scale)] : [];
  if (board.shown?.query.words !== shown.query.words) { // else who reads a result goes on
    board.stop = has(board.lit) ? board.lit : results[0].key;
    board.lit = results[stage.querySelector("[role=option]:focus")?.dataset.at]?.key ?? null;
  }
  if (board.shown?.label !== shown.label) board.high = 0;
  board.shown = shown;
  paint(stage, board);
}
