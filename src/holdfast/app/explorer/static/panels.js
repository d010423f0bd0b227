// The right side: the tables of a graph, the clusters of a component, or one table with all that is known of it.

import { count, el, fill, hint, notice, number, paged, plural, text, value } from "./dom.js";
import { inclusion } from "./inclusions.js";
import { format } from "./route.js";
import { extent, firstRows } from "./rows.js";

// Of a wide table a few columns at first: rows and inclusions come after them.
const MOST_COLUMNS = 30;
const FEW_COLUMNS = 20;

/** The tables of a graph, most neighbours first, with a box to narrow the list.

`link` gives the address of a table, `point` highlights its node. */
export function tableList(graph, link, point) {
  const order = Array.from(graph.ids.keys()).sort((a, b) => graph.degree[b] - graph.degree[a]);
  const holder = el("div", { class: "scroll" });
  const row = (i) => el("li", {}, el(
    "a",
    {
      href: link(graph.ids[i]), class: "row",
      on: {
        pointerenter: () => point(graph.ids[i]), pointerleave: () => point(null),
        focus: () => point(graph.ids[i]), blur: () => point(null),
      },
    },
    text(graph.labels[i], "name", 70),
    count(graph.degree[i], plural(graph.degree[i], "neighbour")),
  ));
  const show = (wanted) => {
    const matching = wanted ? order.filter((i) => graph.labels[i].toLowerCase().includes(wanted)) : order;
    const none = notice("Nothing found", "No table of this graph has that in its name.");
    fill(holder, matching.length ? paged(matching, row) : none);
  };
  const box = el("input", {
    type: "search", class: "narrow", placeholder: "Narrow this list", "aria-label": "Narrow the list of tables",
    on: { input: () => show(box.value.trim().toLowerCase()) },
  });
  show("");
  return [
    el("h2", { tabindex: -1 }, "Tables ", count(graph.n), el("span", { class: "unit", text: "neighbours" })),
    box,
    holder,
  ];
}

/** The clusters of a huge component, largest first. */
export function clusterList(component) {
  const largest = [...component.clusters].sort((a, b) => b.n_tables - a.n_tables);
  const row = (c) => el("li", {}, el(
    "a",
    { href: format({ component: component.id, cluster: c.id }), class: "row" },
    text(c.name, "name", 70),
    count(c.n_tables, plural(c.n_tables, "table")),
  ));
  return [
    el("h2", { tabindex: -1 }, "Clusters ", count(largest.length), el("span", { class: "unit", text: "tables" })),
    el("div", { class: "scroll" }, paged(largest, row)),
  ];
}

/** One table. `link` gives the address of another, `closed` is that of the page without it; `tracked`: there is a
tracked table of that name, too. */
export class TablePanel {
  constructor(table, link, closed, tracked = false) {
    this.table = table;
    this.tracked = tracked;
    this.link = link;
    this.closed = closed;
    this.column = null; // only the inclusions of this column
    this.filter = { score: 0, coverage: 0 };
    this.inds = el("section", { class: "inds" });
    this.rows = new Map(); // inclusions stay open while filters change
  }

