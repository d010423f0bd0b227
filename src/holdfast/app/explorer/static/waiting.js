// Words for what takes longer than one thinks of as at once.

import { el, fill, loading } from "./dom.js";

const SLOW_MS = 1_000;

/** Says in a node that something is under way, and after a second for how long; gives what ends that. */
export function waiting(node, what, slow) {
  const started = performance.now();
  const time = el("span", { class: "count" });
  const shown = loading(what);
  fill(node, shown);
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - started) / 1_000);
    if (!time.isConnected) shown.append(time);
    time.textContent = ` ${slow} ${seconds} s`;
  }, SLOW_MS);
  return () => clearInterval(timer);
}
