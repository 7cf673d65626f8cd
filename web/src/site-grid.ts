// SPDX-License-Identifier: Apache-2.0
//
// Call sites as a list; the chosen one is shown below it with its stack.

import { typeVariable } from "./colours";
import { clear, h, type Child } from "./dom";
import { Grid, type Column } from "./grid";
import type { MemoryType } from "./model";
import { siteLabel, siteWhere, stackList, type SiteKey } from "./stack";

export class SiteGrid<T extends SiteKey & { key: string }> {
  readonly element: HTMLElement;
  private detail = h("div", { class: "buffer", hidden: true });
  private grid: Grid<T>;

  /** @figures: columns before the site, sorted by the first; @more: after it, and below its stack. */
  constructor(label: string, figures: Column<T>[], facts: Column<T>[], more: (site: T) => Child) {
    this.grid = new Grid<T>(label, [
      ...figures,
      { id: "type", narrow: "1.8rem", dot: true, title: "Type", width: "10rem", text: (s) => s.type ?? "", swatch: (s) => typeVariable(s.type as MemoryType) },
      { id: "site", narrow: "minmax(5rem, 1fr)", title: "Call site", width: "minmax(9rem, 2fr)", text: siteLabel, hint: siteLabel },
      { id: "where", narrow: false, title: "Called from", width: "minmax(8rem, 2fr)", text: siteWhere, hint: siteWhere },
      ...facts,
    ], figures[0]!.id, (site) => {
      this.detail.hidden = false;
      clear(this.detail, h("p", {}, h("b", {}, siteLabel(site))), stackList(site.stack), more(site));
    }, (site) => site.key);
    this.element = h("div", {}, this.grid.element, this.detail);
  }

  set(sites: readonly T[]): void {
    this.grid.set(sites);
  }
}
