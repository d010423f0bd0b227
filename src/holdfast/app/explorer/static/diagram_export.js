// The diagram as files, made here: SVG as it is seen, with dragged tables where they are, and PNG from it; any text.

import { svg } from "./svg.js";

const FINE = 2; // pixels a unit
const MOST_PIXELS = 40_000_000;
const MOST_SIDE = 16_000; // of a canvas, in any browser

/** The diagram as a text that needs nothing else. `dark`: its colours; else those that its reader has set. */
export function pictureOf(drawing, dark = null) {
  const { answer } = drawing;
  const [left, top, right, bottom] = drawing.box;
  const [x, y] = [left - answer.margin, top - answer.margin];
  const [width, height] = [right - left, bottom - top].map((size) => size + 2 * answer.margin);
  const style = dark === null ? answer.style : answer.style.replace(/@media \(.*?\)/, dark ? "@media all" : "@media not all");
  const picture = svg(
    "svg",
    {
      class: "er", role: "img", "aria-label": answer.summary, width: Math.round(width), height: Math.round(height),
      viewBox: [x, y, width, height].map((n) => n.toFixed(1)).join(" "),
    },
    svg("title", { text: answer.summary }),
    svg("style", { text: style }),
    ...plain(drawing.node),
  );
  return { text: `${new XMLSerializer().serializeToString(picture)}\n`, width, height };
}

/** Copies of what is drawn, without what only the page needs. */
function plain(node) {
  const copy = node.cloneNode(true);
  for (const one of copy.querySelectorAll(".hit, .mark")) one.remove();
  for (const one of copy.querySelectorAll("*")) {
    one.classList.remove("lit", "match");
    for (const name of ["tabindex", "style", "aria-hidden", "role"]) one.removeAttribute(name);
  }
  for (const title of copy.querySelectorAll(".table .name")) {
    for (const [name, value] of [["x", "8"], ["y", "17"], ["text-anchor", "start"]]) title.setAttribute(name, value);
  }
  return copy.childNodes;
}

/** The diagram as a PNG, in the colours of the page. */
export async function pngOf(drawing) {
  const { text, width, height } = pictureOf(drawing, matchMedia("(prefers-color-scheme: dark)").matches);
  const image = new Image();
  // As data, which the page's policy allows for images.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(FINE, Math.sqrt(MOST_PIXELS / (width * height)), MOST_SIDE / width, MOST_SIDE / height);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height].map((size) => Math.ceil(size * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--surface");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (blob === null) throw new Error("The browser cannot draw a picture of this size. SVG has no bounds.");
  return blob;
}

/** Hands a file to the person: a download, so no policy of the page has to allow anything. */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
