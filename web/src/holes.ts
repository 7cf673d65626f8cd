// SPDX-License-Identifier: Apache-2.0
//
// What lies where in one memory of a device, and what does not. A buffer takes the same room at the same
// address in every bank, so one bank stands for all; sizes here are per bank unless they say otherwise.

import type { Bank, Buffer } from "./model";

export interface Span {
  from: number;
  to: number; // exclusive
  buffer: Buffer;
}

export interface Hole {
  from: number;
  to: number;
}

export interface Layout {
  bank: Bank;
  known: boolean; // the bank's bounds are: else they are those of the buffers
  spans: Span[]; // by address
  holes: Hole[]; // by address
  kept: Hole | null; // the upper end, which is handed out for another type only: no hole of it counts
  used: number;
  free: number;
  largest: number;
  overlaps: number; // buffers that begin inside another one: several processes, each with its own view
}

const up = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The room a buffer takes in each bank. */
export function perBank(buffer: Buffer, bank: Bank): number {
  if (buffer.size_per_bank) return buffer.size_per_bank;
  return Math.max(up(Math.ceil(buffer.size / bank.banks), bank.alignment), 1);
}

/** @upper: of a type that has the upper end for itself (TRACE in DRAM, L1_SMALL in L1), or null. */
export function layOut(buffers: readonly Buffer[], declared: Bank | null, upper: Bank | null = null): Layout {
  const unknown: Bank = { base: 0, size: 0, banks: 1, alignment: 1 };
  const spans = buffers
    .filter((buffer) => !buffer.flags.includes("alias") && !buffer.flags.includes("hooked"))
    .map((buffer) => {
      const from = Number(buffer.address);
      return { from, to: from + perBank(buffer, declared ?? unknown), buffer };
    })
    .sort((a, b) => a.from - b.from || a.to - b.to);
  const bank = declared ?? { ...unknown, ...bounds(spans) };
  const layout: Layout = {
    bank, known: declared !== null, spans, holes: [], kept: keptOf(declared, upper), used: 0, free: 0, largest: 0, overlaps: 0,
  };
  const end = layout.kept?.from ?? bank.base + bank.size;
  let at = bank.base;
  for (const span of spans) {
    if (span.from > at) addHole(layout, at, Math.min(span.from, end));
    else if (span.from < at) layout.overlaps++;
    if (span.from >= end && layout.kept) continue;
    at = Math.max(at, span.to);
  }
  if (at < end) addHole(layout, at, end);
  layout.used = end - bank.base - layout.free;
  return layout;
}

function keptOf(bank: Bank | null, upper: Bank | null): Hole | null {
  if (!bank || !upper) return null;
  const end = bank.base + bank.size;
  return upper.base > bank.base && upper.base < end && upper.base + upper.size >= end
    ? { from: upper.base, to: end }
    : null;
}

function bounds(spans: readonly Span[]): { base: number; size: number } {
  const base = spans[0]?.from ?? 0;
  return { base, size: spans.reduce((end, span) => Math.max(end, span.to), base) - base };
}

function addHole(layout: Layout, from: number, to: number): void {
  if (to <= from) return;
  layout.holes.push({ from, to });
  layout.free += to - from;
  layout.largest = Math.max(layout.largest, to - from);
}

/** How much of what is free cannot be had in one piece, 0 to 1. */
export const fragmentation = (layout: Layout): number =>
  layout.free > 0 ? 1 - layout.largest / layout.free : 0;

export type Fit =
  | { fits: true; hole: Hole; need: number }
  | { fits: false; reason: "full" | "cut up"; need: number };

/** Where @size bytes over all banks would go: into the smallest hole that takes them. */
export function fit(layout: Layout, size: number): Fit {
  const { bank } = layout;
  const need = Math.max(up(Math.ceil(size / bank.banks), bank.alignment), bank.alignment);
  let best: Hole | null = null;
  for (const hole of layout.holes) {
    const room = hole.to - up(hole.from, bank.alignment);
    if (room >= need && (!best || hole.to - hole.from < best.to - best.from)) best = hole;
  }
  if (best) return { fits: true, hole: best, need };
  return { fits: false, reason: need > layout.free ? "full" : "cut up", need };
}

/** The span at an address, or NULL in a hole. Of several, the one that begins last. */
export function spanAt(layout: Layout, address: number): Span | null {
  let low = 0;
  let high = layout.spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.spans[middle]!.from <= address) low = middle + 1;
    else high = middle;
  }
  for (let i = low - 1; i >= Math.max(0, low - 8); i--) {
    const span = layout.spans[i]!;
    if (address < span.to) return span;
  }
  return null;
}

export const holeAt = (layout: Layout, address: number): Hole | null =>
  layout.holes.find((hole) => address >= hole.from && address < hole.to) ?? null;
