// The join graph of a component or cluster: tables are nodes, sized by their neighbours; edges lead from the
// dependent table to the referenced one, the darker the better. Lines and points are drawn by a renderer (webgl.js,
// or canvas2d.js without a graphics card), labels and what the pointer highlights on a 2D canvas above it.

import { Camera, fitted, gestures, zoomIn } from "./camera.js";
import { CanvasRenderer } from "./canvas2d.js";
import { el, plural } from "./dom.js";
import { drawLabels } from "./labels.js";
import { onThemeChange, theme } from "./theme.js";
import { tip } from "./tip.js";
import { WebGlRenderer } from "./webgl.js";

const MARGIN = 52; // pixels around a graph
const HIGHLIGHTED = 1500; // edges of a hub that are drawn with arrows
const SLOW_FRAME_MS = 34;
const FEWEST_MOVING = 3000; // edges that are drawn while moving, however slow

export class GraphView {
  /** `on`: select(id), painted(nodes), status(edges shown, of). */
  constructor(host, on) {
    this.on = on;
    this.camera = new Camera();
    this.graph = null;
    this.filter = { score: 0, coverage: 0 };
    this.hovered = this.selected = this.clicked = -1;
    this.density = 1;
    this.pending = this.wasPainted = this.moving = false;
    this.mostMoving = Infinity;
    this.lit = []; // edges of the node in focus, {from, to, score}
    this.more = []; // those of the selected table, as far as they are known
    this.canvas = el("canvas", { class: "layer" });
    this.overlay = el("canvas", {
      class: "layer front", tabindex: 0, role: "img",
      "aria-label": "Join graph. Plus and minus zoom, zero shows all, arrows move. The tables are listed beside it.",
    });
    host.append(this.canvas, this.overlay);
    this.#makeRenderer();
    this.context = this.overlay.getContext("2d");
    gestures(this.overlay, this.camera, {
      moved: () => this.#moved(),
      fit: () => this.fit(),
      hover: (left, top) => {
        const i = left === null ? -1 : this.#at(left, top);
        tip(i < 0 ? null : [this.graph.labels[i], plural(this.graph.degree[i], "neighbour")], this.overlay, left, top);
        this.#hover(i);
      },
      click: (left, top) => this.#click(this.#at(left, top)),
    });
    fitted(host, () => [this.canvas, this.overlay], (width, height, density) => this.#resized(width, height, density));
    onThemeChange(() => this.request());
  }

  #makeRenderer() {
    this.renderer = WebGlRenderer.on(this.canvas);
    if (this.renderer === null) this.#fallBack();
    else this.canvas.addEventListener("webglcontextlost", () => this.#fallBack());
  }

  /** Without WebGL, or when it breaks down. A canvas keeps the sort of context it was first asked for. */
  #fallBack() {
    const fresh = el("canvas", { class: "layer" });
    [fresh.width, fresh.height] = [this.canvas.width, this.canvas.height];
    this.canvas.replaceWith(fresh);
    this.canvas = fresh;
    this.renderer = new CanvasRenderer(fresh);
    if (this.graph !== null) this.#load();
  }

  /** A new graph, seen whole. */
  show(graph) {
    tip(null);
    this.graph = graph;
    this.hovered = this.selected = -1;
    this.wasPainted = false;
    this.mostMoving = Infinity;
    this.#load();
    this.fit();
  }

