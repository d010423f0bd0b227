// Buttons that pin and mute a dependency, where the server lets the page change anything.

import { post } from "./api.js";
import { el, fill, visible, wayBack } from "./dom.js";
import { svg } from "./svg.js";

const ICONS = {
  pin: "M5.5 2h5M6.2 2v4.4L4 9h8L9.8 6.4V2M8 9v5",
  mute: "M3 3l10 10M4.2 11.2h7.6M4.7 9.6V7a3.4 3.4 0 0 1 .5-1.7M6.6 4a3.3 3.3 0 0 1 4.7 3v2M6.9 13.2a1.2 1.2 0 0 0 2.2 0",
};
const TERMS = [
  { name: "at_most", label: "At most", hint: "a share or a number that may be against it: 0.1% or 5" },
  { name: "severity", label: "Severity", choices: ["error", "warning", "info"] },
  { name: "reason", label: "Reason", hint: "why it is relied on" },
  { name: "owner", label: "Owner", hint: "whom to ask" },
];
const TITLES = {
  pin: "Rely on it: every batch says whether it holds",
  unpin: "Pinned: every batch says whether it holds. Rely on it no longer",
  mute: "An accident, or of no interest: reports only count it",
  unmute: "Muted: reports only count it. Tell of it again",
  pinned: "It is pinned: unpin it before you mute it",
};

let writes = null; // whether the server does; it never changes its mind

/** Buttons for a dependency as the server answers with it; null where the server only reads. */
export function actions(page, dependency) {
  if (writes === false) return null;
  const node = el("span", { class: "actions", role: "group", "aria-label": `Pin or mute ${name(dependency)}` });
  if (writes) new Actions(node, dependency);
  else {
    page.summary.then(({ write }) => {
      writes = write === true;
      if (writes) new Actions(node, dependency);
      else node.remove();
    }, () => node.remove()); // the view tells why there is no answer
  }
  return node;
}

const ask = (dependency) => dependency.ask ?? dependency.text;
const table = (dependency) => dependency.table ?? dependency.dependent.table;
const name = (dependency) => visible(dependency.text);

class Actions {
  constructor(node, dependency) {
    this.node = node;
    this.dependency = dependency;
    this.state = { pinned: dependency.pinned === true, muted: dependency.muted === true };
    this.busy = false;
    this.buttons = { pin: this.#button("pin", "Pin"), mute: this.#button("mute", "Mute") };
    fill(node, ...Object.values(this.buttons));
    this.#draw();
  }

  #button(what, label) {
    const icon = svg(
      "svg",
      { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" },
      svg("path", { d: ICONS[what] }),
    );
    const press = () => this.#press(what);
    return el(
      "button",
      { type: "button", class: `act ${what}`, "aria-label": `${label} ${name(this.dependency)}`, on: { click: press } },
      icon,
      el("span", { text: label }),
    );
  }

  #draw() {
    const { pinned, muted } = this.state;
    const { pin, mute } = this.buttons;
    pin.setAttribute("aria-pressed", String(pinned));
    mute.setAttribute("aria-pressed", String(muted));
    pin.title = pinned ? TITLES.unpin : TITLES.pin;
    mute.title = pinned ? TITLES.pinned : muted ? TITLES.unmute : TITLES.mute;
    pin.setAttribute("aria-disabled", String(this.busy));
    mute.setAttribute("aria-disabled", String(this.busy || pinned));
  }

  async #press(what) {
    if (this.buttons[what].getAttribute("aria-disabled") === "true") return;
    if (what === "pin" && !this.state.pinned) {
      askTerms(this.buttons.pin, name(this.dependency), (terms) => this.#act("pin", terms));
      return;
    }
    const action = what === "pin" ? "unpin" : this.state.muted ? "unmute" : "mute";
    try {
      await this.#act(action);
    } catch (error) {
      tell(this.buttons[what], error.message);
    }
  }

  /** Does it, and shows that; an error goes on to whoever can show it. */
  async #act(action, fields = {}) {
    this.busy = true;
    this.#draw();
    try {
      await post(`workspace/${action}`, { table: table(this.dependency), ask: ask(this.dependency), ...fields });
      if (action === "pin") this.state = { pinned: true, muted: false };
      else if (action === "unpin") this.state.pinned = false;
      else this.state.muted = action === "mute";
    } finally {
      this.busy = false;
      this.#draw();
    }
  }
}

/** Why nothing was done, beside the button; it goes when something else is pressed, and moves nothing. */
function tell(button, words) {
  const box = el("div", { class: "refused", role: "alert" }, words);
  box.popover = "auto";
  document.body.append(box);
  box.addEventListener("toggle", ({ newState }) => newState === "closed" && box.remove());
  box.showPopover();
  const at = button.getBoundingClientRect();
  const { width, height } = box.getBoundingClientRect();
  const below = at.bottom + 6 + height < innerHeight;
  box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
  box.style.top = `${below ? at.bottom + 6 : Math.max(8, at.top - 6 - height)}px`;
}

/** Asks on which terms to pin; `pin` does it, and if that fails the reason stands below the terms. */
function askTerms(button, what, pin) {
  const back = wayBack(button.closest("section") ?? document.body, button);
  const fields = TERMS.map(field);
  const refused = el("p", { class: "refused", role: "alert" });
  const submit = el("button", { type: "submit", class: "main", text: "Pin" });
  const cancel = el("button", { type: "button", text: "Cancel", on: { click: () => dialog.close() } });
  const form = el(
    "form",
    {},
    el("h2", { id: "terms-title" }, "Pin ", el("bdi", { class: "code", text: what })),
    el("p", { class: "hint", text: "Every batch then says whether it holds. All of this may be left as it is." }),
    ...fields.map(({ node }) => node),
    refused,
    el("div", { class: "ends" }, cancel, submit),
  );
  const dialog = el("dialog", { class: "terms", "aria-labelledby": "terms-title" }, form);
  let busy = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    submit.setAttribute("aria-disabled", "true");
    try {
      await pin(Object.fromEntries(fields.map(({ name, input }) => [name, input.value.trim() || null])));
      dialog.close();
    } catch (error) {
      refused.textContent = error.message;
    } finally {
      busy = false;
      submit.setAttribute("aria-disabled", "false");
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (!button.isConnected) back(); // its list was made anew meanwhile
  });
  document.body.append(dialog);
  dialog.showModal();
  fields[0].input.focus();
}

function field({ name, label, hint, choices }) {
  const id = `terms-${name}`;
  const input = choices
    ? el("select", { id }, ...choices.map((choice) => el("option", { value: choice, text: choice })))
    : el("input", { id, type: "text", placeholder: hint });
  if (!choices) {
    input.autocomplete = "off";
    input.maxLength = 1000;
  }
  return { name, input, node: el("p", {}, el("label", { for: id, text: label }), input) };
}
