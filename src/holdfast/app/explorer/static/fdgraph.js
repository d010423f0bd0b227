// Functional dependencies as a picture: columns that determine on the left, those that are determined on the right,
// and a knot for each left side, through which its lines run. What is pointed at, or has the focus, stands out.

import { el, fill, hint, number, plural, score, shortened, visible } from "./dom.js";
import { svg } from "./svg.js";

const FIRST = 12; // groups
const FURTHER = 14;
const MOST_RIGHT = 36; // columns on the right
const STEP = 24; // pixels from row to row
const LETTER = 6.8; // pixels, about

export class FdGraph {
  constructor() {
    this.node = el("div", { class: "fd-graph" });
    this.shown = FIRST;
    this.width = 0;
    new ResizeObserver(() => {
      if (this.answer && Math.abs(this.node.clientWidth - this.width) > 24) this.#draw();
    }).observe(this.node);
  }

  /** The picture of an answer; `choose(lhs, rhs)` is told what is clicked, by names, and `follow` whether those are
  wanted that follow from keys, or the others. */
  show(answer, choose, follow) {
    Object.assign(this, { answer, choose, turn: follow });
    this.#draw();
    return this.node;
  }

  #draw() {
    const { groups, n, n_groups: nGroups, n_of_keys: nOfKeys, n_chance: nChance, columns, follow = false } = this.answer;
    const unfold = (words) => el("button", { type: "button", class: "inline", text: words, on: { click: () => this.#turn(!follow) } });
    const folded = [
      nOfKeys ? unfold(`${number(nOfKeys)} follow from a key`) : null, nChance ? `${number(nChance)} look like chance` : null,
    ].filter(Boolean).flatMap((part, i) => (i ? [", ", part] : [part]));
    const rest = follow ? [unfold("Draw the others again"), "."] : folded.length ? ["Folded away: ", ...folded, "."] : [];
    if (!groups.length) {
      const words = n ? "None is left to draw: what holds follows from keys, or looks like chance." : "No functional dependency holds.";
      fill(this.node, el("p", { class: "hint" }, `${words} `, ...rest));
      return;
    }
    const drawn = groups.slice(0, this.shown);
    this.width = this.node.clientWidth || this.node.parentElement?.clientWidth || 720;
    const more = Math.min(groups.length, this.shown + FURTHER) - drawn.length;
    fill(
      this.node,
      el("p", { class: "hint" }, `${follow ? "Of those that follow from a key" : "The best"} ${number(drawn.length)} of ${plural(nGroups, "left side")}. `, ...rest),
      picture(drawn, columns, Math.max(320, Math.min(this.width, 1100)), this.choose),
      more > 0 ? el("button", {
        type: "button", class: "more", text: `Draw ${number(more)} more`,
        on: { click: () => { this.shown += FURTHER; this.#draw(); } },
      }) : null,
    );
  }

  /** The others, in place; the keyboard stays at the button that brings these back. */
  async #turn(follow) {
    this.shown = FIRST;
    await this.turn(follow);
    // The button is another one by now; who has gone on meanwhile is not called back.
    if (document.activeElement === document.body) this.node.querySelector("button.inline")?.focus({ preventScroll: true });
  }
}

/** Each thing at the mean place of what it is tied to: few lines cross. */
function settled(ids, tied, places) {
  const mean = (id) => {
    const of = tied(id).map((other) => places.get(other));
    return of.length ? of.reduce((a, b) => a + b, 0) / of.length : 0;
  };
  const means = new Map(ids.map((id) => [id, mean(id)]));
  return [...ids].sort((a, b) => means.get(a) - means.get(b));
}

const placed = (ids) => new Map(ids.map((id, i) => [id, i]));

function picture(groups, names, width, choose) {
  const right = [...new Set(groups.flatMap((g) => g.rhs))].slice(0, MOST_RIGHT);
  const onRight = new Set(right);
  const left = [...new Set(groups.flatMap((g) => g.lhs))];
  const knots = groups.map((_, i) => i);
  const lhs = settled(left, (c) => knots.filter((k) => groups[k].lhs.includes(c)), placed(knots));
  const middle = settled(knots, (k) => groups[k].lhs, placed(lhs));
  const rhs = settled(right, (c) => middle.filter((k) => groups[k].rhs.includes(c)), placed(middle));
  const rows = Math.max(lhs.length, rhs.length, middle.length);
  const height = rows * STEP + 12;
  const at = (list) => new Map(list.map((id, i) => [id, 6 + ((i + 0.5) * rows * STEP) / list.length]));
  const [yLeft, yKnot, yRight] = [at(lhs), at(middle), at(rhs)];
  const letters = Math.max(8, Math.floor((width * 0.27) / LETTER));
  const widest = (list) => Math.min(letters, Math.max(...list.map((c) => names[c].length))) * LETTER + 10;
  const [x1, x3] = [widest(lhs), width - widest(rhs)];
  const x2 = (x1 + x3) / 2;
  const label = (c) => visible(shortened(names[c], letters));
  const curve = (xa, ya, xb, yb) => `M${xa} ${ya}C${(xa + xb) / 2} ${ya} ${(xa + xb) / 2} ${yb} ${xb} ${yb}`;

  const lines = svg("g", { class: "lines" });
  const parts = []; // each with the groups that it belongs to
  const part = (node, of) => { parts.push({ node, of: new Set(of) }); return node; };
  groups.forEach((g, k) => {
    const bundle = [
      ...g.lhs.map((c) => svg("path", { d: curve(x1 + 4, yLeft.get(c), x2, yKnot.get(k)) })),
      ...g.rhs.filter((c) => onRight.has(c)).map((c) => svg("path", { d: curve(x2, yKnot.get(k), x3 - 4, yRight.get(c)) })),
    ];
    lines.append(part(svg("g", { class: "bundle" }, ...bundle), [k]));
  });
  const root = svg("svg", { class: "picture", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Functional dependencies by left side" });
  const stand = (of) => {
    root.classList.toggle("pointed", of !== null);
    for (const p of parts) p.node.classList.toggle("on", of !== null && [...p.of].some((k) => of.has(k)));
  };
  const alive = (node, of) => {
    const set = new Set(of);
    for (const event of ["pointerenter", "focus"]) node.addEventListener(event, () => stand(set));
    for (const event of ["pointerleave", "blur"]) node.addEventListener(event, () => stand(null));
    return node;
  };
  const pressed = (node, go) => {
    node.addEventListener("click", go);
    node.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" && e.key !== " ") return;
      e.preventDefault();
      go();
    });
    return node;
  };
  const column = (c, x, y, anchor, of) => alive(part(svg(
    "text", { class: "end", x, y: y + 4, "text-anchor": anchor }, svg("title", { text: visible(names[c]) }), label(c),
  ), of), of);
  const knot = (k) => {
    const g = groups[k];
    const [from, to] = [g.lhs.map((c) => names[c]), g.rhs.map((c) => names[c])];
    const words = visible(`${from.join(", ") || "[]"} -> ${to.join(", ")}`);
    const hidden = g.rhs.length - g.rhs.filter((c) => onRight.has(c)).length;
    const node = svg(
      "g",
      { class: "knot", role: "button", tabindex: 0, "aria-label": `${words}, score ${score(g.scores[0])}` },
      svg("title", { text: words }),
      svg("circle", { class: "reach", cx: x2, cy: yKnot.get(k), r: 11 }),
      svg("circle", { class: "dot", cx: x2, cy: yKnot.get(k), r: 3.5 + 2.5 * g.scores[0] }),
      hidden ? svg("text", { class: "hidden", x: x2 + 10, y: yKnot.get(k) - 5, text: `+${hidden}` }) : null,
    );
    return alive(pressed(part(node, [k]), () => choose(from, g.rhs.length === 1 ? to[0] : null)), [k]);
  };
  root.append(
    lines,
    svg("g", {}, ...lhs.map((c) => column(c, x1, yLeft.get(c), "end", knots.filter((k) => groups[k].lhs.includes(c))))),
    svg("g", {}, ...rhs.map((c) => column(c, x3, yRight.get(c), "start", knots.filter((k) => groups[k].rhs.includes(c))))),
    svg("g", {}, ...middle.map(knot)),
  );
  return root;
}
