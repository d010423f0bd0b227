// Words beside the pointer.

import { byId, el, fill, visible } from "./dom.js";

/** Shows lines of text beside a place of a canvas, the first one as a title; null hides them. */
export function tip(words, canvas, left, top) {
  const node = byId("tip");
  node.hidden = words === null;
  if (words === null) return;
  fill(node, ...words.map((line, i) => el(i ? "span" : "strong", { text: visible(line) })));
  const box = canvas.getBoundingClientRect();
  node.style.left = `${Math.min(box.left + left + 14, innerWidth - node.offsetWidth - 8)}px`;
  node.style.top = `${Math.min(box.top + top + 14, innerHeight - node.offsetHeight - 8)}px`;
}
