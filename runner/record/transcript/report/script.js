"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const search = at("search"), problems = at("problems"), beside = at("beside"), found = at("found");
  const items = Array.from(at("entries").children);
  const all = found.textContent;
  at("tools").hidden = false;

  // What can be searched, in lower case; made when it is first needed.
  let texts = null;
  const index = () => texts || (texts = items.map((item) => item.textContent.toLowerCase()));

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const searched = words.length ? index() : null;
    let shown = 0;
    items.forEach((item, i) => {
      const hit = (!problems.checked || item.classList.contains("bad")) && (!searched || words.every((word) => searched[i].includes(word)));
      if (item.hidden === hit) item.hidden = !hit;
      if (hit) shown++;
    });
    found.textContent = words.length || problems.checked ? `${shown.toLocaleString("en")} of ${all}` : all;
  };
  search.addEventListener("input", filter);
  problems.addEventListener("change", filter);
  const clear = () => { search.value = ""; problems.checked = false; filter(); };

  // Enter goes to the first entry that was found and unfolds it, Escape back to all.
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") clear();
    if (event.key !== "Enter") return;
    const first = items.find((item) => !item.hidden);
    if (!first) return;
    first.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    first.scrollIntoView({ block: "center" });
    first.querySelector("a.seq").focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
    event.preventDefault();
    search.focus();
  });

  const foldAll = (open) => items.forEach((item) => {
    if (!item.hidden) item.querySelectorAll("details").forEach((fold) => { fold.open = open; });
  });
  at("unfold").addEventListener("click", () => foldAll(true));
  at("fold").addEventListener("click", () => foldAll(false));

  // Side by side, lines that stay are shown in both columns.
  const double = () => document.querySelectorAll(".diff > .keep").forEach((keep) => {
    const both = document.createElement("div"), copy = keep.cloneNode(true);
    both.className = "both";
    copy.setAttribute("aria-hidden", "true");
    keep.replaceWith(both);
    both.append(keep, copy);
  });
  beside.addEventListener("change", () => {
    if (beside.checked) double();
    document.body.classList.toggle("beside", beside.checked);
  });

  // A link shows what it leads to, whatever is filtered or folded: an event, an output, a diff.
  const show = () => {
    const target = /^#[a-z]+-?\d*$/.test(location.hash) && at(location.hash.slice(1));
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    const item = target.closest("#entries > li");
    if (item) {
      if (item.hidden) clear();
      item.querySelectorAll(":scope > .body > details").forEach((fold) => { fold.open = true; });
    }
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", show);
  show();
})();
