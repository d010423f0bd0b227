// The versions of a part of the timeline, newest first, with what each of them changed.

import { get, Latest } from "./api.js";
import { el, failure, fill, hint, loading, number, text } from "./dom.js";
import { moment } from "./times.js";
import { format } from "./route.js";

export const EVENTS = {
  broke: "broke", appeared: "appeared", implied: "implied by another", within: "within the error now",
  beyond: "beyond the error", dropped: "dropped", tracked: "there when tracked",
};

export class Versions {
  #latest = new Latest();
  #range = null;

  constructor(close) {
    this.title = el("h2", { tabindex: -1 });
    this.list = el("div", {});
    const button = el("button", { type: "button", class: "close", "aria-label": "Back to what broke", text: "×", on: { click: close } });
    this.node = el("section", { class: "side", "aria-label": "Versions", on: { keydown: (e) => e.key === "Escape" && close() } },
      el("div", { class: "titled" }, this.title, button), this.list);
  }

  /** `range`: first and last version, and perhaps the table and the kind that they are about. */
  async show(range) {
    this.#range = range;
    const { first, last } = range;
    const which = first === last ? `Version ${number(first)}` : `Versions ${number(first)} to ${number(last)}`;
    fill(this.title, which);
    fill(this.list, loading("Versions"));
    this.node.parentElement.scrollTop = 0;
    await this.#more(last + 1);
  }

  refresh() {
    // Versions do not change: what is shown stays as it is.
  }

  async #more(before) {
    const { first, table, kind } = this.#range;
    try {
      const asked = { since: first, before, table, kind, limit: 30 };
      const answer = await get("workspace/versions", asked, { signal: this.#latest.next() });
      if (before === this.#range.last + 1) fill(this.list, el("ol", { class: "versions" }));
      this.list.querySelector(".more")?.remove();
      this.list.querySelector(".versions").append(...answer.versions.map(entry));
      if (!answer.versions.length) this.list.append(hint("Nothing changed here."));
      if (answer.next !== null) {
        const more = () => this.#more(answer.next);
        this.list.append(el("button", { type: "button", class: "more", text: "Show older ones", on: { click: more } }));
      }
    } catch (error) {
      if (error.name !== "AbortError") fill(this.list, failure("The versions cannot be listed", error));
    }
  }
}

function entry(v) {
  const counts = Object.entries(v.counts);
  const unlisted = counts.reduce((sum, [, n]) => sum + n, 0) - v.changes.length;
  return el(
    "li",
    {},
    el(
      "p",
      { class: "line" },
      el("strong", { text: `Version ${number(v.version)}` }),
      el("span", { class: "action", text: v.action }),
      v.batch_id ? el("span", {}, "batch ", text(v.batch_id, "name", 40)) : null,
      moment(v.at, { class: "aside" }),
    ),
    el("p", { class: "line aside" }, ...v.tables.map(part)),
    counts.length
      ? el("p", { class: "line" }, ...counts.map(([event, n]) => el("span", { class: `event ${event}`, text: `${number(n)} ${EVENTS[event]}` })))
      : hint("What holds did not change."),
    v.changes.length ? el("ul", { class: "changed" }, ...v.changes.map(change)) : null,
    unlisted > 0 ? hint(`and ${number(unlisted)} more`) : null,
  );
}

function part(t) {
  const moved = t.n_inserted === undefined ? "" : ` +${number(t.n_inserted)} −${number(t.n_deleted)}`;
  const now = t.n_rows === undefined ? "" : `, now ${number(t.n_rows)} rows`;
  return el("span", {}, text(t.table, "name", 40), `${moved}${now}`);
}

function change(c) {
  return el(
    "li",
    {},
    el("span", { class: `event ${c.change}`, text: EVENTS[c.change] ?? c.change }),
    el("a", { href: format({ tab: "dependency", name: c.table, ask: c.ask }) }, text(c.text, "code", 300)),
    c.reason ? el("span", { class: "aside", text: c.reason }) : null,
  );
}
