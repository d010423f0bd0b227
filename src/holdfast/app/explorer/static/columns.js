// The columns of a table: what is known of their values, and what marks them.

import { bar, el, number, paged, share, shownIn, text, value } from "./dom.js";

const FIRST = 16;
const LEAST = 0.01; // share of the rows, from which on the most frequent value is worth a word
const VALUES = 3;
const SAMPLES = 4;

/** A table of the columns; a click on one calls `choose` with its name, `picked` is the one that was. What is unfolded
in `body`, where it was shown before, is so again: columns, and the values of some. */
export function columns({ columns: all, n_rows: nRows }, choose, picked, body) {
  const unfolded = new Set([...body.querySelectorAll("td.unfolded")].map((cell) => pickIn(cell.parentElement).value));
  const knows = (key) => all.some((c) => c[key] !== undefined);
  const facts = {
    NULL: knows("n_nulls") && nulls, From: knows("low") && low, To: knows("high") && high, Values: (knows("top") || knows("samples")) && values,
  };
  const more = Object.entries(facts).filter(([, fact]) => fact);
  const titles = ["Column", "Type", "Distinct", ...more.map(([title]) => title)];
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
    el("th", { scope: "row" }, el("div", { class: "named" }, pick(c, choose, picked), ...marks(c))),
    el("td", { class: "at-type aside", text: c.type }),
    el("td", { class: "at-distinct number" }, ...distinct(c, nRows)),
    ...more.map(([, fact]) => fact(c, nRows, unfolded.has(c.name))),
  );
  const rest = more.length ? null : el("p", {
    class: "hint", text: "NULLs, extremes and values are known of tables that are tracked with --kinds ucc,profile.",
  });
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "What is known of the columns" }, paged(all, row, table, Math.max(FIRST, shownIn(body))), rest);
}

const pickIn = (row) => row.querySelector("button.column");

function pick(c, choose, picked) {
  return el(
    "button",
    {
      type: "button", class: "column", value: c.name, "aria-pressed": String(c.name === picked),
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
    c.is_null_like ? flag("null", "null", "All values stand for nothing, such as N/A or ?") : null,
    c.refers_to.length ? flag("refers", "FK", `Refers to ${c.refers_to.join(", ")}`) : null,
  ];
}

/** How many values there are, and which share of the rows that is. */
function distinct(c, nRows) {
  const words = `${c.is_estimate ? "≤ " : ""}${number(c.n_distinct)}`;
  return [el("span", { text: words }), bar(nRows ? c.n_distinct / nRows : 0)];
}

function nulls({ n_nulls: n = null }, nRows) {
  const title = n === null ? null : `${number(n)} of ${number(nRows)} rows`;
  return el("td", { class: `at-null number${n ? "" : " aside"}`, title }, n === null ? "" : n ? share(n / nRows) : "none");
}

const low = (c) => el("td", { class: "at-from" }, extreme(c.low));
const high = (c) => el("td", { class: "at-to" }, extreme(c.high));
const extreme = (v) => (v === null || v === undefined ? el("span", { class: "aside", text: "–" }) : value(v));
const values = (c, nRows, all) => el("td", { class: `at-values${all ? " unfolded" : ""}` }, ...typical(c, nRows, all));

/** The top values, or patterns where there are few of these, and lengths of texts; or some values. */
function typical(c, nRows, all) {
  if (c.samples !== undefined) return c.samples.slice(0, SAMPLES).map((v) => el("span", { class: "sampled" }, value(v)));
  const counted = (list, kind) => firstOf(list, all, (v) => el(
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

/** All of a list, or the first and a button that shows the others. */
function firstOf(list, all, show) {
  const rest = all ? [] : list.slice(VALUES);
  if (!rest.length) return list.map(show);
  const unfold = () => {
    more.parentElement.classList.add("unfolded");
    more.replaceWith(...rest.map(show));
  };
  const more = el("button", { type: "button", class: "inline", text: `${number(rest.length)} more`, on: { click: unfold } });
  return [...list.slice(0, VALUES).map(show), more];
}
