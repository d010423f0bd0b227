// The diagram as elements: boxes of tables, lines of references, and what stands out. What is drawn, and where, comes
// from the server, which writes the same as a picture (`export --format svg`).

import { number, plural, share, visible } from "./dom.js";
import { newWay, rounded } from "./diagram_ways.js";
import { svg } from "./svg.js";

const LABEL = 16; // from a box to the label of a line
const GAP = 24; // between tables that stand apart: what their names may take of it

export class Drawing {
  /** `answer` of the server; `moved`: the corners of tables that somebody dragged, {name: [x, y]}. */
  constructor(answer, moved) {
    this.answer = answer;
    this.tables = new Map();
    this.references = answer.references.map((data) => this.#reference(data));
    const apart = answer.apart === null
      ? null
      : svg("text", { class: "faint apart", x: 0, y: answer.apart - 12, text: "Without references" });
    for (const data of answer.tables) this.tables.set(data.name, this.#table(data));
    this.node = svg(
      "g",
      {},
      svg("g", {}, ...this.references.map((r) => r.node)),
      apart,
      svg("g", {}, ...[...this.tables.values()].map((t) => t.node)),
    );
    const there = Object.entries(moved).filter(([name]) => this.tables.has(name));
    for (const [name, [x, y]] of there) this.#put(this.tables.get(name), x, y);
    this.#lead(this.references.filter(({ data }) => data.child in moved || data.parent in moved));
    for (const reference of this.references) this.#draw(reference);
  }

  /** What all of it takes up: [left, top, right, bottom]. */
  get box() {
    const boxes = [...this.tables.values()].map(({ box }) => box);
    const points = this.references.flatMap((r) => r.path);
    const xs = [...boxes.flatMap((b) => [b.x, b.x + b.width]), ...points.map(([x]) => x)];
    const ys = [...boxes.flatMap((b) => [b.y, b.y + b.height]), ...points.map(([, y]) => y)];
    const top = this.answer.apart === null ? [] : [this.answer.apart - 24];
    const least = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
    const most = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
    return boxes.length ? [least(xs), least([...ys, ...top]), most(xs), most(ys)] : [0, 0, 1, 1];
  }

  /** The references that start or end at a table. */
  of(name) {
    return this.references.filter(({ data }) => data.child === name || data.parent === name);
  }

  reference(name, ask) {
    return this.references.find(({ data }) => data.child === name && data.ask === ask);
  }

  /** Moves a table, and leads its lines anew. */
  move(name, dx, dy) {
    const table = this.tables.get(name);
    this.#put(table, table.box.x + dx, table.box.y + dy);
    const concerned = this.of(name);
    this.#lead(concerned);
    for (const reference of concerned) this.#draw(reference);
    return [table.box.x, table.box.y];
  }

  /** Dims all but some tables and references; null: nothing. */
  light(names, references) {
    this.node.classList.toggle("dimming", names !== null);
    for (const [name, { node }] of this.tables) node.classList.toggle("lit", names?.has(name) ?? false);
    for (const reference of this.references) {
      const lit = references?.has(reference) ?? false;
      reference.node.classList.toggle("lit", lit);
      if (lit) reference.node.parentNode.append(reference.node); // above the others
    }
  }

  /** The tables that have a text in their name, or in that of a column; both stand out. In reading order. */
  find(text) {
    const wanted = text.toLowerCase();
    const has = (name) => wanted !== "" && name.toLowerCase().includes(wanted);
    const matches = [];
    for (const table of this.tables.values()) {
      const { data, node, rows } = table;
      rows.forEach((row, i) => row.classList.toggle("match", has(data.columns[i].name)));
      const match = has(data.name) || data.all_columns.some(has);
      node.classList.toggle("match", match);
      if (match) matches.push(table);
    }
    this.node.classList.toggle("searching", wanted !== "");
    const exact = ({ data }) => (data.name.toLowerCase() === wanted ? 0 : has(data.name) ? 1 : 2);
    return matches.sort((a, b) => exact(a) - exact(b) || a.box.y - b.box.y || a.box.x - b.box.x);
  }

  /** From afar only the names of tables are read: as large as they need to be, about their boxes. */
  name(scale, far) {
    const joined = new Set(this.references.flatMap(({ data }) => [data.child, data.parent]));
    for (const { box, title, data } of this.tables.values()) {
      const most = joined.has(data.name) ? 2.1 * box.width : box.width + GAP;
      const size = Math.min(Math.max(12, 11 / scale), most / (0.62 * data.title.length));
      title.style.fontSize = far ? `${size}px` : "";
      title.setAttribute("text-anchor", far ? "middle" : "start");
      title.setAttribute("x", far ? box.width / 2 : 8);
      title.setAttribute("y", far ? box.height / 2 + size * 0.35 : 17);
    }
  }

  #table(data) {
    const { sizes } = this.answer;
    const rows = data.columns.map((column, i) => {
      const y = sizes.head + sizes.row * i;
      return svg(
        "g",
        { class: "row" },
        svg("rect", { class: "mark", x: 1, y, width: data.width - 2, height: sizes.row }),
        column.marks.length ? svg("text", { class: "faint", x: 7, y: y + 14, text: column.marks.join(" ") }) : null,
        svg("text", { x: data.room, y: y + 14, text: column.text }, whole(column.name, column.text)),
        svg("text", { class: "faint", x: data.width - 8, y: y + 14, "text-anchor": "end", text: column.type }),
      );
    });
    const below = sizes.head + sizes.row * rows.length + 14;
    const title = svg("text", { class: "name", x: 8, y: 17, text: data.title }, whole(data.name, data.title));
    const node = svg(
      "g",
      { class: "table", "data-table": visible(data.name) },
      svg("rect", { class: "box", width: data.width, height: data.height, rx: 4 }),
      svg("rect", { class: "head", width: data.width, height: sizes.head, rx: 4 }),
      ...rows,
      data.remark ? svg("text", { class: "faint row", x: data.room, y: below, text: data.remark }) : null,
      // Last: from afar the title is over all else.
      svg(
        "g",
        { role: "link", tabindex: 0 },
        title,
        svg(
          "text",
          { class: "faint rows", x: data.width - 8, y: 17, "text-anchor": "end", "aria-hidden": "true", text: number(data.n_rows) },
          svg("title", { text: plural(data.n_rows, "row") }),
        ),
      ),
    );
    const table = { data, node, rows, title, box: { width: data.width, height: data.height } };
    this.#put(table, data.x, data.y);
    return table;
  }

  #put(table, x, y) {
    Object.assign(table.box, { x, y });
    table.node.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
  }

