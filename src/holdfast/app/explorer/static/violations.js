// The rows that violate a dependency: a table that pages and sorts, with what would heal them.

import { get, Latest } from "./api.js";
import { count, el, failure, fill, hint, number, plural, text, value } from "./dom.js";
import { Still } from "./still.js";
import { waiting } from "./waiting.js";
import { came } from "./witnesses.js";

const PER_PAGE = 50;
const HIDDEN = ["group_rows", "votes", "majority", "deviates"]; // said with the others
const HEADS = { row: "row", group: "group", remove: "remove", suggested: "suggested", pairs: "pairs" };

export class Violations {
  constructor(changed) {
    this.changed = changed; // is told each answer
    this.node = el("section", { class: "violations", "aria-labelledby": "rows-title" });
    this.body = el("div", {});
    this.still = new Still(this.body);
    this.latest = new Latest();
  }

  /** The rows of a question; if it is the one that is shown those of a newer version, once nobody points at them. */
  show(table, ask) {
    const same = this.table === table && this.ask === ask;
    Object.assign(this, { table, ask });
    if (!same) Object.assign(this, { offset: 0, sort: null, descending: false });
    return this.#load(same, same);
  }

  /** It is known to hold: there is nothing to look for. */
  none() {
    this.stop();
    fill(this.node, el("h3", { id: "rows-title" }, "Rows that violate it ", count(0)), hint("There is none: what holds is known without a look at the rows."));
  }

  stop() {
    this.latest.stop();
    this.still.drop();
    this.ended?.();
    this.table = null;
  }

  async #load(inPlace, again = false) {
    again &&= !this.isAsked; // what somebody asked for and has not seen yet
    this.isAsked = !again;
    this.still.drop();
    const signal = this.latest.next();
    this.ended?.();
    if (inPlace && this.body.isConnected) this.body.setAttribute("aria-busy", "true");
    else {
      fill(this.node, el("h3", { id: "rows-title", text: "Rows that violate it" }), this.body);
      this.ended = waiting(this.body, "Looking for rows that violate it", "All rows of the table are looked at:");
    }
    const { table, ask, offset, sort, descending } = this;
    try {
      const answer = await get(
        "workspace/violations",
        { table, ask, offset, limit: PER_PAGE, sort, descending: descending ? 1 : undefined },
        { signal, exact: true },
      );
      if (signal.aborted) return;
      this.ended?.();
      this.isAsked = false;
      if (again) this.still.show(() => this.#fill(answer));
      else this.#fill(answer);
      this.changed(answer);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.ended?.();
      fill(this.body, failure("The rows cannot be listed", error));
    } finally {
      if (!signal.aborted) this.body.removeAttribute("aria-busy");
    }
  }

  #fill(answer) {
    this.offset = answer.offset; // there may be fewer rows than before
    const title = el("h3", { id: "rows-title" }, "Rows that violate it ", count(answer.n_violating));
    if (!answer.n_violating) {
      fill(this.node, title, this.body);
      fill(this.body, hint(`None of ${plural(answer.n_rows, "row")}.`));
      return;
    }
    const focus = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const scrolled = this.frame?.isConnected ? this.frame.scrollLeft : 0;
    const file = `api/workspace/violations.csv?${new URLSearchParams({ table: this.table, ask: this.ask })}`;
    fill(
      this.node,
      el("div", { class: "violations-head" }, title, el("a", { class: "go", href: file, download: true, text: "Download all as CSV" })),
      this.body,
    );
    fill(this.body, summary(answer), this.#table(answer), this.#pager(answer));
    this.frame.scrollLeft = scrolled;
    if (focus !== undefined) [...this.body.querySelectorAll("button")].find((b) => b.dataset.key === focus)?.focus({ preventScroll: true });
  }

  #table(answer) {
    const places = order(answer.columns);
    const at = Object.fromEntries(answer.columns.map((c, i) => [c.mark, i]).filter(([mark]) => mark !== null));
    const head = places.map((i) => this.#head(answer.columns[i]));
    const lines = answer.rows.map((row, n) => el(
      "tr",
      { class: at.remove !== undefined && row[at.remove] ? "remove" : null },
      ...places.map((i) => (answer.columns[i].mark === "row" ? el("td", { class: "aside" }, came(row[i], answer.origins[n])) : cell(answer.columns[i], row, i, at))),
    ));
    this.frame = el(
      "div",
      { class: "frame tall", tabindex: 0, role: "region", "aria-label": "Rows that violate it" },
      el("table", { class: "sample" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...lines)),
    );
    return this.frame;
  }

