// Hearing of new versions: the server tells each as it comes. When it is lost the page says so, tries again by
// itself, and recovers. A page that nobody looks at does not listen.

import { announce, get } from "./api.js";
import { byId, fill } from "./dom.js";

const SOONEST_S = 1;
const LATEST_S = 15;

class Live {
  #source = null;
  #wait = SOONEST_S;
  #timer = null;

  constructor() {
    document.addEventListener("visibilitychange", () => this.#turn());
    addEventListener("focus", () => this.#turn());
    addEventListener("pagehide", () => this.#stop());
    this.#turn();
  }

  #turn() {
    if (document.hidden) this.#stop();
    else if (this.#source === null) this.#listen();
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #listen() {
    this.#stop();
    const source = new EventSource("api/events");
    this.#source = source;
    source.addEventListener("version", ({ data }) => {
      this.#wait = SOONEST_S;
      tell("on", "live");
      announce(data);
    });
    source.addEventListener("full", () => {
      this.#stop();
      tell("", "not live: other pages listen");
    });
    source.addEventListener("error", () => this.#lost());
  }

  /** The stream ended. Perhaps the server did, perhaps it only let go of this one. */
  async #lost() {
    this.#stop();
    try {
      await get("summary");
      tell("", "not live");
    } catch (error) {
      tell("lost", error.message, "Trying again.");
    }
    this.#timer = setTimeout(() => this.#turn(), 1000 * this.#wait);
    this.#wait = Math.min(LATEST_S, 2 * this.#wait);
  }
}

function tell(state, words, more = "") {
  const node = byId("live");
  const said = [words, more].filter(Boolean).join(" ");
  if (node.textContent !== said) fill(node, said);
  node.className = `live ${state}`;
  node.hidden = false;
}

export const live = () => new Live();
