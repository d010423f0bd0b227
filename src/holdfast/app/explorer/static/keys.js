// The keys of a table: the primary key and why it is the one, then the others.

import { actions } from "./actions.js";
import { el, hint, number, plural, score, text } from "./dom.js";
import { link, since } from "./dependencies.js";

const FIRST = 4; // others
const WEIGHTY = 0.2; // points against a key that are worth a word

/** The keys; `all` shows the list of all of them. */
export function keys(page, { keys: known, max_columns: most }, all) {
  const { n, n_chance: nChance, first, has_primary: hasPrimary } = known;
  if (n === null) return hint("Keys are not tracked here: track the table with --kinds ucc to see them.");
  if (!n) {
    const bound = most ? ` of at most ${plural(most, "column")}` : "";
    return hint(`No combination of columns${bound} is unique: some rows are the same.`);
  }
  const others = first.slice(hasPrimary ? 1 : 0).filter((key) => key.role !== "chance").slice(0, FIRST);
  const listed = others.length + (hasPrimary ? 1 : 0);
  return el(
    "div",
    { class: "keys" },
    hasPrimary ? primary(page, first[0], others.length) : hint("No key looks like a primary key: none is worth to be declared."),
    others.length ? el("ul", { class: "others" }, ...others.map((key) => other(page, key))) : null,
    n > listed ? el("p", { class: "rest" }, ...rest(n - listed, nChance, all)) : null,
  );
}

const looks = (n) => (n === 1 ? "1 looks like chance" : `${number(n)} look like chance`);

function rest(n, nChance, all) {
  const meant = n - nChance;
  const words = [meant > 0 ? plural(meant, "more key") : null, nChance ? looks(nChance) : null];
  return [`${words.filter(Boolean).join(", ")}. `, el("button", { type: "button", class: "inline", text: "List all keys", on: { click: all } })];
}

function primary(page, key, nOthers) {
  const why = nOthers ? "Why this one is the primary key" : "Why it looks like a primary key";
  return el(
    "div",
    { class: "primary" },
    el("p", { class: "what" }, el("span", { class: "flag primary", text: "Primary key" }), link(key), ...aside(page, key)),
    el("p", { class: "why" }, el("span", { class: "aside", text: `${why}: ` }), ...reasons(key)),
  );
}

function other(page, key) {
  const against = key.reasons.filter((r) => r.points < -WEIGHTY).map(reason);
  return el(
    "li",
    {},
    link(key),
    key.role === "pinned" ? el("span", { class: "flag", text: "pinned" }) : null,
    el("span", { class: "aside", text: against.length ? `less likely: ${against.join(", ")}` : "" }),
    ...aside(page, key),
  );
}

function aside(page, key) {
  return [el("span", { class: "numbers" }, since(key), el("span", { class: "number", text: score(key.score), title: "Score" }), actions(page, key))];
}

/** A reason, with the columns that it is true of if it is not true of all. */
const reason = (r) => (r.columns.length ? `${r.columns.join(", ")} ${r.text}` : r.text);

/** Reasons as words, the strongest first; then those against it. */
function reasons(key) {
  const sorted = [...key.reasons].sort((a, b) => b.points - a.points);
  const words = (some) => some.flatMap((r, i) => {
    const title = `${r.points < 0 ? "−" : "+"}${score(Math.abs(r.points))} points`;
    return [i ? ", " : "", el("span", { title }, text(reason(r), "reason"))];
  });
  const against = sorted.filter((r) => r.points < -WEIGHTY).reverse();
  return [
    ...words(sorted.filter((r) => r.points >= -WEIGHTY)),
    against.length ? el("span", { class: "aside" }, "; but ", ...words(against)) : "",
  ];
}
