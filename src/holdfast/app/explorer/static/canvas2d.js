// Draws what webgl.js draws on a 2D canvas: for browsers without WebGL, and for those that only emulate it. Without a
// graphics card a frame of 10,000 nodes and 30,000 edges takes 45 ms of a processor here, and 300 ms by WebGL.

import { channels } from "./theme.js";

const SHADES = 6; // lines of one shade are one path, which is what makes a 2D canvas fast
const APART = 4; // discs that are larger have a rim of the background's colour

export class CanvasRenderer {
  constructor(canvas) {
    this.context = canvas.getContext("2d");
    this.graph = null;
    this.edges = new Uint32Array(0);
    this.states = new Uint8Array(0);
  }

  load(graph) {
    this.graph = graph;
    this.edges = new Uint32Array(0);
    this.states = new Uint8Array(graph.n);
  }

  loadEdges(edges) {
    this.edges = edges;
  }

  loadStates(states) {
    this.states = states;
  }

  draw(camera, density, colours, { strength, grow, faint, most, coarse }) {
    const { context, graph } = this;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    if (graph === null) return;
    this.#lines(camera, density, colours, strength, most);
    this.#discs(camera, colours, grow, faint, coarse);
    context.globalAlpha = 1;
  }

  #lines(camera, density, colours, strength, most) {
    const { context, graph } = this;
    // Lines of one pixel of the screen are several times as fast as wider ones.
    context.lineWidth = 1 / density;
    context.strokeStyle = colours.edge;
    const places = this.#places(camera);
    const paths = Array.from({ length: SHADES }, () => new Path2D());
    for (let i = Math.max(0, this.edges.length - most); i < this.edges.length; i++) {
      const e = this.edges[i];
      const [a, b] = [2 * graph.from[e], 2 * graph.to[e]];
      const [ax, ay, bx, by] = [places[a], places[a + 1], places[b], places[b + 1]];
      if (Math.max(ax, bx) < 0 || Math.min(ax, bx) > camera.width) continue;
      if (Math.max(ay, by) < 0 || Math.min(ay, by) > camera.height) continue;
      const path = paths[shade(graph.score[e])];
      path.moveTo(ax, ay);
      path.lineTo(bx, by);
    }
    paths.forEach((path, i) => {
      const score = (i + 0.5) / SHADES;
      context.globalAlpha = strength * (0.16 + 0.84 * score * score);
      context.stroke(path);
    });
  }

  #places(camera) {
    const { graph } = this;
    const places = new Float32Array(2 * graph.n);
    for (let i = 0; i < graph.n; i++) {
      places[2 * i] = camera.left(graph.x[i]);
      places[2 * i + 1] = camera.top(graph.y[i]);
    }
    return places;
  }

  /** One by one: a path of many discs takes many times as long.

  `coarse` draws small ones as squares, which is faster still. */
  #discs(camera, colours, grow, faint, coarse) {
    const { context, graph, states } = this;
    const ramp = mixes(colours.low, colours.high);
    context.strokeStyle = colours.surface;
    context.lineWidth = 1;
    for (const i of graph.order) {
      const [left, top] = [camera.left(graph.x[i]), camera.top(graph.y[i])];
      const radius = Math.max(graph.radius[i] * grow, 1);
      if (left < -radius || top < -radius || left > camera.width + radius || top > camera.height + radius) continue;
      context.globalAlpha = states[i] ? faint : 1;
      context.fillStyle = ramp[shade(graph.weight[i])];
      if (coarse && radius < APART) {
        context.fillRect(left - 0.89 * radius, top - 0.89 * radius, 1.78 * radius, 1.78 * radius);
        continue;
      }
      context.beginPath();
      context.arc(left, top, radius, 0, 2 * Math.PI);
      context.fill();
      if (radius > APART) context.stroke();
    }
  }

  async finish() {}
}

const shade = (part) => Math.min(SHADES - 1, Math.floor(part * SHADES));

/** Colours from one to another. */
function mixes(low, high) {
  const [a, b] = [channels(low), channels(high)];
  return Array.from({ length: SHADES }, (_, i) => {
    const part = i / (SHADES - 1);
    return `rgb(${a.map((from, k) => Math.round(255 * (from + (b[k] - from) * part))).join(" ")})`;
  });
}