  /** What the panel consists of. `filter`: {score, coverage}, the least of both. */
  nodes(filter) {
    const { table } = this;
    this.setFilter(filter);
    const { columns, n_rows: nRows, n_inds: nInds } = table;
    const facts = [plural(nRows, "row"), plural(columns.length, "column"), plural(nInds, "inclusion")];
    const close = { href: this.closed, class: "close", title: "Close (Esc)", "aria-label": "Close the table" };
    return [
      el(
        "div",
        { class: "head" },
        el("a", close, "×"),
        el("h2", { tabindex: -1 }, text(table.name, "name", 200)),
        el("p", { class: "source" }, text(table.source, "value", 200)),
        el("p", { class: "facts", text: facts.join(" · ") }),
        el("a", { class: "go", href: format({ tab: "table", lake: table.id }), text: "Open the table" }),
        this.tracked ? el("a", { class: "go", href: format({ tab: "table", name: table.name }), text: "Open the tracked table" }) : null,
      ),
      el("div", { class: "scroll body" }, this.#columns(), this.#sample(), this.inds),
    ];
  }

  #columns() {
    const { columns } = this.table;
    if (!columns.length) return notice("No columns", "The file has no line.");
    const row = (c) => {
      const samples = c.samples.slice(0, 4).flatMap((s, i) => (i ? [dot(), value(s)] : [value(s)]));
      const pick = el("button", {
        type: "button", class: "column", "aria-pressed": "false", title: "Show only the inclusions of this column",
        on: { click: () => this.#pick(c.id, pick) },
      }, text(c.name, "name", 60));
      return el(
        "tr",
        {},
        el(
          "td",
          {},
          el("div", { class: "named" }, pick, ...flags(c)),
          el("div", { class: "samples" }, ...samples),
        ),
        el("td", { class: "number", text: number(c.n_values) }),
        el("td", { class: "number", text: c.n_missing ? number(c.n_missing) : "–" }),
      );
    };
    const head = el(
      "tr",
      {},
      el("th", { scope: "col", text: "Column" }),
      el("th", { scope: "col", class: "number", text: "Distinct" }),
      el("th", { scope: "col", class: "number", text: "Missing" }),
    );
    const list = el("table", { class: "columns" }, el("thead", {}, head), el("tbody"));
    const first = columns.length > MOST_COLUMNS ? FEW_COLUMNS : columns.length;
    return el("section", {}, el("h3", { text: "Columns" }), paged(columns, row, list, first));
  }

  #sample() {
    const title = el("h3", {}, "Rows ", el("span", { class: "count", text: extent(this.table) }));
    return el("section", {}, title, ...firstRows(this.table));
  }

  #pick(id, button) {
    this.column = this.column === id ? null : id;
    for (const other of this.picked ?? []) other.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", String(this.column === id));
    this.picked = [button];
    this.setFilter(this.filter);
  }

  setFilter(filter) {
    this.filter = filter;
    const { table, column } = this;
    const passing = table.inds.filter((ind) => ind.score >= filter.score && ind.coverage >= filter.coverage
      && (column === null || ind.dependent.id === column || ind.referenced.id === column));
    const outward = passing.filter((ind) => ind.dependent.table_id === table.id);
    const inward = passing.filter((ind) => ind.dependent.table_id !== table.id);
    const hidden = table.inds.length - passing.length;
    const cut = table.n_inds > table.inds.length;
    const none = table.n_inds
      ? notice("All filtered", `The filters hide ${plural(hidden, "inclusion")}.`)
      : notice("No inclusions", "No column of this table is contained in another, nor contains one.");
    fill(
      this.inds,
      ...(passing.length ? [] : [el("h3", { text: "Inclusions" }), none]),
      ...this.#group("Contained in", "out", outward, (ind) => [ind.dependent, ind.referenced]),
      ...this.#group("Contains", "into", inward, (ind) => [ind.referenced, ind.dependent]),
      hidden && passing.length ? hint(`${number(hidden)} more hidden by filters`) : null,
      cut ? hint(`The best ${number(table.inds.length)} of ${number(table.n_inds)} are listed.`) : null,
    );
  }

  #group(title, direction, inds, sides) {
    if (!inds.length) return [];
    const row = (ind) => {
      const key = `${ind.dependent.id}-${ind.referenced.id}`;
      if (!this.rows.has(key)) this.rows.set(key, inclusion(ind, direction, ...sides(ind), this.link));
      return this.rows.get(key);
    };
    return [
      el("h3", { class: direction }, `${title} `, count(inds.length)),
      paged(inds, row, el("ul", { class: "list cards" })),
    ];
  }
}

const dot = () => el("span", { class: "then", text: "·" });

function flags(column) {
  const meanings = [
    ["unique", "every value occurs once, and none is missing"],
    ["integer", "all values are integers: such columns match by accident"],
    ["null", "all values stand for nothing, such as N/A or ?"],
  ];
  return meanings
    .filter(([flag]) => column[flag])
    .map(([flag, words]) => el("span", { class: `flag ${flag}`, title: words, text: flag }));
}

