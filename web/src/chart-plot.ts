// SPDX-License-Identifier: Apache-2.0
//
// What uPlot is told to draw: stacked areas as steps, a time axis below, bytes at the left.

import uPlot from "uplot";
import { splits, topOf, type Series } from "./chart-data";
import type { Manner } from "./chart-manner";
import { blend, colour } from "./colours";
import { bytes } from "./format";

/** What the plot asks its chart, and tells it. */
export interface Asked {
  span(): [number, number];
  limit(): number | null;
  point(plot: uPlot): void;
  selected(plot: uPlot): void;
  scaled(plot: uPlot): void;
}

export function plotOptions(width: number, manner: Manner, series: readonly Series[], chart: Asked): uPlot.Options {
  const axis = { stroke: colour("muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
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
        fill: blend(colour(one.variable), colour("surface"), 0.62), // opaque, because areas overlap
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
