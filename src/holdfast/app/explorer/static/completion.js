// What may come next in a dependency that somebody types: columns, tables, signs. It proposes; the server decides
// what a text means.

const MOST = 60;
const SIGNS = [
  ["->", "determines: zip -> city"], [",", "and another column"], ["=", "equals"], ["!=", "differs from"],
  ["<", "is less than"], ["<=", "is at most"], [">", "is greater than"], [">=", "is at least"],
  ["is not null", "has a value"], ["in (", "is one of: status in ('open', 'done')"],
];
const IN_BRACKETS = [[",", "and another column"], ["]", "these columns are a key"]];
const CLOSED = [["in", "its values are among those of"]];
const STARTS = [
  ["[", "a key: [a, b]"], ["not(", "a rule about two rows, t and s: not(t.zip = s.zip and t.city != s.city)"],
];
const NAME = '(?:"(?:[^"]|"")*"|[^"\\[\\],\\s](?:[^\\[\\],]*[^\\[\\],\\s])?)';
const SIDE = new RegExp(`^\\s*(${NAME})\\s*\\[[^\\]]*$`);
const OTHER_SIDE = new RegExp(`\\]\\s*in\\s+(${NAME})\\s*\\[[^\\]]*$`, "i");
const OTHER_TABLE = /\]\s*in\s+("(?:[^"]|"")*"?|[^[\]"]*)$/i;
const PART = /(?:"(?:[^"]|"")*"?|[^\s,()[\]<>=!≤≥≠"]*)$/;
const ROW = /^([ts]\.)/i;

const unquoted = (name) => (name.startsWith('"') ? name.slice(1).replace(/"$/, "").replaceAll('""', '"') : name);
const hasPlainName = (name) => /^[^"[\],\s]([^[\],]*[^[\],\s])?$/.test(name) && !name.includes("->");
const quoted = (name) => (hasPlainName(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** The table whose columns may stand at the end of a text, if it is another than the one asked about. */
export function tableAt(before) {
  const match = OTHER_SIDE.exec(before) ?? SIDE.exec(before);
  return match === null ? null : unquoted(match[1]);
}

/**
 * Proposals for the end of a text: [{title, entries: [{text, note, from}]}], where `text` is to replace what is
 * behind `from`. `table` is the one asked about, `tables` the names of all, `columns` gives those of a table.
 */
export function proposals(before, { table, tables, columns }) {
  const other = OTHER_TABLE.exec(before);
  if (other !== null) {
    const begun = unquoted(other[1]);
    return groups(["Tables", matching(tables, begun, (t) => t).map((t) => entry(`${quoted(t)}[`, "table", before.length - other[1].length))]);
  }
  const part = PART.exec(before)[0];
  const from = before.length - part.length;
  const ahead = before.slice(0, from);
  const last = ahead.trimEnd().at(-1) ?? "";
  const bracket = /\[[^\]]*$/.test(ahead);
  const arrow = ahead.includes("->");
  if (!part && last === "]") return groups(["Signs", signs(CLOSED, from)]);
  const afterName = !part && last && !"[(,<>=!&|".includes(last) && !/\b(and|or|not|in|between|like|matches)$/i.test(ahead.trimEnd());
  if (afterName) return arrow ? [] : groups(["Signs", signs(bracket ? IN_BRACKETS : SIGNS, from)]);
  const row = ROW.exec(part)?.[1] ?? "";
  const formula = !bracket && !arrow && (row !== "" || /[<>=!(]|\b(is|and|or|not)\b/i.test(ahead));
  const begun = unquoted(part.slice(row.length));
  const known = columns(tableAt(before) ?? table);
  const fits = matching(known, begun, (c) => c.name).map((c) => entry(
    `${row}${formula ? c.formula : c.listed}`, c.type, from,
  ));
  const rows = !row && /not\s*\(/i.test(ahead) && last !== "." && "(d".includes(last)
    ? [entry("t.", "a column of the first row", from), entry("s.", "a column of the second row", from)] : [];
  const starts = ahead.trim() ? [] : signs(STARTS.filter(([sign]) => !part || sign.startsWith(part)), from);
  const sides = ahead.trim() ? [] : matching(tables, begun, (t) => t).slice(0, begun ? 8 : 1).map(
    (t) => entry(`${quoted(begun ? t : table)}[`, "table: an inclusion, t[a] in u[b]", from),
  );
  return groups(["Rows", rows], ["Columns", fits], ["Forms", starts], ["Tables", sides]);
}

/** Examples of what can be asked about a table, with its columns where there are enough. */
export function examples(table, columns, tables) {
  const names = columns.map((c) => c.listed);
  if (!names.length) return [];
  const [a, b = names[0], c = names.at(-1)] = names;
  const numbers = columns.filter((x) => /^(int|uint|float|decimal)/.test(x.type)).map((x) => x.formula);
  const [partner, key] = reference(table, columns, tables);
  const formula = (i) => columns[Math.min(i, columns.length - 1)].formula;
  return [
    [`[${a}]`, "no two rows have the same value"],
    ...(names.length > 1 ? [[`${b} -> ${c}`, "rows that agree on the left agree on the right"]] : []),
    ...(partner === table ? [] : [[`${quoted(table)}[${key}] in ${quoted(partner)}[`, "each value is among those of another table"]]),
    ...(numbers.length > 1 ? [[`${numbers[0]} <= ${numbers[1]}`, "in each row"]] : []),
    [numbers.length ? `${numbers.at(-1)} > 0` : `${formula(0)} is not null`, "a condition that each row keeps"],
    ...(names.length > 1 ? [[
      `not(t.${formula(1)} = s.${formula(1)} and t.${formula(columns.length - 1)} != s.${formula(columns.length - 1)})`,
      "a rule about two rows, t and s",
    ]] : []),
  ].map(([text, note]) => ({ text, note, whole: !text.endsWith("[") }));
}

/** (another table, a column that may refer to it): one that is named like it if there is one. */
function reference(table, columns, tables) {
  const others = tables.filter((t) => t !== table);
  for (const { name, listed } of columns) {
    const stem = /^(.+?)[_ ]?(id|key|no)$/i.exec(name)?.[1].toLowerCase();
    const other = stem && others.find((t) => t.toLowerCase().startsWith(stem));
    if (other) return [other, listed];
  }
  return [others[0] ?? table, columns[0].listed];
}

const entry = (text, note, from) => ({ text, note, from });
const signs = (list, from) => list.map(([sign, note]) => entry(sign, note, from));

/** Those whose name begins with a text, then those that have it in them. */
function matching(list, begun, nameOf) {
  const wanted = begun.toLowerCase();
  const places = list.map((item) => [nameOf(item).toLowerCase().indexOf(wanted), item]).filter(([at]) => at >= 0);
  return [...places.filter(([at]) => at === 0), ...places.filter(([at]) => at > 0)].slice(0, MOST).map(([, item]) => item);
}

const groups = (...pairs) => pairs.filter(([, entries]) => entries.length).map(([title, entries]) => ({ title, entries }));
