// Labels beside circles, none upon another: those that come first take their place, the rest stay out.

import { shortened, visible } from "./dom.js";

const HEIGHT = 16;
const GAP = 4;
const widths = new Map();

/** Draws labels; `candidates` gives {text, left, top, radius, strong} in order of importance. */
export function drawLabels(context, camera, candidates, most, colours) {
  const taken = [];
  let placed = 0;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  for (const { text, left, top, radius, strong } of candidates) {
    if (placed >= most) return;
    const shown = label(text);
    context.font = `${strong ? 600 : 400} 12px ${colours.font}`;
    const width = widthOf(context, shown, strong);
    const away = radius + GAP;
    const corners = [
      [left + away, top - HEIGHT / 2], [left - away - width, top - HEIGHT / 2],
      [left - width / 2, top - away - HEIGHT], [left - width / 2, top + away],
    ];
    const corner = corners.find(([x, y]) => fits(camera, taken, x, y, width)) ?? (strong ? corners[0] : null);
    if (corner === null) continue;
    const [x, y] = corner;
    taken.push([x, y, x + width, y + HEIGHT]);
    context.strokeStyle = colours.surface;
    context.fillStyle = strong ? colours.text : colours.label ?? colours.text;
    context.strokeText(shown, x, y + HEIGHT / 2);
    context.fillText(shown, x, y + HEIGHT / 2);
    placed += 1;
  }
}

function fits(camera, taken, x, y, width) {
  if (x < 2 || y < 2 || x + width > camera.width - 2 || y + HEIGHT > camera.height - 2) return false;
  return taken.every(([l, t, r, b]) => x > r + GAP || x + width < l - GAP || y > b || y + HEIGHT < t);
}

/** A name as a label: its last part, cut, with everything in it to be seen. */
export function label(name) {
  const plain = visible(name);
  const last = plain.slice(plain.replace(/\/+$/, "").lastIndexOf("/") + 1);
  return shortened(last.replace(/\.(csv|tsv|tab|txt|parquet|jsonl?)$/i, "") || last, 28);
}

function widthOf(context, text, strong) {
  const key = `${strong ? 1 : 0}${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20_000) widths.clear();
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
