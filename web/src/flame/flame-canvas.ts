// SPDX-License-Identifier: Apache-2.0
//
// The drawing of a flame graph: zoom, pointer, keyboard. It is one stop of the Tab key; arrow keys go from frame to frame.
// A canvas says nothing to a screen reader, so its content, which is not displayed, is the same tree as elements: a
// treeitem for each of the widest frames and the current one. There tests also find where a frame was drawn, relative to
// the whole graph, and how: data-box="left top width height", data-look="flame-3", and data-faded below the zoomed frame.

import { clear, h } from "../base/dom";
import { SvgPen } from "../base/svg";
import { colour, onTheme } from "../parts/colours";
import { measured } from "../parts/download";
import { neighbour } from "./flame-keys";
import { along, drawnIn, frameAt, frameName, frameNamed, layOut, search, wayTo, WHOLE, type FlameFrame, type FlameRows, type Found, type View } from "./flame-layout";
import { extent, look, paint, ROW_PX, rowTop, type Scene } from "./flame-paint";
import type { Node } from "./tree";

const ITEMS = 200;
const ZOOM_MS = 160;
const TIP_PX = 16; // below the pointer
const WIDTH_MIN = 20;

let graphs = 0;

export interface Told {
  /** "3.00 MiB in 2 buffers, 88 %" */
  figures(node: Node): string;
  /** A frame is the current one; null: all of it. */
  current(node: Node | null): void;
  zoomed(): void;
}

const place = ({ name, where }: Node): string => (where ? `${name} (${where})` : name);

export class FlameCanvas {
  readonly element: HTMLElement;
  private id = `flame-${++graphs}`;
  private canvas = h("canvas", { tabindex: 0, role: "tree" });
  private space = h("div", {}, this.canvas); // as high as all rows
  private scroller = h("div", { class: "flame" }, this.space);
  private tip = h("div", { class: "tip", hidden: true });
  private items = new Map<FlameFrame, HTMLElement>();
  private rows: FlameRows = [];
  private view: View = WHOLE; // as drawn, also while it moves
  private near: FlameFrame | null = null; // zoomed in
  private at: FlameFrame | null = null; // by keyboard
  private hovered: FlameFrame | null = null;
  private pointer: { x: number; y: number } | null = null;
  private wanted = "";
  private found: Found = { frames: new Set(), bytes: 0 };
  private below = 0; // pixels that are scrolled away at the bottom, where the graph starts
  private displayed = false;
  private turn = 0;
  private observer = new ResizeObserver(() => this.arrange());
  private still = matchMedia("(prefers-reduced-motion: reduce)");
  private ending = new AbortController();

  constructor(private told: Told) {
    this.element = h("div", { class: "flame-frame" }, this.scroller, this.tip);
    const { signal } = this.ending;
    const on = <K extends keyof HTMLElementEventMap>(name: K, run: (event: HTMLElementEventMap[K]) => void): void =>
      this.canvas.addEventListener(name, run, { signal });
    on("keydown", (event) => this.key(event));
    on("focus", () => {
      this.draw();
      if (this.at && this.canvas.matches(":focus-visible")) this.told.current(this.at.node);
    });
    on("blur", () => this.draw());
    on("pointermove", ({ offsetX, offsetY }) => this.point({ x: offsetX, y: offsetY }));
    on("pointerleave", () => this.point(null));
    on("click", ({ offsetX, offsetY }) => {
      const frame = this.under({ x: offsetX, y: offsetY });
      if (frame) this.zoom(frame);
    });
    this.scroller.addEventListener("scroll", () => this.scrolled(), { signal, passive: true });
    signal.addEventListener("abort", onTheme(() => this.draw()));
    this.observer.observe(this.scroller);
    this.watchScale();
  }

  destroy(): void {
    cancelAnimationFrame(this.turn);
    this.observer.disconnect();
    this.ending.abort();
  }

  get isZoomed(): boolean {
    return this.near !== null;
  }

