// The map: how the tracked tables hang together, as a diagram of boxes and crow's feet, with what is broken beside it.
//
// A click on a table opens it, a click on a reference tells of it. What is selected (`name`, and `ask` of a
// reference) is in the address; all that is not connected with it is dimmed. Tables may be dragged: where they were
// put stays for the session, under the address of the page, which is another one with each start of the server.

import { get } from "./api.js";
import { Camera, fitted, gestures, zoomIn } from "./camera.js";
import { el, failure, fill, loading, notice, plural, wayBack } from "./dom.js";
import { download, pictureOf, pngOf } from "./diagram_export.js";
import { Drawing } from "./diagram_drawing.js";
import { apartOf, stayed } from "./diagram_places.js";
import { overviewPanel, referencePanel, tablePanel } from "./diagram_panels.js";
import { format } from "./route.js";
import { Still } from "./still.js";
import { svg } from "./svg.js";

const PATIENCE_MS = 300; // until tables are shown without their references
const MARGIN = 40;
const CLOSEST = 1.15; // of a few tables that would fill the page
const READABLE = 0.8; // what is looked for is shown at least this large
const FAR = 0.5; // from here only the names of tables are read

class MapView {
  drawing = null;
  selected = {}; // {name, ask}
  matches = []; // of the search
  at = -1; // in these
  version = null;
  stale = true; // there is a newer version than the one that is shown
  asked = 0;

