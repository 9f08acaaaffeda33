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
    ["path", { d, "stroke-width": 12, "pointer-events": "stroke" }]]];
}

function endOf(one, side, row, y) { // to where the line ends
  const x = side ? RIGHT : LEFT, way = side ? 1 : -1, beyond = one.beyond[side];
  const said = (at, words, faint) => ["text", { x: x + way * at, y: y + 4,
    class: faint ? "faint" : null }, words];
  const place = one.match ? { transform: `translate(${x},${y})${beyond ? " scale(0.75)" : ""}` }
    : { cx: x, cy: y };
  const parts = [["rect", { x: side ? RIGHT : 0, width: LEFT, y: y + 1 - row / 2, height: row - 2,
    fill: "none", "pointer-events": "all" }], markOf(one.match, beyond ? 4.5 : 6, { ...place,
    fill: one.colour, stroke: "var(--itr-ink)", "stroke-width": beyond ? 1.1 : 1.5 })];
  if (beyond) {
    const rank = `rank ${one.ranks[side].toLocaleString("en")}`;
    parts.push(said(17, rank, true));
    return side === 0 && one.beyond[1] ? [...parts, said(88, one.text)] : parts;
  }
  parts.push(said(17, String(one.ranks[side])));
  if (!one.picture) return [...parts, said(TEXT, one.text)];
  return [...parts, said(TEXT + 42, one.text), ["image", { href: one.picture,
    x: x + (side ? TEXT : -TEXT - 34), y: y - 17, width: 34, height: 34, "aria-hidden": "true" }]];
}

function resultsOf(shown, board) {
  const { results } = shown, { lit, stop } = board, { yOf, rule, far, row, high } = placesOf(shown);
  board.high = Math.max(board.high, high);
  const look = (one, at) => ({ "data-at": at,
    style: lit === null || lit === one.key ? null : "opacity:0.18" });
  const lines = results.map((one, at) => lineOf(one,
    one.rows.map((place, side) => yOf(place, one.beyond[side])), look(one, at)));
  // A node for each place, whichever result is there: another query changes words and colours only.
  const ends = [0, 1].map((side) => [...results.keys()].sort((a, b) =>
    results[a].rows[side] - results[b].rows[side]).map((at, place) => {
    const one = results[at], beyond = one.beyond[side];
    const own = one.beyond[0] && !one.beyond[1] ? 1 : 0; // where its text stands, or stands first
    return ["g", { ...look(one, at), ...side !== own ? { "aria-hidden": "true" } : {
      role: "option", "aria-label": one.says, "aria-selected": String(one.key === lit),
      "data-key": `result-${one.key}`, "data-lm-suppress-shortcuts": "true",
      tabindex: one.key === stop ? 0 : -1 } },
    endOf(one, side, beyond ? FAR : row, yOf(place, beyond))];
  }));
  const heads = shown.names.map((name, side) => ["text", { x: side ? RIGHT + 17 : LEFT - 17, y: 16,
    "text-anchor": side ? "start" : "end", "font-weight": "bold" }, name]);
  const beyond = far ? [["line", { class: "rule", x1: 0, x2: WIDE, y1: rule, y2: rule,
    "stroke-dasharray": "4 3" }], ["text", { x: WIDE, y: rule + 16, "text-anchor": "end",
    class: "faint" }, `beyond the first ${shown.top}`]] : [];
  return ["svg", { viewBox: `0 0 ${WIDE} ${board.high}`, width: WIDE, role: "listbox",
    "aria-label": shown.label },
  [...heads, ["g", { fill: "none" }, lines], ["g", { "text-anchor": "end" }, ends[0]],
    ["g", {}, ends[1]], ...beyond]];
}

function countOf(share) {
  return share === null ? "" : [["span", {}, "NDCG of all queries is being counted: "], ["progress",
    { max: 1, value: share, "aria-label": "NDCG of all queries that are counted" }],
  ["span", {}, ` ${Math.round(100 * share)} %`]];
}

// Of each stage: what is shown; `lit` and `stop`, the keys of the result that is read and of the one
// that Tab comes to; how high the drawing is, and what is above it. Neither shrinks from query to
// query: what is below stays there, and a browser lays out less anew.
const boards = new WeakMap();

function boardOf(stage) {
  const board = { shown: null, lit: null, stop: null, high: 0, scale: [], head: null };
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
  board.head ??= steady(stage.children[1]);
}

function draw(stage, shown, send) {
  const board = boards.get(stage) ?? boardOf(stage), { results } = shown;
  const has = (key) => results.some((one) => one.key === key);
  if (JSON.stringify(shown.scale) !== JSON.stringify(board.shown?.scale))
    board.scale = shown.scale ? [scaleOf(shown.scale)] : [];
  const other = board.shown?.query.words !== shown.query.words; // else who reads a result goes on
  const focused = other ? stage.querySelector("[role=option]:focus") : null;
  if (other) {
    board.stop = has(board.lit) ? board.lit : results[0].key;
    board.lit = null;
  }
  if (board.shown && board.shown.label !== shown.label) { // the other way: all is laid out anew
    board.high = 0;
    board.head.style.minHeight = "";
  }
  board.shown = shown;
  paint(stage, board);
  if (focused?.matches("[role=option]:focus")) { // its place holds another result now
    board.lit = results[focused.dataset.at].key;
    paint(stage, board);
  }
}
