// Where the tables of the map are drawn when there is a newer version: those that are seen stay where they are, and
// new ones come where the server has put them, or below all others if that place is taken.

const GAP = 30;

/** The corners of all tables, {name: [x, y]}; null if all of them are where the server has put them.
`seen`: the tables of the drawing so far, `put`: those that somebody dragged. */
export function stayed(answer, seen, put) {
  const places = {};
  const boxes = [];
  const take = (table, [x, y]) => {
    places[table.name] = [x, y];
    boxes.push({ x, y, width: table.width, height: table.height });
  };
  const known = (table) => put[table.name] ?? (seen.has(table.name) ? [seen.get(table.name).box.x, seen.get(table.name).box.y] : null);
  for (const table of answer.tables) if (known(table)) take(table, known(table));
  const bottom = boxes.reduce((most, b) => Math.max(most, b.y + b.height), 0);
  let left = boxes.reduce((least, b) => Math.min(least, b.x), Infinity);
  for (const table of answer.tables.filter((t) => !known(t))) {
    const isFree = !boxes.some((b) => meet(b, table));
    take(table, isFree ? [table.x, table.y] : [left, bottom + GAP]);
    if (!isFree) left += table.width + GAP;
  }
  return answer.tables.every((t) => places[t.name][0] === t.x && places[t.name][1] === t.y) ? null : places;
}

const meet = (a, b) => a.x < b.x + b.width + GAP && b.x < a.x + a.width + GAP && a.y < b.y + b.height + GAP && b.y < a.y + a.height + GAP;

/** Where what has no references begins: as it was, if that is still so of all below. */
export function apartOf(answer, before, places) {
  const joined = new Set(answer.references.flatMap((r) => [r.child, r.parent]));
  const isSo = before !== null && answer.tables.every((t) => joined.has(t.name) === places[t.name][1] < before);
  return isSo ? before : null;
}
