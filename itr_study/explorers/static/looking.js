// Where does it look: the words of a text, and over the picture the map of the one pointed at.

const HINT = "Point at a word, or go to one with Tab. All maps have one colour scale.";

// The frames of regions, each with its number on paper of its own: a map may have any colour.
function boxesOf(shown) {
  const [wide, high] = shown.size;
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high,
    "aria-hidden": "true", style: "position:absolute;inset:0" });
  const numbers = shown.boxes.map(([region, left, top, right, bottom]) => {
    node.append(svg("rect", { x: left * wide, y: top * high, width: (right - left) * wide,
      height: (bottom - top) * high, fill: "none", stroke: "#222", "stroke-width": 1.2 }));
    const whole = right - left > 0.99 && bottom - top > 0.99;
    const at = whole ? "right:2px;bottom:2px" : `left:${left * wide + 2}px;top:${top * high + 2}px`;
    return make("span", { "aria-hidden": "true", style: `position:absolute;${at};padding:0 3px;`
      + "font-size:12px;line-height:14px;color:#222;background:#fff" }, String(region));
  });
  return [node, ...numbers];
}

function listOf(row) {
  const most = Math.max(...row.largest.map((one) => one.share), 1e-9);
  const line = (region, weight, share) => make("tr", {}, [
    make("th", { scope: "row" }, region), make("td", {}, weight),
    make("td", { "aria-hidden": "true" }, make("span", { style: "display:inline-block;"
      + `height:10px;background:var(--itr-ink);width:${50 * share / most}px` }))]);
  const rest = row.rest.replace(/[0.−]/g, "") ? line("all others", row.rest, 0) : null;
  return make("table", {}, [make("caption", {}, `Weights of ${row.name}`),
    make("tbody", {}, [...row.largest.map((one) => line(one.region, one.weight, one.share)),
      rest])]);
}

function draw(stage, shown, send) {
  const [wide, high] = shown.size, place = "position:absolute;inset:0;width:100%;height:100%";
  const heat = make("img", { style: place, alt: "" });
  const list = make("div", { style: "flex:1 1 180px" });
  const buttons = shown.rows.map((row, index) => make("button", { type: "button",
    "data-key": `row-${index}`, "aria-pressed": String(index === shown.row),
    // not pointerenter: a pointer at rest would take the map from who goes on with keys
    onpointermove: () => show(index), onpointerleave: () => show(shown.row),
    onfocus: () => choose(index), onclick: () => choose(index) }, row.name));
  const show = (index) => {
    const row = shown.rows[index];
    heat.src = row.heat;
    heat.alt = `${shown.said}. ${row.name}: most at ${row.largest[0].region}`;
    list.replaceChildren(listOf(row));
    buttons.forEach((button, other) => {
      button.style.boxShadow = other === index ? "inset 0 -4px var(--itr-ink)" : "none";
    });
  };
  const choose = (index) => {
    show(index);
    if (index !== shown.row) send("point", { index });
  };
  const size = `flex:none;width:${wide}px;height:${high}px`;
  const picture = make("div", { style: `position:relative;overflow:hidden;${size}` }, [heat,
    ...boxesOf(shown)]);
  const plain = make("img", { src: shown.picture, alt: `${shown.said}: the picture itself`,
    style: size });
  stage.replaceChildren(
    make("p", { class: "itr-hint" }, HINT),
    make("div", { class: "itr-query" }, [make("span", { class: "itr-small" }, shown.said),
      make("div", { role: "group", "aria-label": `The text: ${shown.text}`,
        style: "display:flex;flex-wrap:wrap;gap:6px;margin:4px 0" }, buttons)]),
    make("div", { class: "itr-sides" }, [plain, picture, list]), scaleOf(shown.scale),
    make("p", { class: "itr-small" }, `Numbers: ${shown.means}.`));
  if (shown.ranks.length) stage.append(make("p", { class: "itr-small" },
    `Of a feature's values by size count: ${shown.ranks.join(", ")} …`));
  show(shown.row);
}
