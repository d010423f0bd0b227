// The search box: tables, columns and values, while one types.

import { get, Latest } from "./api.js";
import { Combobox } from "./combobox.js";
import { count, el, failure, hint, loading, notice, plural, text, value } from "./dom.js";

const WAIT_MS = 180;
const SHOWN = 30;

export class Search {
  /** `choose` is given the id of a table. */
  constructor(input, results, choose) {
    this.input = input;
    this.latest = new Latest();
    this.stale = this.entered = false; // whether the list is of another text; whether its first entry is wanted
    const reopen = () => this.box.open(this.box.first !== undefined);
    this.take = (id) => {
      this.box.open(false);
      choose(id);
    };
    this.box = new Combobox(input, results, { take: this.take, reopen, enter: () => this.#enter() });
    input.addEventListener("input", () => this.#typed());
    input.addEventListener("focus", reopen);
    document.addEventListener("keydown", (event) => {
      const busy = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.focus();
      input.select();
    });
    if (input.value) this.#typed(); // somebody was faster than this part of the page
  }

  #typed() {
    clearTimeout(this.timer);
    this.latest.stop(); // what it answers is not what is typed by now
    const q = this.input.value.trim();
    this.stale = true;
    this.entered = false;
    if (!q) {
      this.box.fill([]);
      this.box.open(false);
      return;
    }
    this.timer = setTimeout(() => this.#ask(q), WAIT_MS);
  }

  async #ask(q) {
    const signal = this.latest.next();
    if (!this.box.isOpen) {
      this.box.fill([], loading("Searching"));
      this.box.open(true);
    }
    try {
      const answer = await get("search", { q, what: "all", limit: SHOWN }, { signal });
      if (!signal.aborted) this.#show(q, answer);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.stale = this.entered = false;
      this.box.fill([], failure("The search failed", error));
    }
  }

  #show(q, answer) {
    const groups = [
      group("Tables", answer.tables, (t) => [t.id, text(t.name), plural(t.n_rows, "row")]),
      group("Columns", answer.columns, (c) => [c.table_id, text(c.name), text(c.table)]),
      ...answer.values.map((v) => group(
        el("span", {}, "Value ", value(v.value), ` in ${plural(v.n_columns, "column")}`),
        v.columns,
        (c) => [c.table_id, text(c.name), text(c.table)],
      )),
    ].filter(({ options }) => options.length);
    const none = notice("Nothing found", `No table or column has “${q}” in its name, and no cell has that value.`);
    const more = answer.more ? hint("There is more: type more to narrow it down.") : null;
    this.box.fill(groups, groups.length ? null : none, more);
    this.box.open(true);
    this.stale = false;
    if (this.entered && groups.length) this.take(this.box.first);
  }

  /** Enter, and none is marked: the first, once what is listed answers what was typed. */
  #enter() {
    if (this.stale) this.entered = true;
    else if (this.box.isOpen && this.box.first !== undefined) this.take(this.box.first);
  }
}

function group(title, entries, option) {
  const n = entries.length < SHOWN ? count(entries.length) : `first ${SHOWN}`;
  const options = entries.map(option).map(([meant, ...shown]) => ({ meant, shown }));
  return { title: typeof title === "string" ? [title, n] : [title], options };
}
