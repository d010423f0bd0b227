// A table's rows over the versions of the workspace, with a mark where something broke.

import { number, plural } from "./dom.js";
import { svg } from "./svg.js";

const WIDTH = 132;
const HEIGHT = 24;
const FOOT = 5; // for the marks

export function sparkline({ name, spark: { versions, n_rows: rows, broke } }) {
  const first = versions[0];
  const last = versions.at(-1);
  const x = (version) => (last === first ? WIDTH : 1 + ((version - first) / (last - first)) * (WIDTH - 2));
  const most = Math.max(1, ...rows);
  const least = Math.min(...rows, most);
  // A flat line stands in the middle; a slope is as steep as it can be.
  const y = (n) => (most === least ? (HEIGHT - FOOT) / 2 : 1 + (1 - (n - least) / (most - least)) * (HEIGHT - FOOT - 3));
  const places = rows.map((n, i) => `${x(versions[i]).toFixed(1)},${y(n).toFixed(1)}`);
  const total = broke.reduce((sum, n) => sum + n, 0);
  const words = `${name}: ${number(rows[0] ?? 0)} rows at version ${number(first)}, ${number(rows.at(-1) ?? 0)} now; `
    + `${plural(total, "dependency", "dependencies")} broke`;
  const picture = svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": words },
    svg("title", { text: words }),
    places.length > 1 ? svg("polyline", { points: places.join(" ") }) : null,
    ...broke.map((n, i) => (n ? mark(x(versions[i]), n) : null)),
  );
  return picture;
}

/** The more broke, the taller. */
function mark(x, n) {
  const height = n > 10 ? 5 : n > 2 ? 4 : 3;
  return svg("rect", { class: "mark", x: (x - 1).toFixed(1), y: HEIGHT - height, width: 2, height });
}
