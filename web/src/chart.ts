// SPDX-License-Identifier: Apache-2.0
//
// Stacked areas over time, by uPlot: drag to zoom, double-click or Escape to see all, hover or arrow keys to read values,
// click or Enter to set the page's time cursor. Each chart has a table with the same numbers, for users who cannot see it.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { eventText, flagLines, nextFlag } from "./annotations";
import { indexAt, splits, stacked, total, type ChartData } from "./chart-data";
import { Overlay } from "./chart-overlay";
import { zoomBy } from "./chart-zoom";
import { colour, onTheme } from "./colours";
import { clear, h, say } from "./dom";
import { saveMenu } from "./download";
import type { Figures } from "./figures";
import { bytes, clock } from "./format";
import type { PastEvent } from "./model";

const TABLE_ROWS = 60;
const KEY_STEP = 0.05; // of the visible range, per key press
const CLICK_PX = 4; // a longer movement is a drag
const DOUBLE_MS = 250;

/** A time range, in seconds. */
export interface Range {
  min: number;
  max: number;
}

/** What all charts of a page share; moment.ts has it. */
export interface Shared {
  readonly at: number | null; // ns; the cursors
  readonly other: number | null;
  readonly zoom: Range | null;
  pick(ns: number, second: boolean): void;
  look(zoom: Range | null): void;
  onChange(listener: () => void): () => void;
}

/** How a chart of one thing differs from that of another. */
export interface Manner {
  height: number;
  shortest: number; // seconds that are shown at least, unless the user zooms in
  closest: number; // the closest zoom
  end: string; // what the last point is called
  steps?: number[]; // the times do not count from 1970, and these are round steps of them
  tick(time: number): string; // at the axis
  clock(time: number): string;
  /** The point whose values are shown without a cursor; the last one if there is none. */
  rest?(data: ChartData): { at: number; text: string };
  /** Draws on top of the areas. */
  draw?(plot: uPlot): void;
  shared?: Shared;
}

const LIVE: Manner = {
  height: 190, shortest: 60, closest: 2, end: "now", tick: short, clock: (time) => clock(time * 1e9),
};

export class Chart {
  private manner: Manner;
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private shape = "";
  private data: ChartData = { times: [], series: [] };
  private canvas = h("div", { class: "chart-canvas", role: "group", tabindex: 0 });
  private nothing = h("p", { class: "chart-nothing muted" });
  private legend = h("ul", { class: "legend" });
  private values: HTMLElement[] = [];
  private table = h("div", { class: "scroll" });
  private details: HTMLDetailsElement;
  private when = h("span", { class: "muted" });
  private reset = h("button", { type: "button", class: "small", hidden: true }, "Show all");
  private limit: number | null = null;
  private zoom: Range | null = null;
  private spoken = h("p", { class: "hidden", role: "status" });
  private at: number | null = null; // point whose values are shown, by keyboard
  private exactly: number | null = null; // its time, if that is between two points
  private events: readonly PastEvent[] = [];
  private overlay: Overlay;
  private picking = 0;
  private observer: ResizeObserver;
  private forget: (() => void)[];

