// What a table refers to and what refers to it, what is relied on, and what of all that is broken.

import { actions } from "./actions.js";
import { bar, el, hint, number, plural, share, text, values } from "./dom.js";
import { link, since } from "./dependencies.js";
import { format } from "./route.js";

const FIRST = 12;

/** What is broken now: pins that do not hold, foreign keys that miss values. */
export function broken(page, { pins: all, references: { out, into }, name }) {
  const lost = [...out, ...into].filter((r) => r.missing_values);
  const items = [
    ...all.filter((p) => !p.holds).map((p) => alarm(p.severity, "Pinned", p, name, [p.counted, p.reason])),
    ...lost.filter((r) => r.role !== "pinned").map((r) => alarm("error", "Foreign key", r, name, [missing(r)])),
  ];
  if (!items.length) return [];
  return [el("ul", { class: "breakages", "aria-label": "Broken now" }, ...items)];
}

function alarm(severity, what, d, name, words) {
  return el(
    "li",
    { class: severity },
    el("span", { class: `event ${severity === "error" ? "broke" : "beyond"}`, text: `${what} broken` }),
    link(d, d.table ?? name),
    el("span", { class: "aside", text: words.filter(Boolean).join(" · ") }),
  );
}

const missing = (r) => {
  const rows = r.missing_rows ? ` in ${plural(r.missing_rows, "row")}` : "";
  return `${values(r.missing_values, r.dependent.columns)} missing${rows}`;
};

/** References of a table and to it; `all` shows the list of all inclusions. */
export function references(page, { references: lists, name, kinds }, all) {
  if (!kinds.includes("ind")) return hint("Inclusions are not tracked here: track the table with --kinds ucc,ind to see them.");
  const listed = (title, key, empty) => {
    const list = lists[key];
    const more = lists[`n_${key}`] - Math.min(FIRST, list.length);
    const button = el("button", { type: "button", class: "inline", text: "List all inclusions", on: { click: all } });
    const chance = lists[`n_chance_${key}`];
    const rest = `${plural(more, "more inclusion")}${chance ? `, ${number(chance)} by chance, it seems` : ""}. `;
    const row = (r) => {
      const far = key === "out" ? r.referenced.table : r.dependent.table;
      const numbers = [r.missing_values ? el("span", { class: "bad", text: missing(r) }) : meter(r), since(r), link(r, r.dependent.table, "details"), actions(page, r)];
      return reference(r, key, far === name ? null : format({ tab: "table", name: far }), ...numbers);
    };
    return side(
      title,
      key,
      list.length ? el("ul", {}, ...list.slice(0, FIRST).map(row)) : hint(empty),
      more > 0 ? el("p", { class: "rest" }, rest, button) : null,
    );
  };
  return sides(
    listed("Refers to", "out", "It refers to no other table."),
    listed("Referred to by", "into", "No other table refers to it."),
  );
}

/** What a table refers to beside what refers to it. */
export const sides = (out, into) => el("div", { class: "sides-of-table" }, out, into);
export const side = (title, key, ...nodes) => el("div", {}, el("h4", { class: key, text: title }), ...nodes);

/** A reference, "out" of the table or "into" it: its columns, those of the other table, whose address is given (null:
it is the same table), and what else there is to say. */
export function reference(r, key, address, ...numbers) {
  const [near, far] = key === "out" ? [r.dependent, r.referenced] : [r.referenced, r.dependent];
  const chosen = r.role === "foreign key" || r.role === "pinned";
  const there = address === null
    ? el("span", { class: "aside", text: "itself" }) : el("a", { class: "to", href: address }, text(far.table, "name", 60));
  return el(
    "li",
    { class: `reference${r.missing_values ? " lost" : ""}${chosen ? " chosen" : ""}` },
    el(
      "p",
      {},
      chosen ? el("span", { class: "flag refers", text: r.role === "pinned" ? "pinned" : "FK" }) : null,
      text(near.columns.join(", "), "name", 80),
      el("span", { class: `sign ${key}`, text: key === "out" ? "→" : "←", "aria-hidden": "true" }),
      there,
      el("span", { class: "aside" }, ".", text(far.columns.join(", "), "name", 80)),
    ),
    el("p", { class: "numbers" }, ...numbers),
  );
}

export function meter(r) {
  if (typeof r.coverage !== "number") return null;
  return el(
    "span", { class: "meter", title: "Of the values of the referenced column so many occur" },
    bar(r.coverage), `covers ${share(r.coverage)}`,
  );
}

/** What is pinned, on which terms, and whether it holds. */
export function pins(page, { pins: all, n_pins: n, name }) {
  if (!all.length) return hint("Nothing is pinned. Rely on something with: holdfast pin TABLE COLUMNS.");
  const row = (p) => el(
    "tr",
    { class: p.holds ? null : "lost" },
    el("td", {}, el("span", { class: `event ${p.holds ? "appeared" : p.severity === "error" ? "broke" : "beyond"}`, text: p.holds ? "holds" : "broken" })),
    el("td", {}, link({ ...p, kind: p.kind }, name)),
    el("td", { class: "aside", text: terms(p) }),
    el("td", {}, actions(page, p)),
  );
  return el(
    "div",
    {},
    el("table", { class: "plain pins" }, el("tbody", {}, ...all.map(row))),
    n > all.length ? hint(`The first ${number(all.length)} of ${number(n)}: see all with holdfast pins.`) : null,
  );
}

function terms(p) {
  const parts = [p.severity];
  if (p.at_most !== null && p.at_most !== undefined) parts.push(`at most ${p.at_most}`);
  if (p.counted) parts.push(p.counted);
  if (p.owner) parts.push(`owner ${p.owner}`);
  if (p.reason) parts.push(p.reason);
  return parts.join(" · ");
}
