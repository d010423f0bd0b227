// The field in which a dependency is typed, with the table that it is about.

import { get } from "./api.js";
import { Combobox } from "./combobox.js";
import { el, fill, text } from "./dom.js";
import { examples, proposals, tableAt } from "./completion.js";

export class AskBar {
  #columns = new Map(); // by table: null while they are on their way
  #tables = [];
  #shown = null; // what an address asked for last

  /** `choose` is given a table and a text. */
  constructor(choose) {
    this.choose = choose;
    this.select = el("select", { id: "ask-table", "aria-label": "Table", on: { change: () => this.#turned() } });
    this.input = el("input", {
      id: "ask-text", type: "text", role: "combobox", autocomplete: "off", spellcheck: "false",
      placeholder: "Type a dependency, such as zip -> city", "aria-label": "Dependency", "aria-expanded": "false",
      "aria-controls": "ask-list", "aria-autocomplete": "list",
      on: {
        input: () => this.#propose(),
        focus: () => this.#propose(),
        click: () => this.#propose(),
      },
    });
    const list = el("div", {
      id: "ask-list", class: "results", role: "listbox", "aria-label": "What may come next", hidden: true,
    });
    this.box = new Combobox(this.input, list, {
      take: (entry) => this.#take(entry), reopen: () => this.#propose(),
    });
    const submit = (event) => {
      event.preventDefault();
      this.#submit();
    };
    this.node = el(
      "form",
      { class: "ask", role: "search", "aria-label": "Explain a dependency", on: { submit } },
      this.select,
      el("div", { class: "ask-field" }, this.input, list),
      el("button", { type: "submit", class: "ask-go", text: "Explain" }),
    );
    this.examples = el("div", { class: "examples" });
  }

  /** Shows what an address asks for. If it is the same as before, what is typed by now stays. */
  show(tables, table, ask) {
    const chosen = this.select.value;
    if (this.#tables.join("\n") !== tables.join("\n")) {
      this.#tables = tables;
      fill(this.select, ...tables.map((t) => el("option", { value: t }, t)));
    }
    if (table !== undefined && !tables.includes(table)) this.select.append(el("option", { value: table }, table));
    const shown = JSON.stringify([table, ask]);
    const isSame = shown === this.#shown && (tables.includes(chosen) || chosen === table);
    this.#shown = shown;
    this.select.value = isSame ? chosen : table ?? tables[0] ?? "";
    if (!isSame) this.input.value = ask ?? "";
    this.#load(this.select.value);
    this.#showExamples();
  }

  /** What is known of columns may be of an older version. */
  forget() {
    this.#columns.clear();
    this.#load(this.table);
  }

  get table() {
    return this.select.value;
  }

  #turned() {
    this.#load(this.table);
    this.#showExamples();
    if (this.input.value.trim()) this.#submit();
  }

  #submit() {
    this.box.open(false);
    const ask = this.input.value.trim();
    if (ask) this.choose(this.table, ask);
    else this.input.focus();
  }

  async #load(table) {
    if (!table || this.#columns.has(table)) return;
    this.#columns.set(table, null);
    try {
      this.#columns.set(table, (await get("workspace/columns", { table })).columns);
    } catch {
      this.#columns.delete(table); // a table that is not there: the question itself says so
      return;
    }
    if (this.box.isOpen) this.#propose();
    if (table === this.table) this.#showExamples();
  }

  #showExamples() {
    const known = this.#columns.get(this.table) ?? [];
    const nodes = examples(this.table, known, this.#tables).map(({ text: example, note, whole }) => el(
      "button",
      { type: "button", class: "example", on: { click: () => this.#try(example, whole) } },
      text(example, "code", 200),
      el("span", { class: "aside", text: note }),
    ));
    fill(this.examples, ...nodes);
  }

  #try(example, whole) {
    this.input.value = example;
    if (whole) this.#submit();
    else this.input.focus();
  }

  // -- proposals --

  #propose() {
    const before = this.input.value.slice(0, this.input.selectionStart ?? undefined);
    const other = tableAt(before);
    if (other !== null && this.#tables.includes(other)) this.#load(other);
    const groups = proposals(before, {
      table: this.table, tables: this.#tables, columns: (t) => this.#columns.get(t) ?? [],
    });
    this.box.fill(groups.map(({ title, entries }) => ({
      title: [title],
      options: entries.map((entry) => ({ meant: entry, shown: [text(entry.text, "code", 80), entry.note] })),
    })));
    this.box.open(groups.length > 0);
  }

  #take({ text: written, from }) {
    const caret = this.input.selectionStart ?? this.input.value.length;
    const behind = this.input.value.slice(caret);
    const ahead = this.input.value.slice(0, from);
    const space = /[[(.]$/.test(written) || /^\s/.test(behind) ? "" : " ";
    const tight = written === "," || written === "]" ? ahead.trimEnd() : ahead;
    this.input.value = `${tight}${written}${space}${behind}`;
    const end = tight.length + written.length + space.length;
    this.input.setSelectionRange(end, end);
    this.input.focus();
    this.#propose();
  }
}
