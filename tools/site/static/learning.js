// Watch it learn: pictures and their own texts in the plane, one step of a training after the other.

const SIDE = 390, CURVE = { wide: 330, high: 220, left: 40, foot: 34, top: 22 };
const HINT = "A picture and the text written about it are joined by a line: training makes the lines "
  + "short. Move the slider, or press Play.";

function planeOf(shown) {
  const all = [...shown.all.images, ...shown.all.texts].flat();
  const most = 1.08 * Math.max(...all.flat().map(Math.abs));
  const at = ([x, y]) => [((x / most + 1) / 2) * SIDE, ((1 - y / most) / 2) * SIDE];
  const node = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, width: SIDE, role: "img",
    "aria-label": `Step ${shown.step}: ${shown.words.length} pictures, and the text of each` });
  node.append(svg("rect", { class: "rule", x: 0.5, y: 0.5, width: SIDE - 1, height: SIDE - 1,
    fill: "none" }));
  shown.images.forEach((image, n) => {
    const [x, y] = at(image), [u, v] = at(shown.texts[n]);
    node.append(svg("line", { x1: x, y1: y, x2: u, y2: v, stroke: "var(--itr-up)",
      "stroke-width": 2 }));
  });
  shown.images.forEach((image, n) => {
    const [x, y] = at(image);
    node.append(svg("image", { href: shown.pictures[n], x: x - 13, y: y - 13, width: 26,
      height: 26 }, svg("title", {}, shown.words[n])),
    svg("rect", { x: x - 13, y: y - 13, width: 26, height: 26, fill: "none",
      stroke: "var(--itr-ink)" }));
  });
  shown.texts.forEach((text, n) => {
    const [u, v] = at(text);
    node.append(svg("circle", { cx: u, cy: v, r: 5, fill: "var(--itr-paper)",
      stroke: "var(--itr-ink)", "stroke-width": 2 }, svg("title", {}, shown.words[n])));
  });
  return node;
}

function curveOf(shown) {
  const { wide, high, left, foot, top } = CURVE, most = Math.max(...shown.losses);
  const x = (step) => left + (step / (shown.losses.length - 1)) * (wide - left - 10);
  const y = (loss) => high - foot - (loss / most) * (high - foot - top);
  const digits = most < 10 ? 2 : 0;
  const points = shown.losses.map((loss, step) => `${x(step)},${y(loss)}`);
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, role: "img",
    "aria-label": `Loss of each step: ${fixed(shown.losses[0], 2)} at first, `
      + `${fixed(shown.losses[shown.step], 2)} at step ${shown.step}` });
  for (const value of [0, most / 2, most]) node.append(
    svg("line", { class: "rule", x1: left, x2: wide - 10, y1: y(value), y2: y(value) }),
    svg("text", { class: "faint", x: left - 6, y: y(value) + 4, "text-anchor": "end" },
      fixed(value, digits)));
  node.append(svg("text", { x: left, y: 13 }, "loss of the batch"),
    svg("text", { class: "faint", x: (left + wide) / 2, y: high - 6, "text-anchor": "middle" },
      "step"),
    svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--itr-line)",
      "stroke-width": 2 }),
    svg("polyline", { points: points.slice(0, shown.step + 1).join(" "), fill: "none",
      stroke: "var(--itr-ink)", "stroke-width": 2.5 }),
    svg("circle", { cx: x(shown.step), cy: y(shown.losses[shown.step]), r: 5,
      fill: "var(--itr-down)" }));
  return node;
}

function draw(stage, shown) {
  stage.replaceChildren(make("p", { class: "itr-hint" }, HINT),
    make("div", { class: "itr-sides" }, [planeOf(shown), curveOf(shown)]),
    make("p", { class: "itr-small" }, `The two main directions of the last step, which hold `
      + `${Math.round(100 * shown.all.share)} % of the spread of these vectors; the rest of the `
      + "movement is not seen."));
}
