// Points in time, in words.

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
