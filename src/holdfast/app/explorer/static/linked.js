// A table of the lake in the view of tables: linked, and not tracked. What is known of its columns, where their
// values are contained, what they contain, and the first rows; how it would be tracked.

import { get, Latest } from "./api.js";
import { columns } from "./columns.js";
import { el, failure, fill, hint, loading, number, paged, plural, refill, score, share, text } from "./dom.js";
import { unfolding } from "./inclusions.js";
import { meter, reference, side, sides } from "./references.js";
import { format } from "./route.js";
import { extent, firstRows } from "./rows.js";
import { Sections } from "./sections.js";

const FIRST = 12;
const DIRECTIONS = [
  ["out", "Contained in", "Contained in no other column."],
  ["into", "Contains", "Contains no other column."],
];

const address = (id) => format({ tab: "table", lake: id });

export class Linked {
  #latest = new Latest();

  /** `marked` is told of the column that inclusions are listed of. */
  constructor(page, sheet, id, marked) {
    Object.assign(this, { page, sheet, id, marked });
    this.column = undefined;
    this.table = null;
    fill(sheet, loading("The table"));
  }

  stop() {
    this.#latest.stop();
  }

  /** The same table, perhaps another column of it. */
  follow({ column }) {
    this.column = column;
    if (this.table !== null) this.#inclusions();
  }

  /** Asks for the table, and shows it in place; whether it is there. */
  async load() {
    const signal = this.#latest.next();
    try {
      const table = await get("linked", { id: this.id }, { signal });
      if (!signal.aborted) this.#show(table);
    } catch (error) {
      if (error.name === "AbortError") return this.table !== null;
      this.table = null;
      fill(this.sheet, failure("The table of the lake cannot be shown", error));
    }
    return this.table !== null;
  }

  #show(table) {
    if (this.table === null) this.#build();
    else if (JSON.stringify(this.table) === JSON.stringify(table)) return; // the version is about other tables
    this.table = table;
    const all = table.columns.map((c) => ({
      ...c, type: c.integer ? "int" : "", n_distinct: c.n_values, n_nulls: c.n_missing, is_unique: c.unique,
      is_null_like: c.null, refers_to: [],
    }));
    const facts = [plural(table.n_rows, "row"), plural(all.length, "column"), plural(table.n_inds, "inclusion")];
    refill(
      this.head,
      el("h2", {}, text(table.name, "name", 200)),
      el("p", { class: "facts" }, el("span", { class: "flag linked", text: "linked, not tracked" }), ` ${facts.join(" · ")} · `, text(table.source, "value", 200)),
      el("p", { class: "leads" }, ...this.#ways()),
    );
    this.sections.put("keys", "Keys", null, () => this.#untracked("Keys"));
    this.sections.put("columns", "Columns", all.length, (body) => columns({ columns: all, n_rows: table.n_rows }, (name) => this.#pick(name), this.column, body));
    this.#inclusions("put");
    this.sections.put("rows", "Rows", null, () => [el("p", { class: "extent aside", text: extent(table) }), ...firstRows(table)]);
    this.sections.put("dependencies", "What holds", null, () => this.#untracked("Functional dependencies, rules about rows and their history"));
  }

  #build() {
    this.sections = new Sections();
    this.head = el("div", { class: "head" });
    const titles = { keys: "Keys", columns: "Columns", references: "Inclusions", rows: "Rows", dependencies: "What holds" };
    fill(this.sheet, this.head, ...Object.entries(titles).map(([key, title]) => this.sections.section(key, title)));
    this.sheet.scrollTop = 0;
  }

  /** Where else it is: in the join graph, and among the tracked tables. */
  #ways() {
    const { id, name, component, cluster, is_tracked: isTracked } = this.table;
    const graph = { component, cluster: cluster ?? undefined, table: id };
    return [
      component < 0
        ? el("span", { class: "aside", text: "It is in no component: nothing joins with it." })
        : el("a", { class: "go", href: format(graph), text: "Open it in the join graph" }),
      isTracked ? el("a", { class: "go", href: format({ tab: "table", name }), text: "Open the tracked table" }) : null,
    ].filter((way) => way !== null);
  }

  #untracked(what) {
    return el(
      "div",
      { class: "untracked" },
      hint(`${what} are not looked for in a table that is linked and not tracked. Track it with:`),
      text(this.table.command, "code command", 1000),
    );
  }

  #pick(name) {
    this.column = this.column === name ? undefined : name;
    const route = { tab: "table", lake: this.id, column: this.column };
    this.page.write(route);
    this.page.link("table", route);
    this.#inclusions();
  }

  /** The inclusions of the table, or of the column that was picked. */
  #inclusions(how = "turn") {
    const { inds, n_inds: n } = this.table;
    const { column } = this;
    const isHere = ({ table_id: id, column: name }) => id === this.id && (column === undefined || name === column);
    const [out, into] = [inds.filter((i) => isHere(i.dependent)), inds.filter((i) => isHere(i.referenced))];
    const parts = DIRECTIONS.map(([key, title, none], i) => {
      const list = [out, into][i];
      const row = (ind) => this.#inclusion(ind, key);
      return side(title, key, list.length ? paged(list, row, el("ul"), FIRST) : hint(none));
    });
    const cut = n > inds.length ? hint(`The best ${number(inds.length)} of ${number(n)} are listed.`) : null;
    const title = column === undefined ? "Inclusions" : `Inclusions of ${column}`;
    this.sections[how]("references", title, column === undefined ? n : out.length + into.length, () => [sides(...parts), cut]);
    this.marked(column);
  }

  #inclusion(ind, key) {
    const far = key === "out" ? ind.referenced : ind.dependent;
    const values = el("button", { type: "button", class: "inline", text: "values" });
    const details = unfolding(values, ind, far, address);
    const line = reference(
      { ...ind, dependent: withColumns(ind.dependent), referenced: withColumns(ind.referenced) },
      key,
      address(far.table_id),
      ind.containment < 1 ? el("span", { class: "aside", text: `has ${share(ind.containment)} of the values` }) : null,
      meter(ind),
      el("span", { title: "How likely the columns join" }, `score ${score(ind.score)}`),
      values,
    );
    line.append(details);
    return line;
  }
}

const withColumns = (one) => ({ ...one, columns: [one.column] });
