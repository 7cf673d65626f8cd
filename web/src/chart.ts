// SPDX-License-Identifier: Apache-2.0
//
// Stacked areas over time, by uPlot: drag to zoom, double-click to see all, hover to read values. Behind each
// chart is a table with the same numbers, for who cannot see it.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colour, onTheme } from "./colours";
import { clear, h, say } from "./dom";
import { bytes, clock } from "./format";

export interface Series {
  label: string;
  variable: string; // of its colour
  values: (number | null)[]; // one for each time; not stacked
}

export interface ChartData {
  times: number[]; // seconds since 1970
  series: Series[];
}

const TABLE_ROWS = 60;
const SHORTEST_S = 60; // shown at least, unless somebody looks closer

function stack(data: ChartData): (number | null)[][] {
  const sums = new Array<number>(data.times.length).fill(0);
  const none = data.times.map((_time, i) => data.series.every((series) => (series.values[i] ?? null) === null));
  // The first series lies at the bottom; the highest sum is drawn first, so that all can be seen.
  return data.series
    .map((series) => series.values.map((value, i) => (none[i] ? null : (sums[i] = sums[i]! + (value ?? 0)))))
    .reverse();
}

export class Chart {
  readonly element: HTMLElement;
  private plot: uPlot | null = null;
  private shape = "";
  private data: ChartData = { times: [], series: [] };
  private canvas = h("div", { class: "chart-canvas", role: "img" });
  private legend = h("ul", { class: "legend" });
  private values: HTMLElement[] = [];
  private table = h("div", { class: "scroll" });
  private details: HTMLDetailsElement;
  private when = h("span", { class: "muted" });
  private limit: number | null = null;
  private zoomed = false;
  private observer: ResizeObserver;
  private forget: () => void;

  constructor(
    private label: string,
    private height = 190,
  ) {
    this.details = h("details", { class: "behind" }, h("summary", {}, "As a table"), this.table);
    this.details.addEventListener("toggle", () => this.fillTable());
    this.element = h(
      "div",
      { class: "chart" },
      this.canvas,
      h("div", { class: "chart-foot" }, this.legend, this.when),
      this.details,
    );
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
    this.forget = onTheme(() => this.rebuild());
  }

  destroy(): void {
    this.forget();
    this.observer.disconnect();
    this.plot?.destroy();
  }

  /** @limit: a line at the top of what there is; null: not known. */
  set(data: ChartData, limit: number | null = null): void {
    const shape = data.series.map((series) => series.label + series.variable).join("\n");
    this.data = data;
    this.limit = limit;
    this.describe();
    if (!this.plot || shape !== this.shape) {
      this.shape = shape;
      this.rebuild();
    } else {
      const { min, max } = this.plot.scales.x ?? {};
      this.plot.setData(this.columns(), !this.zoomed);
      if (this.zoomed && min !== undefined && max !== undefined) this.plot.setScale("x", { min: min!, max: max! });
    }
    this.read(null);
    if (this.details.open) this.fillTable();
  }

  private columns(): uPlot.AlignedData {
    return [this.data.times, ...stack(this.data)] as uPlot.AlignedData;
  }

  private total(i: number): number {
    return this.data.series.reduce((sum, series) => sum + (series.values[i] ?? 0), 0);
  }

