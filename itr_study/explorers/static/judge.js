// You are the judge: a picture and a text to be rated from 1 to 4; who agrees with whom below.

const ROW = 26, NAMES = 260, FROM = 280, TO = 610, WIDE = 820, TOP = 8; // in units of the drawing
const YOU = "#d55e00"; // readable on white and on black

const across = (tau) => FROM + ((tau + 1) / 2) * (TO - FROM);

function rater(one, y) {
  const x = across(one.value);
  if (one.kind === "you") return svg("path", { fill: YOU, stroke: "var(--itr-ink)",
    d: `M${x},${y - 9} L${x + 9},${y} L${x},${y + 9} L${x - 9},${y} Z` });
  if (one.kind === "rater") return svg("rect", { x: x - 6, y: y - 6, width: 12, height: 12,
    fill: "var(--itr-ink)" });
  return svg("circle", { cx: x, cy: y, r: 6, fill: "var(--itr-paper)", stroke: "var(--itr-ink)",
    "stroke-width": 2 });
}

function dotsOf(shown) {
  const low = TOP + shown.agreements.length * ROW;
  const node = svg("svg", { viewBox: `0 0 ${WIDE} ${low + 44}`, width: WIDE, role: "img",
    "aria-label": `${shown.axis} on your ${shown.rated} pairs: `
      + shown.agreements.map((one) => `${one.name} ${one.says}`).join("; ") });
  for (const tick of [-1, -0.5, 0, 0.5, 1])
    node.append(svg("line", { class: "rule", x1: across(tick), x2: across(tick), y1: TOP, y2: low,
      "stroke-width": tick ? 1 : 2 }), svg("text", { x: across(tick), y: low + 18,
      "text-anchor": "middle", class: "faint" }, fixed(tick, 1)));
  node.append(svg("text", { x: across(0), y: low + 38, "text-anchor": "middle", class: "faint" },
    `${shown.axis} on the ${shown.rated} pairs that you rated; 1: same order, −1: opposite`));
  shown.agreements.forEach((one, place) => {
    const y = TOP + (place + 0.5) * ROW, bold = one.kind === "you" ? "bold" : null;
    node.append(
      svg("text", { x: NAMES, y: y + 4, "text-anchor": "end", "font-weight": bold }, one.name),
      svg("line", { x1: across(one.low), x2: across(one.high), y1: y, y2: y, "stroke-width": 2,
        stroke: one.kind === "you" ? YOU : "var(--itr-faint)" }), rater(one, y),
      svg("text", { x: TO + 20, y: y + 4, "font-weight": bold }, one.says));
  });
  const raters = shown.agreements.some((one) => one.kind === "rater");
  return make("div", {}, [make("p", { class: "itr-hint" },
    `Agreement with ${shown.judges}. ◆ you, ` + (raters ? "■ each against the others, " : "")
    + "○ computed scores; lines and brackets: about 95 %, with other pairs."), node]);
}

const latest = new WeakMap(); // of each explorer, what it shows

function listen(root, send) {
  hearKeys(root, (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = latest.get(root);
    const grade = shown.grades.find((one) => String(one.grade) === event.key);
    const pressed = event.key === "Enter" && event.target.dataset.key?.startsWith("grade-");
    if (event.repeat && (grade || pressed)) return event.preventDefault(); // held: pairs unseen
    if (grade) rate(shown, grade.grade, send);
    else if (event.key === "ArrowLeft" && shown.place > 1) send("back");
    else if (event.key === "ArrowRight" && shown.place < shown.count) send("forward");
    else return;
    event.preventDefault();
  });
}

// With the number of the pair: a key or a button pressed twice must not rate the next pair unseen.
const rate = (shown, grade, send) => send("rate", { grade, pair: shown.place }, shown.place);

function cardOf(shown, send) {
  const buttons = shown.grades.map((one) => make("button", { type: "button",
    "aria-disabled": String(shown.fixed), "aria-pressed": String(one.chosen),
    "data-key": `grade-${one.grade}`,
    style: "display:block;text-align:left;margin:0 0 6px;min-width:24em"
      + (one.chosen ? ";font-weight:bold;border-width:3px" : ""),
    onclick: (event) => event.detail > 1 || rate(shown, one.grade, send) },
  `${one.chosen ? "✓ " : ""}${one.grade}  ${one.words}`));
  const head = `Pair ${shown.place} of ${shown.count}`;
  return make("div", { role: "group", tabindex: 0, "data-key": "card", "aria-label": head,
    style: "display:flex;flex-wrap:wrap;gap:20px;padding:6px" }, [
    make("img", { src: shown.picture, alt: "The picture to be judged",
      style: "width:320px;height:320px;object-fit:contain" }),
    make("div", { style: "flex:1;min-width:22em" }, [
      make("p", { class: "itr-hint" }, `${head}. How well does the text describe the picture? `
        + "Keys: 1 to 4 rate, left and right go back and forward."),
      make("p", { "aria-live": "polite", style: "font-size:17px;margin:8px 0" },
        `“${shown.text}”`), ...buttons,
      shown.others ? make("p", { "aria-live": "polite" }, shown.others) : null])]);
}

function draw(stage, shown, send) {
  const root = stage.closest(".itr-explorer");
  latest.set(root, shown);
  listen(root, send);
  stage.replaceChildren(cardOf(shown, send), ...shown.agreements.length ? [dotsOf(shown)] : [],
    ...shown.waits ? [make("p", {}, `Pairs to rate before you see how far you agree with `
      + `${shown.judges}: ${shown.waits}`)] : []);
}
