// What holds in a table: one ranked list, filtered by kind, column, score and text. The server keeps the order and
// filters; here are the pages that were asked for.

import { actions } from "./actions.js";
import { get, Latest } from "./api.js";
import { bar, count, el, failure, fill, loading, notice, number, plural, refill, score, share, text, values } from "./dom.js";
import { format } from "./route.js";
import { Still } from "./still.js";

const PAGE = 50;
const TYPING_MS = 120;
const SHORT = { ucc: "Key", fd: "FD", ind: "Inclusion", dc: "Rule", row: "Row rule", profile: "Column rule" };

/** A dependency as a link to all about it; `words` in place of its text. */
export function link(d, table = d.table, words = null) {
  const href = format({ tab: "dependency", name: table, ask: d.ask ?? d.text });
  return el("a", { class: "ask", href }, words === null ? text(d.text, "code", 400) : words);
}

/** Since when it holds: the version, and the time on demand. */
export function since({ since: moment }) {
  if (!moment) return el("span", { class: "since" });
  const day = moment.at ? moment.at.slice(0, 10) : "";
  const title = `Holds since version ${number(moment.version)}${moment.at ? `, ${moment.at.slice(0, 19).replace("T", " ")} UTC` : ""}`;
  return el("span", { class: "since", title }, `since v${number(moment.version)} `, el("span", { class: "day", text: day }));
}

export class Dependencies {
  #latest = new Latest();
  #typing = null;
  #turn = Promise.resolve(); // the end of what goes on in the list
  #list = 0; // how many lists there were: each has another filter

  /** `wrote` is told of what is wanted when that changes here, `chose` of the column. */
  constructor(page, table, nouns, { wrote, chose }) {
    this.page = page;
    this.table = table;
    this.nouns = nouns;
    this.wrote = wrote;
    this.chose = chose;
    this.wanted = {};
    this.answered = null; // what was wanted of the list that is there
    this.loaded = []; // the pages so far, in one
    this.withChance = false;
    this.painted = false;
    this.above = null; // a promise, if something is still to come above the list
    this.head = el("h3", { text: "What holds" });
    this.kinds = el("div", { class: "chips-of-kinds", role: "group", "aria-label": "Kinds" });
    this.input = el("input", {
      type: "search", class: "narrow", placeholder: "Columns or words, such as: zip -> city", "aria-label": "Search what holds",
      on: { input: () => this.#typed() },
    });
    this.input.autocomplete = "off";
    this.input.spellcheck = false;
    this.output = el("output", { text: "≥ 0.00" });
    this.slider = el("input", {
      type: "range", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "Least score",
      on: { input: () => this.#slid() },
    });
    const slider = el("label", { class: "slider", title: "Hides what has a lower score" }, el("span", { text: "Score" }), this.slider, this.output);
    this.column = el("div", { class: "of-column" });
    this.status = el("p", { class: "status", role: "status" });
    this.list = el("ol", { class: "dependencies" });
    this.still = new Still(this.list);
    this.more = el("div", { class: "further" });
    this.node = el(
      "section",
      { class: "of-dependencies", "aria-label": "What holds" },
      this.head,
      el("div", { class: "narrowing" }, this.kinds, el("div", { class: "by-text" }, this.input, slider), el("div", { class: "told" }, this.column, this.status)),
      this.list,
      this.more,
    );
    fill(this.list, el("li", { class: "waiting" }, loading("What holds")));
  }

  /** Whatever goes on in the list ends. */
  stop() {
    clearTimeout(this.#typing);
    this.#list += 1;
    this.#latest.stop();
  }

  /** Shows what a route wants; nothing is asked for if that is there. */
  async follow({ column, kind, q, score: least }) {
    const wanted = { column, kind, q, score: least };
    const isFirst = !this.painted;
    const isThere = this.answered === this.wanted && JSON.stringify(wanted) === JSON.stringify(this.wanted);
    if (isThere) this.#reflect();
    else await this.#turnTo(wanted);
    // Whoever comes for some of the list is led to it, once all above it is there.
    if (isFirst && Object.values(wanted).some((value) => value !== undefined)) {
      await this.above;
      this.#lead("auto");
    }
  }

  /** Wants other things than so far, and leads there. */
  show(wanted) {
    this.#want({ column: undefined, q: undefined, score: undefined, kind: undefined, ...wanted });
    this.#lead();
    this.input.focus({ preventScroll: true });
  }

  /** The list of one column, or of all again. */
  toggle(column) {
    const isOn = this.wanted.column === column;
    this.#want({ column: isOn ? undefined : column });
    if (!isOn) this.#lead();
  }

  #lead(behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth") {
    this.node.scrollIntoView({ block: "start", behavior });
  }

  /** The same of a new version, in place: as many as there are. */
  refresh() {
    return this.#inTurn(() => this.#ask(Math.max(PAGE, this.loaded.length), this.withChance, true));
  }

  #want(change) {
    const wanted = { ...this.wanted, ...change };
    this.page.write({ tab: "table", name: this.table, ...wanted });
    this.wrote(wanted);
    this.#turnTo(wanted);
  }

  /** Another list. */
  #turnTo(wanted) {
    this.stop();
    this.wanted = wanted;
    this.answered = null;
    this.#reflect();
    return this.#inTurn(() => this.#ask());
  }

