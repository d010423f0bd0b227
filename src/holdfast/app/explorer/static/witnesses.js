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

function origin({ row, new: isNew, position, origin: from }) {
  if (isNew) {
    const place = position === null ? "new in the batch" : `row ${number(position)} of the batch`;
    return el("span", { class: "flag brought", text: place, title: `Row ${row}: the batch brought it` });
  }
  return el("span", { class: "aside", title: isNew === undefined ? null : "It was there before" }, came(row, from));
}

/** Where a row came from: the batch, or else the version, and its place there; its id is in the title, or stands for
what is not known. */
export function came(row, from) {
  if (!from || from.version === null) return el("span", { text: `row ${row}` });
  const batch = from.batch_id === null ? [`version ${number(from.version)}`] : ["batch ", text(from.batch_id, "name", 30)];
  const place = from.position === null ? "" : `, row ${number(from.position)}`;
  const title = `Row ${row}: inserted by version ${number(from.version)}${from.position === null ? "" : `, as row ${number(from.position)} of what it inserted`}`;
  return el("span", { title }, ...batch, place);
}

function columnsOf(d) {
  if (d.kind === "fd") return [...d.lhs, d.rhs];
  if (d.kind === "ind") return d.dependent.columns;
  if (d.kind === "dc") return d.predicates.flatMap((p) => [p.left, p.right]);
  if (d.kind === "row") return [d.left, d.right];
  return d.columns ?? [];
}
