// SPDX-License-Identifier: Apache-2.0
//
// The address map: one bank as a strip, live buffers in colour and holes in none. Drag to look closer, arrow
// keys to go from buffer to buffer; a table behind it lists the holes.

import { colour, onTheme, seriesColour, typeColour } from "./colours";
import { clear, h, say } from "./dom";
import { bytes, duration } from "./format";
import { fragmentation, holeAt, spanAt, type Hole, type Layout, type Span } from "./holes";

export type Paint = "type" | "process" | "age";

const HEIGHT = 84;
const AGES = [60e9, 600e9, 3600e9, 86400e9]; // up to a minute, ten, an hour, a day; older
export const AGE_NAMES = ["< 1 min", "< 10 min", "< 1 h", "< 1 day", "older"];

export function ageClass(ns: number): number {
  const found = AGES.findIndex((limit) => ns < limit);
  return found < 0 ? AGES.length : found;
}

const hex = (value: number): string => `0x${Math.max(0, Math.round(value)).toString(16)}`;

export class AddressMap {
  readonly element: HTMLElement;
  private canvas = h("canvas", { class: "map-canvas", tabindex: 0, role: "img" });
  private tip = h("div", { class: "tip", hidden: true });
  private ends = h("div", { class: "map-ends muted" });
  private reset = h("button", { type: "button", class: "small", hidden: true }, "Whole bank");
  private table = h("div", { class: "scroll" });
  private status = h("p", { class: "hidden", role: "status" });
  private layout: Layout | null = null;
  private paint: Paint = "type";
  private order = new Map<number, number>(); // pid to place in the palette
  private from = 0;
  private to = 1;
  private drag: number | null = null;
  private dragTo = 0;
  private chosen = -1;
  private observer: ResizeObserver;
  private forget: () => void;

