// Points in time, in words.

import { el } from "./dom.js";

const MINUTE_MS = 60_000;
const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** "3 hours ago", or the day if it is long ago. */
export function ago(at, now = Date.now()) {
  const seconds = (now - new Date(at).getTime()) / 1000;
  if (at === null || Number.isNaN(seconds)) return "";
  if (seconds > 14 * 86_400) return exactly(at).slice(0, 10);
  for (const [unit, size] of UNITS) {
    const n = Math.floor(seconds / size);
    if (n >= 1) return `${n} ${unit}${n === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

/** To the second, in UTC. */
export function exactly(at) {
  const time = new Date(at);
  if (at === null || Number.isNaN(time.getTime())) return "";
  return `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** An element that says how long ago something was, as long as it is there: see `age`. */
export function moment(at, given = {}) {
  const node = el("time", { ...given, title: exactly(at), text: ago(at) });
  node.dataset.at = at ?? "";
  return node;
}

/** Says anew how long ago things were, every minute. */
export function age() {
  setInterval(() => {
    for (const node of document.querySelectorAll("time[data-at]")) node.textContent = ago(node.dataset.at);
  }, MINUTE_MS);
}
