// How much was against a dependency, version by version: a line below the bars of its life, in a part for each of them, and
// the same in words.

import { el, hint, number, plural, share } from "./dom.js";
import { svg } from "./svg.js";

const WIDTH = 100;
const HEIGHT = 26;

export class ErrorLine {
  /** `against` of an answer; null: nothing is counted. */
  constructor(against) {
    this.points = against?.series ?? [];
    this.noun = against?.noun ?? [];
    this.note = against?.note ?? "";
    this.most = this.points.reduce((most, [, n]) => Math.max(most, n ?? 0), 0);
    this.isCounted = this.points.some(([, n]) => n !== null);
  }

  /** The part of a stretch, of these versions; null where nothing is drawn. */
  part(versions) {
    if (!this.isCounted) return null;
    const picture = svg("svg", { class: "against", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, height: HEIGHT, width: "100%", preserveAspectRatio: "none", "aria-hidden": "true" });
    const path = this.#path(versions);
    if (path) picture.append(svg("path", { d: path }));
    return picture;
  }

  /** Steps; a gap where it was not counted. */
  #path(versions) {
    const step = WIDTH / Math.max(1, versions.length);
    const parts = [];
    let at = this.points.findLastIndex(([version]) => version <= versions[0]);
    let before = null;
    versions.forEach((version, i) => {
      while (this.points[at + 1]?.[0] <= version) at += 1;
      const n = this.points[at]?.[1] ?? null;
      if (n !== null && n !== before) parts.push(`${before === null ? "M" : "L"}${(i * step).toFixed(2)} ${this.#height(n)}`);
      if (n !== null && n === before) parts.pop(); // one line as long as it stays
      if (n !== null) parts.push(`H${((i + 1) * step).toFixed(2)}`);
      before = n;
    });
    return parts.join("");
  }

  #height(n) {
    return (HEIGHT - 2 - (this.most ? n / this.most : 0) * (HEIGHT - 4)).toFixed(2);
  }

  /** The line in words, or why there is none. */
  words() {
    if (!this.isCounted) return this.note ? hint(this.note) : null;
    const counted = this.points.filter(([, n]) => n !== null);
    const [first, last] = [counted[0], counted.at(-1)];
    const peak = counted.find(([, n]) => n === this.most);
    const so = ([, n, part]) => `${plural(n, ...this.noun)}${n && part !== null ? ` (${part < 0.001 ? "less than 0.1%" : share(part)})` : ""}`;
    const parts = [`Against it: ${so(first)} in version ${number(first[0])}`];
    if (peak !== first && peak !== last) parts.push(`at most ${so(peak)}, in version ${number(peak[0])}`);
    const end = this.points.at(-1);
    if (last !== first) parts.push(`${so(last)} ${last === end ? "since" : "in"} version ${number(last[0])}`);
    if (last !== end) parts.push(`not counted since version ${number(end[0])}`);
    return el("p", { class: "against-words" }, `${parts.join("; ")}.`);
  }
}
