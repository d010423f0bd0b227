// The sections of a sheet: each with a title, and a body that is filled when its answer is there.

import { count, el, failure, fill, loading, refill } from "./dom.js";
import { Still } from "./still.js";

export class Sections {
  #parts = {};

  /** A section that is still to be filled. */
  section(key, title) {
    const body = el("div", { class: "section-body" }, loading(title));
    this.#parts[key] = { head: el("h3", { text: title }), body, still: new Still(body), isFilled: false };
    return el("section", { class: `of-${key}`, "aria-label": title }, this.#parts[key].head, body);
  }

  /** Fills a section, or paints a newer version of it once nobody points at it; `n` counts what is in it. `make`
  gives its nodes, told the body as it is then: what was unfolded there stays so. */
  put(key, title, n, make) {
    const part = this.#parts[key];
    if (part.isFilled) part.still.show(() => this.turn(key, title, n, make));
    else this.turn(key, title, n, make);
  }

  /** The same at once: somebody asked for it. */
  turn(key, title, n, make) {
    const part = this.#parts[key];
    part.still.drop();
    fill(part.head, n === null ? title : `${title} `, n === null ? null : count(n));
    refill(part.body, ...[make(part.body)].flat());
    part.isFilled = true;
  }

  fail(key, error) {
    const part = this.#parts[key];
    part.still.drop();
    part.isFilled = false;
    fill(part.body, failure("It cannot be shown", error));
  }
}
