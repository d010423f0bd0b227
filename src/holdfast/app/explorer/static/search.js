// The search box: tables, columns and values, while one types.

import { get, Latest } from "./api.js";
import { count, el, failure, fill, hint, loading, notice, plural, text, value } from "./dom.js";

const WAIT_MS = 180;
const SHOWN = 30;

export class Search {
  /** `choose` is given the id of a table. */
  constructor(input, results, choose) {
    Object.assign(this, { input, results, choose });
    this.latest = new Latest();
    this.options = [];
    this.at = -1;
    this.stale = this.entered = false; // whether the list is of another text; whether its first entry is wanted
    input.addEventListener("input", () => this.#typed());
    input.addEventListener("focus", () => { if (input.value.trim() && this.options.length) this.#open(true); });
    input.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!results.contains(event.target) && event.target !== input) this.#open(false);
    });
    document.addEventListener("keydown", (event) => {
      const busy = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.focus();
      input.select();
    });
    if (input.value) this.#typed(); // somebody was faster than this part of the page
  }

  #open(open) {
    this.results.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this.#mark(-1);
  }

  #typed() {
    clearTimeout(this.timer);
    const q = this.input.value.trim();
    this.stale = true;
    this.entered = false;
    if (!q) {
      this.latest.stop();
      this.options = [];
      this.#open(false);
      return;
    }
    this.timer = setTimeout(() => this.#ask(q), WAIT_MS);
  }

  async #ask(q) {
    const signal = this.latest.next();
    if (this.results.hidden) {
      fill(this.results, loading("Searching"));
      this.#open(true);
    }
    try {
      const answer = await get("search", { q, what: "all", limit: SHOWN }, { signal });
      if (!signal.aborted) this.#show(q, answer);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.options = [];
      this.stale = this.entered = false;
      fill(this.results, failure("The search failed", error));
    }
  }

  #show(q, answer) {
    this.options = [];
    const groups = [
      this.#group("Tables", answer.tables, (t) => this.#option(t.id, text(t.name), plural(t.n_rows, "row"))),
      this.#group("Columns", answer.columns, (c) => this.#option(c.table_id, text(c.name), text(c.table))),
      ...answer.values.map((v) => this.#group(
        el("span", {}, "Value ", value(v.value), ` in ${plural(v.n_columns, "column")}`),
        v.columns,
        (c) => this.#option(c.table_id, text(c.name), text(c.table)),
      )),
    ].filter((group) => group !== null);
    const none = notice("Nothing found", `No table or column has “${q}” in its name, and no cell has that value.`);
    const more = answer.more ? hint("There is more: type more to narrow it down.") : null;
    fill(this.results, ...(groups.length ? groups : [none]), more);
    this.#open(true);
    this.#mark(-1);
    this.stale = false;
    if (this.entered && this.options.length) this.#choose(this.options[0].id);
  }

  #group(title, entries, row) {
    if (!entries.length) return null;
    const head = el("div", { class: "group-title", role: "presentation" });
    head.append(title);
    if (typeof title === "string") head.append(entries.length < SHOWN ? count(entries.length) : `first ${SHOWN}`);
    return el("div", { class: "group", role: "group" }, head, ...entries.map(row));
  }

  #option(id, first, second) {
    const node = el("div", {
      class: "option", role: "option", id: `option-${this.options.length}`, "aria-selected": "false",
      on: { click: () => this.#choose(id) },
    }, first, el("span", { class: "aside" }, second));
    this.options.push({ node, id });
    return node;
  }

  #choose(id) {
    this.#open(false);
    this.choose(id);
  }

  #mark(at) {
    this.options[this.at]?.node.setAttribute("aria-selected", "false");
    this.at = at;
    const marked = this.options[at]?.node;
    if (marked === undefined) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    marked.setAttribute("aria-selected", "true");
    marked.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", marked.id);
  }

  #key(event) {
    const n = this.options.length;
    if (event.key === "Escape") {
      this.#open(false);
    } else if (event.key === "ArrowDown" && n) {
      event.preventDefault();
      this.#open(true);
      this.#mark((this.at + 1) % n);
    } else if (event.key === "ArrowUp" && n) {
      event.preventDefault();
      this.#mark((this.at - 1 + n) % n);
    } else if (event.key === "Enter" && this.stale && this.at < 0) {
      this.entered = true; // what is listed answers an earlier question
    } else if (event.key === "Enter" && n && !this.results.hidden) {
      event.preventDefault();
      this.#choose(this.options[Math.max(this.at, 0)].id);
    }
  }
}
