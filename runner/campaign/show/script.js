"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const search = at("search"), state = at("state"), found = at("found"), table = at("rows").firstElementChild, body = table.tBodies[0];
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

  const sort = (i, down) => {
    const order = rows.map((row) => [row.cells[i].textContent, row]);
    order.sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }) * (down ? -1 : 1));
    body.append(...order.map(([, row]) => row));
  };
  const heads = Array.from(table.tHead.rows[0].cells);
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
