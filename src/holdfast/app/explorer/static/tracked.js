// The second tab: what holds in each tracked table, and how it came about.

import { actions } from "./actions.js";
import { get, Latest } from "./api.js";
import {
  byId, count, el, failure, fill, hint, loading, notice, number, paged, plural, share, text, value,
} from "./dom.js";
import { format } from "./route.js";

const FIRST = 12; // of each kind, so that the history is not far below
const EVENTS = {
  broke: "broke", appeared: "appeared", implied: "implied by another", within: "within the error now",
  beyond: "beyond the error", dropped: "dropped",
};
const capital = (words) => words[0].toUpperCase() + words.slice(1);

class TableView {
  constructor(page) {
    this.page = page;
    this.latest = new Latest();
    this.shown = null;
  }

  async follow({ name }) {
    try {
      const { workspace } = await this.page.summary;
      await this.show(workspace, name);
    } catch (error) {
      fill(byId("tracked-table"), failure("The tracked tables cannot be listed", error));
    }
  }

  /** There is a new version: the same table again, where it was scrolled to, and opened as it was. */
  async refresh() {
    const sheet = byId("tracked-table");
    const [at, open] = [sheet.scrollTop, sheet.querySelectorAll("details.muted[open]").length > 0];
    const name = this.shown;
    if (name === null) return;
    const { workspace } = await this.page.summary;
    const table = workspace.tables.find((t) => t.name === name);
    if (table === undefined || this.shown !== name) return;
    this.#tables(workspace, name);
    await this.#table(sheet, table, workspace.nouns, open);
    sheet.scrollTop = at;
  }

  /** The list of tables, and one of them; `summary.workspace` may have none. */
  async show({ version, tables, nouns }, name) {
    const list = byId("tracked-list");
    const sheet = byId("tracked-table");
    if (!tables.length) {
      fill(list);
      const how = "Track one with: holdfast track NAME FILE. Then what holds in it is listed here, with its history.";
      fill(sheet, notice("No tracked table", how));
      this.shown = null;
      return;
    }
    const current = name ?? tables[0].name;
    this.#tables({ version, tables }, current);
    if (this.shown === current) return;
    this.shown = current;
    const table = tables.find((t) => t.name === current);
    if (table === undefined) {
      fill(sheet, notice("No such table", `No table of that name is tracked in this workspace: ${current}`, "error"));
      return;
    }
    await this.#table(sheet, table, nouns);
  }

  #tables({ version, tables }, current) {
    fill(
      byId("tracked-list"),
      el("h2", {}, "Tracked tables ", count(tables.length)),
      paged(tables, (t) => listed(t, t.name === current)),
      hint(`Version ${number(version)} of the workspace.`),
    );
  }

  async #table(sheet, table, nouns, open = null) {
    const signal = this.latest.next();
    const parts = table.kinds.filter((kind) => Object.hasOwn(nouns, kind)).map((kind) => {
      const [noun, several] = nouns[kind];
      const title = capital(several);
      return { kind, noun, title, node: el("section", {}, loading(title)) };
    });
    const history = el("section", {}, loading("History"));
    const show = () => fill(
      sheet,
      el(
        "div",
        { class: "head" },
        el("h2", {}, text(table.name, "name", 200)),
        el("p", { class: "facts", text: plural(table.n_rows, "row") }),
      ),
      ...parts.map((part) => part.node),
      history,
    );
    if (open === null) {
      show();
      sheet.scrollTop = 0;
    }
    const load = async (node, title, ask) => {
      try {
        const nodes = await ask();
        if (!signal.aborted) fill(node, ...nodes);
      } catch (error) {
        if (error.name !== "AbortError") fill(node, el("h3", { text: title }), failure("It cannot be shown", error));
      }
    };
    await Promise.all([
      ...parts.map(({ kind, noun, title, node }) => load(node, title, async () => this.#dependencies(
        kind, noun, title, await get("workspace/dependencies", { table: table.name, kind }, { signal }), open,
      ))),
      load(history, "History", async () => this.#history(
        table.name, (await get("workspace/log", { table: table.name }, { signal, exact: true })).entries,
      )),
    ]);
    if (open !== null && !signal.aborted) show();
  }

  #dependencies(kind, noun, title, { n, n_muted: nMuted = 0, dependencies }, open) {
    const head = el("h3", {}, `${title} `, count(n));
    if (!dependencies.length) return [head, hint(`No ${noun} holds.`)];
    const [loud, muted] = [dependencies.filter((d) => !d.muted), dependencies.filter((d) => d.muted)];
    const rest = `The first ${number(dependencies.length)} are listed; see all with: holdfast show --kind ${kind}`;
    return [
      head,
      loud.length ? this.#list(loud) : null,
      muted.length
        ? el("details", { class: "muted", open: open === true }, el("summary", { text: `${number(nMuted)} muted` }), this.#list(muted))
        : null,
      n > dependencies.length ? hint(rest) : null,
    ];
  }

  #list(dependencies) {
    const anyNote = dependencies.some((d) => note(d));
    const table = el("table", { class: "plain" }, el("tbody"));
    return paged(
      dependencies,
      (d) => {
        const buttons = actions(this.page, d);
        return el(
          "tr",
          {},
          el("td", {}, text(d.text, "code", 2000)),
          anyNote ? el("td", { class: "aside", text: note(d) }) : null,
          buttons === null ? null : el("td", { class: "acts" }, buttons),
        );
      },
      table,
      FIRST,
    );
  }

  #history(table, entries) {
    const head = el("h3", { text: "History" });
    if (!entries.length) return [head, hint("Nothing was done to it yet.")];
    return [head, paged(entries, (e) => entry(e, table), el("ol", { class: "history" }))];
  }
}

export const open = (page) => new TableView(page);

function listed(table, current) {
  const link = el(
    "a",
    { href: format({ tab: "table", name: table.name }), class: "row", "aria-current": current ? "true" : null },
    text(table.name, "name", 60),
    count(table.n_rows, plural(table.n_rows, "row")),
  );
  return el("li", {}, link);
}

/** What is worth saying of a dependency beyond its text. */
function note(d) {
  const notes = [];
  if (d.sentence) notes.push(d.sentence);
  if (d.kind === "ind" && typeof d.coverage === "number") notes.push(`covers ${share(d.coverage)}`);
  if (d.error) notes.push(`error ${share(d.error)}`);
  if (d.missing_values) notes.push(`${plural(d.missing_values, "value")} missing`);
  if (d.n_exceptions) notes.push(plural(d.n_exceptions, "exception"));
  return notes.join(" · ");
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
  const body = e.changes.length
    ? paged(e.changes, change, el("ul", { class: "changes" }))
    : hint("What holds did not change.");
  const open = e.changes.length > 0 && e.changes.length <= 6 && e.action !== "track";
  const rest = unlisted > 0 ? hint(`and ${plural(unlisted, "more change")}`) : null;
  const muted = e.n_muted ? hint(`and ${number(e.n_muted)} muted`) : null;
  return el("li", {}, el("details", { open }, head, body, rest, muted));
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

function when(at) {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
