// SPDX-License-Identifier: Apache-2.0
//
// Phases over time, computed without drawing. "epoch 1/layer 3" is a bar "epoch 1" and, below it, a bar "layer 3".
// Processes and threads may be in different phases at once, so bars that overlap get rows of their own.

import type { PhaseSpan } from "./document";

export interface Bar {
  label: string; // the last part of the path
  path: string;
  pid: number;
  from: number;
  to: number;
  row: number;
}

/** The rows of a process. */
export interface Block {
  pid: number;
  comm: string;
  row: number;
  rows: number;
}

type Loose = Omit<Bar, "row">;

/** Bars of one path that touch, or nearly do, are one. */
function merged(bars: readonly Loose[], near: number): Loose[] {
  const last = new Map<string, Loose>();
  const list: Loose[] = [];
  for (const bar of [...bars].sort((a, b) => a.from - b.from)) {
    const before = last.get(bar.path);
    if (before && bar.from - before.to <= near) before.to = Math.max(before.to, bar.to);
    else {
      const own = { ...bar };
      last.set(bar.path, own);
      list.push(own);
    }
  }
  return list;
}

/** Puts the bars of one process into rows, from @first on; returns how many it took. */
function arrange(spans: readonly PhaseSpan[], near: number, first: number, bars: Bar[]): number {
  const levels: Loose[][] = [];
  for (const { phase, pid, from_ns: from, to_ns: to } of spans) {
    const parts = phase.split("/");
    parts.forEach((label, depth) => (levels[depth] ??= []).push({ label, path: parts.slice(0, depth + 1).join("/"), pid, from, to }));
  }
  let rows = 0;
  for (const level of levels) {
    const ends: number[] = [];
    for (const bar of merged(level, near)) {
      let row = ends.findIndex((end) => end <= bar.from);
      if (row < 0) row = ends.length;
      ends[row] = bar.to;
      bars.push({ ...bar, row: first + rows + row });
    }
    rows += ends.length;
  }
  return rows;
}

/**
 * The bars of all processes, one process below the other, as they began. @near: gaps that are not worth showing; @most: rows at
 * most.
 */
export function phaseBars(spans: readonly PhaseSpan[], near: number, most: number): { bars: Bar[]; blocks: Block[]; rows: number } {
  const of = new Map<number, PhaseSpan[]>();
  for (const span of [...spans].sort((a, b) => a.from_ns - b.from_ns)) {
    const list = of.get(span.pid);
    if (list) list.push(span);
    else of.set(span.pid, [span]);
  }
  const bars: Bar[] = [];
  const blocks: Block[] = [];
  let row = 0;
  for (const [pid, list] of of) {
    const rows = arrange(list, near, row, bars);
    blocks.push({ pid, comm: list[0]!.comm, row, rows });
    row += rows;
  }
  return { bars: bars.filter((bar) => bar.row < most), blocks: blocks.filter((block) => block.row < most), rows: row };
}

/** Seconds as users give them to --at: "12.5 s", "2 min 30 s". */
export function moment(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 1e-3) return s === 0 ? "0 s" : `${(s * 1e6).toFixed(0)} µs`;
  if (s < 1) return `${Number((s * 1e3).toPrecision(3))} ms`;
  if (s < 60) return `${Number(s.toFixed(s < 10 ? 2 : 1))} s`;
  const whole = Math.round(s);
  if (s < 3600) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  return `${Math.floor(whole / 3600)} h${Math.floor((whole % 3600) / 60) ? ` ${Math.floor((whole % 3600) / 60)} min` : ""}`;
}

/** "99.98 %" of the events, never rounded up to all of them. */
export function recorded(events: number, missed: number): string {
  if (missed === 0) return "all events";
  const share = Math.floor((1e4 * events) / (events + missed)) / 100;
  return `${share.toFixed(2)} % of events`;
}

const SHORT_BITS = 10; // of ns / 1024: about a millisecond
const LIFE_NS = (bit: number): number => (bit === 0 ? 0 : 1024 * 2 ** (bit - 1));

/** Freed buffers that lived for less than about a millisecond. */
export const shortLives = (lives: readonly number[]): number => lives.slice(0, SHORT_BITS + 1).reduce((sum, one) => sum + one, 0);

/** How long half of them lived at most; null: none was freed. */
export function medianLife(lives: readonly number[]): number | null {
  const all = lives.reduce((sum, one) => sum + one, 0);
  if (all === 0) return null;
  let sum = 0;
  const bit = lives.findIndex((one) => (sum += one) * 2 >= all);
  return LIFE_NS(bit + 1);
}