  #load() {
    this.graph.size(this.camera.width, this.camera.height);
    this.renderer.load(this.graph);
    this.#refilter();
  }

  /** Nothing to see. */
  clear() {
    this.graph = null;
    this.hovered = this.selected = -1;
    this.request();
  }

  fit() {
    const { camera, graph } = this;
    if (graph !== null) {
      const wide = 0.24 * Math.min(camera.width, camera.height); // a few nodes in the corners look lost
      camera.fit(graph.box, graph.n < 12 ? Math.max(MARGIN, wide) : MARGIN);
    }
    this.request();
  }

  zoom(factor) {
    zoomIn(this.camera, factor);
    this.#moved();
  }

  /** Selects a table by its id, if it is in this graph, and brings it into view: one that was clicked is there. */
  select(id) {
    const before = this.selected;
    this.selected = this.graph?.position.get(id) ?? -1;
    if (this.selected >= 0 && this.selected !== before && this.selected !== this.clicked) this.#bring(this.selected);
    this.clicked = -1;
    if (this.selected !== before) this.more = [];
    this.#restate();
  }

  /** More edges of the selected table, the best first, by the ids of tables: {from, to, score}. */
  tell(id, edges) {
    if (this.selected < 0 || this.graph.ids[this.selected] !== id) return;
    this.more = edges;
    this.#restate();
  }

  /** Moves to a node if it is out of view, or one of so many that its neighbours would be too close to tell. */
  #bring(i) {
    const { camera, graph } = this;
    const margin = 48;
    const [left, top] = this.#place(i);
    const zoom = graph.n < 2000 ? 0 : Math.min(8, Math.sqrt(graph.n / 400));
    const inside = left > margin && top > margin && left < camera.width - margin && top < camera.height - margin;
    if (inside && camera.zoom >= zoom) return;
    camera.x = graph.x[i];
    camera.y = graph.y[i];
    camera.scale = Math.max(camera.zoom, zoom) * camera.whole;
  }

  /** Where a table is, in pixels of the window; null if it is not in this graph. */
  place(id) {
    const i = this.graph?.position.get(id);
    if (i === undefined) return null;
    const box = this.overlay.getBoundingClientRect();
    const [left, top] = this.#place(i);
    return { x: box.left + left, y: box.top + top };
  }

  /** Highlights a table by its id, as the pointer would; null ends that. */
  point(id) {
    this.#hover(id === null ? -1 : this.graph?.position.get(id) ?? -1);
  }

  setFilter(filter) {
    this.filter = filter;
    if (this.graph !== null) this.#refilter();
  }

  #passes(e) {
    const { graph, filter } = this;
    return graph.score[e] >= filter.score && (graph.coverage === null || graph.coverage[e] >= filter.coverage);
  }

  #refilter() {
    const { graph } = this;
    const shown = [];
    const joined = new Uint8Array(graph.n);
    for (let e = graph.m - 1; e >= 0; e--) { // the best is drawn last
      if (!this.#passes(e)) continue;
      shown.push(e);
      joined[graph.from[e]] = joined[graph.to[e]] = 1;
    }
    // A node may have edges that were left out, and would pass.
    if (this.filter.score <= graph.cut) joined.fill(1);
    this.joined = joined;
    this.nShown = shown.length;
    this.renderer.loadEdges(Uint32Array.from(shown));
    this.on.status(shown.length, graph.m);
    this.#restate();
  }

  /** The node whose neighbours stand out: that under the pointer, or else the selected one. */
  get focus() {
    return this.hovered >= 0 ? this.hovered : this.selected;
  }

  #restate() {
    const { graph, focus } = this;
    if (graph === null) return;
    const states = Uint8Array.from(this.joined, (j) => 1 - j);
    this.lit = [];
    if (focus >= 0) {
      states.fill(1);
      states[focus] = 0;
      for (let k = graph.offsets[focus]; k < graph.offsets[focus + 1]; k++) {
        const e = graph.incident[k];
        if (!this.#passes(e)) continue;
        states[graph.from[e]] = states[graph.to[e]] = 0;
        this.lit.push({ from: graph.from[e], to: graph.to[e], score: graph.score[e] });
      }
      if (focus === this.selected) this.#restateMore(states);
    }
    this.renderer.loadStates(states);
    this.states = states;
    this.request();
  }

  /** Edges of the selected table that are not in the graph: of very many, only the best are. */
  #restateMore(states) {
    const { graph } = this;
    const known = new Set(this.lit.map(({ from, to }) => from * graph.n + to));
    for (const { from: fromId, to: toId, score } of this.more) {
      const [from, to] = [graph.position.get(fromId), graph.position.get(toId)];
      if (from === undefined || to === undefined || from === to || score < this.filter.score) continue;
      if (known.has(from * graph.n + to)) continue;
      known.add(from * graph.n + to);
      states[from] = states[to] = 0;
      this.lit.push({ from, to, score });
    }
  }

  #hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.overlay.classList.toggle("pointing", i >= 0);
    this.#restate();
  }

  #click(i) {
    if (this.graph === null) return;
    this.clicked = i;
    this.on.select(i < 0 ? null : this.graph.ids[i]);
  }

  /** The node at a place of the canvas, or -1. Asks all nodes: 10,000 take 30 microseconds. */
  #at(left, top) {
    const { graph, camera } = this;
    if (graph === null) return -1;
    let [best, least] = [-1, Infinity];
    const grow = this.#grow();
    for (let i = 0; i < graph.n; i++) {
      const away = Math.hypot(camera.left(graph.x[i]) - left, camera.top(graph.y[i]) - top) - graph.radius[i] * grow;
      if (away < least) [best, least] = [i, away];
    }
    return least <= 5 ? best : -1;
  }

  #place(i) {
    return [this.camera.left(this.graph.x[i]), this.camera.top(this.graph.y[i])];
  }

  #grow() {
    return Math.pow(Math.max(this.camera.zoom, 0.6), 0.55);
  }

  #resized(width, height, density) {
    const first = this.camera.width === 1;
    const ratio = Math.min(width / this.camera.width, height / this.camera.height);
    Object.assign(this.camera, { width, height });
    this.density = density;
    if (this.graph !== null) {
      if (first || this.camera.zoom === 1) this.fit();
      else {
        this.camera.whole *= ratio;
        this.camera.scale *= ratio;
      }
      if (first) this.#load();
    }
    // At once: a canvas whose size is set is empty until it is drawn.
    this.#frame();
  }

  #moved() {
    tip(null);
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      this.moving = false;
      this.request();
    }, 140);
    this.request();
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => {
      this.pending = false;
      this.#adapt(now);
      this.#frame();
    });
  }

  /** While moving, slow frames draw fewer edges, the best ones, and coarse nodes; all of it as soon as it rests. */
  #adapt(now) {
    const took = now - (this.before ?? now);
    this.before = this.moving ? now : undefined;
    if (!this.moving || took === 0 || took > 1000) return;
    this.pace = 0.6 * (this.pace ?? took) + 0.4 * took;
    if (this.pace > SLOW_FRAME_MS) {
      this.mostMoving = Math.max(FEWEST_MOVING, Math.floor(Math.min(this.mostMoving, this.nShown) * 0.6));
      this.pace = SLOW_FRAME_MS * 0.8;
    }
  }

  #frame() {
    const { camera, context, density, graph } = this;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    const colours = theme();
    if (graph === null || camera.width === 1) {
      this.canvas.hidden = true;
      return;
    }
    this.canvas.hidden = false;
    const crowd = Math.min(1, Math.max(0.14, Math.sqrt(1500 / Math.max(this.nShown, 1))));
    const strength = Math.min(1, crowd * Math.pow(Math.max(camera.zoom, 0.5), 0.5)) * (this.focus >= 0 ? 0.3 : 1);
    this.renderer.draw(camera, density, colours, {
      strength,
      grow: this.#grow(),
      faint: this.focus >= 0 ? 0.3 : 0.22,
      most: this.moving ? this.mostMoving : Infinity,
      coarse: this.moving && this.mostMoving < Infinity,
    });
    this.#drawLit(colours);
    const room = Math.round((camera.width * camera.height) / (graph.n > 2000 ? 17_000 : 12_000));
    drawLabels(context, camera, this.#labelled(room), room, colours);
    if (!this.wasPainted) {
      this.wasPainted = true;
      this.renderer.finish().then(() => this.on.painted(graph.n));
    }
  }

  /** The edges of the node in focus, with arrows, and its neighbours upon them. */
  #drawLit(colours) {
    const { context, graph, focus } = this;
    if (focus < 0) return;
    const grow = this.#grow();
    const neighbours = new Set();
    const crowd = Math.min(1, Math.max(0.35, Math.sqrt(40 / Math.max(this.lit.length, 1))));
    context.lineWidth = 1.3;
    for (const { from, to, score } of this.lit.slice(0, HIGHLIGHTED)) {
      const outward = from === focus;
      const [ax, ay] = this.#place(from);
      const [bx, by] = this.#place(to);
      context.strokeStyle = context.fillStyle = outward ? colours.out : colours.into;
      context.globalAlpha = crowd * (0.35 + 0.65 * score);
      // Bent to its left: two tables may be linked both ways.
      const [cx, cy] = [(ax + bx) / 2 + 0.06 * (by - ay), (ay + by) / 2 - 0.06 * (bx - ax)];
      context.beginPath();
      context.moveTo(ax, ay);
      context.quadraticCurveTo(cx, cy, bx, by);
      context.stroke();
      arrow(context, cx, cy, bx, by, graph.radius[to] * grow);
      neighbours.add(outward ? to : from);
    }
    context.globalAlpha = 1;
    for (const i of neighbours) {
      this.#disc(i, graph.radius[i] * grow, graph.weight[i] > 0.5 ? colours.high : colours.low, colours);
    }
    const radius = Math.max(graph.radius[focus] * grow, 3.5);
    this.#disc(focus, radius, colours.strong, colours);
    for (const i of new Set([focus, this.selected])) {
      if (i < 0) continue;
      const [left, top] = this.#place(i);
      context.strokeStyle = colours.strong;
      context.lineWidth = i === this.selected ? 2 : 1;
      context.beginPath();
      context.arc(left, top, Math.max(graph.radius[i] * grow, 3.5) + 3.5, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  #disc(i, radius, colour, colours) {
    const { context } = this;
    const [left, top] = this.#place(i);
    context.beginPath();
    context.arc(left, top, Math.max(radius, 1.5), 0, 2 * Math.PI);
    context.fillStyle = colour;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = colours.surface;
    context.stroke();
  }

  /** Nodes in view in order of importance: those in question, their neighbours, then by degree. */
  *#labelled(room) {
    const { graph, camera, focus, states } = this;
    const grow = this.#grow();
    const one = (i, strong) => {
      const [left, top] = this.#place(i);
      return { text: graph.labels[i], left, top, radius: graph.radius[i] * grow, strong };
    };
    if (this.hovered >= 0) yield one(this.hovered, true);
    if (this.selected >= 0 && this.selected !== this.hovered) yield one(this.selected, true);
    let seen = 0;
    for (let k = graph.n - 1; k >= 0 && seen < 12 * room + 100; k--) {
      const i = graph.order[k];
      if (i === this.hovered || i === this.selected || (states[i] && focus < 0)) continue;
      if (states[i] && focus >= 0) continue;
      const left = camera.left(graph.x[i]);
      const top = camera.top(graph.y[i]);
      if (left < 0 || top < 0 || left > camera.width || top > camera.height) continue;
      seen += 1;
      yield one(i, false);
    }
  }
}

function arrow(context, ax, ay, bx, by, radius) {
  const length = Math.hypot(bx - ax, by - ay);
  if (length < radius + 14) return;
  const [ux, uy] = [(bx - ax) / length, (by - ay) / length];
  const [x, y] = [bx - ux * (radius + 2), by - uy * (radius + 2)];
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 7 * ux + 3 * uy, y - 7 * uy - 3 * ux);
  context.lineTo(x - 7 * ux - 3 * uy, y - 7 * uy + 3 * ux);
  context.fill();
}
