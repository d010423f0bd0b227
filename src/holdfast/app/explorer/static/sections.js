// The sections of a sheet: each with a title, and a body that is filled when its answer is there.

import { count, el, failure, fill, loading, refill } from "./dom.js";

export class Sections {
  #parts = {};

  /** A section that is still to be filled. */
  section(key, title) {
    const body = el("div", { class: "section-body" }, loading(title));
    this.#parts[key] = { head: el("h3", { text: title }), body };
    return el("section", { class: `of-${key}`, "aria-label": title }, this.#parts[key].head, body);
  }

  /** Fills a section; `n` counts what is in it. */
  put(key, title, n, ...nodes) {
    const { head, body } = this.#parts[key];
    fill(head, n === null ? title : `${title} `, n === null ? null : count(n));
    refill(body, ...nodes);
  }

  fail(key, error) {
    fill(this.#parts[key].body, failure("It cannot be shown", error));
  }

  /** The details of a section that are unfolded. */
  unfolded(key) {
    return [...this.#parts[key].body.querySelectorAll("details[open]")];
  }
}
