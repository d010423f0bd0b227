// What can be seen to be wrong with a page; layout.py says what that is. `places` are [part, where, part].
(places) => {
  const problems = [];
  const named = (e) => `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ""}.${e.getAttribute("class") ?? ""}`;
  const said = ({ words, element }) => `"${words.slice(0, 40)}" of ${named(element)}`;
  const inPicture = (e) => e instanceof SVGElement;

  // -- beyond the window --
  const width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth > width) {
    const beyond = (e) => e.getBoundingClientRect().right > width + 1;
    const wide = [...document.querySelectorAll("body *")].find(beyond);
    problems.push(`the page scrolls sideways: ${wide ? named(wide) : ""}`);
  }

  // -- texts, each with the boxes in which its letters stand, as far as they can be seen --
  const common = (box, by) => ({
    left: Math.max(box.left, by.left),
    right: Math.min(box.right, by.right),
    top: Math.max(box.top, by.top),
    bottom: Math.min(box.bottom, by.bottom),
  });
  const isThere = (box, wide = 1, high = 1) => box.right - box.left > wide && box.bottom - box.top > high;
  const closed = (overflow) => overflow === "hidden" || overflow === "clip";

  /** What is seen of a box of a text; null if nothing. What cuts it off is a problem. */
  function seen(text, whole) {
    let box = common(whole, { left: 0, top: 0, right: innerWidth, bottom: innerHeight });
    for (let above = text.element; above !== document.body; above = above.parentElement) {
      const style = getComputedStyle(above);
      if (style.overflowX === "visible" || ["inline", "contents"].includes(style.display)) continue;
      const frame = above.getBoundingClientRect();
      const ends = whole.right > frame.right + 2 && whole.left < frame.right - 2;
      const isMovable = above.querySelector(":scope > svg.er") !== null || inPicture(above);
      if (closed(style.overflowX) && style.textOverflow !== "ellipsis" && ends && !isMovable
        && isThere(common(box, frame))) {
        problems.push(`cut off: ${said(text)} by ${named(above)}`);
      }
      box = common(box, frame);
      if (closed(style.overflowX) && style.textOverflow === "ellipsis") whole = common(whole, frame);
    }
    return isThere(box) ? box : null;
  }

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const words = node.textContent.trim();
    if (!words || element.closest("script, style, noscript, title, option")) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
      const text = { words, element };
      text.box = seen(text, whole);
      if (text.box !== null) texts.push(text);
    }
    if (!inPicture(element) && parseFloat(getComputedStyle(element).fontSize) < 9) {
      problems.push(`tiny: ${said({ words, element })}`);
    }
  }

  // -- texts on texts --
  function isOpaque(e) {
    const colour = getComputedStyle(e).backgroundColor.match(/[\d.]+/g) ?? [];
    return colour.length === 3 || Number(colour[3]) > 0.85;
  }

  /** Whether one of two texts lies on something opaque, and the other behind it. */
  function isBetween(a, b, box) {
    const stack = document.elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    const depths = [a, b].map(({ element }) => stack.findIndex((e) => e.contains(element)));
    return stack.slice(Math.min(...depths), Math.max(...depths)).some(isOpaque);
  }

  texts.sort((a, b) => a.box.top - b.box.top);
  for (const [i, a] of texts.entries()) {
    for (let j = i + 1; j < texts.length && texts[j].box.top < a.box.bottom; j += 1) {
      const b = texts[j];
      const box = common(a.box, b.box);
      // A few pixels are the room that fonts leave around their letters.
      if (a.element === b.element || !isThere(box, 3, 6) || isBetween(a, b, box)) continue;
      problems.push(`one on the other: ${said(a)}, ${said(b)}`);
    }
  }

  // -- texts of pictures --
  function light(colour) {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => Number(part) / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  for (const text of texts.filter(({ element }) => inPicture(element))) {
    if (text.element.closest(".dimming") && !text.element.closest(".lit")) continue; // it is meant to be
    let behind = text.element.ownerSVGElement;
    while (behind.parentElement && !isOpaque(behind)) behind = behind.parentElement;
    const [x, y] = [getComputedStyle(text.element).fill, getComputedStyle(behind).backgroundColor].map(light);
    const contrast = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
    if (contrast < 4.5) problems.push(`pale: ${said(text)}, ${contrast.toFixed(1)}`);
  }

  // -- parts --
  function boxOf(part) {
    const box = [...document.querySelectorAll(part)].find((e) => e.checkVisibility())?.getBoundingClientRect();
    if (box && box.width > 4 && box.height > 4) return box;
    problems.push(`there is no room for ${part}`);
    return null;
  }
  for (const [part, where, other] of places) {
    const [a, b] = [boxOf(part), boxOf(other)];
    if (a === null || b === null) continue;
    const across = a.left < b.right && b.left < a.right;
    const along = a.top < b.bottom && b.top < a.bottom;
    const is = {
      "left of": a.right <= b.left + 1 && along,
      above: a.bottom <= b.top + 1 && across,
      "in line with": Math.abs(a.left - b.left) <= 1 && Math.abs(a.width - b.width) <= 1,
      "ends with": Math.abs(a.right - b.right) <= 1,
      inside: a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && along,
    };
    if (!is[where]) problems.push(`${part} is not ${where} ${other}`);
  }
  return [...new Set(problems)];
}
