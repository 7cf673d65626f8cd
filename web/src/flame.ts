// SPDX-License-Identifier: Apache-2.0
//
// Who holds how much, by stack: outermost call at the bottom, as wide as the bytes it answers for. Labels are
// set as text; the library's own tooltips, which take markup, are not used.

import flamegraph, { type FlameGraph } from "d3-flame-graph";
import { select } from "d3-selection";
import { clear, h, say } from "./dom";
import { bytes, percent, plural } from "./format";
import type { Buffer } from "./model";
import { visible } from "./text";
import { tips, tree, type Node } from "./tree";
import { cutNote } from "./view";

const TABLE_ROWS = 200;

/** Drawn again only for a reason. */
const same = (a: Node, b: Node): boolean =>
  a.name === b.name && a.where === b.where && a.value === b.value && a.buffers === b.buffers &&
  a.children.length === b.children.length && a.children.every((child, i) => same(child, b.children[i]!));

function hue(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) % 1000;
  return value;
}

export class Flame {
  readonly element: HTMLElement;
  private place = h("div", { class: "flame" });
  private status = h("p", { class: "muted flame-status", role: "status" });
  private list = h("div", { class: "scroll" });
  private chart: FlameGraph | null = null;
  private data: Node | null = null;
  private observer: ResizeObserver;
  private width = 0;
  private near = false; // somebody looks closer: then nothing moves under them

  constructor() {
    const search = h("input", { type: "search", placeholder: "Highlight frames", "aria-label": "Highlight frames" });
    search.addEventListener("input", () => {
      if (search.value) this.chart?.search(search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      else this.chart?.clear();
    });
    const reset = h("button", { type: "button" }, "Show all");
    reset.addEventListener("click", () => {
      this.near = false;
      this.chart?.resetZoom();
      this.tell(null);
    });
    this.element = h(
      "div",
      {},
      h("div", { class: "tools" }, search, reset, this.status),
      this.place,
      h("details", { class: "behind" }, h("summary", {}, "As a table"), this.list),
    );
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.place);
  }

  destroy(): void {
    this.observer.disconnect();
    this.chart?.destroy();
  }

  set(buffers: readonly Buffer[]): void {
    const data = tree(buffers);
    if (this.near || (this.data && same(this.data, data))) return;
    this.data = data;
    this.width = 0;
    this.draw();
    this.fillTable();
  }

  private tell(node: Node | null): void {
    const all = this.data;
    if (!all) return;
    const it = node ?? all;
    const where = it.where ? ` (${it.where})` : "";
    say(
      this.status,
      `${it.name}${where}: ${bytes(it.value)} in ${plural(it.buffers, "buffer")}` +
        (all.value > 0 ? `, ${percent(it.value, all.value)}` : ""),
    );
  }

  private draw(): void {
    const width = Math.floor(this.place.clientWidth);
    if (!this.data || width < 20 || width === this.width) return;
    this.width = width;
    this.chart?.destroy();
    this.place.replaceChildren();
    this.place.setAttribute("role", "img");
    this.place.setAttribute("aria-label", `Flame graph of ${bytes(this.data.value)} of live memory. A table follows.`);
    this.chart = flamegraph()
      .width(width)
      .cellHeight(20)
      .transitionDuration(0)
      .minFrameSize(2)
      .inverted(false)
      .tooltip(false)
      .onHover((node) => this.tell(node.data as Node))
      .onClick((node) => {
        this.near = node.data !== this.data;
        this.tell(node.data as Node);
      })
      .label((node) => visible(`${node.data.name}: ${bytes(node.data.value)}`))
      .setColorMapper((node) =>
        node.highlight ? "var(--highlight)" : `light-dark(hsl(${205 + (hue(node.data.name) % 70)} 55% 80%), hsl(${205 + (hue(node.data.name) % 70)} 35% 36%))`,
      );
    select(this.place).datum(this.data).call(this.chart);
    // There at once; only looking closer moves.
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.chart.transitionDuration(200);
    this.tell(null);
  }

  private fillTable(): void {
    const rows = this.data ? tips(this.data) : [];
    clear(
      this.list,
      h(
        "table",
        {},
        h("caption", { class: "hidden" }, "Live bytes by stack"),
        h("thead", {}, h("tr", {}, ["Stack", "Bytes", "Buffers"].map((text, i) =>
          h("th", { scope: "col", class: i ? "number" : "" }, text)))),
        h("tbody", {}, rows.slice(0, TABLE_ROWS).map(({ path, node }) =>
          h("tr", {}, h("td", {}, path.join(" › ")), h("td", { class: "number" }, bytes(node.value)),
            h("td", { class: "number" }, String(node.buffers))))),
      ),
      cutNote(Math.min(rows.length, TABLE_ROWS), rows.length),
    );
  }
}
