// The lake: its components, the join graph of one of them, and a table of it.

import { ApiError, get, Latest } from "./api.js";
import { CircleView } from "./circles.js";
import { ComponentList } from "./components.js";
import { byId, el, failure, fill, loading, notice, number, plural, text } from "./dom.js";
import { Filters } from "./filters.js";
import { GraphView } from "./graph.js";
import { Graph } from "./network.js";
import { clusterList, TablePanel, tableList } from "./panels.js";
import { format, parse } from "./route.js";
import { Search } from "./search.js";
import { Still } from "./still.js";

const MOST_EDGES = 30_000;

/** The view of a lake. `page` is the shell: it has the summary, and goes where the address says. */
export class LakeView {
  route = {};
  graphAsked = null; // "component/cluster" of what the middle shows or waits for
  tableAsked = null;
  graph = null;
  answer = null; // of the component or cluster
  panel = null;
  graphRequest = new Latest();
  tableRequest = new Latest();

  constructor(page) {
    this.page = page;
    this.#ask();
    const stage = byId("stage");
    this.message = el("div", { class: "message" });
    this.view = new GraphView(stage, {
      select: (id) => this.go({ table: id }),
      painted: (n) => this.painted(n),
      status: (shown, of) => this.tellEdges(shown, of),
    });
    const clusters = el("div", { class: "layer" });
    stage.append(clusters, this.message);
    this.clusters = new CircleView(clusters, "Clusters of this component. They are listed beside it.", {
      open: (id) => this.go({ cluster: id, table: null }),
      tell: (c) => [c.name, plural(c.n_tables, "table")],
      painted: (n) => this.painted(n),
    }, { margin: 56 });
    this.clusterLayer = clusters;
    clusters.hidden = true;
    this.components = new ComponentList((id) => this.go({ component: id, cluster: null, table: null }));
    this.filters = new Filters(byId("filters"), (values) => this.filtered(values));
    this.search = new Search(byId("search-text"), byId("search-results"), (id) => this.openTable(id));
    this.still = new Still(byId("lake"), { focus: true });
    byId("outdated").after(this.still.button);
    this.#wire();
  }

