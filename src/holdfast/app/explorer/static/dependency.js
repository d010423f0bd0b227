// One dependency, listed or typed: what it says, whether it holds, its life, the rows that violate it.

import { actions } from "./actions.js";
import { get, Latest } from "./api.js";
import { AskBar } from "./asking.js";
import { el, failure, fill, hint, loading, notice, number, plural, refill, score, share, text } from "./dom.js";
import { inShort, Lifeline } from "./lifeline.js";
import { format } from "./route.js";
import { Violations } from "./violations.js";
import { waiting } from "./waiting.js";

const STATES = {
  true: { name: "Holds", class: "held" }, false: { name: "Does not hold", class: "broken" }, null: { name: "Looking", class: "unknown" },
};
const ROLES = { chance: "looks like chance", dependency: "", pinned: "" }; // a pin is told with its terms

class DependencyView {
  constructor(page, holder) {
    this.page = page;
    this.holder = holder;
    this.latest = new Latest();
    this.bar = new AskBar((name, ask) => {
      if (name === this.name && ask === this.ask) this.#explain(false); // once more, after an error say
      else page.go({ tab: "dependency", name, ask });
    });
    this.life = new Lifeline();
    this.rows = new Violations((answer) => this.#counted(answer));
    this.head = el("section", { class: "verdict", "aria-live": "polite" });
    this.body = el("div", { class: "explanation" });
    fill(holder, el("div", { class: "ask-row" }, this.bar.node), this.body);
  }

  async follow(route) {
    const { name, ask } = route;
    let tables;
    if (!this.body.children.length) fill(this.body, loading("Tables"));
    try {
      tables = (await this.page.summary).workspace.tables.map((t) => t.name);
    } catch (error) {
      fill(this.body, failure("The tracked tables cannot be listed", error));
      return;
    }
    if (this.page.route !== route) return; // another one is followed by now
    if (!tables.length && name === undefined) {
      this.bar.node.hidden = true;
      fill(this.body, notice("No tracked table", "Track one with: holdfast track NAME FILE. Then anything that may hold in it can be asked here."));
      return;
    }
    this.bar.node.hidden = false;
    this.bar.show(tables, name, ask);
    if (this.name === name && this.ask === ask && ask) return;
    Object.assign(this, { name: this.bar.table, ask });
    if (name !== undefined) this.name = name;
    this.page.link("dependency", { tab: "dependency", name, ask });
    if (ask) await this.#explain(false);
    else this.#invite();
  }

  leave() {
    this.bar.input.blur();
  }

  /** There is a new version: the same question again, in place. */
  refresh() {
    this.bar.forget();
    if (this.ask) this.#explain(true);
  }

  #invite() {
    this.latest.stop();
    this.rows.stop();
    fill(
      this.body,
      el(
        "section",
        { class: "invitation" },
        el("h3", { text: "Ask for anything that may hold" }),
        el("p", { class: "aside", text: "A key, a functional dependency, an inclusion, a rule about two rows or about each. It need not be one that is listed." }),
        this.bar.examples,
      ),
    );
  }

  async #explain(inPlace) {
    const signal = this.latest.next();
    const { name, ask } = this;
    if (!inPlace) {
      this.rows.stop();
      this.life.chosen = null;
      this.ended = waiting(this.body, "Reading its life", "Many versions are looked at:");
    }
    try {
      const answer = await get("workspace/explain", { table: name, ask }, { signal, exact: true });
      if (signal.aborted) return;
      this.ended?.();
      this.answer = answer;
      this.#fill(inPlace);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.ended?.();
      this.rows.stop();
      fill(this.body, problem(error.message), el("section", { class: "invitation" }, el("h3", { text: "What can be asked" }), this.bar.examples));
    }
  }

  #fill(inPlace) {
    const { answer } = this;
    this.#verdict(answer.holds);
    this.life.show(answer.life, answer.table);
    if (!inPlace || !this.head.isConnected) fill(this.body, this.head, this.life.node, this.rows.node);
    if (answer.holds) this.rows.none();
    else if (answer.lists_rows) this.rows.show(this.name, this.ask);
    else fill(this.rows.node, hint("The rows that violate it are not listed for dependencies of this kind."));
  }

  /** The rows say more: whether it holds where nobody kept watch. */
  #counted(rows) {
    if (this.answer.holds === null) this.#verdict(rows.holds, rows);
    else this.#verdict(this.answer.holds, rows);
  }

  #verdict(holds, rows = null) {
    const { answer } = this;
    const d = answer.dependency;
    const state = STATES[holds];
    const facts = [
      answer.noun,
      el("a", { href: format({ tab: "table", name: answer.table }) }, text(answer.table, "name", 60)),
      ROLES[answer.role] ?? answer.role,
      `score ${score(answer.score)}`,
      rows !== null && !holds && rows.n_rows ? `${part(rows.n_violating / rows.n_rows)} of the rows` : "",
      answer.minimal ? "minimal" : "",
    ].filter(Boolean);
    refill(
      this.head,
      el(
        "div",
        { class: "verdict-line" },
        el("span", { class: `verdict-state ${state.class}`, text: state.name }),
        el("h2", {}, text(d.text, "code", 2000)),
        actions(this.page, d),
      ),
      el("p", { class: "sentence", text: sentence(answer.sentence) }),
      el("p", { class: "facts dotted" }, ...facts.map((fact) => el("span", {}, fact))),
      pin(answer.pin),
      implied(answer),
      el("p", { class: "in-short", text: inShort(answer.life, holds) }),
    );
  }
}

export const open = (page, holder) => new DependencyView(page, holder);

/** A share that is not nothing. */
const part = (x) => (x < 0.001 ? "less than 0.1%" : share(x));
const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;

/** Somebody relies on it, on these terms. */
function pin(pinned) {
  if (pinned === null) return null;
  const terms = [
    pinned.holds ? "kept" : "broken",
    pinned.at_most ? `at most ${pinned.at_most} may violate it` : "nothing may violate it",
    pinned.n_violations ? `${number(pinned.n_violations)} against it` : "",
    pinned.severity === "error" ? "" : pinned.severity,
    pinned.owner ? `owner ${pinned.owner}` : "",
    pinned.reason ? `“${pinned.reason}”` : "",
  ].filter(Boolean);
  return el("p", { class: "facts" }, el("span", { class: `flag ${pinned.holds ? "unique" : "cut"}`, text: "pinned" }), ` ${terms.join(" · ")}`);
}

/** What it follows from. */
function implied({ implied_by: from, n_implied_by: n, minimal }) {
  if (minimal !== false || !from.length) return null;
  const links = from.slice(0, 6).flatMap((d, i) => [
    i ? ", " : "", el("a", { href: format({ tab: "dependency", name: d.table, ask: d.ask }) }, text(d.text, "code", 300)),
  ]);
  const more = n > 6 ? ` and ${plural(n - 6, "more")}`.replace("mores", "more") : "";
  return el("p", { class: "implied" }, "It follows from ", ...links, `${more}, which ${n === 1 ? "says" : "say"} as much with less.`);
}

/** An error of the server; one about a text may show the place in it. */
function problem(message) {
  const [first, ...lines] = message.split("\n");
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("strong", { text: "This cannot be answered" }),
    el("p", { text: first }),
    lines.length ? el("pre", { text: lines.join("\n") }) : null,
  );
}