  constructor(page, holder) {
    Object.assign(this, { page, holder });
    this.camera = new Camera();
    this.#build();
    this.#restore();
    fitted(this.stage, () => [], (width, height) => this.#resized(width, height));
    gestures(this.svg, this.camera, {
      moved: () => this.#moved(),
      fit: () => this.#fit(),
      hover: (left, top) => this.#hover(left === null ? null : this.#under(left, top)),
      click: (left, top) => this.#click(this.#under(left, top)),
      grab: (event) => this.#grab(event),
    });
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    this.svg.addEventListener("focusin", (event) => this.#focused(event));
    this.svg.addEventListener("focusout", () => this.#hover(null));
    document.addEventListener("keydown", (event) => this.#anywhere(event));
  }

  follow({ name, ask }) {
    this.selected = { name, ask };
    if (this.stale) this.#load();
    else this.#select();
  }

  leave() {
    this.#hover(null);
  }

  refresh() {
    this.stale = true;
    if (!this.holder.hidden) this.#load();
  }

  // -- what is shown --

  #build() {
    const button = (text, title, click) => el("button", { type: "button", class: "tool", title, on: { click } }, text);
    this.box = el("input", {
      type: "search", class: "find", placeholder: "Find a table or column", "aria-label": "Find a table or column",
      title: "Enter goes to what is found, Shift+Enter back (/)",
      on: { input: () => this.#find(), keydown: (event) => this.#findKey(event) },
    });
    this.nMatches = el("span", { class: "n-found", role: "status" });
    this.again = button("Lay out again", "Put the tables that were dragged back to where they belong", () => this.#layOut());
    this.exports = [
      button("SVG", "Save the map as a picture without bounds", () => this.#save("svg")),
      button("PNG", "Save the map as an image", () => this.#save("png")),
      button("Mermaid", "Save keys and references as a Mermaid diagram", () => this.#save("mermaid")),
    ];
    for (const tool of [this.again, ...this.exports]) tool.disabled = true; // until there is a map
    this.svg = svg("svg", { class: "er", tabindex: 0, role: "group", "aria-label": "Map of the tables" });
    this.stage = el("div", { class: "diagram-stage" });
    this.stage.append(this.svg);
    this.status = el("p", { class: "diagram-status", role: "status" });
    this.message = el("div", { class: "message" }, loading("Reading tables"));
    this.aside = el("aside", { class: "right", "aria-label": "References" });
    this.still = new Still(this.aside);
    const zoom = el(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      ...[
        ["+", "Zoom in (+)", "Zoom in", () => zoomIn(this.camera, 1.3)],
        ["−", "Zoom out (-)", "Zoom out", () => zoomIn(this.camera, 1 / 1.3)],
        ["⤢", "Show all (0)", "Show all", () => this.#fit()],
      ].map(([text, title, label, move]) => el("button", {
        type: "button", title, "aria-label": label, text, on: { click: () => { move(); this.#moved(); } },
      })),
    );
    fill(
      this.holder,
      el(
        "section",
        { class: "diagram-middle", "aria-label": "Diagram" },
        el(
          "div",
          { class: "tools" },
          el("div", { class: "finding" }, this.box, this.nMatches),
          this.again,
          el("div", { class: "save", role: "group", "aria-label": "Save the map" }, ...this.exports),
        ),
        el("div", { class: "diagram-paper" }, this.stage, this.status, zoom, this.message),
        legend(),
      ),
      this.aside,
    );
  }

  async #load() {
    const asked = (this.asked += 1);
    this.stale = false;
    const current = () => asked === this.asked;
    try {
      if (this.drawing === null) {
        const boxes = await get("workspace/map", { references: "no" });
        if (!current()) return;
        if (!boxes.tables.length) {
          this.#nothing();
          return;
        }
        setTimeout(() => {
          if (current() && this.version === null) this.#show(boxes, `Working out which inclusions among ${plural(boxes.tables.length, "table")} are references …`);
        }, PATIENCE_MS);
      }
      const answer = await get("workspace/map");
      if (!current()) return;
      if (!answer.tables.length) {
        this.#nothing();
        return;
      }
      this.version = answer.version;
      this.answer = answer;
      this.#show(answer, "");
      requestAnimationFrame(() => setTimeout(() => performance.mark("holdfast-painted-map", {
        detail: { tables: answer.tables.length, references: answer.references.length },
      })));
    } catch (error) {
      if (!current()) return;
      this.stale = true;
      this.message.hidden = false;
      fill(this.message, failure("The map cannot be drawn", error));
    }
  }

  #nothing() {
    this.drawing = null;
    this.isComplete = false;
    fill(this.svg);
    this.holder.classList.add("bare");
    this.message.hidden = false;
    const how = "Track some with: holdfast track-all FOLDER --kinds ucc,ind. Then they are drawn here, with what refers to what.";
    fill(this.message, notice("No tracked table", how));
    fill(this.aside);
  }

  #show(answer, words) {
    this.holder.classList.remove("bare");
    this.message.hidden = true;
    const first = !this.isComplete;
    this.isComplete = words === "";
    if (answer.style !== this.style) this.#dress(answer.style);
    const focused = document.activeElement?.closest?.(".diagram .table")?.dataset.table;
    // The first time tables go where they belong; from then on each stays where it is seen.
    const places = first ? null : stayed(answer, this.drawing.tables, this.put);
    const apart = places === null ? answer.apart : apartOf(answer, this.drawing.answer.apart, places);
    this.drawing = new Drawing({ ...answer, apart }, places ?? this.put);
    this.hovered = this.hovered && (this.hovered.path
      ? this.drawing.reference(this.hovered.data.child, this.hovered.data.ask)
      : this.drawing.tables.get(this.hovered.data.name)) || null;
    fill(this.svg, this.drawing.node);
    this.again.disabled = !this.isComplete || (places === null && !Object.keys(this.put).some((name) => this.drawing.tables.has(name)));
    fill(this.status, ...(words ? [el("span", { class: "spinner", "aria-hidden": "true" }), words] : []));
    for (const button of this.exports) button.disabled = words !== "";
    if (first && !this.touched) this.#fit();
    this.#moved(false);
    this.#find();
    this.#light();
    this.still.show(() => this.#select(first));
    if (focused !== undefined) [...this.svg.querySelectorAll(".table")].find((n) => n.dataset.table === focused)?.querySelector("[role=link]").focus();
  }

  /** The rules of the picture, on the page too; `diagram.css` has its colours here. */
  #dress(style) {
    this.style = style;
    if (this.sheet === undefined) {
      this.sheet = new CSSStyleSheet();
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
    }
    this.sheet.replaceSync(style);
  }

  // -- the view --

  #resized(width, height) {
    const [first, before] = [this.camera.width === 1, [this.camera.width, this.camera.height]];
    Object.assign(this.camera, { width, height });
    if (this.drawing === null) return;
    if (first || (!this.touched && before[0] !== width)) this.#fit();
    this.#moved(false);
  }

  #fit() {
    if (this.drawing === null) return;
    this.camera.fit(this.drawing.box, Math.min(MARGIN, this.camera.width / 20), CLOSEST);
    this.touched = false;
    this.#moved(false);
  }

  #moved(touched = true) {
    if (this.drawing === null) return;
    if (touched) this.touched = true;
    const { camera, drawing } = this;
    const place = `translate(${camera.left(0).toFixed(2)} ${camera.top(0).toFixed(2)}) scale(${camera.scale.toFixed(4)})`;
    drawing.node.setAttribute("transform", place);
    const far = camera.scale < FAR;
    if (far || drawing.far) drawing.name(camera.scale, far);
    drawing.far = far;
    this.svg.classList.toggle("far", far);
  }

  /** Shows a table in the middle, and large enough to be read. */
  #goTo({ box }) {
    const { camera } = this;
    camera.scale = Math.max(camera.scale, READABLE);
    camera.x = box.x + box.width / 2;
    camera.y = box.y + box.height / 2;
    this.#moved();
  }

  #isSeen({ box }) {
    const { camera } = this;
    const [left, top] = [camera.left(box.x + box.width / 2), camera.top(box.y + Math.min(box.height, 60) / 2)];
    return left > 20 && top > 20 && left < camera.width - 20 && top < camera.height - 20;
  }

  // -- what is pointed at, and selected --

  /** The table or reference at a place of the stage; null: none. */
  #under(left, top) {
    const corner = this.svg.getBoundingClientRect();
    return this.#of(document.elementFromPoint(corner.left + left, corner.top + top));
  }

  #of(node) {
    const group = node?.closest?.(".diagram .table, .diagram .reference");
    if (!group || this.drawing === null) return null;
    return [...this.drawing.tables.values(), ...this.drawing.references].find((one) => one.node === group) ?? null;
  }

  #hover(one) {
    this.svg.classList.toggle("pointing", one !== null);
    if (one === this.hovered) return;
    this.hovered = one;
    this.#light();
  }

