// The life of a dependency: on a line, and as a list with what turned it.

import { ErrorLine } from "./errorline.js";
import { el, fill, hint, number, paged, plural, refill, text } from "./dom.js";
import { format } from "./route.js";
import { witnesses } from "./witnesses.js";

const WORDS = { true: "Held", false: "Did not hold", null: "Not known" };
const NOW = { true: "Holds", false: "Does not hold", null: "Not known" };
const CLASSES = { true: "held", false: "broken", null: "unknown" };
const MANY = 14; // stretches that have no room for words
const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const YEARLY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });

/** "18 Nov 2026, 19:39 UTC" */
export function moment(at) {
  const time = new Date(at);
  return at && !Number.isNaN(time.getTime()) ? `${YEARLY.format(time)}, ${time.toISOString().slice(11, 16)} UTC` : "";
}

const day = (at) => (at ? SHORT.format(new Date(at)) : "");

/** What a life comes to, in one sentence; `holds` is what is so now. */
export function inShort({ stretches }, holds) {
  if (!stretches.length) return "";
  const now = stretches.at(-1);
  const since = `since version ${number(now.first)}${now.begun?.at ? `, ${moment(now.begun.at)}` : ""}`;
  const breaks = stretches.filter((s, i) => i && s.holds === false).length;
  if (now.holds === null) return "";
  if (stretches.length === 1) {
    const begun = now.begun?.action === "track" ? `as long as the table is tracked, ${since}` : since;
    return holds ? `It has held ${begun}.` : `It has never held ${begun}.`;
  }
  const again = breaks - (holds ? 0 : 1);
  const before = again === 1 ? "It broke once before." : `It broke ${number(again)} times before.`;
  const known = stretches.filter((s) => s.holds !== null);
  if (known.length === 1) return `It ${holds ? "has held" : "has not held"} ${since}; before that nobody kept watch.`;
  if (holds) return `It holds ${since}. ${breaks ? `It broke ${breaks === 1 ? "once" : `${number(breaks)} times`} before.` : "Before that it did not."}`;
  const held = stretches.some((s) => s.holds);
  return `It is broken ${since}. ${!held ? "It never held." : again ? before : "Until then it had never broken."}`;
}

/** A stretch in words: "Held in versions 2 to 5". */
function inWords(stretch) {
  const last = stretch.last === null;
  const words = (last ? NOW : WORDS)[stretch.holds];
  if (last) return `${words} since version ${number(stretch.first)}`;
  const where = stretch.first === stretch.last ? `version ${number(stretch.first)}` : `versions ${number(stretch.first)} to ${number(stretch.last)}`;
  return `${words} in ${where}`;
}

export class Lifeline {
  constructor() {
    this.node = el("section", { class: "life", "aria-labelledby": "life-title" });
    this.chosen = null; // the version that begins the stretch that is open
  }

