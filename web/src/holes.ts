// SPDX-License-Identifier: Apache-2.0
//
// One memory of a device as the allocator of one process has it. Holes, and all that is counted of them, are the
// daemon's (/api/v1/map, the same as "ttmem map"); here the buffers are put into their places to be drawn. A buffer takes
// the same room at the same address in every bank, so one bank stands for all: sizes are per bank.

import type { Bank, Buffer, Device, Space, SpaceType } from "./model";

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
  pid: number;
  comm: string;
  bank: Bank;
  space: Space | null; // null: nobody has said where the memory lies, so its bounds are those of the buffers
  spans: Span[]; // by address
  holes: Hole[]; // by address
}

const up = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The room a buffer takes in each bank; where that was not said it is spread evenly. */
export function perBank(buffer: Buffer, bank: Bank): number {
  if (buffer.size_per_bank) return buffer.size_per_bank;
  return Math.max(up(Math.ceil(buffer.size / bank.banks), bank.alignment), 1);
}

/** Which memory a buffer lies in; null if that cannot be told. Of a kernel, its number of banks tells. */
export function memoryOf(buffer: Buffer, device: Device): SpaceType | null {
  if (buffer.type === "CB") return "L1";
  if (buffer.type !== "KERNEL") return buffer.type;
  if (buffer.banks && buffer.banks === device.memory.DRAM.bank?.banks) return "DRAM";
  if (buffer.banks && buffer.banks === device.memory.L1.bank?.banks) return "L1";
  return null;
}

/** What takes room of the allocator: not what lies in others' memory, or at an address that its owner chose. */
export const takesRoom = (buffer: Buffer): boolean =>
  !buffer.flags.includes("alias") && !buffer.flags.includes("preallocated");

/** @buffers: of that process in that memory. */
export function layOut(pid: number, comm: string, buffers: readonly Buffer[], space: Space | null): Layout {
  const unknown: Bank = { base: 0, size: 0, banks: 1, alignment: 1 };
  const told = space && { base: Number(space.base), size: space.bank_size, banks: space.banks, alignment: space.alignment };
  const spans = buffers
    .filter(takesRoom)
    .map((buffer) => {
      const from = Number(buffer.address);
      return { from, to: from + perBank(buffer, told ?? unknown), buffer };
    })
    .sort((a, b) => a.from - b.from || a.to - b.to);
  const holes = space
    ? space.holes.map((hole) => ({ from: Number(hole.address), to: Number(hole.address) + hole.size }))
    : gaps(spans);
  return { pid, comm, bank: told ?? { ...unknown, ...bounds(spans) }, space, spans, holes };
}

function bounds(spans: readonly Span[]): { base: number; size: number } {
  const base = spans[0]?.from ?? 0;
  return { base, size: spans.reduce((end, span) => Math.max(end, span.to), base) - base };
}

/** Between buffers, where nobody has said more. */
function gaps(spans: readonly Span[]): Hole[] {
  const holes: Hole[] = [];
  let at = spans[0]?.from ?? 0;
  for (const span of spans) {
    if (span.from > at) holes.push({ from: at, to: span.from });
    at = Math.max(at, span.to);
  }
  return holes;
}

/** How many of a sorted list begin at or before an address. */
function before(list: readonly Hole[], address: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]!.from <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

const LAP = 8; // buffers of one process hardly ever lie over each other; so many are looked at

/** The span at an address, or null in a hole. Of several, the one that begins last. */
export function spanAt(layout: Layout, address: number): Span | null {
  const end = before(layout.spans, address);
  for (let i = end - 1; i >= Math.max(0, end - LAP); i--) {
    const span = layout.spans[i]!;
    if (address < span.to) return span;
  }
  return null;
}

export function holeAt(layout: Layout, address: number): Hole | null {
  const hole = layout.holes[before(layout.holes, address) - 1];
  return hole && address < hole.to ? hole : null;
}