  constructor(
    private label: string,
    private looked: (range: Range | null) => void = () => undefined,
    manner: Partial<Manner> = {},
  ) {
    this.manner = { ...LIVE, ...manner };
    this.canvas.style.minHeight = `${this.manner.height}px`;
    this.details = h("details", { class: "behind" }, h("summary", {}, "As a table"), this.table);
    this.details.addEventListener("toggle", () => this.fillTable());
    this.element = h(
      "div",
      { class: "chart" },
      this.canvas,
      h("div", { class: "chart-foot" }, this.legend, h("span", { class: "tools" }, this.when, this.reset, saveMenu(label, () => this.figures(), this.canvas))),
      this.spoken,
      this.details,
    );
    this.canvas.append(this.nothing);
    this.reset.addEventListener("click", () => {
      this.look(null);
      this.canvas.focus({ preventScroll: true }); // the button is gone
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.choose(null));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    this.zoom = this.manner.shared?.zoom ?? null;
    this.reset.hidden = this.zoom === null;
    this.overlay = new Overlay({
      timeAt: (x) => this.timeAt(x), drag: (time, second) => this.manner.shared?.pick(time * 1e9, second),
    });
    this.forget = [onTheme(() => this.rebuild()), this.manner.shared?.onChange(() => this.follow()) ?? (() => undefined)];
  }

  destroy(): void {
    for (const forget of this.forget) forget();
    clearTimeout(this.picking);
    this.observer.disconnect();
    this.plot?.destroy();
  }

  /** @limit: a line at the capacity; null: not known. */
  set(data: ChartData, limit: number | null = null): void {
    const shape = data.series.map((series) => series.label + series.variable).join("\n");
    const time = this.at === null ? null : (this.data.times[this.at] ?? null);
    this.data = data;
    // The selected point stays at its time, whatever its index is now.
    this.at = time === null || !data.times.length ? null : indexAt(data.times, time);
    this.limit = limit;
    this.describe();
    if (!this.plot || shape !== this.shape) {
      this.shape = shape;
      this.rebuild();
    } else this.plot.setData(this.columns(), true);
    if (this.at === null && this.plot?.cursor.idx == null) this.read(null);
    if (this.details.open) this.fillTable();
  }

  /** What happened, shown as flags. */
  annotate(events: readonly PastEvent[]): void {
    this.events = events;
    this.drawOver();
    this.fillTable();
  }

  private columns(): uPlot.AlignedData {
    return [this.data.times, ...stacked(this.data)] as uPlot.AlignedData;
  }

  private describe(): void {
    const last = this.data.times.length - 1;
    const now = this.data.series.map((series) => `${series.label} ${bytes(series.values[last] ?? 0)}`).join(", ");
    const most = this.data.times.reduce((max, _time, i) => Math.max(max, total(this.data, i)), 0);
    this.nothing.hidden = this.data.series.length > 0;
    say(this.nothing, last < 0 ? "Nothing was recorded in this time." : "Nothing was in use in this time.");
    this.canvas.setAttribute(
      "aria-label",
      last < 0
        ? `${this.label}: no data yet`
        : `${this.label}: ${this.manner.end} ${bytes(total(this.data, last))} (${now}), at most ${bytes(most)}. ` +
          `Arrow keys read values, plus and minus zoom, Escape shows all${this.manner.shared
            ? ", Page Up and Page Down go from event to event, Enter shows the whole page as it was then" : ""}. A table follows.`,
    );
  }

  /** The zoom of other data is meaningless. */
  showAll(): void {
    this.look(null);
  }

  private look(range: Range | null): void {
    if (this.manner.shared) this.manner.shared.look(range); // all charts follow, and this one
    else this.show(range);
  }

  /** The cursors or the zoom of the page have changed. */
  private follow(): void {
    const { zoom } = this.manner.shared!;
    if (zoom?.min !== this.zoom?.min || zoom?.max !== this.zoom?.max) this.show(zoom);
    this.drawOver();
    if (this.at === null && this.plot?.cursor.idx == null) this.read(null);
  }

  /** The time range that is shown; null: all of it. */
  private show(range: Range | null): void {
    this.zoom = range;
    this.reset.hidden = range === null;
    // The scale's own function does the rest.
    this.plot?.setData(this.columns(), true);
    this.fillTable();
    this.looked(range);
  }

  /** Overrides the library's range, which turns a single point into a day. */
  private span(): [number, number] {
    if (this.zoom) return [this.zoom.min, this.zoom.max];
    const { times } = this.data;
    const end = times[times.length - 1] ?? Date.now() / 1000;
    return [Math.min(times[0] ?? end, end - this.manner.shortest), end];
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    this.makeLegend();
    const width = this.canvas.clientWidth;
    if (width < 10 || this.data.series.length === 0) return; // not shown yet: resize() or set() will be called
    this.plot = new uPlot(this.options(width), this.columns(), this.canvas);
    this.listen(this.plot.over);
    this.drawOver();
  }

  private listen(over: HTMLElement): void {
    const { shared } = this.manner;
    over.append(this.overlay.element);
    over.addEventListener("dblclick", () => {
      clearTimeout(this.picking);
      this.look(null);
    });
    if (!shared) return;
    let pressed = 0;
    over.addEventListener("mousedown", (event) => (pressed = event.clientX));
    over.addEventListener("click", (event) => {
      clearTimeout(this.picking);
      if (Math.abs(event.clientX - pressed) >= CLICK_PX) return;
      const flag = this.overlay.near(event.clientX - over.getBoundingClientRect().left, over.clientWidth);
      const time = flag?.timeS ?? this.timeAt(event.clientX);
      // It may be the first half of a double click.
      this.picking = window.setTimeout(() => shared.pick(time * 1e9, event.shiftKey), DOUBLE_MS);
    });
    zoomBy(over, { spans: () => this.spans(), timeAt: (x) => this.timeAt(x), zoomTo: (span) => this.look(span) });
  }

  private spans(): { shown: Range; all: Range; closest: number } | null {
    const { min, max } = this.plot?.scales.x ?? {};
    const { times } = this.data;
    if (min == null || max == null || !times.length) return null;
    const end = times[times.length - 1]!;
    return { shown: { min, max }, all: { min: Math.min(times[0]!, end - this.manner.shortest), max: end }, closest: this.manner.closest };
  }

  /** @x: in pixels of the page. */
  private timeAt(x: number): number {
    const { min = 0, max = 0 } = this.plot?.scales.x ?? {};
    const box = this.plot!.over.getBoundingClientRect();
    return min! + (Math.max(0, Math.min(box.width, x - box.left)) / Math.max(1, box.width)) * (max! - min!);
  }

  private drawOver(): void {
    const { min, max } = this.plot?.scales.x ?? {};
    if (!this.plot || min == null || max == null) return;
    const { at = null, other = null } = this.manner.shared ?? {};
    this.overlay.draw({ min, max }, this.plot.over.clientWidth, [at === null ? null : at / 1e9, other === null ? null : other / 1e9], this.events);
  }

  private options(width: number): uPlot.Options {
    const axis = { stroke: colour("muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
    const line = { stroke: colour("line"), width: 1 };
    return {
      width,
      height: this.manner.height,
      padding: [8, 26, 0, 0],
      legend: { show: false },
      // setSelect handles the dragged range, so that the zoom survives new data.
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => null },
        // Charts beside each other show the same time; they zoom together by other means.
        ...(this.manner.shared && { sync: { key: "time", setSeries: false, filters: { pub: (type: string) => type === "mousemove" } } }) },
      scales: {
        x: { time: !this.manner.steps, range: () => this.span() },
        y: { range: (_plot, _low, high) => [0, this.top(high)] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 70, size: 28, gap: 9, values: (_plot, at) => at.map((time) => this.manner.tick(time)),
          ...(this.manner.steps && { incrs: this.manner.steps }) },
        {
          ...axis, grid: line, size: 64, space: 36,
          splits: (_plot, _axis, _low, high) => splits(high, this.limit),
          values: (_plot, at) => at.map((value) => bytes(value).replace(/\.0+ /, " ")),
        },
      ],
      series: [
        {},
        ...[...this.data.series].reverse().map((one) => ({
          label: one.label,
          stroke: colour(one.variable),
          fill: pale(colour(one.variable)),
          width: 1,
          points: { show: false },
          paths: uPlot.paths.stepped!({ align: 1 }),
        })),
      ],
      hooks: {
        setCursor: [(plot) => this.point(plot)],
        setSelect: [(plot) => this.selected(plot)],
        draw: [(plot) => this.manner.draw?.(plot)],
        setScale: [
          (plot, key) => {
            // The time range that is shown, in seconds.
            if (key !== "x") return;
            this.canvas.dataset.from = String(plot.scales.x?.min ?? "");
            this.canvas.dataset.to = String(plot.scales.x?.max ?? "");
            this.drawOver();
          },
        ],
      },
    };
  }

  private point(plot: uPlot): void {
    this.read(plot.cursor.idx ?? null);
    const { left = -1 } = plot.cursor;
    // Of several charts only the one below the pointer says it.
    this.overlay.tell(left < 0 || !plot.over.matches(":hover") ? null : this.overlay.near(left, plot.over.clientWidth));
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [min, max] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.look(this.closest(min, max));
  }

  private closest(min: number, max: number): Range {
    const middle = (min + max) / 2;
    const half = Math.max(max - min, this.manner.closest) / 2;
    return { min: middle - half, max: middle + half };
  }

  /** Scales to the capacity if the data comes near it, otherwise to the data. */
  private top(high: number | null): number {
    const most = Math.max(high ?? 0, 1024);
    return this.limit && most > this.limit * 0.4 ? Math.max(this.limit, most) : most * 1.12;
  }

  private resize(): void {
    if (!this.plot) this.rebuild();
    else if (this.plot.width !== this.canvas.clientWidth)
      this.plot.setSize({ width: this.canvas.clientWidth, height: this.manner.height });
  }

  private key(event: KeyboardEvent): void {
    const plot = this.plot;
    const { min, max } = plot?.scales.x ?? {};
    if (!plot || min == null || max == null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = /^(ArrowRight|PageDown)$/.test(event.key) ? 1 : /^(ArrowLeft|PageUp)$/.test(event.key) ? -1 : 0;
    if (step && event.key.startsWith("Page")) this.leap(step, event.shiftKey);
    else if (step) this.go(this.next(step, min, max), event.shiftKey);
    else if (event.key === "Enter" && this.manner.shared) this.pick(event.shiftKey);
    else if (event.key === "Escape") {
      this.choose(null);
      this.look(null);
    } else if (event.key === "+" || event.key === "-") {
      const middle = this.at === null ? max : this.data.times[this.at]!;
      const scale = event.key === "+" ? 0.5 : 2;
      const all = [this.data.times[0]!, this.data.times[this.data.times.length - 1]!] as const;
      const [from, to] = [Math.max(all[0], middle - (middle - min) * scale), Math.min(all[1], middle + (max - middle) * scale)];
      this.look(from <= all[0] && to >= all[1] ? null : this.closest(from, to));
    } else return;
    event.preventDefault();
  }

  /** Reads a point; the page's cursor goes along once it is set. */
  private go(at: number, second: boolean, exactly: number | null = null): void {
    this.exactly = exactly;
    this.choose(at);
    const { at: first = null, other = null } = this.manner.shared ?? {};
    if ((second ? other : first) !== null) this.pick(second);
  }

  private pick(second: boolean): void {
    const time = this.exactly ?? this.data.times[this.at ?? this.data.times.length - 1];
    if (time !== undefined) this.manner.shared?.pick(time * 1e9, second);
  }

  /** From event to event. */
  private leap(step: number, second: boolean): void {
    const { times } = this.data;
    const from = this.exactly ?? times[this.at ?? this.resting()?.at ?? times.length - 1] ?? 0;
    const flag = nextFlag(this.overlay.flags, from, step);
    if (!flag) return say(this.spoken, "No further event is shown.");
    this.go(indexAt(times, flag.timeS), second, flag.timeS);
    this.overlay.tell(flag);
    say(this.spoken, flagLines(flag).join(", "));
  }

  /** A step of some pixels, at least to the next point. */
  private next(step: number, min: number, max: number): number {
    const { times } = this.data;
    const last = times.length - 1;
    const start = this.at ?? this.cursorAt();
    if (start === null) return last;
    const wanted = times[start]! + step * (max - min) * KEY_STEP;
    let at = start + step;
    while (at + step >= 0 && at + step <= last && (wanted - times[at + step]!) * step >= 0) at += step;
    return Math.max(0, Math.min(last, at));
  }

  private choose(at: number | null): void {
    this.at = at;
    if (at === null) this.exactly = null;
    if (!this.plot) return;
    if (at === null) return this.plot.setCursor({ left: -10, top: -10 });
    this.plot.setCursor({ left: this.plot.valToPos(this.exactly ?? this.data.times[at]!, "x"), top: 0 });
    this.read(at);
    say(this.spoken, `${this.manner.clock(this.data.times[at]!)}: ` +
      this.data.series.map((series) => `${series.label} ${bytes(series.values[at] ?? 0)}`).join(", "));
  }

  private makeLegend(): void {
    this.values = this.data.series.map(() => h("b", {}));
    clear(
      this.legend,
      this.data.series.map((series, i) =>
        h("li", { "--dot": `var(--${series.variable})` }, h("span", {}, series.label), this.values[i]),
      ),
    );
  }

  /** The point at the page's cursor. */
  private cursorAt(): number | null {
    const time = (this.manner.shared?.at ?? NaN) / 1e9;
    const { times } = this.data;
    return times.length > 0 && time >= times[0]! ? indexAt(times, time) : null;
  }

  private resting(): { at: number; text: string } | undefined {
    const at = this.cursorAt();
    if (at !== null) return { at, text: this.manner.clock(this.manner.shared!.at! / 1e9) };
    return this.data.times.length > 0 ? this.manner.rest?.(this.data) : undefined;
  }

  /** The values under the cursor, or else of the point of rest. */
  private read(index: number | null): void {
    const rest = index === null ? this.resting() : undefined;
    const at = index ?? rest?.at ?? this.data.times.length - 1;
    this.data.series.forEach((series, i) => {
      const value = this.values[i];
      if (value) say(value, bytes(series.values[at] ?? 0));
    });
    say(this.when, index === null ? (rest?.text ?? "") : this.manner.clock(this.data.times[at] ?? 0));
  }

  /** All points that are loaded, in bytes. */
  private figures(): Figures {
    const { times, series } = this.data;
    return {
      heads: ["Time", ...series.map((one) => one.label)],
      rows: times.map((time, i) => [this.manner.steps ? time : new Date(time * 1000).toISOString(), ...series.map((one) => one.values[i] ?? null)]),
    };
  }

  private fillTable(): void {
    if (!this.details.open) return;
    const { times, series } = this.data;
    const [from, to] = this.span();
    const first = times.filter((time) => time < from).length;
    const end = times.filter((time) => time <= to).length;
    const step = Math.max(1, Math.ceil((end - first) / TABLE_ROWS));
    const rows = [];
    for (let i = end - 1; i >= first; i -= step)
      rows.push(h("tr", {}, h("th", { scope: "row" }, this.manner.clock(times[i]!)),
        series.map((one) => h("td", { class: "number" }, bytes(one.values[i] ?? 0))),
        h("td", { class: "number" }, bytes(total(this.data, i)))));
    clear(this.table, h("table", {},
      h("caption", { class: "hidden" }, this.label),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"),
        series.map((one) => h("th", { scope: "col", class: "number" }, one.label)),
        h("th", { scope: "col", class: "number" }, "Together"))),
      h("tbody", {}, rows)), this.eventList(from, to));
  }

  private eventList(from: number, to: number): HTMLElement | false {
    const list = this.events.filter(({ time_ns }) => time_ns >= from * 1e9 && time_ns <= to * 1e9).slice(-TABLE_ROWS).reverse();
    return list.length > 0 && h("ul", { class: "event-list", "aria-label": "What happened" },
      list.map((event) => h("li", {}, `${this.manner.clock(event.time_ns / 1e9)} ${eventText(event)}`)));
  }
}

const two = (value: number): string => String(value).padStart(2, "0");
function short(time: number): string {
  const date = new Date(time * 1000);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() ? `${text}:${two(date.getSeconds())}` : text;
}

/** Lighter than the line, but opaque, because areas overlap. */
function pale(rgb: string): string {
  const own = rgb.match(/[\d.]+/g)?.map(Number) ?? [];
  const under = colour("surface").match(/[\d.]+/g)?.map(Number) ?? [];
  return `rgb(${[0, 1, 2].map((i) => Math.round(0.62 * (own[i] ?? 0) + 0.38 * (under[i] ?? 0))).join(", ")})`;
}
