"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  const store = (theme) => { try { localStorage.setItem("m3impute-theme", theme); } catch { /* a page without storage */ } };
  try { const kept = localStorage.getItem("m3impute-theme"); if (kept) root.dataset.theme = kept; } catch { /* likewise */ }
  button.hidden = false;
  label();
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    store(root.dataset.theme);
    label();
  });

  const order = (row, at) => {
    const cell = row.cells[at];
    const given = cell.dataset.by ?? cell.textContent.trim();
    const number = Number.parseFloat(given.replaceAll(",", ""));
    return { text: given, number: Number.isNaN(number) ? Infinity : number };
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (!head.textContent.trim() || head.dataset.fixed !== undefined) return;
      const sorter = document.createElement("button");
      sorter.type = "button";
      sorter.className = "sorter";
      sorter.append(...head.childNodes);
      head.append(sorter);
      sorter.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const text = head.dataset.text !== undefined;
        const rows = [...table.tBodies[0].rows].map((row) => ({ row, ...order(row, at) }));
        rows.sort((a, b) => text || a.number === b.number ? a.text.localeCompare(b.text) : a.number - b.number);
        if (down) rows.reverse();
        table.tBodies[0].append(...rows.map((r) => r.row));
      });
    });
  }
})();