  show(life, table) {
    const { stretches, n_stretches: n, versions, n_versions: nVersions, note } = life;
    const errors = new ErrorLine(life.against);
    const title = el("h3", { id: "life-title" }, "Its life ", stretches.length ? el("span", { class: "count", text: plural(nVersions, "version") }) : null);
    if (!stretches.length) {
      fill(this.node, title, hint(`Not known: ${note}`));
      return;
    }
    const held = stretches.some((s) => s.first === this.chosen);
    if (!held) this.chosen = (stretches.findLast((s) => s.holds === false && s.changes.length) ?? stretches.at(-1)).first;
    const passed = spans(stretches, versions);
    this.bars = stretches.map((s, i) => this.#bar(s, passed[i].length, errors.part(passed[i])));
    this.items = new Map();
    const line = el(
      "div",
      { class: `life-line${stretches.length > MANY ? " many" : ""}`, role: "group", "aria-label": "When it held; arrow keys go along the line", on: { keydown: (e) => this.#key(e) } },
      ...this.bars,
    );
    for (const [i, bar] of this.bars.entries()) bar.style.flexGrow = String(Math.max(1, passed[i].length));
    const newest = [...stretches].reverse();
    const list = paged(newest, (s) => this.#item(s, table), el("ol", { class: "turns" }), 30);
    const earlier = n > stretches.length ? hint(`and ${plural(n - stretches.length, "earlier stretch", "earlier stretches")}`) : null;
    refill(this.node, title, line, errors.words(), legend(stretches), list, earlier);
    this.#mark();
  }

  /** `line`: what is drawn below it, or null. */
  #bar(stretch, n, line) {
    const names = [inWords(stretch), stretch.begun?.batch_id ? `batch ${stretch.begun.batch_id}` : "", moment(stretch.begun?.at)];
    const words = names.filter(Boolean).join(", ");
    const bar = el(
      "button",
      {
        type: "button", class: `stretch ${CLASSES[stretch.holds]}`, title: words,
        "aria-label": `v${number(stretch.first)} ${day(stretch.begun?.at)}: ${words}; ${plural(n, "version")}`, "aria-pressed": "false", tabindex: -1,
        on: { click: () => this.#choose(stretch.first) },
      },
      el("span", { class: "stroke", "aria-hidden": "true" }),
      line,
      el("span", { class: "mark", "aria-hidden": "true" }, `v${number(stretch.first)} `, el("i", { text: day(stretch.begun?.at) })),
    );
    bar.dataset.version = String(stretch.first);
    return bar;
  }

  #choose(version) {
    this.chosen = version;
    this.#mark();
    const item = this.items.get(version);
    if (item === undefined) return; // one of many, further down
    item.open = true;
    item.scrollIntoView({ block: "nearest" });
  }

  #mark() {
    for (const bar of this.bars) {
      const chosen = bar.dataset.version === String(this.chosen);
      bar.setAttribute("aria-pressed", String(chosen));
      bar.tabIndex = chosen ? 0 : -1;
    }
    if (!this.bars.some((bar) => bar.tabIndex === 0)) this.bars.at(-1).tabIndex = 0;
  }

  #key(event) {
    const at = this.bars.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.bars.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const bar = this.bars[Math.min(Math.max(to, 0), this.bars.length - 1)];
    for (const other of this.bars) other.tabIndex = other === bar ? 0 : -1;
    bar.focus();
  }

  /** A stretch as an entry of the list: what began it, and the rows that did. */
  #item(stretch, table) {
    const { begun } = stretch;
    const moved = (begun?.tables ?? []).map((t) => {
      const parts = [
        t.n_inserted ? `+${number(t.n_inserted)}` : "", t.n_deleted ? `−${number(t.n_deleted)}` : "",
      ].filter(Boolean).join(" ");
      const rows = t.n_inserted + t.n_deleted === 1 ? "row" : "rows";
      return `${t.table === table && begun.tables.length === 1 ? "" : `${t.table} `}${parts ? `${parts} ${rows}` : ""}`.trim();
    }).filter(Boolean).join(", ");
    const changes = stretch.changes.map((c) => turn(c, stretch, table));
    const body = changes.length ? changes : [hint(silence(stretch))];
    const details = el(
      "details",
      { open: stretch.first === this.chosen },
      el(
        "summary",
        {},
        el("span", { class: `stretch-state ${CLASSES[stretch.holds]}`, text: inWords(stretch) }),
        begun?.action && begun.action !== "apply" ? el("span", { class: "action", text: ACTIONS[begun.action] ?? begun.action }) : null,
        begun?.batch_id ? el("span", {}, "batch ", text(begun.batch_id, "name", 60)) : null,
        el("span", { class: "aside", text: moved }),
        el("time", { text: moment(begun?.at) }),
      ),
      ...body,
    );
    this.items.set(stretch.first, details);
    return el("li", {}, details);
  }
}

const ACTIONS = { track: "the table was tracked", pin: "it was pinned", drop: "a table was dropped" };

function silence(stretch) {
  if (stretch.begun?.action === "track") return stretch.holds ? "It held in the rows that were there." : "It did not hold in the rows that were there.";
  if (stretch.begun?.action === "pin") return stretch.holds ? "It held when it was pinned." : "It did not hold when it was pinned.";
  if (stretch.holds === null) return "Nobody kept watch over it.";
  return "The log lists no rows for it at this version.";
}

/** A change of the log: the dependency's own, or that of a narrower one which it followed from. */
function turn(c, stretch, table) {
  const link = el("a", { class: "code", href: format({ tab: "dependency", name: c.dependency.table ?? table, ask: c.ask }) }, text(c.text, "code", 300));
  const how = c.change === "broke" ? "broke" : "came to hold";
  const what = c.itself
    ? el("p", { class: "why" }, c.reason ? `It ${c.reason}` : `It ${how}`)
    : el("p", { class: "why" }, stretch.holds ? "It follows from " : "It had followed from ", link, `, which ${how}${c.reason ? `: ${c.reason}` : ""}`);
  return el("div", { class: "turn" }, what, ...witnesses(c));
}

/** The versions that each stretch goes through. */
function spans(stretches, versions) {
  const numbers = versions.map(([version]) => version);
  return stretches.map((s) => numbers.filter((v) => v >= s.first && (s.last === null || v <= s.last)));
}

function legend(stretches) {
  const there = new Set(stretches.map((s) => String(s.holds)));
  const names = { true: "held", false: "did not hold", null: "not known" };
  return el("p", { class: "life-legend", "aria-hidden": "true" }, ...Object.keys(names).filter((k) => there.has(k)).map((k) => el(
    "span", {}, el("i", { class: `swatch ${CLASSES[k]}` }), names[k],
  )));
}
