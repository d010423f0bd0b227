// Draws points and lines with WebGL 2. Positions go to the graphics card once; a frame sends a transform, and what
// a filter or the pointer changed.

import { channels } from "./theme.js";

const EMULATED = /swiftshader|llvmpipe|softpipe|software|basic render/i;

const POINT = `#version 300 es
in vec2 place;
in float radius;
in float weight;
in float state;
uniform vec2 centre;
uniform vec2 scale;
uniform float grow;
uniform vec3 low;
uniform vec3 high;
uniform float faint;
out vec3 colour;
out float size;
out float alpha;
void main() {
  gl_Position = vec4((place - centre) * scale, 0.0, 1.0);
  size = max(2.0 * radius * grow, 2.0) + 1.0;
  gl_PointSize = size;
  colour = mix(low, high, weight);
  alpha = state > 0.5 ? faint : 1.0;
}`;

const DISC = `#version 300 es
precision mediump float;
in vec3 colour;
in float size;
in float alpha;
uniform vec3 surface;
out vec4 pixel;
void main() {
  float far = length(gl_PointCoord - 0.5) * size;
  float outer = size * 0.5 - 0.5;
  float inside = clamp(outer - far + 0.5, 0.0, 1.0);
  // A rim of the background's colour keeps neighbours apart.
  float rim = size > 9.0 ? clamp(far - outer + 1.9, 0.0, 1.0) : 0.0;
  float a = inside * alpha;
  pixel = vec4(mix(colour, surface, rim) * a, a);
}`;

const LINE = `#version 300 es
in vec3 end;
uniform vec2 centre;
uniform vec2 scale;
uniform float strength;
out float alpha;
void main() {
  gl_Position = vec4((end.xy - centre) * scale, 0.0, 1.0);
  alpha = strength * (0.16 + 0.84 * end.z * end.z);
}`;

const STROKE = `#version 300 es
precision mediump float;
in float alpha;
uniform vec3 colour;
out vec4 pixel;
void main() {
  pixel = vec4(colour * alpha, alpha);
}`;

export class WebGlRenderer {
  /** null where WebGL 2 is not there, or only emulated: then canvas2d.js is faster, on another canvas. */
  static on(canvas) {
    const wanted = { alpha: true, antialias: true, depth: false, failIfMajorPerformanceCaveat: true };
    const gl = canvas.getContext("webgl2", wanted);
    if (gl === null) return null;
    const known = gl.getExtension("WEBGL_debug_renderer_info");
    const card = String(gl.getParameter(known === null ? gl.RENDERER : known.UNMASKED_RENDERER_WEBGL));
    if (!EMULATED.test(card)) return new WebGlRenderer(gl);
    gl.getExtension("WEBGL_lose_context")?.loseContext(); // gives its memory back
    return null;
  }

  constructor(gl) {
    this.gl = gl;
    this.points = program(gl, POINT, DISC);
    this.lines = program(gl, LINE, STROKE);
    this.buffers = Object.fromEntries(
      ["places", "radii", "weights", "states", "order", "ends", "shown"].map((name) => [name, gl.createBuffer()]),
    );
    const attributes = [["place", "places", 2], ["radius", "radii", 1], ["weight", "weights", 1]];
    this.pointArray = this.#array(this.points, attributes, "order");
    const at = gl.getAttribLocation(this.points, "state");
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.states);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, 1, gl.UNSIGNED_BYTE, false, 0, 0);
    this.lineArray = this.#array(this.lines, [["end", "ends", 3]], "shown");
    gl.bindVertexArray(null);
    this.nPoints = this.nLines = 0;
  }

  #array(shaders, attributes, indices) {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    for (const [name, buffer, size] of attributes) {
      const at = gl.getAttribLocation(shaders, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, gl.FLOAT, false, 0, 0);
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[indices]);
    return array;
  }

  /** A new graph: see `Graph` in network.js. */
  load(graph) {
    const places = new Float32Array(2 * graph.n);
    for (let i = 0; i < graph.n; i++) {
      places[2 * i] = graph.x[i];
      places[2 * i + 1] = graph.y[i];
    }
    const ends = new Float32Array(6 * graph.m);
    for (let e = 0; e < graph.m; e++) {
      const [a, b] = [graph.from[e], graph.to[e]];
      ends.set([graph.x[a], graph.y[a], graph.score[e], graph.x[b], graph.y[b], graph.score[e]], 6 * e);
    }
    this.#send("places", places);
    this.#send("radii", graph.radius);
    this.#send("weights", graph.weight);
    this.#send("ends", ends);
    this.#indices("order", this.pointArray, graph.order);
    this.nPoints = graph.n;
  }

  /** Which edges are drawn, the first at the bottom. */
  loadEdges(edges) {
    const shown = new Uint32Array(2 * edges.length);
    for (let i = 0; i < edges.length; i++) {
      shown[2 * i] = 2 * edges[i];
      shown[2 * i + 1] = 2 * edges[i] + 1;
    }
    this.#indices("shown", this.lineArray, shown);
    this.nLines = edges.length;
  }

  /** One byte a node: 1 draws it faintly. */
  loadStates(states) {
    this.#send("states", states);
  }

  #send(name, array) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
  }

  #indices(name, array, values) {
    const { gl } = this;
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    gl.bindVertexArray(null);
  }

  /** A frame. `strength` of lines, `faint` of nodes in state 1, at most `most` edges: the uppermost. */
  draw(camera, density, colours, { strength, grow, faint, most }) {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const scale = [(2 * camera.scale) / camera.width, (-2 * camera.scale) / camera.height];

    const lines = this.#use(this.lines, camera, scale);
    gl.uniform3fv(lines("colour"), channels(colours.edge));
    gl.uniform1f(lines("strength"), strength);
    gl.bindVertexArray(this.lineArray);
    const count = Math.min(this.nLines, most);
    gl.drawElements(gl.LINES, 2 * count, gl.UNSIGNED_INT, 8 * (this.nLines - count));

    const points = this.#use(this.points, camera, scale);
    gl.uniform1f(points("grow"), grow * density);
    gl.uniform1f(points("faint"), faint);
    for (const name of ["low", "high", "surface"]) gl.uniform3fv(points(name), channels(colours[name]));
    gl.bindVertexArray(this.pointArray);
    gl.drawElements(gl.POINTS, this.nPoints, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
  }

  #use(shaders, camera, scale) {
    const { gl } = this;
    gl.useProgram(shaders);
    const uniform = (name) => gl.getUniformLocation(shaders, name);
    gl.uniform2f(uniform("centre"), camera.x, camera.y);
    gl.uniform2f(uniform("scale"), scale[0], scale[1]);
    return uniform;
  }

  /** Comes true when all that was asked for is drawn: the card works on its own time. */
  async finish() {
    const { gl } = this;
    const sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    while (sync !== null && !gl.isContextLost() && gl.getSyncParameter(sync, gl.SYNC_STATUS) !== gl.SIGNALED) {
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
    gl.deleteSync(sync);
  }
}

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(`WebGL: ${gl.getProgramInfoLog(made)}`);
  return made;
}
