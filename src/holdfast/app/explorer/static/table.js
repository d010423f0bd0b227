// One table: its columns, keys and references, what holds in it, what is relied on, and how it came about. One of
// the lake is shown by `linked.js`.

import { get, Latest } from "./api.js";
import { columns } from "./columns.js";
import { Dependencies } from "./dependencies.js";
import { byId, count, el, failure, fill, hint, loading, notice, number, paged, plural, refill, text } from "./dom.js";
import { FdGraph } from "./fdgraph.js";
import { history } from "./history.js";
import { keys } from "./keys.js";
import { Linked } from "./linked.js";
import { broken, pins, references } from "./references.js";
import { format } from "./route.js";
import { Sections } from "./sections.js";
import { exactly } from "./times.js";

const MANY = 8; // tables, from which on the list has a box to narrow it

class TableView {
  constructor(page) {
    this.page = page;
    this.latest = new Latest();
    this.turning = new Latest(); // of the picture
    this.shown = null; // the name of the table, or its number in the lake
    this.linked = null; // what shows it if it is one of the lake
    this.outdated = false; // there was a new version while it was on its way
    this.list = byId("tracked-list");
    this.sheet = byId("tracked-table");
    this.narrow = el("input", {
      class: "narrow", type: "search", placeholder: "Narrow the list", "aria-label": "Narrow the list of tables",
      on: { input: () => this.#listed() },
    });
    this.narrow.autocomplete = "off";
    this.tables = [];
  }

  async follow(route) {
    let workspace, lake;
    if (this.shown === null) fill(this.sheet, loading("Tables"));
    try {
      ({ workspace, lake } = await this.page.summary);
    } catch (error) {
      fill(this.sheet, failure("The tracked tables cannot be listed", error));
      return;
    }
    if (this.page.route !== route) return; // another one is followed by now
    this.workspace = workspace;
    this.tables = workspace.tables;
    const name = route.name ?? this.tables[0]?.name;
    const shown = route.lake ?? name;
    const isNew = this.shown !== shown;
    this.shown = shown;
    this.#listed();
    this.page.link("table", route);
    if (isNew) this.#stop();
    if (route.lake !== undefined) {
      await this.#follow(route, isNew);
    } else if (!this.tables.length) {
      const how = "Track one with: holdfast track NAME FILE. Then what holds in it is listed here, with its history.";
      fill(this.sheet, notice("No tracked table", how));
    } else if (!this.tables.some((t) => t.name === name)) {
      const how = lake === null ? "" : ". What is linked is found by the search of the lake.";
      fill(this.sheet, notice("No such table", `No table of that name is tracked in this workspace: ${name}${how}`, "error"));
    } else if (isNew) {
      await this.#open(name, route);
    } else {
      this.dependencies?.follow(route);
      this.#mark(route.column);
    }
  }

  /** A table of the lake. */
  async #follow(route, isNew) {
    if (isNew) this.linked = new Linked(this.page, this.sheet, route.lake, (column) => this.#mark(column));
    const { linked } = this;
    linked.follow(route);
    if (!isNew) return;
    const isThere = await linked.load();
    if (this.linked === linked && isThere) this.#completed();
  }

  #completed() {
    this.complete = true;
    if (this.outdated) this.refresh();
  }

