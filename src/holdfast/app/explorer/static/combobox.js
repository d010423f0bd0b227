// A field with a list of options below it. The field keeps the focus: arrow keys mark an option, Enter takes it,
// Escape closes the list.

import { el, fill } from "./dom.js";

export class Combobox {
  #options = [];
  #at = -1;

  /** `take` is given what an option stands for. `reopen` shows options where an arrow key finds the list closed;
  `enter` is what Enter does while none is marked. */
  constructor(input, list, { take, reopen, enter = () => {} }) {
    Object.assign(this, { input, list, take, reopen, enter });
    input.addEventListener("keydown", (event) => this.#key(event));
    input.addEventListener("blur", () => this.open(false));
    list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    document.addEventListener("pointerdown", ({ target }) => {
      if (target !== input && !list.contains(target)) this.open(false); // not all that is pressed takes the focus
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** What the first option stands for, if there is one. */
  get first() {
    return this.#options[0]?.meant;
  }

  /** Opens the list, if whoever types is still there, or closes it. */
  open(isWanted) {
    const isOpen = isWanted && document.activeElement === this.input;
    this.list.hidden = !isOpen;
    this.input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) this.#mark(-1);
  }

  /** Fills the list with groups, {title, options: [{meant, shown: [first, second]}]}, and with other words. */
  fill(groups, ...words) {
    this.#mark(-1);
    this.#options = [];
    fill(this.list, ...groups.map((group) => this.#group(group)), ...words);
  }

  #group({ title, options }) {
    const head = el("div", { class: "group-title", role: "presentation" }, ...title);
    const group = el("div", { class: "group", role: "group", "aria-label": head.textContent }, head);
    group.append(...options.map((option) => this.#option(option)));
    return group;
  }

  #option({ meant, shown: [first, second] }) {
    const node = el("div", {
      class: "option", role: "option", id: `${this.list.id}-${this.#options.length}`, "aria-selected": "false",
      on: { click: () => this.take(meant) },
    }, first, el("span", { class: "aside" }, second));
    this.#options.push({ node, meant });
    return node;
  }

  #mark(at) {
    this.#options[this.#at]?.node.setAttribute("aria-selected", "false");
    this.#at = at;
    const marked = this.#options[at]?.node;
    if (marked === undefined) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    marked.setAttribute("aria-selected", "true");
    marked.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", marked.id);
  }

  #key(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      this.open(false);
    } else if (by !== undefined) {
      event.preventDefault(); // the caret stays
      if (!this.isOpen) this.reopen();
      const n = this.#options.length;
      if (this.isOpen && n) this.#mark(this.#at < 0 && by < 0 ? n - 1 : (this.#at + by + n) % n);
    } else if (event.key === "Enter" && this.#at >= 0) {
      event.preventDefault();
      this.take(this.#options[this.#at].meant);
    } else if (event.key === "Enter") {
      this.enter();
    }
  }
}
