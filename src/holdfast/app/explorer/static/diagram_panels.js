// Beside the map: what is broken, and all that is known of a reference or a table.

import { get } from "./api.js";
import { count, el, failure, fill, hint, loading, notice, number, paged, plural, share, text, value, values } from "./dom.js";
import { format } from "./route.js";

const FIRST = 60;

/** A share that is never rounded to all. */
const part = (x) => (x < 1 && x > 0.9995 ? "over 99.9%" : share(x));
const capital = (words) => words[0].toUpperCase() + words.slice(1);
const columnsOf = (names) => text(names.join(", "), "name", 60);

/** The whole workspace: broken references first. `links`: to(route), choose(route). */
export function overviewPanel(aside, answer, links, complete) {
  const { references, tables, without_inclusions: without } = answer;
  const state = (wanted) => references.filter((r) => r.state === wanted);
  const [broken, unproved, held] = ["broken", "unproved", "holds"].map(state);
  const group = (title, list, words = null, open = true) => (list.length
    ? el(
      "details",
      { class: "group-of", open },
      el("summary", {}, title, " ", count(list.length)),
      words ? hint(words) : null,
      paged(list, (r) => el("li", {}, entry(r, links)), el("ul", { class: "list" }), FIRST),
    )
    : null);
  fill(
    aside,
    el("h2", { tabindex: -1, class: broken.length ? "bad" : "" }, ...headline(references, broken, complete)),
    el(
      "div",
      { class: "scroll" },
      !complete ? hint("The tables are there already.") : null,
      complete ? noReferences(tables, references, without) : null,
      group("Broken", broken),
      group("Holding", held, null, held.length <= 12 || !broken.length),
      group("Unproved", unproved, "Their columns have no value: only names speak for them.", unproved.length <= 6),
      references.length && without.length
        ? hint(`${capital(plural(without.length, "table"))} without inclusions: track them with --kinds ind to see what they refer to.`)
        : null,
    ),
  );
}

function headline(references, broken, complete) {
  if (!complete) return ["Working out references"];
  if (broken.length) return [broken.length === 1 ? "1 reference is broken" : `${number(broken.length)} references are broken`];
  const proved = references.filter((r) => r.state === "holds").length;
  if (!proved) return [references.length ? "No reference is proved" : "No references"];
  return [proved === 1 ? "The one reference holds" : `All ${number(proved)} references hold`];
}

/** Why there is none, and what to do. */
function noReferences(tables, references, without) {
  if (references.length) return null;
  if (without.length === tables.length) {
    return notice(
      "Inclusions are not tracked",
      "References are found among them. Track the tables with: holdfast track-all FOLDER --kinds ucc,ind. "
        + "A table that is tracked already is dropped first: holdfast drop NAME",
    );
  }
  if (tables.length === 1) return notice("One table", "References appear when a second one is tracked.");
  return notice("Nothing refers to another table", "No inclusion looks like a foreign key. See why with: holdfast links --all");
}

/** A reference in a list: its sides, and what is missing. */
function entry(r, links) {
  const state = { broken: missingShort(r), unproved: "no values", holds: r.used === null ? "" : share(r.used) }[r.state];
  const title = { broken: `${values(r.missing_values, r.columns)} missing`, holds: "so many values of the parent are used" }[r.state];
  return el(
    "a",
    {
      class: `reference-row ${r.state}`, href: links.to({ name: r.child, ask: r.ask }), title,
      on: { click: (event) => follow(event, () => links.choose({ name: r.child, ask: r.ask })) },
    },
    el("span", { class: "from" }, text(r.child, "name", 40), el("span", { class: "columns-of" }, columnsOf(r.columns))),
    el("span", { class: "into" }, "→ ", text(r.parent, "name", 40), r.pinned ? el("span", { class: "flag", text: "pinned" }) : null),
    el("span", { class: "how", text: state }),
  );
}

const missingShort = (r) => (r.missing_rows === null ? values(r.missing_values, r.columns) : plural(r.missing_rows, "row"));

/** A plain click is followed here; one that opens a new tab is the browser's. */
function follow(event, go) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go();
}

function head(title, links, ...facts) {
  const close = {
    class: "close", href: links.to({}), title: "Close (Esc)", "aria-label": "Close",
    on: { click: (event) => follow(event, () => links.choose({})) },
  };
  return el("div", { class: "head" }, el("a", close, "×"), el("h2", { tabindex: -1 }, ...title), ...facts);
}

/** A table: where it leads. */
export function tablePanel(aside, table, references, links) {
  const out = references.filter(({ data }) => data.child === table.name).map(({ data }) => data);
  const into = references.filter(({ data }) => data.parent === table.name).map(({ data }) => data);
  const group = (title, list, none) => el(
    "section",
    {},
    el("h3", {}, `${title} `, count(list.length)),
    list.length ? paged(list, (r) => el("li", {}, entry(r, links)), el("ul", { class: "list" }), FIRST) : hint(none),
  );
  fill(
    aside,
    head(
      [text(table.name, "name", 200)],
      links,
      el("p", { class: "facts", text: `${plural(table.n_rows, "row")} · ${plural(table.all_columns.length, "column")}` }),
      el("a", { class: "go", href: format({ tab: "table", name: table.name }), text: "Open the table" }),
    ),
    el("div", { class: "scroll body" }, group("Refers to", out, "nothing"), group("Is referred to by", into, "nothing")),
  );
}

