// The first tab: what is broken now, since when, and where. The health of all tables, what broke lately, and the
// timeline of the workspace (`timeline.js`), whose versions are listed beside it (`versions.js`).

import { get, Latest } from "./api.js";
import { el, failure, fill, hint, loading, notice, number, plural, refill, text } from "./dom.js";
import { moment } from "./times.js";
import { format } from "./route.js";
import { sparkline } from "./sparkline.js";
import { Still } from "./still.js";
import { Timeline } from "./timeline.js";
import { Versions } from "./versions.js";

const HEALTH = {
  broken: "A pin of severity error does not hold, or a foreign key that held has orphans now.",
  drifting: "A pin of severity warning does not hold, a pin holds only within its tolerance, or a foreign key, a "
    + "primary key or what had held for long broke lately and does not hold again.",
  hold: "All pins hold, and no foreign key, primary key or long-held dependency broke lately.",
  unwatched: "Nothing is pinned, and nothing was found to hold: so nothing could break.",
};
const WORDS = { broken: "broken", drifting: "drifting", hold: "holds", unwatched: "unwatched" };

const MOST = 200; // of what broke, that is asked for at once

class Overview {
  #latest = new Latest();
  #page = 0; // how much of what broke comes at once
  #wanted = 0; // so much of it is listed, if there is as much
  #broke = null; // what is listed of it

  constructor(page, holder) {
    this.page = page;
    this.head = el("div", { class: "state", role: "status", "aria-label": "Health of the workspace" });
    this.tables = new List("healths", "Tables");
    this.incidents = new List("side", "What broke");
    this.versions = new Versions(() => this.#showIncidents());
    this.timeline = new Timeline({
      pick: (range) => this.#pick(range),
      look: (versions) => this.#write({ versions }),
      filter: ({ table, kind }) => this.#filter({ name: table, kind }),
    });
    this.versions.node.hidden = true;
    const right = el("div", { class: "right-half" }, this.incidents.node, this.versions.node);
    const halves = el("div", { class: "halves" }, this.tables.node, right);
    this.still = new Still(halves, { focus: true });
    this.tables.head.append(this.still.button);
    fill(holder, this.head, this.timeline.node, halves);
  }

  /** Puts what is looked at into the address. */
  #write(change) {
    this.route = { ...this.route, ...change };
    this.page.write({ tab: "overview", ...this.route });
    this.page.link("overview", { tab: "overview", ...this.route });
  }

  async follow(route) {
    const { name, kind, versions, picked } = route;
    this.route = { name, kind, versions, picked };
    this.page.link("overview", { tab: "overview", ...this.route });
    const { workspace } = await this.page.summary.catch(() => ({ workspace: null }));
    if (this.page.route !== route) return; // another one is followed by now
    if (workspace?.tables.length === 0) {
      this.#nothing();
      return;
    }
    this.timeline.offer(workspace?.tables.map((t) => t.name) ?? [], workspace?.nouns ?? {}, { table: name, kind });
    this.timeline.show(versions, picked);
    if (picked !== undefined) this.#showVersions({ ...picked, table: name, kind });
    else if (!this.versions.node.hidden) this.#hideVersions();
    this.isListed = false;
    await this.refresh();
  }

  /** There is another version: the same again, in place; rows wait until nobody points at them. */
  async refresh() {
    // The tables first: their answer is what people wait for.
    try {
      const signal = this.#latest.next();
      const answer = await this.#asked(signal);
      if (signal.aborted) return;
      this.#show(answer);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.isListed = false;
      this.tables.show("Tables", null, failure("The tables cannot be listed", error));
      this.incidents.node.hidden = true;
      return;
    }
    this.timeline.refresh();
    this.versions.refresh();
  }

  /** The answer, with as much of what broke as is wanted. */
  async #asked(signal) {
    const answer = await get("workspace/overview", {}, { signal });
    this.#page = answer.incidents.length;
    const until = Math.min(this.#wanted, answer.n_incidents);
    for (let offset = answer.incidents.length; offset < until; offset = answer.incidents.length) {
      const { version, incidents } = await get("workspace/incidents", { offset, limit: Math.min(MOST, until - offset) }, { signal });
      if (version !== answer.version || !incidents.length) break; // there is a newer one: it is asked for, too
      answer.incidents.push(...incidents);
    }
    return answer;
  }

