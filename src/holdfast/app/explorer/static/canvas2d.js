// Draws what webgl.js draws on a 2D canvas, for browsers without WebGL: slower, and otherwise the same.

const SHADES = 5; // lines of one shade are one path, which is what makes a 2D canvas fast

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

  draw(camera, density, colours, { strength, grow, faint, most }) {
    const { context, graph } = this;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    if (graph === null) return;
    context.lineWidth = 1;
    context.strokeStyle = colours.edge;
    const paths = Array.from({ length: SHADES }, () => new Path2D());
    for (let i = Math.max(0, this.edges.length - most); i < this.edges.length; i++) {
      const e = this.edges[i];
      const path = paths[Math.min(SHADES - 1, Math.floor(graph.score[e] * SHADES))];
      path.moveTo(camera.left(graph.x[graph.from[e]]), camera.top(graph.y[graph.from[e]]));
      path.lineTo(camera.left(graph.x[graph.to[e]]), camera.top(graph.y[graph.to[e]]));
    }
    paths.forEach((path, shade) => {
      const score = (shade + 0.5) / SHADES;
      context.globalAlpha = strength * (0.16 + 0.84 * score * score);
      context.stroke(path);
    });
    for (const i of graph.order) {
      const [left, top] = [camera.left(graph.x[i]), camera.top(graph.y[i])];
      const radius = Math.max(graph.radius[i] * grow, 1);
      if (left < -radius || top < -radius || left > camera.width + radius || top > camera.height + radius) continue;
      context.globalAlpha = this.states[i] ? faint : 1;
      context.fillStyle = graph.weight[i] > 0.5 ? colours.high : colours.low;
      context.beginPath();
      context.arc(left, top, radius, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  async finish() {}
}
