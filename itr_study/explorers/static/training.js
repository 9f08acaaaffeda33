// Training: the curves of a run so far, a panel each; the best value is a star.

const WIDE = 400, HIGH = 250, LEFT = 54, FOOT = 40, TOP = 24, MARGIN = 16;

function between(ticks, from, to) { // from a value to its place on an axis with these ends
  const least = ticks[0][0], most = ticks[ticks.length - 1][0];
  return (value) => from + (value - least) / (most - least) * (to - from);
}

function panelOf(panel, shown) {
  const x = between(shown.ticks, LEFT, WIDE - MARGIN);
  const y = panel.ticks.length ? between(panel.ticks, HIGH - FOOT, TOP) : null;
  const node = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, role: "img",
    "aria-label": `${panel.label}: ${panel.says}` });
  for (const [at, text] of shown.ticks) node.append(
    svg("line", { class: "rule", x1: x(at), x2: x(at), y1: y ? TOP : HIGH - FOOT - 5,
      y2: HIGH - FOOT }),
    svg("text", { class: "faint", x: x(at), y: HIGH - FOOT + 16, "text-anchor": "middle" }, text));
  for (const [at, text] of panel.ticks) node.append(
    svg("line", { class: "rule", x1: LEFT, x2: WIDE - MARGIN, y1: y(at), y2: y(at) }),
    svg("text", { class: "faint", x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, text));
  node.append(svg("text", { x: LEFT, y: 14 }, `${panel.label} (${panel.unit})`),
    svg("text", { class: "faint", x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" },
      "epoch"));
  if (!panel.points.length) {
    node.append(svg("line", { class: "rule", x1: LEFT, x2: WIDE - MARGIN, y1: HIGH - FOOT,
      y2: HIGH - FOOT }), svg("text", { class: "faint", x: (LEFT + WIDE - MARGIN) / 2,
      y: (TOP + HIGH - FOOT) / 2, "text-anchor": "middle" }, panel.says));
    return node;
  }
  const places = panel.points.map(([epoch, value]) => `${x(epoch)},${y(value)}`);
  node.append(svg("polyline", { points: places.join(" "), fill: "none", stroke: "var(--itr-ink)",
    "stroke-width": 2 }));
  if (panel.points.length <= 60) for (const [epoch, value] of panel.points)
    node.append(svg("circle", { cx: x(epoch), cy: y(value), r: 2.5, fill: "var(--itr-ink)" },
      svg("title", {}, `epoch ${epoch}: ${value.toPrecision(5)}`)));
  if (panel.best) node.append(svg("text", { x: x(panel.best[0]), y: y(panel.best[1]) + 6,
    "text-anchor": "middle", style: "font-size:20px;fill:var(--itr-up)" }, "★"));
  return node;
}

function draw(stage, shown) {
  stage.replaceChildren(
    make("p", {}, [make("label", {}, [`${shown.done} of ${shown.epochs} epochs `,
      make("progress", { max: shown.epochs, value: shown.done, style: "width:16em" })]),
    "  ★ highest RSUM on dev, lowest loss"]),
    make("div", { style: "display:flex;flex-wrap:wrap;gap:12px" },
      shown.panels.map((panel) => panelOf(panel, shown))));
}
