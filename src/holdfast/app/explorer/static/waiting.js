// Words for what takes longer than one thinks of as at once.

import { el, fill, loading } from "./dom.js";

const SLOW_MS = 1_000;

/** Says in a node that something is under way, and after a second for how long; gives what ends that. */
export function waiting(node, what, slow) {
  const started = performance.now();
  const time = el("span", { class: "count", "aria-hidden": "true" });
  const shown = loading(what);
  shown.querySelector("strong").append(time);
  fill(node, shown);
  const timer = setInterval(() => {
    time.textContent = `. ${slow} ${Math.round((performance.now() - started) / 1_000)} s`;
  }, SLOW_MS);
  return () => clearInterval(timer);
}