  /** What is selected, or else what is pointed at, and all that it is connected with; the rest is dimmed. */
  #light() {
    const { drawing, selected, hovered } = this;
    if (drawing === null) return;
    const one = (selected.ask && drawing.reference(selected.name, selected.ask)) || drawing.tables.get(selected.name) || hovered;
    if (!one) drawing.light(null, null);
    else {
      const references = one.path ? [one] : drawing.of(one.data.name);
      const names = references.flatMap(({ data }) => [data.child, data.parent]);
      drawing.light(new Set(one.path ? names : [one.data.name, ...names]), new Set(references));
    }
  }

  #click(one) {
    if (one === null) this.#choose({});
    else if (one.path) this.#choose({ name: one.data.child, ask: one.data.ask });
    else this.#open(one.data.name);
  }

  /** A table in its own view; back on the map it is selected. */
  #open(name) {
    this.#choose({ name });
    this.page.go({ tab: "table", name });
  }

  /** Selects a table or a reference, without a step of the history. */
  #choose({ name, ask }) {
    if (name === this.selected.name && ask === this.selected.ask) return;
    this.selected = { name, ask };
    this.page.write({ tab: "map", name, ask });
    this.#select(false);
  }

  #select(go = true) {
    const { drawing, selected } = this;
    if (drawing === null) return;
    this.still.drop();
    this.page.link("map", { tab: "map", ...selected });
    this.#light();
    const reference = selected.ask ? drawing.reference(selected.name, selected.ask) : undefined;
    const table = drawing.tables.get(selected.name);
    if (go && table !== undefined && !this.#isSeen(table)) this.#goTo(table);
    const links = {
      to: (route) => format({ tab: "map", ...route }),
      choose: (route) => this.#chooseAndShow(route),
    };
    // The same beside it is made anew, of another version or another choice: the focus stays, and the place.
    const back = wayBack(this.aside, document.activeElement);
    const seen = JSON.stringify(selected);
    const scrolled = seen === this.seen ? this.aside.querySelector(".scroll")?.scrollTop : 0;
    this.seen = seen;
    if (reference !== undefined) referencePanel(this.aside, reference.data, links, drawing.answer);
    else if (table !== undefined) tablePanel(this.aside, table.data, drawing.of(selected.name), links);
    else overviewPanel(this.aside, drawing.answer, links, this.version !== null);
    this.aside.querySelector(".scroll")?.scrollTo(0, scrolled ?? 0);
    back();
  }

  #chooseAndShow(route) {
    this.#choose(route);
    const table = this.drawing.tables.get(route.name);
    if (table !== undefined && !this.#isSeen(table)) this.#goTo(table);
    this.aside.querySelector("h2")?.focus();
  }

  #key(event) {
    const one = this.#of(event.target);
    if (one === null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") this.#open(one.data.name);
    else if (event.key === " ") this.#choose({ name: one.data.name });
    else return;
    event.preventDefault();
  }

  #focused(event) {
    const one = this.#of(event.target);
    if (one === null || !event.target.matches(":focus-visible")) return;
    if (!this.#isSeen(one)) this.#goTo(one);
    this.#hover(one);
  }

  #anywhere(event) {
    if (this.holder.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      this.box.focus();
      this.box.select();
    } else if (event.key === "Escape" && !typing) this.#choose({});
  }

  // -- search --

  #find() {
    if (this.drawing === null) return;
    const text = this.box.value.trim();
    this.matches = this.drawing.find(text);
    this.at = -1;
    this.nMatches.textContent = !text ? "" : this.matches.length ? plural(this.matches.length, "table") : "nothing";
  }

  #findKey(event) {
    if (event.key === "Escape") {
      this.box.value = "";
      this.#find();
      this.box.blur();
    } else if (event.key === "Enter" && this.matches.length) {
      const n = this.matches.length;
      this.at = this.at < 0 ? 0 : (this.at + (event.shiftKey ? n - 1 : 1)) % n;
      const table = this.matches[this.at];
      this.nMatches.textContent = `${this.at + 1} of ${n}`;
      this.#choose({ name: table.data.name });
      this.#goTo(table);
    }
  }

  // -- dragging --

  get #key_of_places() {
    return `holdfast-map:${location.pathname}`;
  }

  #restore() {
    this.put = {};
    try {
      const saved = JSON.parse(sessionStorage.getItem(this.#key_of_places) ?? "{}");
      for (const [name, [x, y]] of Object.entries(saved)) {
        if (Number.isFinite(x) && Number.isFinite(y)) this.put[name] = [x, y];
      }
    } catch {
      this.put = {}; // not ours, or nothing may be stored: the layout of the server it is
    }
  }

  #remember() {
    this.again.disabled = !this.isComplete || !Object.keys(this.put).length;
    try {
      sessionStorage.setItem(this.#key_of_places, JSON.stringify(this.put));
    } catch {
      // A browser that stores nothing: places last as long as the page.
    }
  }

  #grab(event) {
    const one = this.#of(event.target);
    if (one === null || one.path) return null;
    const { name } = one.data;
    return {
      move: (dx, dy) => {
        if (one.node.nextSibling) one.node.parentNode.append(one.node); // above the others
        this.put[name] = this.drawing.move(name, dx / this.camera.scale, dy / this.camera.scale);
      },
      drop: () => this.#remember(),
    };
  }

  #layOut() {
    this.put = {};
    this.#remember();
    this.touched = false;
    this.isComplete = false;
    this.#show(this.answer, "");
    this.#fit();
  }

  // -- files --

  async #save(what) {
    const name = `holdfast-map-${this.version}`;
    try {
      if (what === "svg") download(new Blob([pictureOf(this.drawing).text], { type: "image/svg+xml" }), `${name}.svg`);
      else if (what === "png") download(await pngOf(this.drawing), `${name}.png`);
      else download(new Blob([(await get("workspace/map/mermaid")).text], { type: "text/plain" }), `${name}.mmd`);
      fill(this.status);
    } catch (error) {
      fill(this.status, failure("The file cannot be made", error));
    }
  }
}

export const open = (page, holder) => new MapView(page, holder);

/** What the ends and kinds of lines mean. */
function legend() {
  const mark = (kind, words, ...shapes) => el(
    "span",
    {},
    svg("svg", { class: "er", width: 26, height: 12, viewBox: "0 -6 26 12" }, svg("g", { class: `reference ${kind}` }, ...shapes)),
    words,
  );
  const line = () => svg("path", { class: "way", d: "M0 0H26" });
  return el(
    "div",
    { class: "legend meanings", "aria-hidden": "true" },
    mark("holds", "any number", line(), svg("path", { d: "M0 -5L9 0L0 5" }), svg("circle", { cx: 13, r: 3 })),
    mark("holds", "at most one", line(), svg("path", { d: "M6 -5V5" }), svg("circle", { cx: 13, r: 3 })),
    mark("holds", "exactly one", line(), svg("path", { d: "M6 -5V5M11 -5V5" })),
    mark("broken", "broken", line()),
    mark("unproved", "unproved", line()),
    el("span", { class: "words", text: "96% on a line: so many values of the parent are used" }),
  );
}