  /** One thing after the other, as long as it is the same list: a new version does not push aside the page that
  somebody has just asked for, nor is it pushed aside. */
  #inTurn(act) {
    const list = this.#list;
    const turn = this.#turn.then(() => (list === this.#list ? act() : undefined));
    this.#turn = turn.catch(() => {}); // whoever began it hears of it
    return turn;
  }

  #typed() {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => this.#want({ q: this.input.value.trim() || undefined }), TYPING_MS);
  }

  #slid() {
    const least = Number(this.slider.value);
    this.output.textContent = `≥ ${score(least)}`;
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => this.#want({ score: least || undefined }), TYPING_MS);
  }

  /** What is wanted, as the controls show it. */
  #reflect() {
    const { column, q, score: least } = this.wanted;
    if (this.input.value.trim() !== (q ?? "")) this.input.value = q ?? "";
    this.slider.value = String(least ?? 0);
    this.output.textContent = `≥ ${score(least ?? 0)}`;
    fill(this.column, column === undefined ? null : el(
      "button",
      { type: "button", class: "chip", title: "Show those of all columns again", on: { click: () => this.toggle(column) } },
      "Column ", text(column, "name", 40), el("span", { "aria-hidden": "true", text: " ×" }),
    ));
    this.chose(column);
  }

  /** `again`: the same as before, of a newer version; rows then wait for the pointer to leave. */
  async #ask(limit = PAGE, withChance = false, again = false) {
    this.still.drop();
    const { wanted } = this;
    const signal = this.#latest.next();
    this.withChance = withChance;
    const parameters = this.#parameters({ limit: Math.min(1000, limit) });
    try {
      const answer = await get("workspace/dependencies", parameters, { signal });
      if (signal.aborted) return;
      this.answered = wanted;
      const paint = () => {
        this.loaded = answer.dependencies;
        this.answer = answer;
        this.#paint();
      };
      if (again) this.still.show(paint);
      else paint();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.status.textContent = "";
      fill(this.list, el("li", {}, failure("What holds cannot be listed", error)));
      fill(this.more);
    }
  }

  #parameters(more) {
    const { column, kind, q, score: least } = this.wanted;
    return { table: this.table, column, kind, q, least_score: least, ...more };
  }

  #paint() {
    const { n, n_matching: nMatching, n_chance: nChance, n_muted: nMuted, by_kind: byKind } = this.answer;
    const nMeant = nMatching - nChance - nMuted;
    fill(this.head, "What holds ", count(n));
    this.#paintKinds(byKind);
    const said = [nMatching === n ? plural(n, "dependency", "dependencies") : `${number(nMatching)} of ${plural(n, "dependency", "dependencies")}`];
    if (nChance) said.push(`${number(nChance)} ${nChance === 1 ? "looks" : "look"} like chance`);
    if (nMuted) said.push(`${number(nMuted)} ${nMuted === 1 ? "is" : "are"} muted`);
    this.status.textContent = `${said.join(", ")}. The best come first.`;
    const rows = this.loaded.slice(0, this.withChance ? this.loaded.length : nMeant);
    const none = nMatching ? notice(`Only what ${this.#folded()}`, "It is folded away below.") : this.#nothing(n);
    refill(this.list, ...(rows.length ? rows.map((d) => this.#row(d)) : [el("li", {}, none)]));
    this.#further(rows.length, nMeant, nMatching);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      performance.mark(this.painted ? "holdfast-filtered" : "holdfast-painted-table");
      this.painted = true;
    }));
  }

  #nothing(n) {
    if (!n) return notice("Nothing is known to hold", "Of the kinds that the table is tracked for, nothing holds in it.");
    return notice("Nothing matches", "Take a filter away: the text, the column, the kind or the least score.");
  }

  /** Why some of what matches is folded away. */
  #folded() {
    const { n_chance: nChance, n_muted: nMuted } = this.answer;
    return [nChance ? "looks like chance" : null, nMuted ? "is muted" : null].filter(Boolean).join(" or ");
  }

  /** A button for the next page, and one for what is folded away. */
  #further(shown, nMeant, nMatching) {
    const until = this.withChance ? nMatching : nMeant;
    const rest = until - shown;
    const button = (words, act = () => {}) => {
      const click = ({ currentTarget }) => {
        if (currentTarget.ariaDisabled) return; // asked for already
        currentTarget.ariaDisabled = "true";
        act();
        this.#inTurn(() => this.#next());
      };
      return el("button", { type: "button", class: "more", text: words, on: { click } });
    };
    refill(
      this.more,
      rest > 0 ? button(`Show ${number(Math.min(PAGE, rest))} more of ${number(rest)}`) : null,
      rest <= 0 && nMatching > until ? button(`Show what ${this.#folded()} (${number(nMatching - until)})`, () => {
        this.withChance = true;
      }) : null,
    );
  }

  async #next() {
    this.still.now();
    const signal = this.#latest.next();
    const { n_chance: nChance, n_muted: nMuted, n_matching: nMatching } = this.answer;
    const nMeant = nMatching - nChance - nMuted;
    const shown = this.list.querySelectorAll(":scope > .dependency").length;
    const first = shown ? null : this.list;
    try {
      const answer = await get("workspace/dependencies", this.#parameters({ offset: shown, limit: PAGE }), { signal });
      if (signal.aborted) return;
      this.loaded = [...this.loaded.slice(0, shown), ...answer.dependencies];
      const until = this.withChance ? nMatching : nMeant;
      const rows = answer.dependencies.slice(0, until - shown).map((d) => this.#row(d));
      if (first) fill(first);
      this.list.append(...rows);
      this.#further(shown + rows.length, nMeant, nMatching);
      rows[0]?.querySelector("a")?.focus({ preventScroll: true }); // the button may be gone
    } catch (error) {
      if (error.name !== "AbortError") fill(this.more, failure("No more can be listed", error));
    }
  }

  #paintKinds(byKind) {
    const all = Object.values(byKind).reduce((a, b) => a + b, 0);
    const entries = [[undefined, "All", all], ...Object.entries(byKind).map(([kind, n]) => [kind, this.#noun(kind), n])];
    refill(this.kinds, ...entries.map(([kind, words, n]) => el(
      "button",
      {
        type: "button", value: kind ?? "", "aria-pressed": String(kind === this.wanted.kind), disabled: n === 0 && kind !== this.wanted.kind,
        on: { click: () => this.#want({ kind }) },
      },
      `${words} `, count(n),
    )));
  }

  #noun(kind) {
    const several = this.nouns[kind]?.[1] ?? kind;
    return several[0].toUpperCase() + several.slice(1);
  }

  #row(d) {
    const notes = note(d);
    const words = d.sentence ? [el("a", { class: "ask words", href: link(d, this.#tableOf(d)).getAttribute("href"), text: d.sentence }), text(d.text, "code", 400)] : [link(d, this.#tableOf(d))];
    return el(
      "li",
      { class: `dependency${["chance", "muted"].includes(d.role) ? " chance" : ""}` },
      el("span", { class: "kind", text: SHORT[d.kind] ?? this.nouns[d.kind]?.[0] ?? d.kind }),
      el(
        "div",
        { class: "what" },
        ...words,
        ["pinned", "foreign key", "primary key", "muted"].includes(d.role) ? el("span", { class: "flag role", text: d.role }) : null,
        notes ? el("span", { class: "aside", text: notes }) : null,
      ),
      since(d),
      meter(d.score),
      el("span", { class: "doing" }, actions(this.page, d)),
    );
  }

  /** An inclusion is asked for where it starts. */
  #tableOf(d) {
    return d.kind === "ind" ? d.dependent.table : this.table;
  }
}

/** What is worth saying of a dependency beyond its text. */
function note(d) {
  const notes = [];
  if (d.kind === "fd" && d.role === "dependency" && d.score === 0) notes.push("follows from a key");
  if (d.kind === "ind" && typeof d.coverage === "number") notes.push(`covers ${share(d.coverage)}`);
  if (d.kind === "profile" && d.reason) notes.push(d.reason);
  if (d.error) notes.push(`error ${share(d.error)}`);
  if (d.missing_values) notes.push(`${values(d.missing_values, d.dependent.columns)} missing`);
  if (d.n_exceptions) notes.push(plural(d.n_exceptions, "exception"));
  return notes.join(" · ");
}

function meter(x) {
  return el("span", { class: "scored", title: "Score" }, bar(x), el("span", { class: "number", text: score(x) }));
}
