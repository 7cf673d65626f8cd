// SPDX-License-Identifier: Apache-2.0
//
// The address map: one bank as a strip, live buffers coloured, free blocks empty. Drag or press plus and minus to
// zoom, arrow keys to move between buffers; tables of the free blocks and the buffers have the same data.

import { placeOf } from "../analysis/sites";
import { clear, h, say } from "../base/dom";
import type { Figures } from "../base/figures";
import { bytes, count, duration, percent, plural } from "../base/format";
import { rememberSoon, type Place } from "../base/router";
import { SvgPen, type Pen } from "../base/svg";
import type { Buffer } from "../data/model";
import { colour, onTheme, seriesColour, typeColour, typeVariable } from "../parts/colours";
import { saveMenu } from "../parts/download";
import { Grid } from "../parts/grid";
import { holeAt, spanAt, type Hole, type Layout, type Span } from "./holes";
import { moved, nextSpan, partOf, partText, zoomed, type Part } from "./map-keys";

/** "change": what is at one of two instants only, in the colour of the strip. */
export type Paint = "type" | "process" | "age" | "change";

const AGES = [60e9, 600e9, 3600e9, 86400e9]; // up to a minute, ten, an hour, a day; older
export const AGE_NAMES = ["< 1 min", "< 10 min", "< 1 h", "< 1 day", "older"];
const TABLE_ROWS = 100;
const DOUBLE_MS = 250;
const FOOT_PX = 20; // of a saved drawing

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
  private holes = h("div", { class: "scroll" });
  private buffers = new Grid<Span>("Buffers", [
    { id: "from", title: "From", width: "9rem", narrow: "7rem", text: (span) => hex(span.from), sort: (span) => span.from },
    { id: "to", title: "To", width: "9rem", narrow: false, text: (span) => hex(span.to), sort: (span) => span.to },
    { id: "each", title: "In each bank", number: true, width: "7rem", narrow: "6rem", text: (span) => bytes(span.to - span.from), sort: (span) => span.to - span.from },
    { id: "size", title: "Size", number: true, width: "6.5rem", narrow: false, text: ({ buffer }) => bytes(buffer.size), sort: ({ buffer }) => buffer.size },
    { id: "type", title: "Type", width: "9rem", narrow: "1.8rem", dot: true, text: ({ buffer }) => buffer.type, swatch: ({ buffer }) => typeVariable(buffer.type) },
    { id: "name", title: "Name", width: "minmax(9rem, 1fr)", narrow: "minmax(5rem, 1fr)", text: ({ buffer }) => buffer.name ?? "–", hint: ({ buffer }) => buffer.name ?? "" },
    { id: "age", title: "Age", number: true, width: "5rem", narrow: false, text: ({ buffer }) => duration(buffer.age_ns), sort: ({ buffer }) => buffer.age_ns },
  ], "from");
  private details: HTMLDetailsElement;
  private status = h("p", { class: "hidden", role: "status" });
  private layout: Layout | null = null;
  private paint: Paint = "type";
  private place = 0; // of the process in the palette
  private changed: ReadonlySet<Buffer> = new Set();
  private from = 0;
  private to = 1;
  private drag: number | null = null;
  private dragTo = 0;
  private chosen = -1;
  private opening = 0;
  private observer: ResizeObserver;
  private forget: () => void;

  /** @kept: where the visible part is kept. */
  constructor(private open: (span: Span) => void, private kept?: Place) {
    this.details = h("details", { class: "behind" }, h("summary", {}, "As a table"),
      h("h3", {}, "Free blocks, largest first"), this.holes, h("h3", {}, "Buffers"), this.buffers.element);
    this.details.addEventListener("toggle", () => this.fillTable());
    const frame = h("div", { class: "map-frame" }, this.canvas, this.tip);
    this.element = h(
      "div",
      { class: "map" },
      frame,
      this.ends,
      this.status,
      h("div", { class: "map-foot" }, this.details, saveMenu("address map", () => this.figures(), { element: frame, svg: () => this.svg() })),
    );
    this.reset.addEventListener("click", () => {
      this.go(null);
      this.canvas.focus({ preventScroll: true }); // the button is gone
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointercancel", () => this.cancel());
    this.canvas.addEventListener("dblclick", () => {
      clearTimeout(this.opening);
      this.go(null);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => (this.tip.hidden = true));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.forget = onTheme(() => this.draw());
  }

  destroy(): void {
    clearTimeout(this.opening);
    this.observer.disconnect();
    this.forget();
  }

  /** @place: of the process in the palette, or of the colour for @changed. */
  set(layout: Layout, paint: Paint, place: number, changed: ReadonlySet<Buffer> = new Set()): void {
    const before = this.layout?.bank;
    const chosen = this.layout?.spans[this.chosen]?.buffer;
    this.layout = layout;
    this.paint = paint;
    this.place = place;
    this.changed = changed;
    // The chosen buffer stays chosen.
    this.chosen = chosen
      ? layout.spans.findIndex(({ buffer }) => placeOf(buffer) === placeOf(chosen))
      : -1;
    if (chosen && this.chosen < 0) this.tip.hidden = true;
    this.canvas.setAttribute("aria-label", this.summary());
    if (!before) this.look(this.kept ? partOf(this.kept.route.options.get(this.kept.name), this.all()) : null);
    else if (before.base !== layout.bank.base || before.size !== layout.bank.size) this.go(null);
    else this.draw();
    this.fillTable();
  }

  private summary(): string {
    const { spans, holes, space } = this.layout!;
    const changed = spans.filter(({ buffer }) => this.changed.has(buffer)).length;
    return `Address map: ${plural(spans.length, "buffer")}, ${plural(holes.length, "free block")}` +
      (this.paint === "change" ? `, ${count(changed)} at this instant only` : "") +
      (space ? `, largest ${bytes(space.largest)} in each bank, fragmentation ${percent(space.fragmentation, 1)}. ` : ". ") +
      "Arrow keys go from buffer to buffer, Enter opens one, plus and minus zoom, Escape shows all. Tables of both follow.";
  }

  private all(): Part {
    const { base, size } = this.layout!.bank;
    return [base, base + Math.max(1, size)];
  }

  /** Looks at a part, of which the address tells. */
  private go(range: Part | null): void {
    this.look(range);
    if (this.kept) rememberSoon({ [this.kept.name]: this.reset.hidden ? null : partText([this.from, this.to]) });
  }

  private look(range: Part | null): void {
    if (!this.layout) return;
    const all = this.all();
    [this.from, this.to] = range ?? all;
    this.reset.hidden = this.from <= all[0] && this.to >= all[1];
    this.tip.hidden = true; // its buffer has moved on the screen
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
    if (this.paint === "change") return this.changed.has(span.buffer) ? seriesColour(this.place) : colour("strong-line");
    if (this.paint === "process") return seriesColour(this.place);
    return colour(`age-${ageClass(span.buffer.age_ns)}`);
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.layout || width < 10) return;
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const pen = this.canvas.getContext("2d")!;
    pen.scale(scale, scale);
    this.fill(pen, this.layout, width, height);
    this.mark(pen, height);
    const { banks } = this.layout.bank;
    clear(
      this.ends,
      h("span", {}, hex(this.from)),
      h("span", {}, banks > 1 ? `one of ${banks} banks, ` : "", `${bytes(this.to - this.from)} shown `, this.reset),
      h("span", {}, hex(this.to)),
    );
  }

  private svg(): string | null {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!this.layout || width < 10) return null;
    const pen = new SvgPen();
    this.fill(pen, this.layout, width, height);
    this.mark(pen, height);
    pen.font = "12px sans-serif";
    pen.fillStyle = colour("text");
    pen.fillText(`${hex(this.from)} to ${hex(this.to)}`, 0, height + FOOT_PX / 2);
    return pen.file(width, height + FOOT_PX, colour("surface"));
  }

  private fill(pen: Pen, layout: Layout, width: number, height: number): void {
    pen.fillStyle = colour("hole");
    pen.fillRect(0, 0, width, height);
    for (const span of layout.spans) {
      if (span.to <= this.from || span.from >= this.to) continue;
      const left = Math.max(0, this.x(span.from));
      const wide = Math.min(width, this.x(span.to)) - left;
      pen.fillStyle = this.colourOf(span);
      // A buffer too narrow to be visible is widened; a wide one leaves a gap to its neighbour.
      pen.fillRect(left, 0, Math.max(wide > 3 ? wide - 0.5 : wide, 0.6), height);
    }
  }

  /** Draws the chosen buffer, or the range being dragged over. */
  private mark(pen: Pen, height: number): void {
    const span = this.layout?.spans[this.chosen];
    const seen = span && this.seen(span);
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    if (seen) {
      // All four sides are drawn inside the map, even if the buffer extends beyond it.
      const width = Math.max(3, this.x(seen[1]) - this.x(seen[0]) - 2);
      const left = Math.max(1, Math.min(this.x(seen[0]) + 1, this.canvas.clientWidth - width - 1));
      pen.strokeRect(left, 1, width, height - 2);
    }
    if (this.drag === null) return;
    pen.fillStyle = colour("shade");
    pen.fillRect(Math.min(this.drag, this.dragTo), 0, Math.abs(this.dragTo - this.drag), height);
  }

  private describe(span: Span | null, hole: Hole | null): string[] {
    if (span) {
      const { buffer } = span;
      return [
        buffer.name ?? "without a name",
        `${buffer.type} · ${bytes(buffer.size)} (${bytes(span.to - span.from)} in each bank)`,
        `${buffer.comm} (${buffer.pid}) · ${duration(buffer.age_ns)} old`,
        `${buffer.address}${buffer.phase ? ` · ${buffer.phase}` : ""}`,
      ];
    }
    if (!hole || !this.layout) return [];
    const all = (hole.to - hole.from) * this.layout.bank.banks;
    return ["Free block", `${bytes(hole.to - hole.from)} in each bank, ${bytes(all)} in all`, `${hex(hole.from)} to ${hex(hole.to)}`];
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
    this.show(this.describe(span, span ? null : holeAt(this.layout, at)), x);
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

  private cancel(): void {
    this.drag = null;
    this.draw();
  }

  private release(event: PointerEvent): void {
    const start = this.drag;
    this.drag = null;
    if (start === null || !this.layout) return;
    if (Math.abs(event.offsetX - start) > 4) {
      const [a, b] = [this.address(Math.min(start, event.offsetX)), this.address(Math.max(start, event.offsetX))];
      const [first, end] = this.all();
      this.go([Math.max(a, first), Math.min(b, end)]);
      return;
    }
    this.draw();
    const span = spanAt(this.layout, this.address(event.offsetX));
    // It may be the first half of a double click.
    clearTimeout(this.opening);
    if (span) this.opening = window.setTimeout(() => this.open(span), DOUBLE_MS);
  }

  private key(event: KeyboardEvent): void {
    const chosen = this.layout?.spans[this.chosen];
    if (!this.layout || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step) this.step(this.layout, step);
    else if (event.key === "+" || event.key === "-") this.zoom(this.layout, event.key === "+" ? 0.5 : 2);
    else if (event.key === "Enter" && chosen) this.open(chosen);
    else if (event.key === "Escape") {
      this.chosen = -1;
      this.go(null);
    } else return;
    event.preventDefault();
  }

  private step(layout: Layout, step: number): void {
    this.chosen = nextSpan(layout.spans, this.chosen, step, [this.from, this.to]);
    const span = layout.spans[this.chosen];
    if (!span) return;
    this.go(moved([this.from, this.to], span, this.all()));
    say(this.status, this.tell(span).join(", "));
  }

  /** Zooms around the chosen buffer, or around the middle. */
  private zoom({ spans }: Layout, scale: number): void {
    const seen = spans[this.chosen] && this.seen(spans[this.chosen]!);
    const [from, to] = seen ?? [this.from, this.to];
    this.go(zoomed([this.from, this.to], (from + to) / 2, scale, this.all()));
    if (seen) this.tell(spans[this.chosen]!);
    say(this.status, `${bytes(this.to - this.from)} shown, from ${hex(this.from)}`);
  }

  /** The visible part of a buffer, or null. */
  private seen(span: Span): Part | null {
    const [from, to] = [Math.max(span.from, this.from), Math.min(span.to, this.to)];
    return from < to ? [from, to] : null;
  }

  /** Shows the tip of the chosen buffer below its visible part. */
  private tell(span: Span): string[] {
    const lines = this.describe(span, null);
    const [from, to] = this.seen(span) ?? [span.from, span.to];
    this.show(lines, this.x((from + to) / 2));
    return lines;
  }

  /** Buffers and holes in the order of their addresses. */
  private figures(): Figures {
    const { spans = [], holes = [] } = this.layout ?? {};
    const all = [...spans, ...holes.map((hole) => ({ ...hole, buffer: null }))].sort((a, b) => a.from - b.from);
    return {
      heads: ["From", "To", "In each bank", "Size", "Type", "Name"],
      rows: all.map(({ from, to, buffer }) => [hex(from), hex(to), to - from, buffer?.size ?? null, buffer?.type ?? "hole", buffer?.name ?? null]),
    };
  }

  private fillTable(): void {
    if (!this.details.open || !this.layout) return;
    const { holes, bank, spans } = this.layout;
    this.buffers.set(spans);
    const rows = [...holes].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, TABLE_ROWS);
    const cut = rows.length < holes.length && h("p", { class: "muted pad" }, `The largest ${TABLE_ROWS} of ${count(holes.length)}.`);
    clear(
      this.holes,
      h("table", {},
        h("caption", { class: "hidden" }, "Free blocks, largest first"),
        h("thead", {}, h("tr", {}, ["From", "To", "In each bank", "In all banks"].map((text, i) =>
          h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
        h("tbody", {}, rows.map((hole) =>
          h("tr", {}, h("td", {}, h("code", {}, hex(hole.from))), h("td", {}, h("code", {}, hex(hole.to))),
            h("td", { class: "number" }, bytes(hole.to - hole.from)),
            h("td", { class: "number" }, bytes((hole.to - hole.from) * bank.banks)))))),
      cut,
    );
  }
}
