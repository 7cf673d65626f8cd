// SPDX-License-Identifier: Apache-2.0
//
// The data of a chart, computed without drawing: stacked sums, round figures at the axis, sparklines of cards.

import { bytes } from "../base/format";

export interface Series {
  label: string;
  variable: string; // of its colour
  values: (number | null)[]; // one for each time; not stacked
}

export interface ChartData {
  times: number[]; // seconds since 1970
  series: Series[];
  /** What each series has at the instant that the page shows, as its other figures do; null: it is not there. */
  now?(): (number | null)[] | null;
}

/** The last point that is not after a time; the first one if all are. */
export function indexAt(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The first series is at the bottom; the highest sum is returned first, so that drawing in order hides none. */
export function stacked(data: ChartData): (number | null)[][] {
  const sums = new Array<number>(data.times.length).fill(0);
  const none = data.times.map((_time, i) => data.series.every((series) => (series.values[i] ?? null) === null));
  return data.series
    .map((series) => data.times.map((_time, i) => (none[i] ? null : (sums[i] = sums[i]! + (series.values[i] ?? 0)))))
    .reverse();
}

/** What each series had, for people. Where nothing is known of any of them, none of them is 0. @at: null: at the page's instant. */
export function readings(data: ChartData, at: number | null): string[] {
  const point = at ?? data.times.length - 1;
  const values = (at === null && data.now?.()) || data.series.map((series) => series.values[point] ?? null);
  return values.map((value) => (values.every((one) => one === null) ? "not known" : bytes(value ?? 0)));
}

export const total = (data: ChartData, i: number): number =>
  data.series.reduce((sum, series) => sum + (series.values[i] ?? 0), 0);

/** The part of a sum that is in none of its parts, at each time; never negative, and null where the sum is not known. */
export const remainder = (sum: readonly (number | null)[], parts: readonly (readonly (number | null)[])[]): (number | null)[] =>
  sum.map((all, i) => (all === null ? null : Math.max(0, all - parts.reduce((rest, part) => rest + (part[i] ?? 0), 0))));

/** Three or four round figures, in powers of two. */
export function splits(high: number, limit: number | null): number[] {
  let step = 2 ** Math.floor(Math.log2(Math.max(high, 1) / 3));
  while (high / step > 4.5) step *= 2;
  const list = [];
  for (let at = 0; at <= high; at += step) list.push(at);
  if (limit && high <= limit) {
    // The top is the capacity, which deserves a label.
    while (list.length > 1 && limit - list[list.length - 1]! < step * 0.7) list.pop();
    list.push(limit);
  }
  return list;
}

/** The top of the scale: the capacity if the data comes near it, else the data. */
export function topOf(high: number | null, limit: number | null): number {
  const most = Math.max(high ?? 0, 1024);
  return limit && most > limit * 0.4 ? Math.max(limit, most) : most * 1.12;
}

const SPARK_WIDTH = 100;
const SPARK_HEIGHT = 24;
const SPARK_SHORTEST = 0.1; // of the span: a shorter line is not stretched

/**
 * A line of a few points without axes, and the area under it. It is stretched to the full width once it covers a tenth
 * of the span, so that a daemon that was just started shows something.
 */
export function sparkline(
  times: readonly number[], values: readonly number[], now: number, span: number,
): { line: string; area: string; span: number } {
  const shown = Math.min(span, Math.max(now - (times[0] ?? now), span * SPARK_SHORTEST));
  const first = now - shown;
  const most = Math.max(1, ...values);
  let line = "";
  let start = 0;
  let last = 0;
  times.forEach((time, i) => {
    if (time < first && (times[i + 1] ?? now) < first) return;
    const x = Math.min(SPARK_WIDTH, Math.max(0, ((time - first) / shown) * SPARK_WIDTH));
    const y = SPARK_HEIGHT - 1 - ((values[i] ?? 0) / most) * (SPARK_HEIGHT - 3);
    if (!line) start = x;
    line += line ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`;
    last = y;
  });
  if (!line) return { line: "", area: "", span: shown };
  line += `H${SPARK_WIDTH}V${last.toFixed(1)}`;
  return { line, area: `${line}V${SPARK_HEIGHT}H${start.toFixed(1)}Z`, span: shown };
}

/** A value holds until the next one; null: nothing was known yet. */
function valueAt(times: readonly number[], values: readonly number[], time: number): number | null {
  const first = times[0];
  return first !== undefined && first <= time ? (values[indexAt(times, time)] ?? 0) : null;
}

export interface SparkFacts {
  least: number;
  now: number;
  most: number;
  back: (number | null)[]; // at the requested moments
}

/** A sparkline in figures. @back: how long before now, one value for each. */
export function sparkFacts(
  times: readonly number[], values: readonly number[], now: number, span: number, back: readonly number[],
): SparkFacts {
  const first = now - span;
  const inside = values.filter((_value, i) => (times[i + 1] ?? now) >= first);
  return {
    least: inside.length ? Math.min(...inside) : 0, now: values[values.length - 1] ?? 0, most: Math.max(0, ...inside),
    back: back.map((ago) => valueAt(times, values, now - ago)),
  };
}

/** Round steps of an axis in seconds, from a microsecond to days. */
export const STEPS: number[] = [
  ...[-6, -5, -4, -3, -2, -1, 0].flatMap((power) => [1, 2, 5].map((one) => Number((one * 10 ** power).toPrecision(1)))),
  10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800,
];
