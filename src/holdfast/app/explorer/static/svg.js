// Making pictures: elements of SVG, with the same care as `el` of dom.js.

const NAMESPACE = "http://www.w3.org/2000/svg";
const ATTRIBUTES = new Set([
  "class", "id", "role", "tabindex", "viewBox", "width", "height", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r",
  "rx", "ry", "d", "points", "transform", "text-anchor", "preserveAspectRatio", "pathLength", "focusable",
]);

/** An element of a picture. `given`: attributes of the list above, aria-* or data-*, `text`, and `on` with listeners. */
export function svg(name, given = {}, ...children) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.append(document.createTextNode(String(value)));
    else if (key === "on") Object.entries(value).forEach((heard) => node.addEventListener(...heard));
    else if (ATTRIBUTES.has(key) || /^(aria|data)-/.test(key)) node.setAttribute(key, String(value));
    else throw new Error(`attribute ${key} is not allowed`);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
