// Making elements. Names, headers and values come from strangers' files: they only ever become text nodes, or
// the values of the attributes below. Nothing on this page parses a text as markup.

const ATTRIBUTES = new Set([
  "class", "id", "type", "title", "role", "tabindex", "for", "scope", "colspan", "hidden", "min", "max", "step",
  "value", "placeholder", "open", "dir", "disabled", "href", "download", "autocomplete", "spellcheck",
]);

/** An element. `given`: attributes of the list above or aria-*, `text`, and `on` with listeners. */
export function el(name, given = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.append(document.createTextNode(String(value)));
    else if (key === "on") Object.entries(value).forEach((heard) => node.addEventListener(...heard));
    else setAttribute(node, key, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setAttribute(node, key, value) {
  if (!ATTRIBUTES.has(key) && !key.startsWith("aria-")) throw new Error(`attribute ${key} is not allowed`);
  if (key === "href" && !/^(#|api\/)/.test(value)) throw new Error("links stay on this page");
  node.setAttribute(key, value);
}

/** Replaces what is in a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const REACHABLE = "a[href], button:not(:disabled), input:not(:disabled), summary, [tabindex]";
const reachable = (node) => [...node.querySelectorAll(REACHABLE)];

/** What an element is known by when it is made anew; its state is no part of that. */
function known(node) {
  const words = node.getAttribute("aria-label") ?? node.getAttribute("value") ?? node.getAttribute("href");
  return `${node.tagName} ${words ?? node.textContent}`;
}

/** Replaces what is in a node by the same of another version; the focus stays. */
export function refill(node, ...children) {
  const back = wayBack(node, document.activeElement);
  fill(node, ...children);
  back();
  return node;
}

/** What gives the focus back to an element of a node that is filled anew meanwhile: to the same element in its new
state; if that is gone to the one in its place, or the last one; if there is none to the title above. */
export function wayBack(node, element) {
  const all = reachable(node);
  const at = all.indexOf(element);
  if (at < 0) return () => {};
  const name = known(element);
  const nth = all.slice(0, at).filter((other) => known(other) === name).length;
  return () => {
    const now = reachable(node);
    const same = now.filter((other) => known(other) === name);
    focus(same[Math.min(nth, same.length - 1)] ?? now[Math.min(at, now.length - 1)] ?? titleOf(node));
  };
}

/** Gives the focus to an element, or to the head of what it is folded into. */
function focus(node) {
  const folded = node?.closest("details:not([open])");
  (folded?.querySelector("summary") ?? node)?.focus({ preventScroll: true });
}

/** The title of the part of the page that a node is in. */
function titleOf(node) {
  const title = node.closest("section, aside, main")?.querySelector("h2, h3") ?? null;
  if (title !== null) title.tabIndex = -1;
  return title;
}

export const byId = (id) => document.getElementById(id);

const numbers = new Intl.NumberFormat("en-US");
const shares = new Intl.NumberFormat("en-US", { style: "percent", maximumFractionDigits: 1 });
const scores = new Intl.NumberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export const number = (n) => numbers.format(n);
export const share = (x) => shares.format(x);
export const score = (x) => scores.format(x);

/** "1 table", "2,000 tables". */
export function plural(n, noun, several = `${noun}s`) {
  return `${number(n)} ${n === 1 ? noun : several}`;
}

/** "1 value", of several columns "2 combinations". */
export const values = (n, columns) => plural(n, columns.length > 1 ? "combination" : "value");

/** A text of at most `most` characters, cut in the middle: paths differ at both ends. */
export function shortened(text, most) {
  const letters = Array.from(text);
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.4);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

// What cannot be seen, or reorders what is around it: control characters, line ends, marks of direction, halves of
// characters. Joiners (U+200C, U+200D) stay: scripts and emoji need them.
const UNSEEN = /[\p{Cc}\p{Cs}\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character) {
  const code = character.codePointAt(0).toString(16);
  return SHORT[character] ?? (code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`);
}

/** A text in which everything is seen, as the command line writes it. */
export const visible = (words) => words.replace(UNSEEN, escaped);

/** A text as nodes: what is not seen stands out from the same letters in the text itself. */
function marked(words) {
  const nodes = [];
  let at = 0;
  for (const { 0: character, index } of words.matchAll(UNSEEN)) {
    if (index > at) nodes.push(document.createTextNode(words.slice(at, index)));
    nodes.push(el("span", { class: "escape", text: escaped(character) }));
    at = index + character.length;
  }
  if (at < words.length || !nodes.length) nodes.push(document.createTextNode(words.slice(at)));
  return nodes;
}

// Words from right to left, with what is between them: what stands in a rule beside its signs.
const LEFTWARD = "\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc";
const TURNED = new RegExp(`[${LEFTWARD}](?:[^\\s[\\](),<>=!-]|\\s(?=[${LEFTWARD}]))*`, "gu");

/** A rule as nodes: it goes from left to right, also if names in it go from right to left. */
function ruled(words) {
  const nodes = [];
  let at = 0;
  for (const { 0: names, index } of words.matchAll(TURNED)) {
    if (index > at) nodes.push(...marked(words.slice(at, index)));
    nodes.push(el("bdi", {}, ...marked(names)));
    at = index + names.length;
  }
  return nodes.length ? [...nodes, ...(at < words.length ? marked(words.slice(at)) : [])] : marked(words);
}

/** A name or value: isolated, so that its direction does not reorder its surroundings; a rule is of kind "code". */
export function text(value, kind = "name", most = 300) {
  const title = value.length > 24 ? visible(value.slice(0, 1000)) : null;
  const isRule = /^code\b/.test(kind);
  return el("bdi", { class: kind, title, dir: isRule ? "ltr" : null }, ...(isRule ? ruled : marked)(shortened(value, most)));
}

/** A cell: a text, the empty text, or nothing at all. */
export function value(cell) {
  if (cell === null || cell === undefined) return el("span", { class: "nothing", text: "missing" });
  if (cell === "") return el("span", { class: "nothing", text: "empty text" });
  const words = typeof cell === "object" ? JSON.stringify(cell) : String(cell);
  const shown = text(words, "value");
  // Spaces at an end keep values from matching.
  const [before, after] = [/^ */.exec(words)[0].length, words.trim() ? / *$/.exec(words)[0].length : 0];
  if (before || after) {
    const middle = shortened(words.slice(before, words.length - after), 300);
    fill(shown, ...spaces(before), ...marked(middle), ...spaces(after));
  }
  return shown;
}

const spaces = (n) => (n ? [el("span", { class: "escape", text: "␣".repeat(Math.min(n, 20)) })] : []);

/** Words in place of content: nothing there, or something went wrong. */
export function notice(title, words, kind = "empty") {
  return el(
    "div",
    { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    kind === "loading" ? el("span", { class: "spinner", "aria-hidden": "true" }) : null,
    el("strong", { text: title }),
    words ? el("p", { text: words }) : null,
  );
}

/** A remark in small print. */
export const hint = (words) => el("p", { class: "hint", text: words });

/** A number beside a title or a name; `title` says of what. */
export const count = (n, title = null) => el("span", { class: "count", text: number(n), title });

/** A share as a bar; the same in words stands beside it. */
export function bar(part) {
  const filled = el("span", { class: "fill" });
  filled.style.width = `${100 * Math.max(0, Math.min(1, part))}%`;
  return el("span", { class: "track", "aria-hidden": "true" }, filled);
}

export const loading = (what) => notice(what, "", "loading");
export const failure = (title, error) => notice(title, error.message, "error");

const AT_ONCE = 200;

/** How many entries of the `paged` list in a node are shown. */
export const shownIn = (node) => Number(node?.querySelector(".paged")?.dataset.shown ?? 0);

/** A list (or the body of a table) that is shown by and by: the `first` entries, and a button for more. */
export function paged(entries, row, list = el("ul", { class: "list" }), first = AT_ONCE) {
  const holder = el("div", { class: "paged" }, list);
  const target = list.tBodies?.[0] ?? list;
  let shown = 0;
  const more = el("button", { type: "button", class: "more", on: { click: () => show() } });
  function show() {
    const next = entries.slice(shown, shown + (shown ? AT_ONCE : first));
    target.append(...next.map((entry, i) => row(entry, shown + i)));
    shown += next.length;
    holder.dataset.shown = shown;
    more.remove();
    if (shown < entries.length) {
      const rest = entries.length - shown;
      more.textContent = `Show ${number(Math.min(AT_ONCE, rest))} more of ${number(rest)}`;
      holder.append(more);
    }
  }
  show();
  return holder;
}
