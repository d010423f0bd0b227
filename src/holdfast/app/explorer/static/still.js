// Lists that do not move under the pointer: what is newer waits until nobody points at them, or asks for it.

import { el } from "./dom.js";

export class Still {
  #newer = null; // paints what waits

  /** `node` is what stays. `focus`: the keyboard holds it, too; then there is a `button` that ends the waiting. */
  constructor(node, { focus = false } = {}) {
    this.node = node;
    this.focus = focus;
    const press = () => this.now();
    this.button = el("button", { type: "button", class: "newer", hidden: true, text: "Show what is newer", on: { click: press } });
    node.addEventListener("pointerleave", () => this.#settle());
    node.addEventListener("focusout", () => this.#settle());
  }

  /** Paints a newer version: now, or when the list is left. */
  show(paint) {
    this.#newer = paint;
    this.button.hidden = false;
    this.#paintIfLeft();
  }

  /** Something else is asked for: what waits is not shown any more. */
  drop() {
    this.#newer = null;
    this.button.hidden = true;
  }

  /** The pointer and the focus are where they go to only after the event. */
  #settle() {
    if (this.#newer !== null) requestAnimationFrame(() => this.#paintIfLeft());
  }

  #paintIfLeft() {
    const pointed = this.node.matches(":hover") && matchMedia("(hover: hover)").matches;
    if (!pointed && !(this.focus && this.node.querySelector(":focus-visible"))) this.now();
  }

  /** Paints what waits. */
  now() {
    const paint = this.#newer;
    this.drop();
    paint?.();
  }
}