/** A reference: columns, cardinality, coverage, since when; and the orphans, if it has some. */
export function referencePanel(aside, r, links, answer) {
  const child = () => text(r.child, "name", 60);
  const parent = () => text(r.parent, "name", 60);
  const since = el("dd", { text: "…" });
  const orphans = el("section", { class: "orphans" });
  const fact = (title, ...words) => [el("dt", { text: title }), el("dd", {}, ...words)];
  const parents = r.ends[1] === "exactly one" ? "has exactly one " : "has at most one ";
  const children = r.ends[0] === "zero or one" ? "has at most one " : "has any number of ";
  const pairs = r.columns.map((column, i) => el(
    "div",
    {},
    text(column, "name", 60),
    el("span", { class: "aside", text: " → " }),
    text(r.parent_columns[i], "name", 60),
  ));
  fill(
    aside,
    head(
      [child(), el("span", { class: "aside", text: " → " }), parent()],
      links,
      el("p", { class: `state ${r.state}` }, verdict(r)),
    ),
    el(
      "div",
      { class: "scroll body" },
      el(
        "dl",
        { class: "facts-of" },
        ...fact(r.columns.length > 1 ? "Columns" : "Column", ...pairs),
        ...fact(
          "Cardinality",
          el("div", {}, "a row of ", child(), ` ${parents}`, parent()),
          el("div", {}, "a row of ", parent(), ` ${children}`, child()),
        ),
        ...(r.coverage === null ? [] : fact(
          "Coverage",
          el("div", { text: `${part(r.coverage)} of its values are found` }),
          r.used === null ? null : el("div", { text: `${part(r.used)} of the parent's values are used` }),
        )),
        el("dt", { text: r.state === "broken" ? "Broken since" : "Since" }),
        since,
      ),
      orphans,
      el(
        "p",
        { class: "ways" },
        el("a", { class: "go", href: format({ tab: "dependency", name: r.child, ask: r.ask }), text: "All about this dependency" }),
        ...[...new Set([r.child, r.parent])].map((name) => el("a", { class: "go", href: format({ tab: "table", name }) }, "Open ", text(name, "name", 40))),
      ),
    ),
  );
  tell(r, since, orphans, answer.version);
}

function verdict(r) {
  if (r.state === "holds") return "Holds: every value is there.";
  if (r.state === "unproved") return "Unproved: its column has no value, only names speak for it.";
  const rows = r.missing_rows === null ? "" : ` in ${plural(r.missing_rows, "row")}`;
  return `Broken: ${values(r.missing_values, r.columns)}${rows} ${r.missing_values === 1 ? "is" : "are"} missing.`;
}

async function tell(r, since, orphans, version) {
  if (r.state === "unproved") {
    fill(since, "unknown until there are values");
    return;
  }
  if (r.state === "broken") fill(orphans, loading("Looking up the missing values"));
  try {
    const answer = await get("workspace/orphans", { table: r.child, ask: r.ask }, { exact: true });
    fill(since, ...spell(answer));
    fill(orphans, ...(r.state === "broken" ? missing(r, answer) : []));
  } catch (error) {
    fill(since, "unknown");
    fill(orphans, failure("The missing values cannot be listed", error));
  }
}

function spell({ since, turned }) {
  const at = turned?.at ? `, ${turned.at.slice(0, 10)}` : "";
  const batch = turned?.batch_id ? [" (batch ", text(turned.batch_id, "name", 40), ")"] : [];
  return [`version ${number(since)}`, ...batch, turned === null ? ", when it was tracked" : at];
}

function missing(r, { n_values: nValues, n_rows: nRows, values: listed, complete }) {
  if (nValues === null) return [hint("How many values are missing is not known.")];
  if (!nValues) return [hint("No value is missing any more.")];
  const row = (one) => el(
    "tr",
    {},
    ...(r.columns.length > 1 ? one.value : [one.value]).map((cell) => el("td", {}, value(cell))),
    el("td", { class: "number", text: `${complete ? "" : "≥ "}${number(one.n_rows)}` }),
  );
  const table = el(
    "table",
    { class: "orphan-values" },
    el("thead", {}, el("tr", {}, ...r.columns.map((name) => el("th", { scope: "col" }, text(name, "name", 40))), el("th", { scope: "col", class: "number", text: "Rows" }))),
    el("tbody"),
  );
  return [
    el("h3", {}, "Orphans ", count(nValues, `${values(nValues, r.columns)} missing`)),
    el("p", { class: "hint" }, `${plural(nRows, "row")} of `, text(r.child, "name", 40), ` ${nRows === 1 ? "has" : "have"} a ${r.columns.length > 1 ? "combination" : "value"} that `, text(r.parent, "name", 40), " lacks."),
    paged(listed, row, table),
    nValues > listed.length ? hint(`The ${values(listed.length, r.columns)} in most rows are listed.`) : null,
  ];
}
