// A graph as arrays, with what drawing it and looking around in it need.

/** Made of an answer of the server: nodes and edges, the best first. Edges may come with their coverage. */
export class Graph {
  constructor({ nodes, edges, n_edges: nEdges }) {
    this.n = nodes.id.length;
    this.m = edges.from.length;
    this.ids = nodes.id;
    this.labels = nodes.label;
    this.x = Float32Array.from(nodes.x);
    this.y = Float32Array.from(nodes.y);
    this.degree = Int32Array.from(nodes.degree);
    this.from = Int32Array.from(edges.from);
    this.to = Int32Array.from(edges.to);
    this.score = Float32Array.from(edges.score);
    // Edges that were left out have at most this score.
    this.cut = nEdges > this.m ? (this.score[this.m - 1] ?? 1) : -1;
    this.coverage = edges.coverage ? Float32Array.from(edges.coverage) : null;
    this.position = new Map(nodes.id.map((id, i) => [id, i]));
    this.order = Uint32Array.from(nodes.id.keys()).sort((a, b) => this.degree[a] - this.degree[b]);
    const most = Math.max(1, this.n ? this.degree[this.order[this.n - 1]] : 1);
    this.weight = Float32Array.from(this.degree, (d) => (Math.log1p(d) / Math.log1p(most)) ** 2);
    this.#adjacency();
  }

  /** Edges of each node: those of node i are `incident[offsets[i]]` up to `incident[offsets[i + 1]]`, best first. */
  #adjacency() {
    const offsets = new Int32Array(this.n + 1);
    for (let e = 0; e < this.m; e++) {
      offsets[this.from[e] + 1] += 1;
      if (this.to[e] !== this.from[e]) offsets[this.to[e] + 1] += 1;
    }
    for (let i = 0; i < this.n; i++) offsets[i + 1] += offsets[i];
    const incident = new Int32Array(offsets[this.n]);
    const next = offsets.slice();
    for (let e = 0; e < this.m; e++) {
      incident[next[this.from[e]]++] = e;
      if (this.to[e] !== this.from[e]) incident[next[this.to[e]]++] = e;
    }
    this.offsets = offsets;
    this.incident = incident;
  }

  get box() {
    if (this.n === 0) return [0, 0, 1, 1];
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < this.n; i++) {
      box[0] = Math.min(box[0], this.x[i]);
      box[1] = Math.min(box[1], this.y[i]);
      box[2] = Math.max(box[2], this.x[i]);
      box[3] = Math.max(box[3], this.y[i]);
    }
    return box;
  }

  /** Radii in pixels at the view of all, such that the nodes leave most of the place free. */
  size(width, height) {
    const base = Math.min(7, Math.max(1.1, 0.13 * Math.sqrt((width * height) / Math.max(this.n, 1))));
    this.radius = Float32Array.from(this.weight, (w) => base * (0.75 + 1.9 * w));
  }
}
