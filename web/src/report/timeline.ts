// SPDX-License-Identifier: Apache-2.0
//
// Bytes in use over the whole recording. Below the chart, on the same scale: phases, marks and incidents. Where events
// are missing the chart is hatched.

import type uPlot from "uplot";
import { choice, clear, h, hint } from "../base/dom";
import { bytes, count, plural } from "../base/format";
import { Chart } from "../chart/chart";
import { total, type ChartData, STEPS } from "../chart/chart-data";
import { KINDS, POOL_NAMES, POOLS, TYPES, type Incident, type MemoryType, type Pool } from "../data/model";
import { colour, typeVariable } from "../parts/colours";
import { panel, TYPE_TITLES } from "../parts/view";
import type { Gap, Report } from "./document";
import { moment, phaseBars, type Bar, type Block } from "./spans";

const ROW_PX = 18;
const ROWS_MAX = 24;
const NARROW_PX = 1; // bars of phases are at least so wide
const LABEL_PX = 28; // narrower bars have no label
const HATCH_PX = 7;

type Shown = "all" | Pool;

/**
 * The values of a type for a stacked chart: where one of those drawn is not known, their sum is not, so none is drawn. A
 * step's value holds until its end.
 */
export function known(timeline: Report["timeline"], drawn: readonly MemoryType[], type: MemoryType, key: "bytes" | "high"): (number | null)[] {
  const values = timeline.types[type]![key].map((value, i) => drawn.some((one) => timeline.types[one]?.[key][i] === null) ? null : value);
  return [...values, ...values.slice(-1)];
}

export class Timeline {
  readonly element: HTMLElement;
  private chart: Chart;
  private phases = h("div", { class: "lane phases", role: "list", "aria-label": "Phases" });
  private marks = h("div", { class: "lane marks", role: "list", "aria-label": "Marks" });
  private trouble = h("div", { class: "lane incidents", role: "group", "aria-label": "Incidents" });
  private bars: Bar[];
  private blocks: Block[];
  private names = h("div", { class: "lane-names", "aria-hidden": "true" });
  private cut: number; // rows that are not shown
  private shown: Shown = "all";
  private placed = ""; // what the lanes show

  constructor(private report: Report, private incidents: readonly Incident[], private open: (incident: Incident) => void) {
    const length = Math.max(1, report.end_ns - report.start_ns);
    const { bars, blocks, rows: all } = phaseBars(report.phases, length / 400, ROWS_MAX);
    const rows = Math.min(all, ROWS_MAX);
    this.bars = bars;
    this.blocks = blocks;
    this.cut = all - rows;
    this.chart = new Chart("Memory over time", () => undefined, {
      height: 240, shortest: 0, closest: length / 1e9 / 1e4, end: "at the end", steps: STEPS, tick: moment, clock: moment,
      draw: (plot) => this.draw(plot), rest: (data) => this.rest(data),
    });
    this.phases.style.height = `${rows * ROW_PX}px`;
    this.phases.hidden = rows === 0;
    this.marks.hidden = report.marks.length === 0 && !report.peak;
    this.trouble.hidden = incidents.length === 0;
    const used = POOL_NAMES.filter((pool) => POOLS[pool].types.some((type) => report.timeline.types[type]));
    const tools = used.length > 1 && choice<Shown>("Memory", [
      { value: "all", text: "All" }, ...used.map((value) => ({ value, text: POOLS[value].title })),
    ], "all", (value) => {
      this.shown = value;
      this.chart.set(this.data());
    });
    const lanes = h("div", { class: "lanes" }, this.names, this.phases,
      this.cut > 0 && h("p", { class: "muted" }, `${plural(this.cut, "more row")} of phases`), this.marks, this.trouble);
    this.element = panel("Memory over time", tools, this.chart.element, this.gapNote());
    // The lanes belong between the plot and its legend.
    this.chart.element.firstElementChild!.after(lanes);
    this.chart.set(this.data());
  }

  private seconds(ns: number): number {
    return (ns - this.report.start_ns) / 1e9;
  }

  private data(): ChartData {
    const { times_ns, types } = this.report.timeline;
    const wanted: readonly MemoryType[] = this.shown === "all" ? TYPES : POOLS[this.shown].types;
    // A step is drawn from its beginning, and its value holds until its end.
    const ends = times_ns.map((ns) => this.seconds(ns));
    return {
      times: ends.length ? [0, ...ends] : [],
      series: wanted.filter((type) => types[type]).map((type) => ({
        label: TYPE_TITLES[type], variable: typeVariable(type), values: known(this.report.timeline, wanted, type, this.shown === "all" ? "bytes" : "high"),
      })),
    };
  }

  /** Without a cursor, the values of the highest point are shown. */
  private rest(data: ChartData): { at: number; text: string } {
    const sums = data.times.map((_time, i) => total(data, i));
    const at = sums.indexOf(Math.max(...sums));
    return { at, text: `at the highest point, ${moment(data.times[at] ?? 0)}` };
  }

  private draw(plot: uPlot): void {
    const { left, top, width, height } = plot.bbox;
    const pen = plot.ctx;
    const x = (ns: number): number => plot.valToPos(this.seconds(ns), "x", true);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    for (const gap of this.report.gaps) this.hatch(pen, x(gap.from_ns), x(gap.to_ns), top, height);
    this.line(pen, this.report.marks.map((mark) => x(mark.time_ns)), top, height, colour("muted"));
    this.line(pen, this.incidents.map((one) => x(one.time_ns)), top, height, colour("bad"));
    if (this.report.peak) this.line(pen, [x(this.report.peak.time_ns)], top, height, colour("accent"));
    pen.restore();
    const from = plot.scales.x?.min ?? 0;
    const to = plot.scales.x?.max ?? 1;
    this.place(plot.over.offsetLeft, plot.over.offsetWidth, from, to);
  }

