// Waiting: a line for each run, how far it is, and why it is not here.

function draw(stage, shown) {
  const line = (run) => make("tr", {}, [make("th", { scope: "row" }, run.name),
    make("td", {}, make("progress", { max: run.epochs, value: run.done,
      "aria-label": `epochs of ${run.name} that are done` })),
    make("td", {}, run.says)]);
  stage.replaceChildren(make("table", {}, make("tbody", {}, shown.runs.map(line))));
}
