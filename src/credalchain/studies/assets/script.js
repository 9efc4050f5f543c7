// Sorting and filtering of tables. Without this script they are plain tables.
"use strict";

// 12, -1.5, 1e+06, 80 %, < 0.001, 61.4 ± 0.8
const NUMBER = /^(?:<\s*)?([-−+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?:\s*±\s*\d+(?:\.\d+)?)?(?:\s*%)?$/i;

function textOf(cell) {
  return cell === undefined ? "" : (cell.dataset.v ?? cell.textContent).trim();
}

function numberOf(text) {
  const found = NUMBER.exec(text);
  return found ? Number(found[1].replace("−", "-")) : NaN;
}

function sortBy(table, column, ascending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, text: textOf(row.cells[column]) }));
  const filled = rows.filter((one) => one.text !== "");
  const empty = rows.filter((one) => one.text === "");
  const isNumeric = filled.every((one) => !Number.isNaN(numberOf(one.text)));
  const names = new Intl.Collator("en", { numeric: true });
  filled.sort((a, b) => {
    const order = isNumeric ? numberOf(a.text) - numberOf(b.text) : names.compare(a.text, b.text);
    return ascending ? order : -order;
  });
  body.append(...[...filled, ...empty].map((one) => one.row));
}

function makeSortable(table) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const ascending = header.getAttribute("aria-sort") !== "ascending";
      headers.forEach((one) => one.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortBy(table, column, ascending);
    });
  });
}

function makeFilterable(table, bar) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("Rows that contain ", input);
  bar.append(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  makeSortable(table);
  const bar = table.closest("section, details").querySelector(".bar");
  if (bar !== null && table.tBodies[0].rows.length > 12) {
    makeFilterable(table, bar);
  }
}
