// SPDX-License-Identifier: Apache-2.0
//
// The panel of the overview for two time cursors: which processes hold more, and which hold less.

import { differences } from "../analysis/difference";
import { h, renew, say } from "../base/dom";
import { bytes, clock, duration, signed } from "../base/format";
import { link } from "../base/router";
import { cutNote, empty, panel } from "../parts/view";
import { moment } from "../time/moment";

const ROWS = 50;
const HEADS = ["Process", "", "Before", "After", "Difference"];

export class Difference {
  readonly element = h("div", {});
  private body = h("div", {});
  private when = h("span", { class: "muted" });
  private panel = panel("Between the two instants", this.when, this.body);

  update(): void {
    const { totals, otherTotals } = moment;
    if (!totals || !otherTotals) return this.panel.remove();
    if (!this.panel.isConnected) this.element.append(this.panel);
    const [before, after] = otherTotals.time_ns <= totals.time_ns ? [otherTotals, totals] : [totals, otherTotals];
    const list = differences(before, after);
    say(this.when, `${clock(before.time_ns)} to ${clock(after.time_ns)}, ${duration(after.time_ns - before.time_ns)}`);
    if (list.length === 0) return renew(this.body, empty("No process holds more or less."));
    renew(this.body, h("div", { class: "scroll" }, h("table", { class: "differences" },
      h("thead", {}, h("tr", {}, HEADS.map((text, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
      h("tbody", {}, list.slice(0, ROWS).map((one) => h("tr", {},
        h("th", { scope: "row" }, h("a", { href: link("process", String(one.process.pid)) }, `${one.process.comm} (${one.process.pid})`)),
        h("td", { class: "muted" }, one.state),
        h("td", { class: "number" }, bytes(one.before)), h("td", { class: "number" }, bytes(one.after)),
        h("td", { class: `number ${one.after > one.before ? "bad" : ""}` }, signed(one.after - one.before))))))),
      cutNote(Math.min(ROWS, list.length), list.length));
  }
}
