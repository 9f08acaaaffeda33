// Search: the query, and next to it what each model finds, best first.

const MARKS = { true: ["✓", "match"], false: ["✗", "no match"], null: ["", ""] };

function scoreOf(hit) {
  if (hit.hub) return `among the first ten of ${hit.score} queries`;
  const relevance = hit.relevance === null ? "" : `, relevance ${fixed(hit.relevance, 2)}`;
  return `score ${fixed(hit.score, 2)}${relevance}`;
}

function hitOf(hit, side, send) {
  const [mark, spoken] = MARKS[hit.match];
  const said = `${hit.rank}. ${spoken} ${hit.text || hit.id}, ${scoreOf(hit)}`;
  return make("li", { class: `itr-hit ${hit.match ? "itr-right" : ""}` },
    make("button", { type: "button", "data-key": `hit-${side}-${hit.rank}`,
      "aria-label": `${said}: ask with this`, title: "Ask with this",
      onclick: () => send("take", { index: hit.index }) }, [
      hit.picture ? make("img", { src: hit.picture, alt: hit.text }) : null,
      make("span", {}, [make("b", {}, `${hit.rank} ${mark} `),
        hit.picture ? make("span", { style: "display:inline-block" }, hit.id) : hit.text]),
      make("span", { class: "itr-small" }, scoreOf(hit))]));
}

function sideOf(side, place, send) {
  const match = side.match === null ? side.refusal || "no match is known"
    : `match at rank ${side.match.toLocaleString("en")}`;
  return make("div", { class: "itr-side" }, [
    make("h4", {}, `${side.name}: ${side.hits[0]?.hub ? "found most often" : match}`),
    make("ol", { class: "itr-hits" }, side.hits.map((hit) => hitOf(hit, place, send)))]);
}

function draw(stage, shown, send) {
  const asked = shown.query;
  stage.replaceChildren(
    make("div", { class: "itr-query" }, [
      make("span", { class: "itr-small" }, "Query"),
      asked.picture ? make("img", { src: asked.picture, alt: `the query: ${asked.text}` }) : null,
      make("p", {}, asked.picture ? asked.text : `“${asked.text}”`)]),
    make("div", { class: "itr-sides" }, shown.sides.map((side, i) => sideOf(side, i, send))));
}
