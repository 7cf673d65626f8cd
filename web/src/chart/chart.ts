// SPDX-License-Identifier: Apache-2.0
//
// Stacked areas over time, by uPlot: drag to zoom, double-click or Escape to see all, hover or arrow keys to read values,
// click or Enter to set the page's time cursor. Each chart has a table with the same numbers, for users who cannot see it.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clear, h, say } from "../base/dom";
import { bytes } from "../base/format";
import type { PastEvent } from "../data/model";
import { onTheme } from "../parts/colours";
import { saveMenu } from "../parts/download";
import { flagLines, nextFlag } from "../time/annotations";
import type { Span } from "../time/moment";
import { indexAt, readings, stacked, total, type ChartData } from "./chart-data";
import { nextPoint, widened, zoomedAround } from "./chart-keys";
import { LIVE, type Manner } from "./chart-manner";
import { Overlay } from "./chart-overlay";
import { plotOptions, plotSvg } from "./chart-plot";
import { chartFigures, chartTable, eventList } from "./chart-table";
import { zoomBy } from "./chart-zoom";

const CLICK_PX = 4; // a longer movement is a drag
const DOUBLE_MS = 250;
const AT_CURSOR_PX = 2; // so near, the page's cursor is read

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
  private zoom: Span | null = null;
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
    private looked: (range: Span | null) => void = () => undefined,
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
      h("div", { class: "chart-foot" }, this.legend, h("span", { class: "tools" }, this.when, this.reset, saveMenu(label, () => chartFigures(this.data, !this.manner.steps || !!this.manner.shared),
        { element: this.canvas, svg: () => this.plot && plotSvg(this.plot, this.data, this.overlay.poles()) }))),
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
    this.tell();
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

  private look(range: Span | null): void {
    if (this.manner.shared) this.manner.shared.look(range); // all charts follow, and this one
    else this.show(range);
  }

  /** The cursors or the zoom of the page have changed. */
  private follow(): void {
    const { zoom } = this.manner.shared!;
    if (zoom?.min !== this.zoom?.min || zoom?.max !== this.zoom?.max) this.show(zoom);
    this.drawOver();
    this.tell();
  }

  /** The time range that is shown; null: all of it. */
  private show(range: Span | null): void {
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

  private spans(): { shown: Span; all: Span; closest: number } | null {
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
    return plotOptions(width, this.manner, this.data.series, {
      span: () => this.span(), limit: () => this.limit, point: (plot) => this.point(plot), selected: (plot) => this.selected(plot),
      scaled: (plot) => {
        // The time range that is shown, in seconds.
        this.canvas.dataset.from = String(plot.scales.x?.min ?? "");
        this.canvas.dataset.to = String(plot.scales.x?.max ?? "");
        this.drawOver();
      },
    });
  }

  private point(plot: uPlot): void {
    this.tell();
    const { left = -1 } = plot.cursor;
    // Of several charts only the one below the pointer says it.
    this.overlay.tell(left < 0 || !plot.over.matches(":hover") ? null : this.overlay.near(left, plot.over.clientWidth));
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [min, max] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.look(widened({ min, max }, this.manner.closest));
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
    else if (step) this.go(nextPoint(this.data.times, this.at ?? this.cursorAt(), step, max - min), event.shiftKey);
    else if (event.key === "Enter" && this.manner.shared) this.pick(event.shiftKey);
    else if (event.key === "Escape") {
      this.choose(null);
      this.look(null);
    } else if (event.key === "+" || event.key === "-") {
      const { times } = this.data;
      const middle = this.at === null ? max : times[this.at]!;
      const all = { min: times[0]!, max: times[times.length - 1]! };
      this.look(zoomedAround({ min, max }, middle, event.key === "+" ? 0.5 : 2, all, this.manner.closest));
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

  private choose(at: number | null): void {
    this.at = at;
    if (at === null) this.exactly = null;
    if (!this.plot) return;
    if (at === null) return this.plot.setCursor({ left: -10, top: -10 });
    this.plot.setCursor({ left: this.plot.valToPos(this.exactly ?? this.data.times[at]!, "x"), top: 0 });
    this.tell();
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

  /** Whether the pointer, or the point chosen by keys, is on the page's cursor. */
  private onCursor(): boolean {
    const { at } = this.manner.shared ?? {};
    return at != null && Math.abs((this.plot?.cursor.left ?? NaN) - (this.plot?.valToPos(at / 1e9, "x") ?? NaN)) <= AT_CURSOR_PX;
  }

  /**
   * The values under the pointer, or else of the point of rest. At the page's cursor, and without one now, they are those
   * that the rest of the page shows: the history has only steps.
   */
  tell(): void {
    const pointed = this.at ?? this.plot?.cursor.idx ?? null;
    const index = this.onCursor() ? null : pointed;
    const rest = index === null ? this.resting() : undefined;
    const last = this.data.times.length - 1;
    const texts = readings(this.data, index === null && this.manner.shared?.known ? null : (index ?? rest?.at ?? last));
    const when = index === null ? (rest?.text ?? "") : this.manner.clock(this.data.times[index] ?? 0);
    texts.forEach((text, i) => this.values[i] && say(this.values[i], text));
    say(this.when, when);
    // An event has its own words.
    if (this.at !== null && this.exactly === null)
      say(this.spoken, `${when}: ${this.data.series.map((series, i) => `${series.label} ${texts[i]}`).join(", ")}`);
  }

  private fillTable(): void {
    if (this.details.open) clear(this.table, chartTable(this.label, this.data, this.span(), this.manner.clock),
      eventList(this.events, this.span(), this.manner.clock));
  }
}
