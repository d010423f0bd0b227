// The colours of the style sheet, for canvases.

const NAMES = {
  surface: "--surface", text: "--text", muted: "--muted", line: "--line", accent: "--accent", soft: "--accent-soft",
  edge: "--edge", low: "--node-low", high: "--node-high", out: "--out", into: "--into", strong: "--accent-strong",
};
let colours = null;
const listeners = new Set();

/** The colours now, each as "#rrggbb". */
export function theme() {
  if (colours === null) {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    colours = Object.fromEntries(Object.entries(NAMES).map(([key, name]) => [key, value(name)]));
    colours.font = getComputedStyle(document.body).fontFamily;
  }
  return colours;
}

/** A colour as three numbers from 0 to 1. */
export function channels(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [((n >> 16) & 255) / 255, ((n >> 8) & 255) / 255, (n & 255) / 255];
}

export function onThemeChange(listener) {
  listeners.add(listener);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours = null;
  for (const listener of listeners) listener();
});
