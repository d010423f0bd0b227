// The first rows of a table of the lake.

import { el, hint, notice, number, plural, text, value } from "./dom.js";

const MOST_COLUMNS = 60;

/** How many rows there are of how many, where these are not all. */
export const extent = ({ rows, n_rows: n }) => (n > rows.length ? `first ${number(rows.length)} of ${number(n)}` : "");

export function firstRows({ columns, rows }) {
  if (!rows.length || !columns.length) return [notice("No rows", "")];
  const shown = columns.slice(0, MOST_COLUMNS);
  const table = el(
    "table",
    { class: "sample" },
    el("thead", {}, el("tr", {}, ...shown.map((c) => el("th", { scope: "col" }, text(c.name, "name", 40))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...shown.map((_, i) => el("td", {}, value(row[i])))))),
  );
  const more = columns.length - shown.length;
  return [
    el("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Sample rows" }, table),
    more > 0 ? hint(`and ${plural(more, "column")} more`) : null,
  ];
}
