// The page: follows the address, and opens the view that it names. A view is a module with `open(page, holder)`,
// which is loaded when it is first needed, and gives an object with
//   follow(route)  the address names this view, or says something else about it;
//   leave()        the address names another view now (may be missing);
//   refresh()      there is a new version of the workspace (without it the page offers to load itself again).

import { get, onNewVersion } from "./api.js";
import { byId, el, failure, fill, number, plural, visible } from "./dom.js";
import { live } from "./live.js";
import { format, parse } from "./route.js";
import { age } from "./times.js";

// By the `tab` of the address; `at` is the element that a view fills, and the links in the head are #tab-NAME.
const VIEWS = {
  overview: { at: "overview", module: () => import("./overview.js") },
  map: { at: "diagram", module: () => import("./diagram.js") },
  table: { at: "tracked", module: () => import("./table.js") },
  dependency: { at: "dependency", module: () => import("./dependency.js") },
  lake: { at: "lake", module: () => import("./lake.js") },
};

class Page {
  route = {};
  followed = null; // the address that was last followed
  turn = 0; // how often one was
  opened = new Map();
  titles = new Map(); // of the window, by view

  constructor() {
    this.summary = get("summary");
    this.summary.catch(() => {}); // whoever waits for it tells what went wrong
    addEventListener("hashchange", () => this.follow());
    onNewVersion(() => this.#renew());
    byId("outdated").addEventListener("click", () => location.reload());
  }

  /** Goes to a route, which is a step of the history. */
  go(route) {
    location.hash = format(route);
  }

  /** Goes to a route in place of the one that is there. */
  replace(route) {
    this.write(route);
    this.follow();
  }

  /** Puts a route into the address without a step of the history; nobody follows it. */
  write(route) {
    history.replaceState(null, "", format(route));
    this.followed = location.hash;
  }

  /** The link in the head leads back to where a view was, whichever is there by now. */
  link(tab, route) {
    byId(`tab-${tab}`).setAttribute("href", format(route));
  }

  /** What a view shows, for the title of the window. */
  entitle(tab, words) {
    this.titles.set(tab, words);
    if (tab === this.tab) document.title = `${visible(words)} – holdfast explore`;
  }

  /** What stands above the views: counted things, such as "2 tables", and perhaps more. */
  tell(parts, ...more) {
    const gap = () => el("i", { class: "gap" });
    const nodes = parts.map((words) => {
      const space = words.indexOf(" ");
      return el("span", {}, el("b", { text: words.slice(0, space) }), words.slice(space));
    });
    const line = byId("summary");
    fill(line, ...[...nodes, ...more].flatMap((node, i) => (i ? [gap(), node] : [node])));
    line.title = line.textContent;
  }

  async follow() {
    const turn = (this.turn += 1);
    const isLatest = () => turn === this.turn && this.followed === location.hash;
    this.followed = location.hash;
    const route = parse(location.hash);
    const tab = route.tab ?? await this.#first(route);
    if (!isLatest()) return;
    this.route = { ...route, tab };
    if (this.tab !== tab) this.#turnTo(tab);
    this.entitle(tab, this.#title());
    const view = await this.#view(tab);
    if (view !== null && this.tab === tab && isLatest()) view.follow(this.route);
  }

  /** The view of an address that names none: that of what is there. */
  async #first(route) {
    if (route.component !== undefined || route.table !== undefined) return "lake";
    try {
      const { lake, workspace } = await this.summary;
      return workspace.tables.length ? "overview" : "lake";
    } catch {
      return "lake"; // which tells why
    }
  }

  /** As the address says; a lake has names for its numbers, and says itself which. */
  #title() {
    const { tab, name, ask } = this.route;
    const title = tab === "lake" ? this.titles.get(tab) : [ask, name].filter(Boolean).join(" of ");
    return title || byId(`tab-${tab}`).textContent;
  }

  #turnTo(tab) {
    this.opened.get(this.tab)?.leave?.();
    this.tab = tab;
    for (const [name, { at }] of Object.entries(VIEWS)) {
      byId(at).hidden = name !== tab;
      const link = byId(`tab-${name}`);
      if (name === tab) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    byId("search").classList.toggle("off", tab !== "lake");
    byId("filters").hidden = tab !== "lake";
    if (tab !== "lake") this.#tellTracked();
  }

  async #tellTracked() {
    const { workspace } = await this.summary.catch(() => ({ workspace: null }));
    if (workspace === null || this.tab === "lake") return;
    this.tell([plural(workspace.tables.length, "tracked table")], el("span", { text: `version ${number(workspace.version)}` }));
  }

  /** The view, opened if it was not; null if that failed, which is told. */
  async #view(tab) {
    if (this.opened.has(tab)) return this.opened.get(tab);
    const { at, module } = VIEWS[tab];
    try {
      const { open } = await module();
      if (!this.opened.has(tab)) this.opened.set(tab, open(this, byId(at)));
      return this.opened.get(tab);
    } catch (error) {
      fill(byId(at), failure("This part of the page cannot be loaded", error));
      return null;
    }
  }

  /** There is a new version of the workspace. */
  #renew() {
    this.summary = get("summary");
    this.summary.catch(() => {});
    this.#tellTracked();
    for (const view of this.opened.values()) view.refresh?.();
    const view = this.opened.get(this.tab);
    if (view !== undefined && view.refresh === undefined) byId("outdated").hidden = false;
  }
}

new Page().follow();
live();
age();
