// What broke and what appeared, version by version: bars up and down from a line. It is a slider over versions: the
// arrow keys go from bar to bar, Enter lists the versions of one; + - 0 and the wheel zoom, and so does a drag.

import { get, Latest } from "./api.js";
import { el, failure, fill, number, shortened, visible } from "./dom.js";
import { Still } from "./still.js";
import { svg } from "./svg.js";
import { exactly } from "./times.js";
import { EVENTS } from "./versions.js";

const HEIGHT = 116;
const UP = 66; // of what broke
const BAR = 5; // pixels of a bar, at least
const FEWEST = 8; // versions in view
const STEP = 0.5; // of a zoom
const DRAGGED = 5; // pixels that are a drag, and no click

export class Timeline {
  #latest = new Latest();
  #data = null;
  #view = null; // {since, until}, or null for all versions
  #cursor = null; // a bar
  #picked = null; // the first and last version of the bar that is listed
  #drag = null;
  #isAsked = false; // somebody asked for something that is not there yet

  /** `pick` is told of the bar that is chosen, `look` of the part in view (null: all), `filter` of what is filtered. */
  constructor({ pick, look, filter }) {
    Object.assign(this, { pick, look, filter });
    this.table = el("select", { "aria-label": "Table", on: { change: () => this.#filtered() } });
    this.kind = el("select", { "aria-label": "Kind", on: { change: () => this.#filtered() } });
    this.range = el("span", { class: "range" });
    this.words = el("p", { class: "bar-words" });
    this.picture = svg("svg", {
      class: "timeline", role: "slider", tabindex: 0, height: HEIGHT, width: "100%", "aria-label": "Versions of the workspace",
      // Until there are some: a slider without a value is none.
      "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0, "aria-valuetext": "on their way",
      on: {
        keydown: (e) => this.#key(e),
        pointermove: (e) => this.#move(e),
        pointerleave: () => { if (!this.#drag) this.#point(null); },
        pointerdown: (e) => this.#press(e),
        pointerup: (e) => this.#release(e),
        pointercancel: () => { this.#drag = null; this.#draw(); },
      },
    });
    this.picture.addEventListener("wheel", (e) => this.#wheel(e), { passive: false });
    const button = (label, sign, act) => el("button", { type: "button", "aria-label": label, title: label, text: sign, on: { click: act } });
    this.stage = el("div", { class: "timeline-stage" }, this.picture);
    this.still = new Still(this.stage, { focus: true });
    this.node = el(
      "section",
      { class: "timeline-part", "aria-label": "Timeline" },
      el(
        "div",
        { class: "timeline-head" },
        el("h2", { text: "Timeline" }),
        el("span", { class: "key" }, el("i", { class: "up" }), "broke", el("i", { class: "down" }), "appeared", el("i", { class: "begin" }), "tracked"),
        this.range,
        this.still.button,
        el("label", {}, this.table),
        el("label", {}, this.kind),
        el(
          "div",
          { class: "zooms", role: "group", "aria-label": "Zoom" },
          button("Earlier", "‹", () => this.#pan(-STEP)),
          button("Later", "›", () => this.#pan(STEP)),
          button("Zoom in (+)", "+", () => this.#zoom(STEP)),
          button("Zoom out (-)", "−", () => this.#zoom(1 / STEP)),
          button("All versions (0)", "All", () => this.#look(null)),
        ),
      ),
      this.stage,
      this.words,
    );
    new ResizeObserver(() => this.#resized()).observe(this.stage);
  }

  /** What can be filtered by, and what is. */
  offer(tables, nouns, { table, kind }) {
    const options = (all, entries) => [el("option", { value: "", text: all }), ...entries.map(([value, words]) => el("option", { value, text: words }))];
    fill(this.table, ...options("all tables", tables.map((name) => [name, name])));
    fill(this.kind, ...options("all kinds", Object.entries(nouns).map(([name, [, several]]) => [name, several])));
    this.table.value = tables.includes(table) ? table : "";
    this.kind.value = kind in nouns ? kind : "";
  }

  /** The part in view and the bar that is picked, as an address has them. */
  show(versions, picked) {
    this.#view = versions === undefined ? null : { since: versions.first, until: versions.last };
    this.#picked = picked ?? null;
  }

  /** There may be other versions: they are drawn once nobody points at a bar; the part in view stays. */
  async refresh() {
    await this.#load(this.#data !== null && !this.#isAsked);
  }

  unpick() {
    this.#picked = null;
    this.#draw();
    this.picture.focus({ preventScroll: true });
  }

  get #asked() {
    return { table: this.table.value || null, kind: this.kind.value || null };
  }

  #filtered() {
    const { table, kind } = this.#asked;
    this.filter({ table: table ?? undefined, kind: kind ?? undefined });
    this.#load();
  }

  async #load(again = false) {
    this.#isAsked = !again;
    this.still.drop();
    const width = this.stage.clientWidth || 800;
    const asked = { ...this.#asked, since: this.#view?.since, until: this.#view?.until, buckets: Math.max(10, Math.floor(width / BAR)) };
    try {
      const data = await get("workspace/timeline", asked, { signal: this.#latest.next() });
      this.#isAsked = false;
      if (again) this.still.show(() => this.#turn(data, width));
      else this.#turn(data, width);
    } catch (error) {
      if (error.name !== "AbortError") fill(this.words, failure("The timeline cannot be shown", error));
    }
  }

  /** Draws an answer; the cursor stays at its version. */
  #turn(data, width) {
    const version = this.#cursor === null ? null : this.#data.first[this.#cursor];
    this.#data = data;
    this.width = width;
    const bar = version === null ? -1 : data.first.findIndex((first, i) => first <= version && version <= data.last[i]);
    this.#cursor = bar < 0 ? null : bar;
    this.#draw();
  }

  #resized() {
    if (this.#data !== null && Math.abs(this.stage.clientWidth - this.width) > 2) this.#load();
  }

  // -- drawing --

  #x(bar) {
    const { since, until, first } = this.#data;
    const at = bar >= first.length ? until + 1 : first[bar];
    return ((at - since) / (until - since + 1)) * this.width;
  }

  #draw() {
    const data = this.#data;
    if (data === null) return;
    const { events, first, last } = data;
    const up = first.map((_, i) => events.broke[i] + events.beyond[i]);
    const down = first.map((_, i) => events.appeared[i] + events.within[i]);
    const most = Math.max(1, ...up, ...down);
    // Roots: a version that breaks a thousand leaves one that breaks three to be seen.
    const size = (n, room) => (n ? Math.max(3, Math.sqrt(n / most) * room) : 0);
    const shapes = [];
    first.forEach((version, i) => {
      const x = this.#x(i);
      const width = Math.max(1, Math.min(28, this.#x(i + 1) - x - 1));
      const picked = this.#picked && version >= this.#picked.first && last[i] <= this.#picked.last;
      if (i === this.#cursor || picked) {
        shapes.push(svg("rect", { class: picked ? "picked" : "cursor", x, y: 0, width: Math.max(3, this.#x(i + 1) - x), height: HEIGHT }));
      }
      const [above, below] = [size(up[i], UP - 6), size(down[i], HEIGHT - UP - 8)];
      if (above) shapes.push(svg("rect", { class: "up", x, y: UP - above, width, height: above }));
      if (below) shapes.push(svg("rect", { class: "down", x, y: UP + 1, width, height: below }));
      if (events.tracked[i]) shapes.push(svg("circle", { class: "begin", cx: x + width / 2, cy: UP, r: 3.5 }));
    });
    if (this.#drag?.moved) {
      const [a, b] = [this.#drag.from, this.#drag.to].sort((p, q) => p - q);
      shapes.push(svg("rect", { class: "selection", x: a, y: 0, width: b - a, height: HEIGHT }));
    }
    fill(this.picture, svg("line", { class: "ground", x1: 0, x2: this.width, y1: UP + 0.5, y2: UP + 0.5 }), ...shapes);
    const { since, until } = data;
    fill(this.range, `versions ${number(since)} to ${number(until)}`);
    this.range.title = `${exactly(data.from[0] ?? null)} to ${exactly(data.to.at(-1) ?? null)}`;
    this.#tell();
  }

  #words(bar) {
    const { first, last, from, events, batch_ids: batches } = this.#data;
    const which = first[bar] === last[bar] ? `Version ${number(first[bar])}` : `Versions ${number(first[bar])} to ${number(last[bar])}`;
    const counts = Object.entries(events).filter(([, n]) => n[bar]).map(([event, n]) => `${number(n[bar])} ${EVENTS[event]}`);
    const batch = batches[bar] ? `, batch ${visible(shortened(batches[bar], 60))}` : "";
    return `${which}${batch}, ${exactly(from[bar])}: ${counts.join(", ") || "what holds did not change"}`;
  }

  #tell() {
    const { since, until } = this.#data;
    const bar = this.#cursor;
    const words = bar === null ? "Click a bar for its versions; drag to zoom." : this.#words(bar);
    fill(this.words, words);
    this.picture.setAttribute("aria-valuemin", since);
    this.picture.setAttribute("aria-valuemax", until);
    this.picture.setAttribute("aria-valuenow", bar === null ? until : this.#data.first[bar]);
    this.picture.setAttribute("aria-valuetext", bar === null ? `Versions ${since} to ${until}` : words);
  }

  // -- looking closer --

  #point(bar) {
    if (bar === this.#cursor) return;
    this.#cursor = bar;
    this.#draw();
  }

  /** Looks at a part of the versions; null: at all. */
  #look(view) {
    const newest = this.#data?.version ?? 1;
    if (view !== null) {
      const n = Math.max(FEWEST, Math.round(view.until - view.since + 1));
      const since = Math.max(1, Math.min(Math.round(view.since), newest - n + 1));
      view = n >= newest ? null : { since, until: Math.min(newest, since + n - 1) };
    }
    this.#view = view;
    this.look(view === null ? undefined : { first: view.since, last: view.until });
    this.#load();
  }

  #zoom(factor, middle = 0.5) {
    if (this.#data === null) return;
    const { since, until } = this.#data;
    const n = until - since + 1;
    const at = since + n * middle;
    this.#look({ since: at - n * factor * middle, until: at + n * factor * (1 - middle) - 1 });
  }

  #pan(share) {
    if (this.#data === null || this.#view === null) return;
    const { since, until } = this.#data;
    const by = Math.round((until - since + 1) * share);
    this.#look({ since: since + by, until: until + by });
  }

  #choose(bar) {
    if (bar === null || this.#data === null) return;
    this.#picked = { first: this.#data.first[bar], last: this.#data.last[bar] };
    this.#draw();
    this.pick({ ...this.#picked, ...this.#asked });
  }

  #key(event) {
    if (this.#data === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const end = this.#data.first.length - 1;
    const at = this.#cursor;
    const acts = {
      ArrowLeft: () => this.#point(Math.max(0, (at ?? end + 1) - 1)),
      ArrowRight: () => this.#point(Math.min(end, (at ?? -1) + 1)),
      PageUp: () => this.#pan(-STEP),
      PageDown: () => this.#pan(STEP),
      Home: () => this.#point(0),
      End: () => this.#point(end),
      Enter: () => this.#choose(at),
      " ": () => this.#choose(at),
      "+": () => this.#zoom(STEP),
      "=": () => this.#zoom(STEP),
      "-": () => this.#zoom(1 / STEP),
      0: () => this.#look(null),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  }

  #place(event) {
    const box = this.picture.getBoundingClientRect();
    return Math.max(0, Math.min(this.width - 1, event.clientX - box.left));
  }

  #barAt(x) {
    const { since, until, first, last } = this.#data;
    const version = since + Math.floor((x / this.width) * (until - since + 1));
    const width = last[0] - first[0] + 1;
    return Math.min(first.length - 1, Math.floor((version - since) / width));
  }

  #move(event) {
    if (this.#data === null || !this.#data.first.length) return;
    const x = this.#place(event);
    if (this.#drag) {
      this.#drag.to = x;
      this.#drag.moved ||= Math.abs(x - this.#drag.from) > DRAGGED;
      this.#draw();
    } else this.#point(this.#barAt(x));
  }

  #press(event) {
    if (event.button !== 0 || this.#data === null || !this.#data.first.length) return;
    const x = this.#place(event);
    this.#drag = { from: x, to: x, moved: false };
    this.picture.setPointerCapture(event.pointerId);
  }

  #release(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (drag === null) return;
    if (!drag.moved) {
      this.#choose(this.#barAt(this.#place(event)));
      return;
    }
    const [a, b] = [drag.from, drag.to].sort((p, q) => p - q).map((x) => this.#barAt(x));
    this.#look({ since: this.#data.first[a], until: this.#data.last[b] });
  }

  #wheel(event) {
    if (this.#data === null || !event.deltaY) return;
    event.preventDefault();
    this.#zoom(event.deltaY < 0 ? STEP : 1 / STEP, this.#place(event) / this.width);
  }
}