  #wire() {
    const current = () => (this.clusterLayer.hidden ? this.view : this.clusters);
    byId("zoom-in").addEventListener("click", () => current().zoom(1.4));
    byId("zoom-out").addEventListener("click", () => current().zoom(1 / 1.4));
    byId("zoom-fit").addEventListener("click", () => current().fit());
    addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea");
      const seen = this.route.table !== undefined && !byId("lake").hidden;
      if (event.key === "Escape" && !typing && seen) this.go({ table: null });
    });
    fill(
      byId("legend"),
      el("span", {}, el("i", { class: "dot" }), "larger: more neighbours"),
      el("span", {}, el("i", { class: "stroke" }), "stronger: better score"),
      el("span", {}, el("i", { class: "stroke out" }), "contained in"),
      el("span", {}, el("i", { class: "stroke into" }), "contains"),
    );
  }

  /** What every graph needs is asked for first: setting up WebGL may take longer than the answers. */
  #ask() {
    this.summaryRequest = this.page.summary;
    this.componentsRequest = this.summaryRequest.then((s) => (s.lake === null ? null : get("components")));
    const { component, cluster } = parse(location.hash);
    if (component !== undefined) {
      const signal = this.graphRequest.next();
      this.early = { wanted: `${component}/${cluster ?? ""}`, signal, answer: askGraph(component, cluster, signal) };
    }
    // Whoever waits for an answer tells what went wrong.
    for (const request of [this.componentsRequest, this.early?.answer]) request?.catch(() => {});
  }

  async start() {
    this.say(loading("Opening the lake"));
    await this.#list();
  }

  /** What is known of the lake as a whole, and its components. */
  async #list() {
    try {
      this.summary = await this.summaryRequest;
    } catch (error) {
      this.say(failure("The page cannot be filled", error));
      fill(byId("component-list"));
      return;
    }
    if (this.summary.lake === null) return;
    if (this.page.tab === "lake") this.#tellSummary();
    try {
      this.components.show(await this.componentsRequest, this.summary.lake);
    } catch (error) {
      fill(byId("component-list"), failure("The components cannot be listed", error));
    }
  }

  #tellSummary() {
    const { lake } = this.summary;
    const parts = [
      plural(lake.n_tables, "table"), plural(lake.n_columns, "column"),
      plural(lake.n_inds, "inclusion"), plural(lake.n_components, "component"),
    ];
    const removed = Object.entries(lake.removed ?? {}).map(([name, n]) => `${name}: ${number(n)} removed`).join("\n");
    const filters = lake.filters.length ? `filters: ${lake.filters.join(", ")}` : "no filters";
    this.page.tell(parts, el("span", { text: filters, title: removed }));
  }

  /** Changes a part of the address. What is null is left out; links and `back` do the rest. */
  go(change) {
    this.page.go(merged({ ...this.route, ...this.where }, change));
  }

  /** Where the middle is, even if the address does not say so (the largest component). */
  get where() {
    if (this.answer === null) return {};
    return merged({}, { component: this.answer.id, cluster: this.answer.cluster ?? null });
  }

  /** The address says something else about the lake. */
  follow(route) {
    this.route = route;
    if (this.summary?.lake) this.#tellSummary();
    this.#followFilters();
    this.page.link("lake", this.route);
    this.#followLake();
  }

  leave() {
    clearTimeout(this.writing);
    this.still.now();
  }

  /** There is a new version. If the lake is another one, it is shown once nobody points at it. */
  async refresh() {
    const summary = await this.page.summary.catch(() => null); // the page says that the server is gone
    if (summary === null || summary !== (await this.page.summary.catch(() => null))) return;
    if (this.summary === undefined || summary.lake?.changed !== this.summary.lake?.changed) {
      this.still.show(() => this.#renew());
      return;
    }
    this.summary = summary;
    if (this.panel === null) return;
    const tracked = isTracked(summary, this.panel.table);
    if (tracked === this.panel.tracked) return;
    this.panel = { table: this.panel.table, tracked };
    this.#showDetails();
  }

  /** The same of another lake, in place. Numbers of components and clusters are others; those of tables stay, but
  if it was linked anew. */
  async #renew() {
    const { route, graph, componentName } = this;
    const name = this.panel?.table.name;
    this.summaryRequest = this.page.summary;
    this.componentsRequest = this.summaryRequest.then((s) => (s.lake === null ? null : get("components")));
    this.componentsRequest.catch(() => {});
    this.graphRequest.stop();
    this.tableRequest.stop();
    this.graphAsked = this.tableAsked = null;
    const known = async (id) => (id === undefined ? null : get("table", { id }).catch(() => null));
    const beside = await known(route.component === undefined ? undefined : graph?.ids[0]);
    const table = name === undefined || (await known(route.table))?.name === name ? route.table : null;
    await this.#list();
    const all = (await this.componentsRequest.catch(() => null))?.components ?? [];
    const named = all.find((c) => c.name === componentName?.name)?.id;
    const component = route.component === undefined ? undefined : (beside?.component >= 0 ? beside.component : named);
    if (this.route !== route) return; // somebody went on meanwhile
    const cluster = beside?.component >= 0 && route.cluster !== undefined && beside.cluster >= 0 ? beside.cluster : undefined;
    this.route = merged({ ...route, component: null, cluster: null }, { component, cluster, table });
    if (this.page.tab === "lake") this.page.write(this.route);
    this.page.link("lake", this.route);
    await this.#followLake();
  }

  /** Links do not say the filters: those that are set stay, and are written into the address. */
  #followFilters() {
    const chosen = shares(this.filters.values);
    const unsaid = this.route.score === undefined && this.route.coverage === undefined;
    if (unsaid && Object.keys(chosen).length) {
      this.route = { ...this.route, ...chosen };
      this.page.write(this.route);
      return;
    }
    this.filters.set(this.route);
    this.view.setFilter(this.filters.values);
    this.panel?.view?.setFilter(this.filters.values);
  }

  async #followLake() {
    const { route } = this;
    const table = this.#followTable(route.table);
    let { component, cluster } = route;
    if (component === undefined && route.table !== undefined) {
      const known = await table;
      if (this.route !== route) return;
      component = known?.component;
      if (known !== undefined && !(component >= 0)) {
        const filters = this.summary?.lake?.filters?.length ? ", or the filters kept it out" : "";
        const why = `No column of this table is contained in one of another table, nor contains one${filters}.`;
        this.#noGraph(notice("In no component", why));
        return;
      }
    }
    if (component === undefined) {
      component = await this.#largest();
      if (this.route !== route || component === null) return;
    }
    await this.#followGraph(component, cluster);
    if (this.route !== route) return;
    if (this.answer?.clustered && route.table !== undefined) {
      const known = await table;
      const clustered = Number.isInteger(known?.cluster) && known.cluster >= 0;
      if (this.route === route && clustered) this.page.replace({ ...route, component, cluster: known.cluster });
      return;
    }
    if (this.graph === null) return;
    this.view.select(route.table);
    const known = await table;
    if (known !== undefined && this.route.table === known.id) this.view.tell(known.id, known.inds.map(edge));
  }

  /** The id of the largest component; null if there is none, which is told. */
  async #largest() {
    try {
      const summary = await this.summaryRequest;
      if (summary.lake === null) {
        this.#noGraph(notice("No lake", "This workspace has none yet. Make one with: holdfast link FOLDER"));
        fill(byId("component-list"));
        byId("map").hidden = true;
        fill(byId("details"));
        return null;
      }
      const { components } = await this.componentsRequest;
      if (components.length) return components[0].id;
      const removed = Object.values(summary.lake.removed ?? {}).reduce((sum, n) => sum + n, 0);
      const all = removed === 1 ? "the only one" : `all ${number(removed)}`;
      const why = removed
        ? `The filters kept out ${all}. Keep them with: holdfast link --all-inds`
        : "No column of a table is contained in one of another, so there is no graph to show.";
      this.#noGraph(notice("No inclusions", why));
    } catch (error) {
      this.#noGraph(failure("The lake cannot be shown", error));
    }
    return null;
  }

  #noGraph(words) {
    this.graphRequest.stop();
    this.graphAsked = null;
    this.graph = this.answer = null;
    this.view.clear();
    this.clusters.clear();
    this.clusterLayer.hidden = true;
    fill(byId("crumbs"));
    fill(byId("graph-facts"));
    byId("lake").classList.add("bare");
    this.components.activate(null);
    this.say(words);
    this.#showDetails();
  }

  async #followGraph(component, cluster) {
    const wanted = `${component}/${cluster ?? ""}`;
    if (this.graphAsked === wanted) return this.graphShown;
    this.graphAsked = wanted;
    this.components.activate(component);
    this.graphShown = this.#loadGraph(component, cluster);
    return this.graphShown;
  }

  async #loadGraph(component, cluster) {
    const early = this.early?.wanted === this.graphAsked ? this.early : null;
    this.early = null;
    const signal = early?.signal ?? this.graphRequest.next();
    this.say(loading("Loading the graph"));
    try {
      const answer = await (early?.answer ?? askGraph(component, cluster, signal));
      if (!signal.aborted) this.#showGraph(answer);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#noGraph(failure("The graph cannot be shown", error));
      if (!(error instanceof ApiError)) throw error;
    }
  }

  #showGraph(answer) {
    this.answer = answer;
    this.say(null);
    byId("lake").classList.remove("bare");
    byId("lake").classList.toggle("clustered", answer.clustered);
    this.clusterLayer.hidden = !answer.clustered;
    this.#tellCrumbs();
    if (answer.clustered) {
      this.graph = null;
      this.view.clear();
      const within = `${plural(answer.n_tables, "table")} in ${plural(answer.clusters.length, "cluster")}`;
      byId("graph-facts").textContent = `${within}: open one to see its tables`;
      this.clusters.show(answer.clusters, answer.links);
    } else {
      this.clusters.clear();
      this.graph = new Graph(answer);
      this.view.filter = this.filters.values;
      this.view.show(this.graph);
      this.view.select(this.route.table);
    }
    this.#showDetails();
  }

  #tellCrumbs() {
    const { answer } = this;
    const inCluster = answer.cluster !== null && answer.cluster !== undefined;
    const known = this.componentName?.id === answer.id ? this.componentName.name : `component ${answer.id}`;
    if (!inCluster) this.componentName = { id: answer.id, name: answer.name };
    const crumb = (route, name, here) => el(
      "a",
      { href: format(route), "aria-current": here ? "page" : null },
      text(name, "name", 40),
    );
    fill(
      byId("crumbs"),
      crumb({ component: answer.id }, inCluster ? known : answer.name, !inCluster),
      inCluster ? el("span", { class: "then", text: "›" }) : null,
      inCluster ? crumb({ component: answer.id, cluster: answer.cluster }, answer.name, true) : null,
    );
    if (inCluster && this.componentName?.id !== answer.id) this.#nameComponent(answer.id);
  }

  /** The name of a component whose cluster was opened first, from the list of components. */
  async #nameComponent(id) {
    const component = (await this.componentsRequest.catch(() => null))?.components.find((c) => c.id === id);
    if (component === undefined || this.answer?.id !== id) return;
    this.componentName = { id, name: component.name };
    this.#tellCrumbs();
  }

  tellEdges(shown, of) {
    const { answer, graph } = this;
    if (graph === null) return;
    const edges = shown === of ? plural(of, "edge") : `${number(shown)} of ${plural(of, "edge")}`;
    const cut = answer.n_edges > of ? ` (the best of ${number(answer.n_edges)})` : "";
    byId("graph-facts").textContent = `${plural(graph.n, "table")}, ${edges}${cut}`;
  }

  /** Asks for a table and shows it. The table, or undefined. */
  async #followTable(id) {
    if (id === this.tableAsked) return this.tableShown;
    this.tableAsked = id;
    this.panel = null;
    if (id === undefined) {
      this.tableRequest.stop();
      this.tableShown = undefined;
      this.#showDetails();
      return undefined;
    }
    const signal = this.tableRequest.next();
    this.#fillDetails(loading("Loading the table"));
    this.tableShown = (async () => {
      try {
        const table = await get("table", { id }, { signal });
        if (signal.aborted) return undefined;
        const { workspace } = await this.page.summary;
        if (signal.aborted) return undefined;
        this.panel = { table, tracked: isTracked({ workspace }, table) };
        this.#showDetails();
        return table;
      } catch (error) {
        if (error.name === "AbortError") return undefined;
        this.tableAsked = null;
        const back = format(merged(this.route, { table: null }));
        const words = failure("The table cannot be shown", error);
        fill(byId("details"), words, el("a", { class: "go", href: back, text: "Back to the list" }));
        return undefined;
      }
    })();
    return this.tableShown;
  }

  #showDetails() {
    const details = byId("details");
    const name = this.panel?.table.name ?? this.answer?.name;
    this.page.entitle("lake", name ?? "Lake");
    if (this.panel !== null) {
      // The graph may come after the table: links in the panel are then made anew.
      if (this.panel.view === undefined || this.panel.where !== this.answer) {
        this.panel.where = this.answer;
        const { table, tracked } = this.panel;
        this.panel.view = new TablePanel(table, (id) => this.#link(id), format(this.where), tracked);
        this.#fillDetails(...this.panel.view.nodes(this.filters.values));
      }
    } else if (this.route.table !== undefined) {
      return; // on its way, or its error is told
    } else if (this.answer === null) fill(details);
    else if (this.answer.clustered) this.#fillDetails(...clusterList(this.answer));
    else if (this.graph !== null) {
      this.#fillDetails(...tableList(this.graph, (id) => this.#link(id), (id) => this.view.point(id)));
    }
  }

  /** Fills the right side. Whoever was there with the keyboard goes on at its top, not at that of the page. */
  #fillDetails(...nodes) {
    const details = byId("details");
    if (details.contains(document.activeElement)) this.inDetails = true;
    else if (document.activeElement !== document.body) this.inDetails = false;
    fill(details, ...nodes);
    const top = details.querySelector("h2");
    if (!this.inDetails || top === null) return;
    top.focus({ preventScroll: true });
    this.inDetails = false;
  }

  /** The address of a table: in the graph that is seen, or in its own component, which is then looked up. */
  #link(id) {
    return format(this.graph?.position.has(id) ? { ...this.where, table: id } : { table: id });
  }

  /** A table found by the search; the keyboard goes there with it. */
  openTable(id) {
    document.activeElement?.blur();
    this.inDetails = true;
    location.hash = this.#link(id);
  }

  filtered(values) {
    this.view.setFilter(values);
    this.panel?.view?.setFilter(values);
    // The same route, with other filters: what waits for an answer goes on.
    delete this.route.score;
    delete this.route.coverage;
    Object.assign(this.route, shares(values));
    // Not a step of its own in the history: a slider gives hundreds.
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      // Somebody went on, and the page does not know yet: it will write the filters when it does.
      if (location.hash !== this.page.followed) return;
      this.page.write(this.route);
      this.page.link("lake", this.route);
    }, 150);
  }

  say(words) {
    fill(this.message, words);
    this.message.hidden = words === null;
  }

  /** Told once a graph: for tests and measurements. */
  painted(nodes) {
    performance.mark("holdfast-first-paint");
    window.__holdfast = {
      painted: performance.now(),
      nodes,
      place: (id) => (this.clusterLayer.hidden ? this.view : this.clusters).place(id),
      component: (id) => this.components.view.place(id),
      lit: () => this.view.lit.length,
      faint: () => this.view.states.reduce((sum, state) => sum + state, 0),
    };
  }
}

function askGraph(component, cluster, signal) {
  const path = cluster === undefined ? "component" : "cluster";
  const which = cluster === undefined ? { id: component } : { component, id: cluster };
  return get(path, { ...which, max_edges: MOST_EDGES }, { signal });
}

/** Whether a table of the lake has the name of a tracked one. */
const isTracked = ({ workspace }, table) => workspace.tables.some((t) => t.name === table.name);

/** An inclusion as an edge between tables. */
const edge = (ind) => ({ from: ind.dependent.table_id, to: ind.referenced.table_id, score: ind.score });

/** A route with a change; what is null in it is left out. */
function merged(route, change) {
  const entries = Object.entries({ ...route, ...change });
  return Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined));
}

/** The filters that are set. */
function shares(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value > 0));
}

export function open(page) {
  const view = new LakeView(page);
  view.start();
  return view;
}
