// SPDX-License-Identifier: Apache-2.0
//
// Reads as many buffers as a browser can hold: page after page, with equal stacks stored once.

import { pages, type Parameters } from "./api";
import type { Buffer, Frame } from "./model";

export const ROWS_MAX = 250_000;
const PAGE = 10000;

export interface Rows {
  buffers: Buffer[];
  timeNs: number;
  complete: boolean;
}

export async function loadBuffers(
  parameters: Parameters,
  signal: AbortSignal,
  progress?: (count: number) => void,
): Promise<Rows> {
  const rows: Rows = { buffers: [], timeNs: 0, complete: true };
  const stacks = new Map<string, Frame[]>();
  for await (const page of pages<{ time_ns: number; buffers: Buffer[]; next: string | null }>(
    "/api/v1/buffers",
    { ...parameters, limit: PAGE },
    signal,
  )) {
    for (const buffer of page.buffers) {
      const text = JSON.stringify(buffer.stack);
      const known = stacks.get(text);
      if (known) buffer.stack = known;
      else stacks.set(text, buffer.stack);
      rows.buffers.push(buffer);
    }
    rows.timeNs = page.time_ns;
    progress?.(rows.buffers.length);
    if (rows.buffers.length >= ROWS_MAX && page.next) {
      rows.complete = false;
      break;
    }
  }
  return rows;
}
