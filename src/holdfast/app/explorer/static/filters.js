// The sliders: the least score and the least coverage of what is shown.

import { el, score, share } from "./dom.js";

const SLIDERS = [
  {
    key: "score", title: "Score", format: score,
    hint: "Hides edges and inclusions with a lower score: containment times the cube root of coverage, uniqueness "
      + "and distinctive values.",
  },
  {
    key: "coverage", title: "Coverage", format: share,
    hint: "Hides inclusions that cover a smaller share of the referenced column's values.",
  },
];

export class Filters {
  /** `changed` is told of {score, coverage}. */
  constructor(host, changed) {
    this.values = { score: 0, coverage: 0 };
    this.changed = changed;
    this.inputs = {};
    for (const { key, title, format, hint } of SLIDERS) {
      const output = el("output", { for: `least-${key}` });
      const input = el("input", {
        id: `least-${key}`, type: "range", min: 0, max: 1, step: 0.01, value: 0,
        on: {
          input: () => {
            this.values = { ...this.values, [key]: Number(input.value) };
            this.#tell();
            this.changed(this.values);
          },
        },
      });
      this.inputs[key] = { input, tell: () => { output.textContent = `≥ ${format(this.values[key])}`; } };
      const name = el("span", { text: title });
      host.append(el("label", { class: "slider", for: `least-${key}`, title: hint }, name, input, output));
    }
    this.#tell();
  }

  /** Sets them without telling. */
  set({ score: least = 0, coverage = 0 }) {
    this.values = { score: least, coverage };
    for (const [key, { input }] of Object.entries(this.inputs)) input.value = String(this.values[key]);
    this.#tell();
  }

  #tell() {
    for (const { tell } of Object.values(this.inputs)) tell();
  }
}