  #head(column) {
    const sorted = this.sort === column.name ? (this.descending ? "descending" : "ascending") : null;
    const sign = sorted === null ? "" : this.descending ? " ↓" : " ↑";
    const button = el(
      "button",
      { type: "button", class: "sort", on: { click: () => this.#sortBy(column.name) } },
      column.mark === null ? text(column.name, "name", 40) : el("span", { text: HEADS[column.mark] ?? column.mark.replaceAll("_", " ") }),
      el("span", { class: "sign", "aria-hidden": "true", text: sign }),
    );
    button.dataset.key = `sort ${column.name}`;
    return el("th", { scope: "col", "aria-sort": sorted, class: column.concerned ? "about" : null }, button);
  }

  /** Up, then down, then as they come. */
  #sortBy(name) {
    if (this.sort !== name) Object.assign(this, { sort: name, descending: false });
    else if (!this.descending) this.descending = true;
    else Object.assign(this, { sort: null, descending: false });
    this.offset = 0;
    this.#load(true);
  }

  #pager(answer) {
    const { n_held: held, n_violating: n, offset, rows } = answer;
    const go = (to, words, key) => {
      const button = el("button", {
        type: "button", class: "more", text: words, disabled: to < 0 || to >= held,
        on: { click: () => { this.offset = to; this.#load(true); } },
      });
      button.dataset.key = key;
      return button;
    };
    const where = `Rows ${number(offset + 1)} to ${number(offset + rows.length)} of ${number(held)}`;
    const more = answer.complete ? "" : `, the first of ${number(n)}; sorted are these ${number(held)}, the file has all`;
    return el(
      "div",
      { class: "pager" },
      held > PER_PAGE ? go(offset - PER_PAGE, "Previous", "previous") : null,
      held > PER_PAGE ? go(offset + PER_PAGE, "Next", "next") : null,
      el("span", { class: "aside", role: "status", text: where + more }),
    );
  }
}

/** How many violate it, and the fewest to remove. */
function summary({ n_violating: n, n_rows: all, n_violations: pairs, n_groups: groups, noun, remove, dependency }) {
  const parts = [`${number(n)} of ${plural(all, "row")} ${n === 1 ? "violates" : "violate"} it`];
  if (pairs !== null) parts.push(`in ${plural(pairs, dependency.kind === "dc" ? "ordered pair" : "pair")}`);
  const first = parts.join(", ") + (groups === null ? "" : `; ${plural(groups, noun)}`);
  const fewest = remove.at_least === remove.at_most
    ? plural(remove.at_most, "row")
    : `at most ${plural(remove.at_most, "row")}, and at least ${number(remove.at_least)}`;
  return el(
    "p",
    { class: "facts" },
    `${first}. Without `, el("strong", { text: fewest }), " it holds: ",
    el("span", { class: "flag cut", text: "remove" }), remove.at_most === 1 ? " marks it." : " marks them.",
  );
}

/** The columns in the order shown: marks, what it is about with what is suggested, then the others. */
function order(columns) {
  const places = columns.map((_, i) => i).filter((i) => !HIDDEN.includes(columns[i].mark));
  const rank = ({ mark, concerned }) => (mark === "remove" ? 0 : mark === "suggested" ? 4 : mark !== null ? 1 : concerned ? 3 : 5);
  return places.sort((a, b) => rank(columns[a]) - rank(columns[b]) || a - b);
}

function cell({ mark, concerned }, row, i, at) {
  if (mark === "remove") return el("td", {}, row[i] ? el("span", { class: "flag cut", text: "remove" }) : null);
  if (mark === "group") {
    const n = row[at.group_rows];
    return el("td", { class: "aside", text: n === undefined ? number(row[i]) : `${number(row[i])} · ${plural(n, "row")}` });
  }
  if (mark === "suggested") {
    if (!row[at.remove]) return el("td", {});
    if (!row[at.votes]) return el("td", { class: "aside", text: "none: equally many have each" });
    const votes = `${number(row[at.votes])} of ${plural(row[at.group_rows], "row")} have it`;
    return el("td", { class: "repair" }, value(row[at.majority]), el("span", { class: "aside", text: ` ${votes}` }));
  }
  return el("td", { class: concerned ? "about" : null }, value(row[i]));
}