  #nothing() {
    const how = "Track one with: holdfast track NAME FILE. Its health and its history are shown here.";
    fill(this.head);
    this.incidents.node.hidden = true;
    this.timeline.node.hidden = true;
    this.tables.show("", null, notice("No tracked table", how));
  }

  #show(answer) {
    this.timeline.node.hidden = false;
    const words = Object.keys(HEALTH).filter((word) => word !== "unwatched" || answer.health[word]);
    fill(this.head, ...words.map((word) => counted(word, answer.health[word])), newest(answer));
    if (this.isListed) this.still.show(() => this.#list(answer));
    else this.#list(answer);
    if (!this.painted) {
      this.painted = true;
      requestAnimationFrame(() => setTimeout(() => performance.mark("holdfast-painted-overview")));
    }
  }

  #list(answer) {
    this.still.drop();
    this.isListed = true;
    this.tables.show("Tables", answer.tables.length, el("ul", { class: "rows" }, ...answer.tables.map(row)));
    this.incidents.show("What broke", answer.n_incidents, ...this.#whatBroke(answer));
    this.incidents.node.hidden = !this.versions.node.hidden;
  }

  #whatBroke({ incidents, n_incidents: n, version }) {
    this.#broke = null;
    if (!incidents.length) return [hint("Nothing that looks meant broke since the tables were tracked.")];
    const list = el("ol", { class: "incidents" }, ...grouped(incidents));
    const rest = el("div", {});
    this.#broke = { list, rest, version, n: incidents.length };
    this.#offer(n);
    return [list, rest];
  }

  /** A button for what broke before. */
  #offer(n) {
    const { rest, n: listed } = this.#broke;
    const press = ({ currentTarget }) => {
      if (!currentTarget.ariaDisabled) this.#further(); // else it is asked for already
    };
    refill(rest, listed < n ? el("button", { type: "button", class: "more", text: `Show more of ${number(n)}`, on: { click: press } }) : null);
  }

  /** More of what broke: of the version that the list is of, which is the newest one by now. */
  async #further() {
    this.still.now();
    const broke = this.#broke;
    const button = broke?.rest.querySelector("button") ?? null;
    if (button === null) return;
    button.ariaDisabled = "true";
    this.#wanted = broke.n + this.#page;
    try {
      const { version, n_incidents: n, incidents } = await get("workspace/incidents", { offset: broke.n });
      if (broke !== this.#broke || version !== broke.version) {
        // There was another version meanwhile, and another list.
        const signal = this.#latest.next();
        this.#list(await this.#asked(signal));
        return;
      }
      const first = broke.list.children.length;
      broke.list.append(...grouped(incidents));
      broke.n += incidents.length;
      this.#offer(n);
      broke.list.children[first]?.querySelector("a")?.focus({ preventScroll: true });
    } catch (error) {
      if (error.name === "AbortError") return;
      button.ariaDisabled = null;
      fill(broke.rest, button, failure("No more can be listed", error));
    }
  }

  #pick(range) {
    this.#write({ picked: { first: range.first, last: range.last } });
    this.#showVersions(range);
  }

  /** The versions that are listed are of what is filtered, too. */
  #filter({ name, kind }) {
    this.#write({ name, kind });
    const { picked } = this.route;
    if (picked !== undefined) this.#showVersions({ ...picked, table: name, kind });
  }

  #showVersions(range) {
    this.incidents.node.hidden = true;
    this.versions.node.hidden = false;
    this.versions.show(range);
  }

  #hideVersions() {
    this.versions.node.hidden = true;
    this.incidents.node.hidden = false;
  }

  #showIncidents() {
    this.#write({ picked: undefined });
    this.#hideVersions();
    this.timeline.unpick();
  }
}

export const open = (page, holder) => new Overview(page, holder);

