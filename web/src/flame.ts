// SPDX-License-Identifier: Apache-2.0
//
// Who holds how much, by stack: outermost call at the bottom, as wide as its share of the bytes. Labels are
// set as text; the library's own tooltips, which take markup, are not used. The graph is one stop of the Tab key; arrow
// keys move from frame to frame.

import flamegraph, { type FlameFrame, type FlameGraph } from "d3-flame-graph";
import { select } from "d3-selection";
import { clear, h, say } from "./dom";
import { neighbour } from "./flame-keys";
import { bytes, clock, percent, plural } from "./format";
import { visible } from "./text";
import { tips, tree, type Node, type Weighed } from "./tree";
import { cutNote } from "./view";

const TABLE_ROWS = 200;

/** To redraw only on a change. */
const same = (a: Node, b: Node): boolean =>
  a.name === b.name && a.where === b.where && a.value === b.value && a.buffers === b.buffers &&
  a.children.length === b.children.length && a.children.every((child, i) => same(child, b.children[i]!));

/** The path to a frame by names, which is the same in the next drawing. */
function wayTo(frame: FlameFrame): string[] {
  const way: string[] = [];
  for (let at: FlameFrame | null = frame; at; at = at.parent) {
    const { name, where } = at.data as Node;
    way.unshift(`${name}\n${where}`);
  }
  return way;
}

function hue(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) % 1000;
  return value;
}

export class Flame {
  readonly element: HTMLElement;
  private place = h("div", { class: "flame" });
  private search = h("input", { type: "search", placeholder: "Highlight frames", "aria-label": "Highlight frames" });
  private status = h("p", { class: "muted flame-status", role: "status" });
  private asOf = h("span", { class: "muted" }); // shown if there is newer data
  private list = h("div", { class: "scroll" });
  private chart: FlameGraph | null = null;
  private data: Node | null = null;
  private timeNs = 0; // time of the data
  private newer: { data: Node; timeNs: number } | null = null; // to show once the user has zoomed out
  private observer: ResizeObserver;
  private width = 0;
  private near: FlameFrame | null = null; // zoomed in: then the drawing does not change
  private drawn = new Map<FlameFrame, SVGGElement>();
  private at: FlameFrame | null = null; // the frame in the Tab order

