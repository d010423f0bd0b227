// What was done to a table, version by version, and what that changed.

import { el, hint, number, paged, plural, text, value } from "./dom.js";

const FIRST = 5;
const EVENTS = {
  broke: "broke", appeared: "appeared", implied: "implied by another", within: "within the error now",
  beyond: "beyond the error", dropped: "dropped",
};

/** The history of a table: the newest versions first, each opened to what it changed. */
export function history(entries, table) {
  if (!entries.length) return hint("Nothing was done to it yet.");
  return paged(entries, (e) => entry(e, table), el("ol", { class: "history" }), FIRST);
}

/** A version in the history of a table: what was done to it, or to others by name, and what that changed. */
function entry(e, table) {
  const rows = e.tables.map((t) => {
    const moved = t.n_inserted !== undefined ? `+${number(t.n_inserted)} −${number(t.n_deleted)}` : "";
    const now = t.n_rows !== undefined ? `now ${plural(t.n_rows, "row")}` : "";
    const words = [moved, now].filter(Boolean).join(", ");
    return t.table === table ? words : `${t.table}${words ? `: ${words}` : ""}`;
  }).filter(Boolean);
  const counts = new Map();
  for (const { change: event } of e.changes) counts.set(event, (counts.get(event) ?? 0) + 1);
  const head = el(
    "summary",
    {},
    el("strong", { text: `Version ${number(e.version)}` }),
    el("span", { class: "action", text: e.action }),
    e.batch_id ? el("span", {}, "batch ", text(e.batch_id, "name", 60)) : null,
    el("span", { class: "aside", text: rows.join("; ") }),
    ...[...counts].map(([event, n]) => badge(event, ` ${number(n)}`)),
    el("time", { text: when(e.at) }),
  );
  const unlisted = (e.n_changes ?? 0) - e.changes.length;
  const details = el("details", { id: `version-${e.version}` }, head);
  // Made when it is opened: a version may have changed very much.
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const list = paged(e.changes, change, el("ul", { class: "changes" }));
    details.append(e.changes.length ? list : hint("What holds did not change."));
    if (unlisted > 0) details.append(hint(`and ${plural(unlisted, "more change")}`));
  });
  return el("li", {}, details);
}

function badge(event, more = "") {
  return el("span", { class: `event ${event}`, text: `${EVENTS[event] ?? event}${more}` });
}

function change(c) {
  return el(
    "li",
    {},
    badge(c.change),
    text(c.text, "code", 2000),
    c.reason ? el("span", { class: "aside", text: c.reason }) : null,
    ...c.witnesses.map(witnesses),
  );
}

/** Rows that prove a change, as a table. */
function witnesses(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  const head = names.map((n) => el("th", { scope: "col" }, text(n, "name", 40)));
  const line = (row) => el(
    "tr",
    {},
    el("td", { class: "aside", text: row.row }),
    ...names.map((n) => el("td", {}, value(row.values[n]))),
  );
  const table = el(
    "table",
    { class: "sample" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "row" }), ...head)),
    el("tbody", {}, ...rows.map(line)),
  );
  return el("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Rows that show it" }, table);
}

/** A time as "2026-11-18 20:15:00 UTC". */
export function when(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