/** A part with a title, which stays, and what is listed below it. */
class List {
  constructor(name, title) {
    this.title = el("h2", { text: title });
    this.head = el("div", { class: "titled" }, this.title);
    this.body = el("div", {}, loading(title));
    this.node = el("section", { class: name, "aria-label": title }, this.head, this.body);
  }

  show(title, n, ...nodes) {
    fill(this.title, title, n === null ? null : el("span", { class: "count", text: ` ${number(n)}` }));
    refill(this.body, ...nodes.filter((node) => node !== null));
  }
}

/** "2 broken", the largest thing of the page. */
function counted(word, n) {
  return el(
    "p",
    { class: `word ${n ? word : "none"}`, title: HEALTH[word] },
    el("b", { text: number(n) }),
    ` ${word === "hold" && n === 1 ? "holds" : word}`,
  );
}

function newest({ version, at, n_pins: pins }) {
  return el(
    "p",
    { class: "newest" },
    pins ? `${plural(pins, "pin")} · ` : "nothing is pinned · ",
    `version ${number(version)} · `,
    moment(at),
  );
}

/** A table: health, rows, their past, and what is wrong. */
function row(table) {
  const [first, ...more] = table.why;
  const link = el(
    "a",
    { href: format({ tab: "table", name: table.name }), class: `health-row ${table.health}` },
    el("span", { class: `health ${table.health}`, title: HEALTH[table.health], text: WORDS[table.health] }),
    el("span", { class: "name-and-pins" }, text(table.name, "name", 60), table.n_pins ? el("span", { class: "aside", text: plural(table.n_pins, "pin") }) : null),
    el("span", { class: "number", text: number(table.n_rows), title: plural(table.n_rows, "row") }),
    sparkline(table),
    el(
      "span",
      { class: "trouble" },
      ...(first === undefined ? [] : [text(first.text, "code", 90), el("span", { class: "aside", text: first.why })]),
      first?.since
        ? el("span", { class: "since" }, `since version ${number(first.since)}${first.at_least ? " or before" : ""}, `, moment(first.since_at))
        : null,
      more.length ? el("span", { class: "aside", text: `+${number(more.length)} more` }) : null,
    ),
  );
  return el("li", {}, link);
}

/** What broke, version by version and table by table. */
const grouped = (incidents) => [...Map.groupBy(incidents, (i) => JSON.stringify([i.version, i.table])).values()].map(group);

/** What a version broke in a table, under one head: which batch, when, how many rows came and went. */
function group(incidents) {
  const [i] = incidents;
  const rows = [i.n_inserted ? `+${number(i.n_inserted)}` : "", i.n_deleted ? `−${number(i.n_deleted)}` : ""];
  const moved = rows.filter(Boolean).join(" ");
  return el(
    "li",
    { class: "group-broke" },
    el(
      "p",
      { class: "line aside" },
      el("strong", {}, text(i.table, "name", 40)),
      el("span", { text: `version ${number(i.version)}${i.at_least ? " or before" : ""}` }),
      i.batch_id ? el("span", {}, "batch ", text(i.batch_id, "name", 40)) : null,
      moved ? el("span", { text: `${moved} ${i.n_inserted + i.n_deleted === 1 ? "row" : "rows"}` }) : null,
      moment(i.at),
    ),
    ...incidents.map(incident),
  );
}

/** Something that broke, and whether it holds again. */
function incident(i) {
  const role = i.role === "dependency" || i.reason.startsWith(i.role) ? null : el("span", { class: "role", text: i.role });
  const state = i.holds
    ? el("span", { class: "event appeared", text: `again since ${number(i.again)}`, title: "It holds again" })
    : el("span", { class: `event ${i.strong ? "broke" : ""}`, text: i.strong ? "broken" : "broke" });
  return el(
    "a",
    { href: format({ tab: "dependency", name: i.table, ask: i.ask }), class: `incident ${i.holds ? "over" : ""}` },
    state,
    el("span", { class: "line" }, text(i.text, "code", 160), role, el("span", { class: "aside", text: i.reason })),
  );
}
