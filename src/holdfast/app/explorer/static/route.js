// The state of the page in the address, such as #tab=table&name=orders, so that reload, back and links work.

const TABS = ["overview", "map", "table", "dependency", "lake"];
const OLD_TABS = { tracked: "table" };
const NUMBERS = ["component", "cluster", "table"]; // of the lake
const LINKED = "lake"; // in the view of tables: the number of one of the lake
const SHARES = ["score", "coverage"];
const TEXTS = ["name", "column", "kind", "ask", "q"]; // of tracked tables
const RANGES = ["versions", "picked"]; // of the timeline: the part in view, and the bar whose versions are listed

/** What a hash says; what it does not say, or says wrongly, is left out. */
export function parse(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const route = {};
  const tab = OLD_TABS[given.get("tab")] ?? given.get("tab");
  if (TABS.includes(tab)) route.tab = tab;
  for (const key of [...NUMBERS, LINKED]) {
    const text = given.get(key);
    if (text !== null && /^\d{1,10}$/.test(text)) route[key] = Number(text);
  }
  for (const key of SHARES) {
    const share = Number(given.get(key));
    if (share > 0 && share <= 1) route[key] = share;
  }
  for (const key of RANGES) {
    const [first, last] = (/^(\d{1,9})-(\d{1,9})$/.exec(given.get(key)) ?? []).slice(1).map(Number);
    if (first >= 1 && first <= last) route[key] = { first, last };
  }
  for (const key of TEXTS) if (given.get(key) !== null) route[key] = given.get(key);
  return route;
}

/** The hash of a route. A place in the lake needs no tab. */
export function format(route) {
  const given = new URLSearchParams();
  const lake = route.tab === undefined || route.tab === "lake";
  for (const key of lake ? [...NUMBERS, ...SHARES] : [LINKED, ...TEXTS, "score"]) {
    if (route[key] !== undefined && route[key] !== null) given.set(key, String(route[key]));
  }
  for (const key of RANGES) if (route[key]) given.set(key, `${route[key].first}-${route[key].last}`);
  const named = route.component !== undefined || route.table !== undefined;
  return `#${lake && named ? "" : `tab=${route.tab ?? "lake"}${given.size ? "&" : ""}`}${given}`;
}