  constructor(private open: (span: Span) => void) {
    this.element = h(
      "div",
      { class: "map" },
      h("div", { class: "map-frame" }, this.canvas, this.tip),
      this.ends,
      this.status,
      h("details", { class: "behind" }, h("summary", {}, "Holes as a table"), this.table),
    );
    this.reset.addEventListener("click", () => this.look(null));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("dblclick", () => this.look(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.forget = onTheme(() => this.draw());
  }

  destroy(): void {
    this.observer.disconnect();
    this.forget();
  }

  set(layout: Layout, paint: Paint, order: Map<number, number>): void {
    const other = !this.layout || this.layout.bank.base !== layout.bank.base || this.layout.bank.size !== layout.bank.size;
    this.layout = layout;
    this.paint = paint;
    this.order = order;
    this.canvas.setAttribute(
      "aria-label",
      `Address map: ${layout.spans.length} buffers, ${layout.holes.length} holes, ` +
        `largest ${bytes(layout.largest)}, fragmentation ${Math.round(100 * fragmentation(layout))} percent. ` +
        "Arrow keys go from buffer to buffer. A table of holes follows.",
    );
    if (other) this.look(null);
    else this.draw();
    this.fillTable();
  }

  private look(range: [number, number] | null): void {
    if (!this.layout) return;
    const { base, size } = this.layout.bank;
    [this.from, this.to] = range ?? [base, base + Math.max(1, size)];
    this.reset.hidden = range === null;
    this.draw();
  }

  private x(address: number): number {
    return ((address - this.from) / (this.to - this.from)) * this.canvas.clientWidth;
  }

  private address(x: number): number {
    return this.from + (x / Math.max(1, this.canvas.clientWidth)) * (this.to - this.from);
  }

  private colourOf(span: Span): string {
    if (this.paint === "type") return typeColour(span.buffer.type);
    if (this.paint === "process") return seriesColour(this.order.get(span.buffer.pid) ?? 99);
    return colour(`age-${ageClass(span.buffer.age_ns)}`);
  }

  private draw(): void {
    const width = this.canvas.clientWidth;
    if (!this.layout || width < 10) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(HEIGHT * scale);
    const pen = this.canvas.getContext("2d")!;
    pen.scale(scale, scale);
    pen.fillStyle = colour("hole");
    pen.fillRect(0, 0, width, HEIGHT);
    this.hatch(pen, width);
    for (const span of this.layout.spans) {
      if (span.to <= this.from || span.from >= this.to) continue;
      const left = Math.max(0, this.x(span.from));
      const wide = Math.min(width, this.x(span.to)) - left;
      pen.fillStyle = this.colourOf(span);
      // A buffer too narrow to be seen is drawn all the same; a wide one leaves a line to its neighbour.
      pen.fillRect(left, 0, Math.max(wide > 3 ? wide - 0.5 : wide, 0.6), HEIGHT);
    }
    this.mark(pen);
    clear(
      this.ends,
      h("span", {}, hex(this.from)),
      h("span", {}, `one of ${this.layout.bank.banks} bank${this.layout.bank.banks === 1 ? "" : "s"}, `,
        `${bytes(this.to - this.from)} shown `, this.reset),
      h("span", {}, hex(this.to)),
    );
  }

  /** What another type has for itself is no hole: it is hatched. */
  private hatch(pen: CanvasRenderingContext2D, width: number): void {
    const kept = this.layout?.kept;
    if (!kept) return;
    const left = Math.max(0, this.x(kept.from));
    const right = Math.min(width, this.x(kept.to));
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, Math.max(0, right - left), HEIGHT);
    pen.clip();
    pen.strokeStyle = colour("strong-line");
    pen.beginPath();
    for (let x = left - HEIGHT; x < right; x += 6) {
      pen.moveTo(x, HEIGHT);
      pen.lineTo(x + HEIGHT, 0);
    }
    pen.stroke();
    pen.restore();
  }

  /** What is chosen, or being dragged over. */
  private mark(pen: CanvasRenderingContext2D): void {
    const span = this.layout?.spans[this.chosen];
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    if (span) pen.strokeRect(this.x(span.from), 1, Math.max(3, this.x(span.to) - this.x(span.from)), HEIGHT - 2);
    if (this.drag === null) return;
    pen.fillStyle = colour("shade");
    pen.fillRect(Math.min(this.drag, this.dragTo), 0, Math.abs(this.dragTo - this.drag), HEIGHT);
  }

  private describe(span: Span | null, hole: Hole | null, at: number | null = null): string[] {
    if (span) {
      const { buffer } = span;
      return [
        buffer.name ?? "without a name",
        `${buffer.type} · ${bytes(buffer.size)} (${bytes(span.to - span.from)} in each bank)`,
        `${buffer.comm} (${buffer.pid}) · ${duration(buffer.age_ns)} old`,
        `${buffer.address}${buffer.phase ? ` · ${buffer.phase}` : ""}`,
      ];
    }
    if (!hole && at !== null && this.layout?.kept && at >= this.layout.kept.from)
      return ["Kept for another type", `${hex(this.layout.kept.from)} to ${hex(this.layout.kept.to)}`];
    if (!hole || !this.layout) return [];
    const all = (hole.to - hole.from) * this.layout.bank.banks;
    return ["Hole", `${bytes(hole.to - hole.from)} in each bank, ${bytes(all)} in all`, `${hex(hole.from)} to ${hex(hole.to)}`];
  }

  private hover(event: PointerEvent): void {
    if (!this.layout) return;
    const x = event.offsetX;
    if (this.drag !== null) {
      this.dragTo = x;
      this.draw();
    }
    const reach = (this.to - this.from) / Math.max(1, this.canvas.clientWidth);
    const at = this.address(x);
    const span = spanAt(this.layout, at) ?? spanAt(this.layout, at + reach);
    this.show(this.describe(span, span ? null : holeAt(this.layout, at), at), x);
  }

  private show(lines: string[], x: number): void {
    this.tip.hidden = lines.length === 0;
    clear(this.tip, lines.map((line, i) => (i ? h("div", { class: "muted" }, line) : h("b", {}, line))));
    const room = this.canvas.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, x - this.tip.offsetWidth / 2))}px`;
  }

  private press(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = this.dragTo = event.offsetX;
  }

  private release(event: PointerEvent): void {
    const start = this.drag;
    this.drag = null;
    if (start === null || !this.layout) return;
    if (Math.abs(event.offsetX - start) > 4) {
      const [a, b] = [this.address(Math.min(start, event.offsetX)), this.address(Math.max(start, event.offsetX))];
      const end = this.layout.bank.base + this.layout.bank.size;
      this.look([Math.max(a, this.layout.bank.base), Math.min(b, end)]);
      return;
    }
    this.draw();
    const span = spanAt(this.layout, this.address(event.offsetX));
    if (span) this.open(span);
  }

  private key(event: KeyboardEvent): void {
    const spans = this.layout?.spans ?? [];
    if (event.key === "Enter" && spans[this.chosen]) return this.open(spans[this.chosen]!);
    if (event.key === "Escape") {
      this.chosen = -1;
      this.tip.hidden = true;
      return this.look(null);
    }
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    this.chosen = Math.max(0, Math.min(spans.length - 1, this.chosen + (event.key === "ArrowRight" ? 1 : -1)));
    const span = spans[this.chosen];
    if (!span) return;
    this.draw();
    const lines = this.describe(span, null);
    this.show(lines, this.x((span.from + span.to) / 2));
    say(this.status, lines.join(", "));
  }

  private fillTable(): void {
    const holes = [...(this.layout?.holes ?? [])].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 100);
    const banks = this.layout?.bank.banks ?? 1;
    clear(
      this.table,
      h("table", {},
        h("caption", { class: "hidden" }, "Holes, largest first"),
        h("thead", {}, h("tr", {}, ["From", "To", "In each bank", "In all banks"].map((text, i) =>
          h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
        h("tbody", {}, holes.map((hole) =>
          h("tr", {}, h("td", {}, h("code", {}, hex(hole.from))), h("td", {}, h("code", {}, hex(hole.to))),
            h("td", { class: "number" }, bytes(hole.to - hole.from)),
            h("td", { class: "number" }, bytes((hole.to - hole.from) * banks)))))),
    );
  }
}