  private line(pen: CanvasRenderingContext2D, at: readonly number[], top: number, height: number, stroke: string): void {
    pen.strokeStyle = stroke;
    pen.lineWidth = devicePixelRatio;
    pen.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    pen.beginPath();
    for (const x of at) {
      pen.moveTo(Math.round(x) + 0.5, top);
      pen.lineTo(Math.round(x) + 0.5, top + height);
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  private hatch(pen: CanvasRenderingContext2D, from: number, to: number, top: number, height: number): void {
    const width = Math.max(to - from, 3 * devicePixelRatio);
    pen.save();
    pen.beginPath();
    pen.rect(from, top, width, height);
    pen.clip();
    pen.fillStyle = colour("shade");
    pen.fillRect(from, top, width, height);
    pen.strokeStyle = colour("warn");
    pen.lineWidth = devicePixelRatio;
    pen.beginPath();
    for (let x = from - height; x < from + width; x += HATCH_PX * devicePixelRatio) {
      pen.moveTo(x, top + height);
      pen.lineTo(x + height, top);
    }
    pen.stroke();
    pen.restore();
  }

  /** Puts the lanes below the plot, on its scale. */
  private place(left: number, width: number, from: number, to: number): void {
    const key = [left, width, from, to].join(" ");
    if (key === this.placed || width < 10) return;
    this.placed = key;
    const x = (ns: number): number => ((this.seconds(ns) - from) / (to - from)) * width;
    for (const lane of [this.phases, this.marks, this.trouble]) {
      lane.style.marginLeft = `${left}px`;
      lane.style.width = `${width}px`;
    }
    this.names.style.width = `${left}px`;
    clear(this.names, this.blocks.map((block) => {
      const name = h("span", {}, block.comm);
      hint(name, `${block.comm} (${block.pid})`);
      name.style.top = `${block.row * ROW_PX}px`;
      return name;
    }));
    clear(this.phases, this.bars.flatMap((bar) => this.bar(bar, x(bar.from), x(bar.to), width)));
    const { peak, marks } = this.report;
    clear(this.marks,
      marks.flatMap(({ time_ns, name, pid, comm }) => this.mark(name, `Mark "${name}" of ${comm} (${pid})`, time_ns, x(time_ns), width)),
      peak && this.mark("peak", `The peak: ${bytes(peak.bytes)}`, peak.time_ns, x(peak.time_ns), width).map((flag) => {
        flag.classList.add("peak");
        return flag;
      }));
    clear(this.trouble, this.incidents.flatMap((incident) => this.flag(incident, x(incident.time_ns), width)));
  }

  private mark(name: string, told: string, ns: number, at: number, width: number): HTMLElement[] {
    if (at < 0 || at > width) return [];
    const flag = h("span", { class: "flag", role: "listitem", tabindex: 0 }, name);
    hint(flag, `${told}, at ${moment(this.seconds(ns))}`);
    flag.style.left = `${at}px`;
    // Near the right end the name stands on the other side of its line.
    if (at > 0.8 * width) {
      flag.classList.add("left");
      flag.style.left = "auto";
      flag.style.right = `${width - at}px`;
    }
    return [flag];
  }

  private bar(bar: Bar, from: number, to: number, width: number): HTMLElement[] {
    const left = Math.max(0, from);
    const right = Math.min(width, Math.max(to, from + NARROW_PX));
    if (right <= left) return [];
    const element = h("span", { class: `phase-bar hue-${hue(bar.label)}`, role: "listitem" }, right - left >= LABEL_PX ? bar.label : "");
    hint(element, `${bar.path}, process ${bar.pid}: ${moment(this.seconds(bar.from))} to ${moment(this.seconds(bar.to))}`);
    element.style.left = `${left}px`;
    element.style.width = `${right - left}px`;
    element.style.top = `${bar.row * ROW_PX}px`;
    return [element];
  }

  private flag(incident: Incident, at: number, width: number): HTMLElement[] {
    if (at < 0 || at > width) return [];
    const kind = KINDS[incident.kind] ?? incident.kind;
    const button = h("button", { type: "button", class: "trouble", "aria-label":
      `${kind} of ${bytes(incident.size)} at ${moment(this.seconds(incident.time_ns))}. Show.` });
    hint(button, `${kind}, ${bytes(incident.size)}, at ${moment(this.seconds(incident.time_ns))}`);
    button.style.left = `${at}px`;
    button.addEventListener("click", () => this.open(incident));
    return [button];
  }

  private gapNote(): HTMLElement | false {
    const { gaps } = this.report;
    if (gaps.length === 0) return false;
    const sum = (of: (gap: Gap) => number): number => gaps.reduce((all, gap) => all + of(gap), 0);
    const peak = gaps.some((gap) => gap.peak);
    return h("p", { class: "muted pad" }, h("span", { class: "hatched", "aria-hidden": "true" }),
      `${plural(gaps.length, "gap")}: ${plural(sum((gap) => gap.events), "event")} (${count(sum((gap) => gap.allocs))} allocations, ` +
      `${count(sum((gap) => gap.frees))} frees) are counted, but not shown one by one. ` +
      (peak ? "A new peak of a process is in one of them." : "No new peak is in them."));
  }
}

/** One of six tones for a label. */
function hue(label: string): number {
  let value = 0;
  for (let i = 0; i < label.length; i++) value = (value * 31 + label.charCodeAt(i)) % 1009;
  return value % 6;
}
