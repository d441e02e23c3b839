"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const search = at("search"), state = at("state"), found = at("found"), body = at("rows").tBodies[0];
  const rows = Array.from(body.rows), all = found.textContent;
  at("tools").hidden = false;

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || (state.value !== "" && row.cells[1].textContent !== state.value);
      if (!row.hidden) shown++;
    }
    found.textContent = words.length || state.value ? `${shown.toLocaleString("en")} of ${all}` : all;
  };
  search.addEventListener("input", filter);
  state.addEventListener("change", filter);

  // A column is sorted by the numbers that it states, else by its words.
  const value = (row, i) => row.cells[i].dataset.sort ?? row.cells[i].textContent;
  const sort = (i, down) => {
    const numbers = rows.length > 0 && rows[0].cells[i].dataset.sort !== undefined;
    const order = rows.map((row) => [value(row, i), row]);
    order.sort(([a], [b]) => (numbers ? a - b : a.localeCompare(b, "en")) * (down ? -1 : 1));
    body.append(...order.map(([, row]) => row));
  };
  const heads = Array.from(at("rows").tHead.rows[0].cells);
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(i, down);
    });
  });
})();
