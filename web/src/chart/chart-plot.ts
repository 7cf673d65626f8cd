// SPDX-License-Identifier: Apache-2.0
//
// What uPlot is told to draw: stacked areas as steps, a time axis below, bytes at the left.

import uPlot from "uplot";
import { bytes } from "../base/format";
import { blend, colour } from "../parts/colours";
import { splits, stacked, topOf, type ChartData, type Series } from "./chart-data";
import type { Manner } from "./chart-manner";
import { chartSvg } from "./chart-svg";

/** What the plot asks its chart, and tells it. */
export interface Asked {
  span(): [number, number];
  limit(): number | null;
  point(plot: uPlot): void;
  selected(plot: uPlot): void;
  scaled(plot: uPlot): void;
}

const FONT = "11px system-ui, sans-serif";

const fillOf = ({ variable }: Series): string => blend(colour(variable), colour("surface"), 0.62); // opaque, because areas overlap

export function plotOptions(width: number, manner: Manner, series: readonly Series[], chart: Asked): uPlot.Options {
  const axis = { stroke: colour("muted"), font: FONT, ticks: { show: false } };
  const line = { stroke: colour("line"), width: 1 };
  return {
    width,
    height: manner.height,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    // setSelect handles the dragged range, so that the zoom survives new data.
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => null },
      // Charts beside each other show the same time; they zoom together by other means.
      ...(manner.shared && { sync: { key: "time", setSeries: false, filters: { pub: (type: string) => type === "mousemove" } } }) },
    scales: {
      x: { time: !manner.steps, range: () => chart.span() },
      y: { range: (_plot, _low, high) => [0, topOf(high, chart.limit())] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 28, gap: 9, values: (_plot, at) => at.map((time) => manner.tick(time)),
        ...(manner.steps && { incrs: [...manner.steps] }) },
      {
        ...axis, grid: line, size: 64, space: 36,
        splits: (_plot, _axis, _low, high) => splits(high, chart.limit()),
        values: (_plot, at) => at.map((value) => bytes(value).replace(/\.0+ /, " ")),
      },
    ],
    series: [
      {},
      ...[...series].reverse().map((one) => ({
        label: one.label,
        stroke: colour(one.variable),
        fill: fillOf(one),
        width: 1,
        points: { show: false },
        paths: uPlot.paths.stepped!({ align: 1 }),
      })),
    ],
    hooks: {
      setCursor: [(plot) => chart.point(plot)],
      setSelect: [(plot) => chart.selected(plot)],
      draw: [(plot) => manner.draw?.(plot)],
      setScale: [(plot, key) => key === "x" && chart.scaled(plot)],
    },
  };
}

/** What uPlot has put at an axis. */
type Axis = uPlot.Axis & { _splits?: number[] | null; _values?: (string | null)[] | null };

/** @poles: vertical lines. */
export function plotSvg(plot: uPlot, data: ChartData, poles: readonly { timeS: number; variable: string; dashed: boolean }[]): string {
  const { left, top } = plot.bbox; // in pixels of the screen
  const x = (time: number): number => plot.valToPos(time, "x");
  const y = (value: number): number => plot.valToPos(value, "y");
  const [across, up] = plot.axes as [Axis, Axis];
  const marks = ({ _splits, _values }: Axis): { value: number; text: string }[] =>
    (_splits ?? []).map((value, i) => ({ value, text: _values?.[i] ?? "" }));
  const sums = stacked(data);
  return chartSvg({
    width: plot.width, height: plot.height, font: FONT, times: data.times, x, y,
    box: { left: left / uPlot.pxRatio, top: top / uPlot.pxRatio, width: plot.over.clientWidth, height: plot.over.clientHeight },
    areas: [...data.series].reverse().map((one, i) => ({ label: one.label, fill: fillOf(one), stroke: colour(one.variable), values: sums[i]! })),
    across: marks(across).map(({ value, text }) => ({ x: x(value), text })).filter(({ x: at }) => at >= 0 && at <= plot.over.clientWidth),
    levels: marks(up).map(({ value, text }) => ({ y: y(value), text })).filter(({ y: at }) => at >= 0), // the capacity may be far above
    poles: poles.map(({ timeS, variable, dashed }) => ({ x: x(timeS), colour: colour(variable), dashed })),
    colours: { background: colour("surface"), text: colour("text"), muted: colour("muted"), line: colour("line") },
  });
}
