// What was done to a table, version by version, and what that changed.

import { el, hint, number, paged, plural, shownIn, text } from "./dom.js";
import { exactly } from "./times.js";
import { EVENTS } from "./versions.js";
import { witnesses } from "./witnesses.js";

const FIRST = 5;

/** The history of a table: the newest versions first, each opened to what it changed. As many as there are in `body`,
where it was shown before, and opened are those that are open there. */
export function history(entries, table, body) {
  if (!entries.length) return hint("Nothing was done to it yet.");
  const open = new Set([...body.querySelectorAll("details[open]")].map(({ id }) => id));
  const row = (e) => entry(e, table, open);
  return paged(entries, row, el("ol", { class: "history" }), Math.max(FIRST, shownIn(body)));
}

/** A version in the history of a table: what was done to it, or to others by name, and what that changed. */
function entry(e, table, open) {
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
    el("time", { text: exactly(e.at) }),
  );
  const unlisted = (e.n_changes ?? 0) - e.changes.length;
  const details = el("details", { id: `version-${e.version}` }, head);
  // Made when it is opened: a version may have changed very much.
  const unfold = () => {
    if (!details.open || details.children.length > 1) return;
    const list = paged(e.changes, change, el("ul", { class: "changes" }));
    details.append(e.changes.length ? list : hint("What holds did not change."));
    if (unlisted > 0) details.append(hint(`and ${plural(unlisted, "more change")}`));
  };
  details.addEventListener("toggle", unfold);
  details.open = open.has(details.id);
  unfold();
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
    ...witnesses(c),
  );
}
