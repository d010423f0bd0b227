// Packed circles on a 2D canvas: the components of a lake, or the clusters of a huge component with their links.

import { Camera, fitted, gestures, zoomIn } from "./camera.js";
import { el, number, shortened } from "./dom.js";
import { label } from "./labels.js";
import { onThemeChange, theme } from "./theme.js";
import { tip } from "./tip.js";

export class CircleView {
  /** `on`: open(id), tell(circle) for the words of the tooltip, painted(n). */
  constructor(host, title, on, { margin = 10 } = {}) {
    this.on = on;
    this.margin = margin;
    this.camera = new Camera();
    this.circles = this.links = null;
    this.active = null;
    this.hovered = null;
    this.density = 1;
    this.pending = false;
    this.canvas = el("canvas", { class: "layer front", tabindex: 0, role: "img", "aria-label": title });
    host.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    gestures(this.canvas, this.camera, {
      moved: () => {
        this.#hover(null);
        this.request();
      },
      fit: () => this.fit(),
      hover: (left, top) => this.#hover(left === null ? null : this.#at(left, top), left, top),
      click: (left, top) => {
        const circle = this.#at(left, top);
        if (circle !== null) this.on.open(circle.id);
      },
    });
    fitted(host, () => [this.canvas], (width, height, density) => {
      const seen = this.camera.zoom === 1;
      Object.assign(this.camera, { width, height });
      this.density = density;
      if (seen) this.fit();
      this.#frame();
    });
    onThemeChange(() => this.request());
  }

  /** Circles {id, n_tables, name, x, y, r}, and links [i, j, n] between their positions. */
  show(circles, links = []) {
    this.circles = circles;
    this.links = links;
    this.hovered = null;
    this.wasPainted = false;
    this.fit();
  }

  clear() {
    this.circles = null;
    this.#hover(null);
    this.request();
  }

  activate(id) {
    this.active = id;
    this.request();
  }

  fit() {
    if (this.circles?.length) {
      const box = [Infinity, Infinity, -Infinity, -Infinity];
      for (const { x, y, r } of this.circles) {
        box[0] = Math.min(box[0], x - r);
        box[1] = Math.min(box[1], y - r);
        box[2] = Math.max(box[2], x + r);
        box[3] = Math.max(box[3], y + r);
      }
      this.camera.fit(box, this.margin);
    }
    this.request();
  }

  zoom(factor) {
    zoomIn(this.camera, factor);
    this.request();
  }

  /** Where a circle is, in pixels of the window. */
  place(id) {
    const circle = this.circles?.find((c) => c.id === id);
    if (circle === undefined) return null;
    const box = this.canvas.getBoundingClientRect();
    return { x: box.left + this.camera.left(circle.x), y: box.top + this.camera.top(circle.y) };
  }

  #at(left, top) {
    const { camera } = this;
    let [best, least] = [null, 3]; // a few pixels beside a tiny circle still mean it
    for (const circle of this.circles ?? []) {
      const away = Math.hypot(camera.left(circle.x) - left, camera.top(circle.y) - top) - circle.r * camera.scale;
      if (away < least) [best, least] = [circle, away];
    }
    return best;
  }

  #hover(circle, left = 0, top = 0) {
    this.canvas.classList.toggle("pointing", circle !== null);
    tip(circle === null ? null : this.on.tell(circle), this.canvas, left, top);
    if (circle === this.hovered) return;
    this.hovered = circle;
    this.request();
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.#frame();
    });
  }

  #frame() {
    const { camera, circles, context, density, hovered } = this;
    const colours = theme();
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    if (circles === null || camera.width === 1) return;
    this.#drawLinks(colours);
    // Of thousands of circles most are tiny: the one in question is seen all the same.
    const asked = (circle) => circle.id === this.active || circle === hovered;
    for (const circle of [...circles.filter((c) => !asked(c)), ...circles.filter(asked)]) {
      const least = asked(circle) ? 3.5 : 0.8;
      const [left, top] = [camera.left(circle.x), camera.top(circle.y)];
      const radius = Math.max(circle.r * camera.scale, least);
      if (left < -radius || top < -radius || left > camera.width + radius || top > camera.height + radius) continue;
      const active = circle.id === this.active;
      context.beginPath();
      context.arc(left, top, Math.max(radius - 0.75, 0.6), 0, 2 * Math.PI);
      context.fillStyle = active ? colours.accent : colours.soft;
      context.fill();
      context.lineWidth = circle === hovered ? 2 : 1;
      context.strokeStyle = active || circle === hovered ? colours.strong : colours.accent;
      context.globalAlpha = active || circle === hovered ? 1 : 0.55;
      if (radius > 2) context.stroke();
      context.globalAlpha = 1;
      this.#caption(circle, left, top, radius, active ? colours.surface : colours.text, colours);
    }
    if (!this.wasPainted) {
      this.wasPainted = true;
      this.on.painted?.(circles.length);
    }
  }

  #drawLinks(colours) {
    const { camera, circles, context, hovered } = this;
    const most = Math.log1p(this.links.reduce((m, [, , n]) => Math.max(m, n), 1));
    const crowd = Math.min(1, Math.max(0.3, Math.sqrt(200 / Math.max(this.links.length, 1))));
    for (const [i, j, n] of this.links) {
      const [a, b] = [circles[i], circles[j]];
      if (a === undefined || b === undefined) continue;
      const weight = Math.log1p(n) / most;
      const near = hovered !== null && (a === hovered || b === hovered);
      context.strokeStyle = near ? colours.strong : colours.edge;
      context.globalAlpha = near ? 0.9 : (hovered === null ? 0.34 : 0.12) * crowd * (0.3 + 0.7 * weight);
      context.lineWidth = 0.5 + 3 * weight * weight;
      context.beginPath();
      context.moveTo(camera.left(a.x), camera.top(a.y));
      context.lineTo(camera.left(b.x), camera.top(b.y));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** The number of tables, and the name above it, where there is room inside. */
  #caption(circle, left, top, radius, colour, colours) {
    const { context } = this;
    if (radius < 13) return;
    context.fillStyle = colour;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const count = number(circle.n_tables);
    const named = radius > 34;
    if (named) {
      context.font = `600 12px ${colours.font}`;
      const whole = label(circle.name);
      let name = whole;
      for (let most = 27; most > 3 && context.measureText(name).width > 2 * radius - 16; most--) {
        name = shortened(whole, most);
      }
      context.fillText(name, left, top - 8);
    }
    context.font = `${named ? 400 : 600} 11px ${colours.font}`;
    if (context.measureText(count).width < 2 * radius - 3) context.fillText(count, left, named ? top + 9 : top);
  }
}
