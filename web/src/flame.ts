// SPDX-License-Identifier: Apache-2.0
//
// Who holds how much, by stack: outermost call at the bottom, as wide as the bytes it answers for. Labels are
// set as text; the library's own tooltips, which take markup, are not used.

import flamegraph, { type FlameGraph, type FlameNode } from "d3-flame-graph";
import { select } from "d3-selection";
import { clear, h, say } from "./dom";
import { bytes, percent, plural } from "./format";
import type { Buffer } from "./model";
import { frameName, frameWhere } from "./stack";

export interface Node extends FlameNode {
  name: string;
  where: string;
  value: number;
  buffers: number;
  children: Node[];
}

interface Building extends Node {
  by: Map<string, Building>;
}

const make = (name: string, where = ""): Building => ({
  name, where, value: 0, buffers: 0, children: [], by: new Map(),
});

function step(node: Building, name: string, where: string, key: string): Building {
  let child = node.by.get(key);
  if (!child) {
    child = make(name, where);
    node.by.set(key, child);
    node.children.push(child);
  }
  return child;
}

/** Live bytes by merged stack; without one, by phase. The tip is type and name. */
export function tree(buffers: readonly Buffer[]): Node {
  const root = make("all");
  for (const buffer of buffers) {
    const path = [root];
    let at = root;
    const go = (name: string, where: string): void => {
      at = step(at, name, where, `${name}\n${where}`);
      path.push(at);
    };
    if (buffer.stack.length > 0)
      for (let i = buffer.stack.length - 1; i >= 0; i--)
        go(frameName(buffer.stack[i]!), frameWhere(buffer.stack[i]!));
    else {
      go("no stack", "");
      if (buffer.phase) for (const part of buffer.phase.split("/")) go(part, "phase");
    }
    go(buffer.name ?? "without a name", buffer.type);
    for (const node of path) {
      node.value += buffer.size;
      node.buffers++;
    }
  }
  return root;
}

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

  constructor() {
    const search = h("input", { type: "search", placeholder: "Highlight frames", "aria-label": "Highlight frames" });
    search.addEventListener("input", () => {
      if (search.value) this.chart?.search(search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      else this.chart?.clear();
    });
    const reset = h("button", { type: "button" }, "Show all");
    reset.addEventListener("click", () => this.chart?.resetZoom());
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
    this.data = tree(buffers);
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
      .onClick((node) => this.tell(node.data as Node))
      .label((node) => `${node.data.name}: ${bytes(node.data.value)}`)
      .setColorMapper((node) =>
        node.highlight ? "var(--highlight)" : `light-dark(hsl(${205 + (hue(node.data.name) % 70)} 55% 80%), hsl(${205 + (hue(node.data.name) % 70)} 35% 36%))`,
      );
    select(this.place).datum(this.data).call(this.chart);
    // There at once; only looking closer moves.
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.chart.transitionDuration(200);
    this.tell(null);
  }

  private fillTable(): void {
    const rows: { path: string; node: Node }[] = [];
    const walk = (node: Node, path: string[]): void => {
      if (node.children.length === 0) rows.push({ path: path.join(" › "), node });
      for (const child of node.children) walk(child, [...path, child.name]);
    };
    if (this.data && this.data.value > 0) walk(this.data, []);
    rows.sort((a, b) => b.node.value - a.node.value);
    clear(
      this.list,
      h(
        "table",
        {},
        h("caption", { class: "hidden" }, "Live bytes by stack"),
        h("thead", {}, h("tr", {}, ["Stack", "Bytes", "Buffers"].map((text, i) =>
          h("th", { scope: "col", class: i ? "number" : "" }, text)))),
        h("tbody", {}, rows.slice(0, 200).map(({ path, node }) =>
          h("tr", {}, h("td", {}, path), h("td", { class: "number" }, bytes(node.value)),
            h("td", { class: "number" }, String(node.buffers))))),
      ),
    );
  }
}
