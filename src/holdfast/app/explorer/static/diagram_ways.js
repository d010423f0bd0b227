// The ways of lines between boxes: round corners, and new ways for a table that somebody dragged. The server lays
// out everything at once, and no line of it goes through a box; here one line is led around the boxes as they are.

const STUB = 26; // out of a box before the first turn: room for the end of the line
const BEND = 24; // what a turn is worth, as a length
const HIT = 4000; // what a box in the way is worth
const ASIDE = 14; // beside a box that is in the way

/** The path of a line with round corners, as a text for `d`. */
export function rounded(path, radius) {
  const points = path.filter(([x, y], i) => !i || x !== path[i - 1][0] || y !== path[i - 1][1]);
  const near = ([x, y], [u, v]) => {
    const length = Math.max(Math.abs(u - x), Math.abs(v - y));
    const part = Math.min(radius, length / 2) / length;
    return [x + (u - x) * part, y + (v - y) * part];
  };
  const at = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  let text = `M${at(points[0])}`;
  for (let i = 1; i < points.length - 1; i += 1) {
    text += `L${at(near(points[i], points[i - 1]))}Q${at(points[i])} ${at(near(points[i], points[i + 1]))}`;
  }
  return `${text}L${at(points.at(-1))}`;
}

/** A way from a child to its parent, each a box {x, y, width, height}; `below` are heights below their tops.

Level and upright pieces only; around the other `boxes` where there is a simple way. */
export function newWay(child, parent, below, boxes) {
  const best = cheapest(simpleWays(child, parent, below), boxes);
  if (best.hits === 0) return best.path;
  const around = cheapest(waysAround(child, parent, below, boxes), boxes);
  return around.price < best.price ? around.path : best.path;
}

/** Whether a piece of a way goes through a box, and not only along its side. */
export function through(box, [ax, ay], [bx, by]) {
  return Math.min(ax, bx) < box.x + box.width - 0.5 && Math.max(ax, bx) > box.x + 0.5
    && Math.min(ay, by) < box.y + box.height - 0.5 && Math.max(ay, by) > box.y + 0.5;
}

function cheapest(paths, boxes) {
  let best = { price: Infinity, hits: Infinity, path: null };
  for (const path of paths) {
    let hits = 0;
    let length = BEND * path.length;
    for (let i = 1; i < path.length; i += 1) {
      length += Math.abs(path[i][0] - path[i - 1][0]) + Math.abs(path[i][1] - path[i - 1][1]);
    }
    if (length >= best.price) continue;
    for (const box of boxes) for (let i = 1; i < path.length; i += 1) hits += through(box, path[i - 1], path[i]);
    const price = length + HIT * hits;
    if (price < best.price) best = { price, hits, path };
  }
  return best;
}

/** The sides that a line may leave by and come to: where it starts and ends, and where it may turn first and last. */
function* sides(child, parent, [childBelow, parentBelow]) {
  for (const out of [1, -1]) {
    for (const into of [1, -1]) {
      const start = [out > 0 ? child.x + child.width : child.x, child.y + childBelow];
      const end = [into > 0 ? parent.x + parent.width : parent.x, parent.y + parentBelow];
      yield { out, into, start, end, first: start[0] + out * STUB, last: end[0] + into * STUB };
    }
  }
}

const turned = (start, end, x) => (start[1] === end[1] ? [start, end] : [start, [x, start[1]], [x, end[1]], end]);
const detour = (start, end, first, last, y) => [
  start, [first, start[1]], [first, y], [last, y], [last, end[1]], end,
];

function* simpleWays(child, parent, below) {
  const top = Math.min(child.y, parent.y) - ASIDE;
  const bottom = Math.max(child.y + child.height, parent.y + parent.height) + ASIDE;
  const between = [child.y + child.height + parent.y, parent.y + parent.height + child.y].map((sum) => sum / 2);
  for (const { out, into, start, end, first, last } of sides(child, parent, below)) {
    if (out === into) {
      const x = out > 0 ? Math.max(first, last) : Math.min(first, last);
      yield [start, [x, start[1]], [x, end[1]], end];
    } else if (out * (last - first) >= 0) {
      for (const x of [(first + last) / 2, first, last]) yield turned(start, end, x);
    }
    for (const y of [top, bottom, ...between]) yield detour(start, end, first, last, y);
  }
}

/** Ways that turn beside one of the boxes. */
function* waysAround(child, parent, below, boxes) {
  for (const { out, into, start, end, first, last } of sides(child, parent, below)) {
    for (const box of boxes) {
      for (const x of [box.x - ASIDE, box.x + box.width + ASIDE]) {
        if (out * (x - first) >= 0 && into * (x - last) >= 0) yield [start, [x, start[1]], [x, end[1]], end];
      }
      for (const y of [box.y - ASIDE, box.y + box.height + ASIDE]) yield detour(start, end, first, last, y);
    }
  }
}
