// The second tab: what holds in each tracked table, and how it came about.

import { get, Latest } from "./api.js";
import { byId, el, failure, fill, loading, notice, number, paged, plural, share, text, value } from "./dom.js";
import { dependencyText, EVENTS, KINDS, rowName } from "./dependencies.js";
import { format } from "./route.js";

const FIRST = 12; // of each kind, so that the history is not far below

export class Tracked {
  constructor() {
    this.latest = new Latest();
    this.shown = null;
  }

  /** The list of tables, and one of them; `summary.workspace` may have none. */
  async show({ version, tables }, name) {
    const list = byId("tracked-list");
    const sheet = byId("tracked-table");
    if (!tables.length) {
      fill(list);
      fill(sheet, notice("No tracked table", "Track one with: holdfast track NAME FILE. Its keys, dependencies and rules are listed here, with their history."));
      this.shown = null;
      return;
    }
    const current = name ?? tables[0].name;
    fill(
      list,
      el("h2", {}, "Tracked tables ", el("span", { class: "count", text: number(tables.length) })),
      paged(tables, (t) => el("li", {}, el(
        "a",
        { href: format({ tab: "tracked", name: t.name }), class: "row", "aria-current": t.name === current ? "true" : null },
        text(t.name, "name", 60),
        el("span", { class: "count", text: number(t.n_rows), title: plural(t.n_rows, "row") }),
      ))),
      el("p", { class: "hint", text: `Version ${number(version)} of the workspace.` }),
    );
    if (this.shown === current) return;
    this.shown = current;
    const table = tables.find((t) => t.name === current);
    if (table === undefined) {
      fill(sheet, notice("No such table", `No table of that name is tracked in this workspace: ${current}`, "error"));
      return;
    }
    await this.#table(sheet, table);
  }

  async #table(sheet, table) {
    const signal = this.latest.next();
    const parts = table.kinds.filter((kind) => kind in KINDS).map((kind) => ({ kind, node: el("section", {}, loading(KINDS[kind][0])) }));
    const history = el("section", {}, loading("History"));
    fill(
      sheet,
      el("div", { class: "head" }, el("h2", {}, text(table.name, "name", 200)), el("p", { class: "facts", text: plural(table.n_rows, "row") })),
      ...parts.map((part) => part.node),
      history,
    );
    sheet.scrollTop = 0;
    const load = async (node, title, ask) => {
      try {
        const nodes = await ask();
        if (!signal.aborted) fill(node, ...nodes);
      } catch (error) {
        if (error.name !== "AbortError") fill(node, el("h3", { text: title }), failure("It cannot be shown", error));
      }
    };
    await Promise.all([
      ...parts.map(({ kind, node }) => load(node, KINDS[kind][0], async () => this.#dependencies(
        kind, await get("workspace/dependencies", { table: table.name, kind }, { signal }),
      ))),
      load(history, "History", async () => this.#history(
        (await get("workspace/log", { table: table.name }, { signal, exact: true })).entries,
      )),
    ]);
  }

  #dependencies(kind, { n, dependencies }) {
    const [title, noun] = KINDS[kind];
    const head = el("h3", {}, `${title} `, el("span", { class: "count", text: number(n) }));
    if (!dependencies.length) return [head, el("p", { class: "hint", text: `No ${noun} holds.` })];
    const anyNote = dependencies.some((d) => note(d));
    const table = el("table", { class: "plain" }, el("tbody"));
    const list = paged(
      dependencies,
      (d) => el("tr", {}, el("td", {}, text(d.text ?? dependencyText(d), "code", 2000)), anyNote ? el("td", { class: "aside", text: note(d) }) : null),
      table,
      FIRST,
    );
    const rest = n > dependencies.length ? el("p", { class: "hint", text: `The first ${number(dependencies.length)} are listed; see all with: holdfast show --kind ${kind}` }) : null;
    return [head, list, rest];
  }

  #history(entries) {
    const head = el("h3", { text: "History" });
    if (!entries.length) return [head, el("p", { class: "hint", text: "Nothing was done to it yet." })];
    return [head, paged(entries, entry, el("ol", { class: "history" }))];
  }
}

/** What is worth saying of a dependency beyond its text. */
function note(d) {
  const told = [];
  if (d.sentence) told.push(d.sentence);
  if (d.kind === "ind" && typeof d.coverage === "number") told.push(`covers ${share(d.coverage)}`);
  if (d.error) told.push(`error ${share(d.error)}`);
  if (d.missing_values) told.push(`${plural(d.missing_values, "value")} missing`);
  if (d.n_exceptions) told.push(plural(d.n_exceptions, "exception"));
  if (d.pinned) told.push("pinned");
  return told.join(" · ");
}

/** A version: what was done, and what that changed. */
function entry(e) {
  const rows = e.tables.map((t) => {
    const moved = t.n_inserted !== undefined ? `+${number(t.n_inserted)} −${number(t.n_deleted)}` : "";
    const now = t.n_rows !== undefined ? `now ${plural(t.n_rows, "row")}` : "";
    const words = [moved, now].filter(Boolean).join(", ");
    return e.tables.length > 1 ? `${t.table}${words ? `: ${words}` : ""}` : words;
  }).filter(Boolean);
  const byEvent = Map.groupBy ? Map.groupBy(e.changes, (c) => c.change) : grouped(e.changes);
  const counts = [...byEvent].map(([event, changes]) => el("span", { class: `event ${event}`, text: `${EVENTS[event] ?? event} ${number(changes.length)}` }));
  const head = el(
    "summary",
    {},
    el("strong", { text: `Version ${number(e.version)}` }),
    el("span", { class: "action", text: e.action }),
    e.batch_id ? el("span", {}, "batch ", text(e.batch_id, "name", 60)) : null,
    el("span", { class: "aside", text: rows.join("; ") }),
    ...counts,
    el("time", { text: when(e.at) }),
  );
  const unlisted = (e.n_changes ?? 0) - e.changes.length;
  const body = e.changes.length ? paged(e.changes, change, el("ul", { class: "changes" })) : el("p", { class: "hint", text: "What holds did not change." });
  return el("li", {}, el("details", { open: e.changes.length > 0 && e.changes.length <= 6 && e.action !== "track" }, head, body, unlisted > 0 ? el("p", { class: "hint", text: `and ${plural(unlisted, "more change")}` }) : null));
}

function grouped(changes) {
  const found = new Map();
  for (const c of changes) found.set(c.change, [...(found.get(c.change) ?? []), c]);
  return found;
}

function change(c) {
  return el(
    "li",
    {},
    el("span", { class: `event ${c.change}`, text: EVENTS[c.change] ?? c.change }),
    text(c.text ?? dependencyText(c.dependency), "code", 2000),
    c.reason ? el("span", { class: "aside", text: c.reason.replace(/:$/, "") }) : null,
    ...c.witnesses.map(witnesses),
  );
}

/** Rows that prove a change, as a table; the columns in question come first. */
function witnesses(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.values)))];
  return el("div", { class: "frame", tabindex: 0, role: "region", "aria-label": "Rows that show it" }, el(
    "table",
    { class: "sample" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "row" }), ...names.map((n) => el("th", { scope: "col" }, text(n, "name", 40))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, el("td", { class: "aside", text: rowName(row.row) }), ...names.map((n) => el("td", {}, value(row.values[n])))))),
  ));
}

function when(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
