// One inclusion: which column in which, how good it is, and on click the values that speak for it and against it.

import { get } from "./api.js";
import { bar, el, failure, fill, loading, number, plural, score, share, text, value } from "./dom.js";

/** A list entry. `near` and `other`: the sides as the selected table sees them; "out": near is contained in other. */
export function inclusion(ind, direction, near, other, link) {
  const [sign, words] = direction === "out" ? ["⊆", "is contained in"] : ["⊇", "contains"];
  const button = el(
    "button",
    { type: "button", class: "ind" },
    el(
      "span",
      { class: "sides" },
      text(near.column, "name", 40),
      el("span", { class: `sign ${direction}`, text: sign, title: words }),
      el(
        "span",
        { class: "other" },
        text(other.column, "name", 40),
        el("span", { class: "of", text: " of " }),
        text(other.table, "name table", 60),
      ),
    ),
    meter("Score", ind.score, score(ind.score)),
    meter("Coverage", ind.coverage, share(ind.coverage)),
  );
  return el("li", {}, button, unfolding(button, ind, other, link));
}

/** What a button unfolds: the values that speak for an inclusion and against it, asked for when they are first seen.
`link` gives the address of a table. */
export function unfolding(button, ind, other, link) {
  const details = el("div", { class: "values", hidden: true });
  let asked = false;
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", async () => {
    const opened = details.hidden;
    details.hidden = !opened;
    button.setAttribute("aria-expanded", String(opened));
    if (!opened || asked) return;
    asked = true;
    fill(details, loading("Comparing values"));
    try {
      const answer = await get("ind", { dependent: ind.dependent.id, referenced: ind.referenced.id });
      fill(details, ...valuesOf(answer, other, link));
    } catch (error) {
      asked = false;
      fill(details, failure("The values cannot be shown", error));
    }
  });
  return details;
}

/** A share as a bar and in words. */
function meter(title, part, words) {
  return el(
    "span",
    { class: "meter", title: `${title}: ${words}` },
    bar(part),
    el("span", { class: "number", text: words }),
    el("span", { class: "label", text: title.toLowerCase() }),
  );
}

function valuesOf(ind, other, link) {
  const missing = ind.n_dependent - ind.shared;
  const rest = ind.n_referenced - ind.shared;
  const facts = [
    `${number(ind.shared)} of ${plural(ind.n_dependent, "value")} found among ${number(ind.n_referenced)}`,
    `containment ${share(ind.containment)}`,
    `uniqueness ${share(ind.uniqueness)}`,
    `distinctive ${share(ind.distinctive)}`,
  ];
  return [
    el("p", { class: "facts", text: facts.join(" · ") }),
    group("Matching", ind.matches, ind.shared, "match"),
    missing ? group("Missing in the referenced column", ind.missing, missing, "lost") : null,
    rest ? group("Only in the referenced column", ind.others, rest, "rest") : null,
    el("a", { class: "go", href: link(other.table_id) }, "Open ", text(other.table, "name", 60)),
  ];
}

function group(title, values, n, kind) {
  return el(
    "div",
    { class: `chips ${kind}` },
    el("h4", { text: `${title} (${number(n)})` }),
    ...values.map((one) => el("span", { class: "chip" }, value(one))),
    n > values.length ? el("span", { class: "hint", text: `and ${plural(n - values.length, "more", "more")}` }) : null,
  );
}