  /** Another screen may have more pixels for the same size. */
  private watchScale(): void {
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => {
      this.draw();
      this.watchScale();
    }, { once: true, signal: this.ending.signal });
  }

  /** Zoom, current frame and what was searched stay, as far as the new tree has them. */
  show(root: Node, summary: string): void {
    const [at, near] = [this.at, this.near].map((frame) => (frame ? wayTo(frame) : []));
    this.rows = layOut(root);
    this.at = along(this.rows, at!);
    this.near = near!.length ? along(this.rows, near!) : null;
    if (!this.near?.parent) this.near = null;
    this.found = search(this.rows, this.wanted);
    this.canvas.setAttribute("aria-label", summary);
    this.space.style.height = `${this.rows.length * ROW_PX}px`;
    this.view = this.target();
    cancelAnimationFrame(this.turn);
    this.arrange();
    const current = this.canvas.matches(":focus") ? this.at : this.near;
    this.told.current(current?.node ?? null);
  }

  /** The name of the frame that fills the width; null: all is shown. */
  get zoomName(): string | null {
    return this.near && frameName(this.near);
  }

  /** At once: nobody has seen another part. */
  zoomTo(name: string): void {
    this.near = frameNamed(this.rows, name);
    this.at = this.near ?? this.at;
    this.view = this.target();
    this.arrange();
    this.told.current(this.near?.node ?? null);
  }

  /** Highlights the frames with a text. */
  find(text: string): Found {
    this.wanted = text;
    this.found = search(this.rows, text);
    this.list();
    this.draw();
    return this.found;
  }

  zoom(frame: FlameFrame | null): void {
    this.near = frame?.parent ? frame : null;
    if (this.near) this.at = this.near; // zooming out keeps the current frame
    this.list();
    this.move();
    this.told.current(frame?.node ?? null);
    this.told.zoomed();
  }

  private target(): View {
    return this.near ? [this.near.x0, this.near.x1] : WHOLE;
  }

  private move(): void {
    const [from, to] = [this.view, this.target()];
    const start = performance.now();
    const step = (now: number): void => {
      const rest = this.still.matches ? 0 : Math.max(0, 1 - (now - start) / ZOOM_MS) ** 3;
      this.view = rest > 0 ? [to[0] + (from[0] - to[0]) * rest, to[1] + (from[1] - to[1]) * rest] : to;
      this.draw();
      if (rest > 0) this.turn = requestAnimationFrame(step);
    };
    cancelAnimationFrame(this.turn);
    step(start);
  }

  private drawn(): FlameFrame[] {
    return this.rows.flatMap((row) => drawnIn(row, this.target(), Math.max(1, this.space.clientWidth)));
  }

  /** After a change of size or content. */
  private arrange(): void {
    const { scroller } = this;
    this.displayed = this.space.clientWidth >= WIDTH_MIN;
    if (!this.displayed) return;
    scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight - this.below;
    this.list();
    this.point(this.pointer);
    this.draw();
  }

  private scrolled(): void {
    if (!this.displayed) return; // it was hidden, which scrolls it to its start
    const { scrollHeight, clientHeight, scrollTop } = this.scroller;
    this.below = scrollHeight - clientHeight - scrollTop;
    this.point(this.pointer);
    this.draw();
  }

  /** Tells a screen reader, and tests, what is drawn. */
  private list(): void {
    const drawn = this.drawn();
    if (drawn.length === 0) return;
    const all = new Set(drawn);
    while (this.at?.parent && !all.has(this.at)) this.at = this.at.parent; // it is too narrow now
    const wide = (frame: FlameFrame): number => frame.x1 - frame.x0;
    const chosen = new Set([...drawn].sort((a, b) => wide(b) - wide(a)).slice(0, ITEMS)).add(this.at!);
    const inOrder = [...chosen].sort((a, b) => a.x0 - b.x0 || a.depth - b.depth);
    this.items = new Map(inOrder.map((frame, i) => [frame, this.item(frame, i)]));
    this.canvas.replaceChildren(...this.items.values());
    this.choose(this.at!);
  }

  private item(frame: FlameFrame, number: number): HTMLElement {
    const [left, right] = extent(frame, this.target(), this.space.clientWidth);
    const box = [left, rowTop(this.rows, frame.depth), right - left, ROW_PX].map((value) => Math.round(value * 10) / 10);
    return h("div", {
      role: "treeitem", id: `${this.id}-${number}`, "aria-level": frame.depth + 1, "data-box": box.join(" "),
      "data-look": look(frame, this.found.frames.has(frame)), "data-faded": this.near !== null && frame.depth < this.near.depth,
    }, `${place(frame.node)}: ${this.told.figures(frame.node)}`);
  }

  private choose(frame: FlameFrame): void {
    this.items.get(this.at!)?.removeAttribute("aria-selected");
    this.at = frame;
    const item = this.items.get(frame);
    if (!item) return this.list();
    item.setAttribute("aria-selected", "true");
    this.canvas.setAttribute("aria-activedescendant", item.id);
  }

  private key(event: KeyboardEvent): void {
    if (!this.at || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = neighbour(this.drawn(), this.at, event.key);
    if (next) this.go(next);
    else if (event.key === "Enter" || event.key === " ") this.zoom(this.at);
    else if (event.key === "Escape") this.zoom(null);
    else if (!/^Arrow|^Home$/.test(event.key)) return;
    event.preventDefault();
  }

  private go(to: FlameFrame): void {
    const { scroller } = this;
    const top = rowTop(this.rows, to.depth);
    this.choose(to);
    scroller.scrollTop = Math.max(top + ROW_PX - scroller.clientHeight, Math.min(top, scroller.scrollTop));
    this.draw();
    this.told.current(to.node);
  }

  private under({ x, y }: { x: number; y: number }): FlameFrame | null {
    const depth = this.rows.length - 1 - Math.floor((y + this.scroller.scrollTop) / ROW_PX);
    const [from, to] = this.view;
    return frameAt(this.rows, depth, from + (x / Math.max(1, this.space.clientWidth)) * (to - from));
  }

  private point(pointer: { x: number; y: number } | null): void {
    this.pointer = pointer;
    const frame = pointer && this.under(pointer);
    this.tip.hidden = !frame;
    if (frame !== this.hovered) {
      this.hovered = frame;
      this.canvas.classList.toggle("over", frame !== null);
      if (frame) clear(this.tip, h("b", {}, frame.node.name), [frame.node.where, this.told.figures(frame.node)].map((line) => line && h("div", { class: "muted" }, line)));
      this.draw();
    }
    if (!frame) return;
    this.tip.style.left = `${Math.max(0, Math.min(this.element.clientWidth - this.tip.offsetWidth, pointer!.x - this.tip.offsetWidth / 2))}px`;
    this.tip.style.top = `${pointer!.y + TIP_PX}px`;
  }

  private draw(): void {
    const [width, height] = [this.space.clientWidth, this.scroller.clientHeight];
    if (this.rows.length === 0 || width < WIDTH_MIN) return;
    const scale = devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    // A new size empties the canvas; it is filled again before the browser shows it.
    if (this.canvas.width !== wide) this.canvas.width = wide;
    if (this.canvas.height !== high) this.canvas.height = high;
    this.canvas.style.height = `${height}px`;
    paint(this.canvas.getContext("2d")!, this.scene(), scale);
  }

  private scene(): Scene {
    return {
      rows: this.rows, view: this.view, width: this.space.clientWidth, height: this.scroller.clientHeight, top: this.scroller.scrollTop,
      near: this.near, found: this.found.frames, hovered: this.hovered, focused: this.canvas.matches(":focus-visible") ? this.at : null,
      font: getComputedStyle(this.canvas).fontFamily,
    };
  }

  /** Of what is in sight. */
  svg(): string | null {
    const scene = this.scene();
    if (this.rows.length === 0 || scene.width < WIDTH_MIN) return null;
    const pen = new SvgPen(measured());
    paint(pen, { ...scene, hovered: null, focused: null }, 1);
    return pen.file(scene.width, scene.height, colour("surface"));
  }
}