  private describe(): void {
    const last = this.data.times.length - 1;
    const now = this.data.series.map((series) => `${series.label} ${bytes(series.values[last] ?? 0)}`).join(", ");
    const most = this.data.times.reduce((max, _time, i) => Math.max(max, this.total(i)), 0);
    this.canvas.setAttribute(
      "aria-label",
      last < 0
        ? `${this.label}: no data yet`
        : `${this.label}: now ${bytes(this.total(last))} (${now}), at most ${bytes(most)}. A table follows.`,
    );
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    this.zoomed = false;
    this.makeLegend();
    const width = this.canvas.clientWidth;
    if (width < 10) return; // not shown yet: resize() comes
    const series = [...this.data.series].reverse();
    const axis = { stroke: colour("muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
    const line = { stroke: colour("line"), width: 1 };
    this.plot = new uPlot(
      {
        width,
        height: this.height,
        padding: [8, 26, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
        scales: {
          x: { range: (_plot, low, high) => [Math.min(low ?? 0, (high ?? 0) - (this.zoomed ? 0 : SHORTEST_S)), high ?? 1] },
          y: { range: (_plot, _low, high) => [0, this.top(high)] },
        },
        axes: [
          { ...axis, grid: { show: false }, space: 70, size: 24, values: (_plot, at) => at.map((time) => short(time)) },
          {
            ...axis, grid: line, size: 64, space: 36,
            splits: (_plot, _axis, _low, high) => splits(high, this.limit),
            values: (_plot, at) => at.map((value) => bytes(value).replace(/\.0+ /, " ")),
          },
        ],
        series: [
          {},
          ...series.map((one) => ({
            label: one.label,
            stroke: colour(one.variable),
            fill: pale(colour(one.variable)),
            width: 1,
            points: { show: false },
            paths: uPlot.paths.stepped!({ align: 1 }),
          })),
        ],
        hooks: {
          setCursor: [(plot) => this.read(plot.cursor.idx ?? null)],
          setScale: [
            (plot, key) => {
              const times = this.data.times;
              if (key !== "x" || times.length < 2) return;
              const { min, max } = plot.scales.x!;
              this.zoomed = min! > times[0]! + 1e-3 || max! < times[times.length - 1]! - 1e-3;
            },
          ],
          setSelect: [() => (this.zoomed = true)],
        },
      },
      this.columns(),
      this.canvas,
    );
  }

  /** Near the capacity the capacity is the scale; far below, what is there. */
  private top(high: number | null): number {
    const most = Math.max(high ?? 0, 1024);
    return this.limit && most > this.limit * 0.4 ? Math.max(this.limit, most) : most * 1.12;
  }

  private resize(): void {
    if (!this.plot) this.rebuild();
    else this.plot.setSize({ width: this.canvas.clientWidth, height: this.height });
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

  /** The values under the cursor, or the newest. */
  private read(index: number | null): void {
    const at = index ?? this.data.times.length - 1;
    this.data.series.forEach((series, i) => {
      const value = this.values[i];
      if (value) say(value, bytes(series.values[at] ?? 0));
    });
    say(this.when, index === null ? "" : clock((this.data.times[at] ?? 0) * 1e9));
  }

  private fillTable(): void {
    if (!this.details.open) return;
    const step = Math.max(1, Math.ceil(this.data.times.length / TABLE_ROWS));
    const rows = [];
    for (let i = this.data.times.length - 1; i >= 0; i -= step)
      rows.push(
        h(
          "tr",
          {},
          h("th", { scope: "row" }, clock(this.data.times[i]! * 1e9)),
          this.data.series.map((series) => h("td", { class: "number" }, bytes(series.values[i] ?? 0))),
          h("td", { class: "number" }, bytes(this.total(i))),
        ),
      );
    clear(
      this.table,
      h(
        "table",
        {},
        h("caption", { class: "hidden" }, this.label),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Time"),
            this.data.series.map((series) => h("th", { scope: "col", class: "number" }, series.label)),
            h("th", { scope: "col", class: "number" }, "Together"),
          ),
        ),
        h("tbody", {}, rows),
      ),
    );
  }
}

const two = (value: number): string => String(value).padStart(2, "0");
function short(time: number): string {
  const date = new Date(time * 1000);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() ? `${text}:${two(date.getSeconds())}` : text;
}

/** Three or four round figures, in powers of two. */
function splits(high: number, limit: number | null): number[] {
  let step = 2 ** Math.floor(Math.log2(Math.max(high, 1) / 3));
  while (high / step > 4.5) step *= 2;
  const list = [];
  for (let at = 0; at <= high; at += step) list.push(at);
  if (limit && high <= limit) {
    // The top is all there is: that is worth a figure of its own.
    while (list.length > 1 && limit - list[list.length - 1]! < step * 0.7) list.pop();
    list.push(limit);
  }
  return list;
}

/** Lighter than the line, and not transparent: areas lie over each other. */
function pale(rgb: string): string {
  const own = rgb.match(/[\d.]+/g)?.map(Number) ?? [];
  const under = colour("surface").match(/[\d.]+/g)?.map(Number) ?? [];
  return `rgb(${[0, 1, 2].map((i) => Math.round(0.62 * (own[i] ?? 0) + 0.38 * (under[i] ?? 0))).join(", ")})`;
}

/** A line of a few points without axes. */
export function sparkline(times: readonly number[], values: readonly number[], now: number, span: number): string {
  const width = 100;
  const height = 24;
  const first = now - span;
  const most = Math.max(1, ...values);
  let path = "";
  let last = 0;
  times.forEach((time, i) => {
    if (time < first && (times[i + 1] ?? now) < first) return;
    const x = Math.max(0, ((time - first) / span) * width);
    const y = height - 1 - ((values[i] ?? 0) / most) * (height - 3);
    path += path ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`;
    last = y;
  });
  return path ? `${path}H${width}V${last.toFixed(1)}` : "";
}
