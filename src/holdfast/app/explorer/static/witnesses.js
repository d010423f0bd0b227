// Rows that prove a change.

import { el, number, text, value } from "./dom.js";

/** A table for each group of rows that proves a change: the columns that it is about first, and where a row came
from where that is known. */
export const witnesses = ({ witnesses: groups, dependency }) => groups.map((rows) => witnessed(rows, dependency));

function witnessed(rows, dependency) {
  const about = new Set(columnsOf(dependency));
  const all = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const names = [...all.filter((n) => about.has(n)), ...all.filter((n) => !about.has(n))];
  const head = names.map((n) => el("th", { scope: "col", class: about.has(n) ? "about" : null }, text(n, "name", 40)));
  const line = (row) => el(
    "tr",
    { class: row.new ? "new" : null },
    el("td", { class: "origin" }, origin(row)),
    ...names.map((n) => el("td", { class: about.has(n) ? "about" : null }, value(row.values[n]))),
  );
  const table = el(
    "table",
    { class: "sample" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "row" }), ...head)),
    el("tbody", {}, ...rows.map(line)),
  );
  return el("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Rows that show it" }, table);
}

function origin({ row, new: isNew, position }) {
  if (isNew) return el("span", { class: "flag brought", text: `row ${number(position)} of the batch`, title: `Row ${row}: the batch brought it` });
  return el("span", { class: "aside", text: `row ${row}`, title: isNew === undefined ? null : "It was there before" });
}

function columnsOf(d) {
  if (d.kind === "fd") return [...d.lhs, d.rhs];
  if (d.kind === "ind") return d.dependent.columns;
  if (d.kind === "dc") return d.predicates.flatMap((p) => [p.left, p.right]);
  if (d.kind === "row") return [d.left, d.right];
  return d.columns ?? [];
}
