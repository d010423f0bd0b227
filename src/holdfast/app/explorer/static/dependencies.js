// Dependencies of tracked tables and their changes as words.

export const KINDS = {
  ucc: ["Keys", "key"],
  fd: ["Functional dependencies", "functional dependency"],
  ind: ["Inclusions", "inclusion"],
  dc: ["Denial constraints", "denial constraint"],
  row: ["Row rules", "row rule"],
};

export const EVENTS = {
  broke: "broke", appeared: "appeared", implied: "implied by another", within: "within the error now",
  beyond: "beyond the error", dropped: "dropped",
};

/** A dependency in its JSON form, as the command line writes it. */
export function dependencyText(d) {
  if (d.kind === "ucc") return `[${d.columns.join(", ")}]`;
  if (d.kind === "fd") return `${d.lhs.join(", ") || "[]"} -> ${d.rhs}`;
  if (d.kind === "ind") return `${side(d.dependent)} in ${side(d.referenced)}`;
  if (d.kind === "dc") return `not(${d.predicates.map(predicate).join(" and ")})`;
  if (d.kind === "row") return `${name(d.left)} ${d.op} ${name(d.right)}`;
  return JSON.stringify(d);
}

const predicate = ({ left, op, right }) => `t.${name(left)} ${op} s.${name(right)}`;
const side = ({ table, columns }) => `${table}[${columns.join(", ")}]`;
const name = (column) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(column) ? column : `"${column.replaceAll('"', '""')}"`);
