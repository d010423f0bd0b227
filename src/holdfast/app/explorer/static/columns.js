// The columns of a table: what is known of their values, and what marks them.

import { el, number, paged, share, text, value } from "./dom.js";

const FIRST = 16;
const LEAST = 0.01; // share of the rows, from which on the most frequent value is worth a word
const VALUES = 3;

/** A table of the columns; a click on one calls `choose` with its name. */
export function columns({ columns: all, n_rows: nRows }, choose) {
  const profiled = all.some((c) => c.n_nulls !== undefined);
  const titles = ["Column", "Type", "Distinct", ...(profiled ? ["NULL", "From", "To", "Values"] : [])];
  const numbers = ["Distinct", "NULL"];
  const head = titles.map((title) => el("th", {
    scope: "col", class: `at-${title.toLowerCase()}${numbers.includes(title) ? " number" : ""}`, text: title,
  }));
  const table = el(
    "table", { class: "facts-of-columns" }, el("thead", {}, el("tr", {}, ...head)), el("tbody"),
  );
  const row = (c) => el(
    "tr",
    {},
    el("th", { scope: "row" }, el("div", { class: "named" }, pick(c, choose), ...marks(c))),
    el("td", { class: "at-type aside", text: c.type }),
    el("td", { class: "at-distinct number" }, ...distinct(c, nRows)),
    ...(profiled ? profile(c, nRows) : []),
  );
  const rest = profiled ? null : el("p", {
    class: "hint", text: "NULLs, extremes and values are known of tables that are tracked with --kinds ucc,profile.",
  });
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "What is known of the columns" }, paged(all, row, table, FIRST), rest);
}

function pick(c, choose) {
  return el(
    "button",
    {
      type: "button", class: "column", value: c.name, "aria-pressed": "false",
      title: "Lists only what this column takes part in", on: { click: () => choose(c.name) },
    },
    text(c.name, "name", 60),
  );
}

function marks(c) {
  const flag = (kind, words, title) => el("span", { class: `flag ${kind}`, text: words, title });
  return [
    c.is_primary ? flag("primary", "PK", "In the primary key") : null,
    c.is_unique && !c.is_primary ? flag("unique", "UQ", "Unique") : null,
    c.refers_to.length ? flag("refers", "FK", `Refers to ${c.refers_to.join(", ")}`) : null,
  ];
}

/** How many values there are, and which share of the rows that is. */
function distinct(c, nRows) {
  const bar = el("span", { class: "fill" });
  bar.style.width = `${nRows ? Math.min(100, 100 * c.n_distinct / nRows) : 0}%`;
  const words = `${c.is_estimate ? "≤ " : ""}${number(c.n_distinct)}`;
  return [el("span", { text: words }), el("span", { class: "track", "aria-hidden": "true" }, bar)];
}

function profile(c, nRows) {
  const nulls = c.n_nulls ?? null;
  return [
    el("td", { class: `at-null number${nulls ? "" : " aside"}`, title: nulls === null ? null : `${number(nulls)} of ${number(nRows)} rows` },
      nulls === null ? "" : nulls ? share(nulls / nRows) : "none"),
    el("td", { class: "at-from" }, extreme(c.low)),
    el("td", { class: "at-to" }, extreme(c.high)),
    el("td", { class: "at-values" }, ...values(c, nRows)),
  ];
}

const extreme = (v) => (v === null || v === undefined ? el("span", { class: "aside", text: "–" }) : value(v));

/** The top values, or patterns where there are few of these, and lengths of texts. */
function values(c, nRows) {
  const counted = (list, kind) => list.slice(0, VALUES).map((v) => el(
    "span", { class: `sampled ${kind}`, title: `${number(v.n_rows)} of ${number(nRows)} rows` },
    value(v.value), el("span", { class: "count", text: share(nRows ? v.n_rows / nRows : 0) }),
  ));
  const repeats = c.top?.length && c.top[0].n_rows >= LEAST * nRows && c.top[0].n_rows > 1;
  const parts = repeats ? counted(c.top, "frequent") : c.patterns?.length ? counted(c.patterns, "pattern") : [];
  if (c.lengths) {
    const { low, high } = c.lengths;
    const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
    parts.push(el("span", { class: "aside length", text: `${range} long` }));
  }
  return parts;
}
