// SPDX-License-Identifier: Apache-2.0
//
// How a chart of one thing differs from that of another, and what the charts of a page have in common.

import type uPlot from "uplot";
import { clock } from "../base/format";
import type { Span } from "../time/moment";
import type { ChartData } from "./chart-data";

const two = (value: number): string => String(value).padStart(2, "0");
export function short(time: number): string {
  const date = new Date(time * 1000);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.getSeconds() ? `${text}:${two(date.getSeconds())}` : text;
}

/** What all charts of a page share; moment.ts has it. */
export interface Shared {
  readonly at: number | null; // ns; the cursors
  readonly other: number | null;
  readonly zoom: Span | null;
  readonly known: boolean; // the first cursor's instant is what the page shows
  pick(ns: number, second: boolean): void;
  look(zoom: Span | null): void;
  onChange(listener: () => void): () => void;
}

/** How a chart of one thing differs from that of another. */
export interface Manner {
  height: number;
  shortest: number; // seconds that are shown at least, unless the user zooms in
  closest: number; // the closest zoom
  end: string; // what the last point is called
  steps?: readonly number[]; // round steps of the axis, if they may be parts of a second
  tick(time: number): string; // at the axis
  clock(time: number): string;
  /** The point whose values are shown without a cursor; the last one if there is none. */
  rest?(data: ChartData): { at: number; text: string };
  /** Draws on top of the areas. */
  draw?(plot: uPlot): void;
  shared?: Shared;
}

export const LIVE: Manner = {
  height: 190, shortest: 60, closest: 2, end: "now", tick: short, clock: (time) => clock(time * 1e9),
};
