// What part of a plane is seen, and the gestures that move it: drag, wheel, pinch, keys.

const MOST_ZOOM = 60;
const CLICK_DISTANCE = 4;

/** The view: world point (x, y) is in the middle; `scale` is CSS pixels a world unit; `whole` that of all. */
export class Camera {
  x = 0;
  y = 0;
  scale = 1;
  whole = 1;
  width = 1;
  height = 1;

  /** Shows a box [left, top, right, bottom], with a margin of pixels around it, and no closer than `most`. */
  fit([left, top, right, bottom], margin = 36, most = Infinity) {
    this.x = (left + right) / 2;
    this.y = (top + bottom) / 2;
    const across = Math.max(right - left, 1e-6);
    const down = Math.max(bottom - top, 1e-6);
    const wide = Math.max(this.width - 2 * margin, 20);
    const high = Math.max(this.height - 2 * margin, 20);
    this.scale = this.whole = Math.min(wide / across, high / down, most);
  }

  /** How much closer than the view of all. */
  get zoom() {
    return this.scale / this.whole;
  }

  left(x) {
    return (x - this.x) * this.scale + this.width / 2;
  }

  top(y) {
    return (y - this.y) * this.scale + this.height / 2;
  }

  /** Zooms so that what is at a place of the screen stays there. */
  zoomAt(factor, left, top) {
    const zoom = Math.min(Math.max(this.zoom * factor, 0.4), MOST_ZOOM);
    const x = (left - this.width / 2) / this.scale;
    const y = (top - this.height / 2) / this.scale;
    const before = this.scale;
    this.scale = zoom * this.whole;
    this.x += x * (1 - before / this.scale);
    this.y += y * (1 - before / this.scale);
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
  }
}

/** Wires gestures on an element to a camera.

`on`: moved(), fit(), hover(left, top) or hover(null), click(left, top). And perhaps grab(event), which gives what
is dragged in place of the camera, if there is something: {move(dx, dy), drop()}. */
export function gestures(element, camera, on) {
  const held = new Map(); // pointers that are down, and where
  let travelled = 0;
  let grabbed = null;

  const place = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const spread = () => {
    const [[ax, ay], [bx, by]] = held.values();
    return { distance: Math.hypot(ax - bx, ay - by), left: (ax + bx) / 2, top: (ay + by) / 2 };
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    held.set(event.pointerId, place(event));
    if (held.size === 1) travelled = 0;
    grabbed = held.size === 1 ? on.grab?.(event) ?? null : null;
  });
  element.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = held.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") on.hover(...now);
      return;
    }
    if (held.size === 2) {
      const old = spread();
      held.set(event.pointerId, now);
      const fresh = spread();
      camera.pan(fresh.left - old.left, fresh.top - old.top);
      if (old.distance > 0) camera.zoomAt(fresh.distance / old.distance, fresh.left, fresh.top);
      travelled = Infinity;
    } else {
      held.set(event.pointerId, now);
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled <= CLICK_DISTANCE) return;
      element.classList.add("dragging");
      if (grabbed !== null) {
        grabbed.move(now[0] - before[0], now[1] - before[1]);
        return;
      }
      camera.pan(now[0] - before[0], now[1] - before[1]);
    }
    on.moved();
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    element.classList.remove("dragging");
    if (travelled > CLICK_DISTANCE) grabbed?.drop();
    grabbed = null;
    if (event.type === "pointerup" && held.size === 0 && travelled <= CLICK_DISTANCE) on.click(...place(event));
  };
  element.addEventListener("pointerup", release);
  element.addEventListener("pointercancel", release);
  element.addEventListener("pointerleave", () => on.hover(null));
  element.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1);
    // A pinch on a touch pad comes as a wheel with the control key, in small steps.
    camera.zoomAt(Math.exp(-Math.max(-300, Math.min(300, pixels)) * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
    on.moved();
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const moves = {
      "+": () => zoomIn(camera, 1.3), "=": () => zoomIn(camera, 1.3), "-": () => zoomIn(camera, 1 / 1.3), "0": on.fit,
      ArrowLeft: () => camera.pan(step, 0), ArrowRight: () => camera.pan(-step, 0),
      ArrowUp: () => camera.pan(0, step), ArrowDown: () => camera.pan(0, -step),
    };
    if (!Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    moves[event.key]();
    on.moved();
  });
}

/** Zooms about the middle. */
export function zoomIn(camera, factor) {
  camera.zoomAt(factor, camera.width / 2, camera.height / 2);
}

/** A canvas that fills its element and is as fine as the screen; `resized` is told of every new size. */
export function fitted(host, canvases, resized) {
  const observer = new ResizeObserver(() => {
    const width = Math.max(1, host.clientWidth);
    const height = Math.max(1, host.clientHeight);
    const density = Math.min(devicePixelRatio || 1, 2);
    for (const canvas of canvases()) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    resized(width, height, density);
  });
  observer.observe(host);
}
