// SPDX-License-Identifier: Apache-2.0
//
// One memory of a device as the allocator of one process sees it. The free blocks and their figures come from the daemon
// (/api/v1/map, the same as "ttmem map"); this file places the buffers for drawing. A buffer occupies the same addresses
// in every bank, so one bank represents all: sizes are per bank.

import { TYPE_PLACES, type Bank, type Buffer, type Device, type Space, type SpaceType } from "../data/model";

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
  space: Space | null; // null: the address range of the memory is not known, so its bounds are those of the buffers
  spans: Span[]; // by address
  holes: Hole[]; // by address
}

const up = (value: number, step: number): number => Math.ceil(value / step) * step;

/** The size of a buffer in each bank; if it was not reported, the buffer is spread evenly. */
export function perBank(buffer: Buffer, bank: Bank): number {
  if (buffer.size_per_bank) return buffer.size_per_bank;
  return Math.max(up(Math.ceil(buffer.size / bank.banks), bank.alignment), 1);
}

/** The memory of a buffer; null if not known. For a kernel, the number of banks decides. */
export function memoryOf(buffer: Buffer, device: Device): SpaceType | null {
  if (buffer.type !== "KERNEL") return TYPE_PLACES[buffer.type];
  if (buffer.banks && buffer.banks === device.memory.DRAM.bank?.banks) return "DRAM";
  if (buffer.banks && buffer.banks === device.memory.L1.bank?.banks) return "L1";
  return null;
}

/** Whether the allocator placed it: not views of other buffers' memory, nor addresses that the owner chose. */
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

/** Free blocks between buffers, if nothing else is known. */
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

const LAP = 8; // buffers of one process hardly ever overlap; how many are examined

/** The span at an address, or null in a free block. Of several, the one that begins last. */
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
