// The table of claims: sorts by a column, keeps the rows that have a word, a paper, an outcome.
"use strict";

(() => {
  const place = document.querySelector(".ledger"), body = place.querySelector("tbody");
  const heads = [...place.querySelectorAll("th")], rows = [...body.rows];
  const tools = place.querySelector(".ledger-tools");
  const at = (name) => heads.findIndex((head) => head.textContent === name);
  const text = (row, column) => row.cells[column].textContent;
  const make = (tag, attributes, ...children) => {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  };

  const filters = [];
  const words = make("input", { type: "search", placeholder: "words, such as margin" });
  filters.push((row) => words.value.toLowerCase().split(/\s+/)
    .every((word) => row.textContent.toLowerCase().includes(word)));
  tools.append(make("label", {}, "Find ", words));
  for (const name of ["paper", "outcome", "metric"]) {
    const column = at(name), values = [...new Set(rows.map((row) => text(row, column)))].sort();
    const list = make("select", {}, make("option", { value: "" }, "all"),
      ...values.map((value) => make("option", { value }, value)));
    filters.push((row) => !list.value || text(row, column) === list.value);
    tools.append(make("label", {}, `${name} `, list));
  }
  const count = make("output", {});
  count.setAttribute("aria-live", "polite");
  tools.append(count);

  const update = () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !filters.every((keeps) => keeps(row));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  tools.addEventListener("input", update);
  update();

  // "−7.1 [−11.1, −3.1]" by its first number; a text without one by its letters, after all numbers
  const key = (cell) => {
    const number = Number.parseFloat(cell.replaceAll("−", "-").replace(/[^\d.+-].*$/, ""));
    return Number.isNaN(number) ? [1, 0, cell] : [0, number, cell];
  };
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const keys = new Map(rows.map((row) => [row, key(text(row, column))]));
      const sorted = rows.slice().sort((a, b) => {
        const [p, q] = [keys.get(a), keys.get(b)];
        return (falling ? -1 : 1) * (p[0] - q[0] || p[1] - q[1] || p[2].localeCompare(q[2]));
      });
      body.append(...sorted);
    });
  });
})();