  #reference(data) {
    const ways = ["hit", "way"].map((name) => svg("path", { class: name }));
    const ends = data.ends.map((name) => this.#end(this.answer.ends[name]));
    const words = data.label.replace(" %", "%") || (data.used === null ? "" : share(data.used));
    const label = svg("text", { class: "faint label", text: words });
    const node = svg(
      "g",
      {
        class: `reference ${data.state}`,
        "data-child": visible(data.child), "data-parent": visible(data.parent), "data-columns": visible(data.columns.join(", ")),
      },
      svg("title", { text: data.title }),
      ...ways,
      ...ends,
      label,
    );
    return { data, node, ways, ends, label, path: data.path };
  }

  #end({ shape, ring }) {
    const { ring_at: cx, ring: r } = this.answer.sizes;
    return svg("g", { class: "end" }, svg("path", { d: shape }), ring ? svg("circle", { cx, r }) : null);
  }

  /** New ways for some references, around the boxes as they are now. */
  #lead(references) {
    const boxes = [...this.tables.values()].map(({ box }) => box);
    for (const reference of references) {
      const { child, parent, below } = reference.data;
      reference.path = newWay(this.tables.get(child).box, this.tables.get(parent).box, below, boxes);
    }
  }

  #draw({ path, ways, ends, label }) {
    const text = rounded(path, this.answer.sizes.round);
    for (const way of ways) way.setAttribute("d", text);
    [[path[0], path[1]], [path.at(-1), path.at(-2)]].forEach(([[x, y], [towards]], i) => {
      const turn = towards >= x ? "" : " scale(-1 1)";
      ends[i].setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})${turn}`);
    });
    const side = path[1][0] >= path[0][0] ? 1 : -1;
    label.setAttribute("x", (path[0][0] + LABEL * side).toFixed(1));
    label.setAttribute("y", (path[0][1] - 5).toFixed(1));
    label.setAttribute("text-anchor", side > 0 ? "start" : "end");
  }
}

/** The whole of a name that is cut. */
const whole = (name, text) => (name === text ? null : svg("title", { text: visible(name) }));