  #stop() {
    this.complete = this.outdated = false;
    this.isUnfolded = false; // whether what follows from keys is drawn
    this.latest.stop();
    this.turning.stop();
    this.dependencies?.stop();
    this.linked?.stop();
    this.linked = null;
  }

  leave() {
    this.latest.stop();
    this.dependencies?.stop();
    this.linked?.stop();
    if (!this.complete) this.shown = null; // what was on its way is asked for again
  }

  /** There is a new version: the same things of it, in place. */
  async refresh() {
    this.outdated = !this.complete;
    if (this.outdated) return;
    this.complete = false; // until it is there, too: who leaves before asks for it again
    const { shown, linked } = this;
    const { workspace } = await this.page.summary.catch(() => ({ workspace: null }));
    if (this.shown !== shown || this.linked !== linked) return; // another one is followed by now
    if (workspace === null) {
      this.complete = true;
      return;
    }
    this.workspace = workspace;
    this.tables = workspace.tables;
    this.#listed();
    if (linked !== null) {
      await linked.load();
      if (this.shown === shown && this.linked === linked) this.#completed();
      return;
    }
    if (!this.tables.some((t) => t.name === shown)) {
      fill(this.sheet, notice("The table is gone", `It is not tracked any more: ${shown}`));
      return;
    }
    await this.#load(shown, true);
  }

  /** The list of tables, those that are asked for. */
  #listed() {
    const wanted = this.narrow.value.trim().toLowerCase();
    const tables = wanted ? this.tables.filter((t) => t.name.toLowerCase().includes(wanted)) : this.tables;
    const list = tables.length ? paged(tables, (t) => this.#row(t)) : hint("No table has that in its name.");
    if (!this.tables.length) {
      fill(this.list);
      return;
    }
    if (!this.head) {
      this.head = el("h2");
      this.rows = el("div", { class: "tables" });
      fill(this.list, this.head, this.narrow, this.rows);
    }
    this.narrow.hidden = this.tables.length < MANY;
    fill(this.head, "Tracked tables ", count(this.tables.length));
    refill(this.rows, list);
  }

  #row(table) {
    const current = table.name === this.shown;
    return el("li", {}, el(
      "a",
      { href: format({ tab: "table", name: table.name }), class: "row", "aria-current": current ? "true" : null },
      text(table.name, "name", 60),
      count(table.n_rows, plural(table.n_rows, "row")),
    ));
  }

  async #open(name, route) {
    const sections = new Sections();
    this.sections = sections;
    this.title = el("div", { class: "head" }, el("h2", {}, text(name, "name", 200)), el("p", { class: "facts" }));
    this.alarm = el("div", { class: "alarms" });
    this.graph = new FdGraph();
    this.dependencies = new Dependencies(this.page, name, this.workspace.nouns, {
      wrote: (wanted) => this.page.link("table", { tab: "table", name, ...wanted }),
      chose: (column) => this.#mark(column),
    });
    fill(
      this.sheet,
      this.title,
      this.alarm,
      sections.section("keys", "Keys"),
      sections.section("references", "References"),
      sections.section("columns", "Columns"),
      this.dependencies.node,
      sections.section("graph", "Functional dependencies by left side"),
      sections.section("pins", "Pins"),
      sections.section("history", "History"),
    );
    this.sheet.scrollTop = 0;
    let filled;
    this.dependencies.above = new Promise((resolve) => { filled = resolve; });
    const first = this.dependencies.follow(route);
    await Promise.all([first, this.#load(name, false, filled)]);
  }

  /** Asks for all that is shown of a table, but for what holds in it, which looks after itself. */
  async #load(name, again, filled = () => {}) {
    const signal = this.latest.next();
    const load = async (wanted, show, path, parameters, how = {}) => {
      try {
        const answer = await get(path, parameters, { signal, ...how });
        if (!signal.aborted) show(answer);
      } catch (error) {
        if (error.name === "AbortError") return;
        for (const key of wanted) this.sections.fail(key, error);
      }
    };
    const head = load(
      ["columns", "keys", "references", "pins"], (answer) => this.#table(answer), "workspace/table", { name },
    );
    head.then(filled);
    const rest = again ? [this.dependencies.refresh()] : [];
    await Promise.all([head, ...rest]);
    // What is below the list may come after it: the server answers one question at a time.
    const follow = again && this.isUnfolded ? 1 : undefined;
    // Somebody may have asked for the others meanwhile.
    const draw = (answer) => { if ((answer.follow ?? false) === this.isUnfolded) this.#groups(answer); };
    await load(["graph"], draw, "workspace/fds", { table: name, follow });
    await load(["history"], ({ entries }) => this.#past(entries), "workspace/log", { table: name }, { exact: true });
    if (!signal.aborted) this.#completed();
  }

  #table(answer) {
    this.answer = answer;
    const { nouns } = this.workspace;
    const nounsOfKinds = answer.kinds.filter((kind) => Object.hasOwn(nouns, kind)).map((kind) => nouns[kind][1]);
    const facts = [
      plural(answer.n_rows, "row"),
      plural(answer.columns.length, "column"),
      `tracked since version ${number(answer.tracked.version)}${answer.tracked.at ? `, ${exactly(answer.tracked.at)}` : ""}`,
      nounsOfKinds.join(", "),
    ];
    fill(this.title.querySelector(".facts"), facts.filter(Boolean).join(" · "));
    refill(this.alarm, ...broken(this.page, answer));
    this.sections.put("keys", "Keys", answer.keys.n, () => keys(this.page, answer, () => this.dependencies.show({ kind: "ucc" })));
    const { n_out: nOut, n_into: nInto } = answer.references;
    this.sections.put("references", "References", answer.kinds.includes("ind") ? nOut + nInto : null, () => references(this.page, answer, () => this.dependencies.show({ kind: "ind" })));
    this.sections.put("columns", "Columns", answer.columns.length, (body) => columns(answer, (name) => this.dependencies.toggle(name), this.dependencies.wanted.column, body));
    this.sections.put("pins", "Pins", answer.n_pins, () => pins(this.page, answer));
  }

  #past(entries) {
    this.sections.put("history", "History", null, (body) => history(entries, this.shown, body));
  }

  /** The picture, once nobody points at it; at once where somebody asked for it. */
  #groups(answer, asked = false) {
    const title = "Functional dependencies by left side";
    if (answer.n === null) {
      this.sections.put("graph", title, null, () => hint("They are not tracked here: track the table with --kinds ucc,fd to see them."));
      return;
    }
    const choose = (lhs, rhs) => this.dependencies.show({ kind: "fd", q: `${lhs.join(" ")} -> ${rhs ?? ""}`.trim() });
    const picture = () => this.graph.show(answer, choose, (follow) => this.#follows(follow));
    this.sections[asked ? "turn" : "put"]("graph", title, answer.n_groups, picture);
  }

  /** Draws what follows from keys, or the others. */
  async #follows(follow) {
    const name = this.shown;
    this.isUnfolded = follow;
    try {
      const signal = this.turning.next();
      const answer = await get("workspace/fds", { table: name, follow: follow ? 1 : undefined }, { signal });
      if (!signal.aborted) this.#groups(answer, true);
    } catch (error) {
      if (error.name !== "AbortError") this.sections.fail("graph", error);
    }
  }

  /** Marks the column that the list is about. */
  #mark(column) {
    for (const button of this.sheet.querySelectorAll(".of-columns button.column")) {
      button.setAttribute("aria-pressed", String(button.value === (column ?? "\0")));
    }
  }
}

export const open = (page) => new TableView(page);
