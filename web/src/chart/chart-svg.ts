// SPDX-License-Identifier: Apache-2.0
//
// A chart as SVG: its areas, axes, flags and cursors as they are on the page, and the legend below.

import { element, rounded, svgFile, textAt } from "../base/svg";

export interface Area {
  label: string;
  fill: string;
  stroke: string;
  values: readonly (number | null)[]; // sums, see stacked()
}

/** In pixels of the page, from the upper left corner of the chart; x and y from that of the box with the areas. */
export interface ChartPicture {
  width: number;
  height: number;
  box: { left: number; top: number; width: number; height: number };
  font: string;
  times: readonly number[];
  x(time: number): number;
  y(value: number): number;
  areas: readonly Area[]; // the highest first
  across: readonly { x: number; text: string }[]; // of the axis below
  levels: readonly { y: number; text: string }[];
  poles: readonly { x: number; colour: string; dashed: boolean }[];
  colours: { background: string; text: string; muted: string; line: string };
}

const LEGEND_PX = 22;
const LETTER_PX = 7; // about

/** Steps: a value holds until the next time. Where nothing is known there is a gap. */
export function stepPaths(picture: Pick<ChartPicture, "times" | "x" | "y" | "box">, values: Area["values"]): { line: string; area: string } {
  const { times, x, y, box } = picture;
  const at = (across: number, down: number): string => `${rounded(across)} ${rounded(down)}`;
  let [line, area, i] = ["", "", 0];
  while (i < times.length) {
    if (values[i] == null) {
      i++;
      continue;
    }
    const first = i;
    let path = "";
    for (; i < times.length && values[i] != null; i++) {
      const level = y(values[i]!);
      path += `${i === first ? "M" : "L"}${at(x(times[i]!), level)}L${at(x(times[Math.min(i + 1, times.length - 1)]!), level)}`;
    }
    line += path;
    area += `${path}V${rounded(box.height)}H${rounded(x(times[first]!))}Z`;
  }
  return { line, area };
}

function legend({ areas, height, box, colours }: ChartPicture): string {
  let left = box.left;
  return [...areas].reverse().map(({ label, stroke }) => {
    const x = left;
    left += 26 + label.length * LETTER_PX;
    return element("rect", { x, y: height + LEGEND_PX / 2 - 5, width: 10, height: 10, rx: 2, fill: stroke }) +
      textAt(x + 15, height + LEGEND_PX / 2, label, colours.text);
  }).join("");
}

export function chartSvg(picture: ChartPicture): string {
  const { width, height, box, font, areas, across, levels, poles, colours } = picture;
  const rule = (attributes: Record<string, number>, stroke: string, dashed = false): string =>
    element("line", { ...attributes, stroke, "stroke-dasharray": dashed ? "4 3" : null });
  const inside = levels.map(({ y }) => rule({ x1: 0, x2: box.width, y1: y, y2: y }, colours.line)).join("") +
    areas.map(({ fill, stroke, values }) => {
      const { line, area } = stepPaths(picture, values);
      return element("path", { d: area, fill }) + element("path", { d: line, fill: "none", stroke });
    }).join("") +
    poles.map(({ x, colour, dashed }) => rule({ x1: x, x2: x, y1: 0, y2: box.height }, colour, dashed)).join("");
  return svgFile(width, height + LEGEND_PX, colours.background, font,
    element("svg", { x: box.left, y: box.top, width: box.width, height: box.height }, inside) +
    across.map(({ x, text }) => textAt(box.left + x, box.top + box.height + 15, text, colours.muted, { "text-anchor": "middle" })).join("") +
    levels.map(({ y, text }) => textAt(box.left - 8, box.top + y, text, colours.muted, { "text-anchor": "end" })).join("") +
    legend(picture));
}
