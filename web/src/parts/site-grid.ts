// SPDX-License-Identifier: Apache-2.0
//
// Call sites as a list; the chosen one is shown with its stack.

import { h, type Child } from "../base/dom";
import type { MemoryType } from "../data/model";
import { siteLabel, siteWhere, tellApart, type SiteKey } from "../data/stack";
import { typeVariable } from "./colours";
import { Grid, type Column, type Options } from "./grid";
import { stackList } from "./stack-list";

export class SiteGrid<T extends SiteKey & { key: string }> extends Grid<T> {
  /** @figures: columns before the site, sorted by the first; @facts: after it; @more: below its stack. */
  constructor(label: string, figures: Column<T>[], facts: Column<T>[], more: (site: T) => Child, place?: Options<T>["place"]) {
    super(label, [
      ...figures,
      { id: "type", narrow: "1.8rem", dot: true, title: "Type", width: "10rem", text: (s) => s.type ?? "", swatch: (s) => typeVariable(s.type as MemoryType) },
      { id: "site", narrow: "minmax(5rem, 1fr)", title: "Call site", width: "minmax(9rem, 2fr)", text: siteLabel, hint: siteLabel },
      { id: "where", narrow: false, title: "Called from", width: "minmax(8rem, 2fr)", text: siteWhere, hint: siteWhere },
      ...facts,
    ], figures[0]!.id, {
      key: (site) => site.key, place,
      detail: (site) => [h("p", {}, h("b", {}, siteLabel(site))), stackList(site.stack), more(site)],
    });
  }

  override set(rows: readonly T[]): void {
    super.set(tellApart(rows));
  }
}