  constructor() {
    this.search.addEventListener("input", () => this.highlight());
    const reset = h("button", { type: "button" }, "Show all");
    reset.addEventListener("click", () => this.showAll());
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.element = h(
      "div",
      {},
      h("div", { class: "tools" }, this.search, reset, this.asOf, this.status),
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

  set({ buffers, timeNs }: { buffers: readonly Weighed[]; timeNs: number }): void {
    this.newer = { data: tree(buffers), timeNs };
    this.catchUp();
  }

  /** Shows the newest data, unless the user has zoomed in: then it shows the time of the data. */
  private catchUp(): void {
    if (this.newer && this.data && same(this.data, this.newer.data)) {
      this.timeNs = this.newer.timeNs;
      this.newer = null;
    }
    if (this.newer && !this.near) {
      ({ data: this.data, timeNs: this.timeNs } = this.newer);
      this.newer = null;
      this.width = 0;
      this.draw();
      this.fillTable();
    }
    say(this.asOf, this.newer ? `as of ${clock(this.timeNs)}` : "");
  }

  private showAll(): void {
    this.chart?.resetZoom();
    this.tell(null);
  }

  private highlight(): void {
    const text = this.search.value;
    if (text) this.chart?.search(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    else this.chart?.clear();
  }

  private text(node: Node): string {
    const all = this.data!;
    const where = node.where ? ` (${node.where})` : "";
    return `${node.name}${where}: ${bytes(node.value)} in ${plural(node.buffers, "buffer")}` +
      (all.value > 0 ? `, ${percent(node.value, all.value)}` : "");
  }

  private tell(node: Node | null): void {
    if (this.data) say(this.status, this.text(node ?? this.data));
  }

  /** Labels frames for screen readers. The library does not, and may have created new frames. */
  private label(): void {
    const drawn = new Map<FlameFrame, SVGGElement>();
    select(this.place).selectAll("g.frame").each(function (frame) {
      drawn.set(frame as FlameFrame, this as SVGGElement);
    });
    this.drawn = drawn;
    for (const [frame, element] of drawn) {
      element.setAttribute("role", "treeitem");
      element.setAttribute("aria-level", String(frame.depth + 1));
      element.setAttribute("aria-label", visible(this.text(frame.data as Node)));
    }
    this.stop(this.at && drawn.has(this.at) ? this.at : ([...drawn.keys()].find((one) => one.depth === 0) ?? null));
  }

  /** Makes all frames together one stop of the Tab key. */
  private stop(at: FlameFrame | null): void {
    this.at = at;
    for (const [frame, element] of this.drawn) {
      element.setAttribute("tabindex", frame === at ? "0" : "-1");
      element.setAttribute("aria-selected", String(frame === at));
    }
  }

  private go(to: FlameFrame): void {
    this.stop(to);
    this.drawn.get(to)?.focus();
    this.tell(to.data as Node);
  }

  private key(event: KeyboardEvent): void {
    const on = [...this.drawn].find(([, element]) => element === event.target)?.[0];
    if (!on || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = neighbour([...this.drawn.keys()], on, event.key);
    if (next) this.go(next);
    else if (event.key === "Enter" || event.key === " ") this.chart?.zoomTo(on);
    else if (event.key === "Escape") this.showAll();
    else if (!/^Arrow|^Home$/.test(event.key)) return;
    event.preventDefault();
  }

  /** The frame at the end of a path, or the last one on it that still exists. */
  private along(way: readonly string[]): FlameFrame | null {
    let found: FlameFrame | null = null;
    for (const frame of this.drawn.keys()) {
      const own = wayTo(frame);
      if (own.length > (found ? found.depth + 1 : 0) && own.every((step, i) => step === way[i])) found = frame;
    }
    return found;
  }

  /** After a redraw the focus stays on its frame, or near it. */
  private keepPlace(way: readonly string[], focused: boolean): void {
    const found = this.along(way);
    if (!found) return;
    this.stop(found);
    if (focused) this.drawn.get(found)?.focus({ preventScroll: true });
  }

  private draw(): void {
    const width = Math.floor(this.place.clientWidth);
    if (!this.data || width < 20 || width === this.width) return;
    this.width = width;
    const way = this.at ? wayTo(this.at) : [];
    const near = this.near && wayTo(this.near);
    const focused = this.place.contains(document.activeElement);
    this.chart?.destroy();
    this.place.replaceChildren();
    this.place.setAttribute("role", "tree");
    this.place.setAttribute("aria-label", `Flame graph of ${bytes(this.data.value)} of live memory. Arrow keys go from frame ` +
      "to frame, Enter looks closer, Escape shows all. A table follows.");
    this.chart = flamegraph()
      .width(width)
      .cellHeight(20)
      .transitionDuration(0)
      .minFrameSize(2)
      .inverted(false)
      .tooltip(false)
      .onHover((node) => this.tell(node.data as Node))
      .onClick((node) => {
        this.near = node.data === this.data ? null : node;
        if (this.near) this.at = node; // zooming out keeps the current frame
        this.label();
        this.tell(node.data as Node);
        queueMicrotask(() => this.catchUp()); // the library has not finished this drawing
      })
      .label((node) => visible(`${node.data.name}: ${bytes(node.data.value)}`))
      .setColorMapper((node) =>
        node.highlight ? "var(--highlight)" : `light-dark(hsl(${205 + (hue(node.data.name) % 70)} 55% 80%), hsl(${205 + (hue(node.data.name) % 70)} 35% 36%))`,
      );
    select(this.place).datum(this.data).call(this.chart);
    this.place.querySelector("svg")?.setAttribute("role", "none");
    if (this.search.value) this.highlight();
    this.label();
    // Only the size has changed: keep the zoom.
    this.near = near && this.along(near);
    if (this.near) this.chart.zoomTo(this.near);
    this.keepPlace(way, focused);
    // Without animation; only zooming is animated.
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.chart.transitionDuration(200);
    this.tell(((focused ? this.at : this.near)?.data as Node | undefined) ?? null);
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
