// The left side: all components as circles, and as a list.

import { CircleView } from "./circles.js";
import { byId, count, el, fill, hint, notice, number, paged, plural, text } from "./dom.js";
import { format } from "./route.js";

export class ComponentList {
  constructor(open) {
    this.view = new CircleView(
      byId("map"),
      "All components, sized by their tables. They are listed below.",
      {
        open,
        tell: (c) => [c.name, `${plural(c.n_tables, "table")}, ${plural(c.n_inds, "inclusion")}`],
        painted: () => setTimeout(() => performance.mark("holdfast-painted-lake")),
      },
    );
    this.links = new Map();
  }

  show({ components, n_more: nMore }, lake) {
    byId("n-components").textContent = number(components.length + nMore);
    const list = byId("component-list");
    this.links.clear();
    if (!components.length) {
      byId("map").hidden = true;
      fill(list, notice("No components", ""));
      return;
    }
    this.view.show(components);
    const rest = [
      nMore ? `and ${plural(nMore, "smaller one")}, which the search finds` : null,
      lake?.n_isolated ? `${plural(lake.n_isolated, "table")} without any inclusion` : null,
    ].filter((words) => words !== null);
    fill(
      list,
      paged(components, (c) => this.#row(c)),
      ...rest.map(hint),
    );
  }

  #row(component) {
    const link = el(
      "a",
      { href: format({ component: component.id }), class: "row" },
      text(component.name, "name", 60),
      count(component.n_tables, plural(component.n_tables, "table")),
    );
    this.links.set(component.id, link);
    if (component.id === this.view.active) link.setAttribute("aria-current", "true");
    return el("li", {}, link);
  }

  activate(id) {
    this.links.get(this.view.active)?.removeAttribute("aria-current");
    this.view.activate(id);
    const link = this.links.get(id);
    link?.setAttribute("aria-current", "true");
    link?.scrollIntoView({ block: "nearest" });
  }
}
