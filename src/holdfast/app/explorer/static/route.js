// The state of the page in the address, such as #component=3&table=12, so that reload, back and links work.

const NUMBERS = ["component", "cluster", "table"];
const SHARES = ["score", "coverage"];

/** What a hash says; what it does not say, or says wrongly, is left out. */
export function parse(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const route = {};
  if (given.get("tab") === "tracked") route.tab = "tracked";
  for (const key of NUMBERS) {
    const text = given.get(key);
    if (text !== null && /^\d{1,10}$/.test(text)) route[key] = Number(text);
  }
  for (const key of SHARES) {
    const share = Number(given.get(key));
    if (share > 0 && share <= 1) route[key] = share;
  }
  if (given.get("name") !== null) route.name = given.get("name");
  return route;
}

/** The hash of a route. */
export function format(route) {
  const given = new URLSearchParams();
  if (route.tab === "tracked") {
    given.set("tab", "tracked");
    if (route.name !== undefined) given.set("name", route.name);
    return `#${given}`;
  }
  for (const key of [...NUMBERS, ...SHARES]) {
    if (route[key] !== undefined && route[key] !== null) given.set(key, String(route[key]));
  }
  return `#${given}`;
}
