// SPDX-License-Identifier: Apache-2.0
//
// Keyboard navigation in the address map: how a key changes the visible range and the selected buffer. The selected
// buffer is always visible.

import type { Span } from "./holes";

/** Addresses: from, and to (exclusive). */
export type Part = [number, number];

const CLOSEST = 256; // bytes; a buffer is hardly ever smaller

/** The buffer that a step goes to, or -1. Without a visible selected buffer, starts at a visible one. */
export function nextSpan(spans: readonly Span[], at: number, step: number, [from, to]: Part): number {
  const here = spans[at];
  if (here && here.to > from && here.from < to) return Math.max(0, Math.min(spans.length - 1, at + step));
  const next = step > 0 ? spans.findIndex((span) => span.to > from) : spans.filter((span) => span.from < to).length - 1;
  return next >= 0 ? next : step > 0 ? spans.length - 1 : Math.min(0, spans.length - 1);
}

/** A range of the same size that shows a buffer; the same range if it does already. */
export function moved([from, to]: Part, span: Span, all: Part): Part {
  if (span.to > from && span.from < to) return [from, to];
  const half = (to - from) / 2;
  const middle = Math.min(Math.max((span.from + span.to) / 2, all[0] + half), all[1] - half);
  return [middle - half, middle + half];
}

/** @middle: an address that stays in place. Returns null for the whole range. */
export function zoomed([from, to]: Part, middle: number, scale: number, all: Part): Part | null {
  const size = Math.max((to - from) * scale, Math.min(CLOSEST, to - from));
  if (size >= all[1] - all[0]) return null;
  const share = (middle - from) / (to - from);
  const start = Math.min(Math.max(middle - share * size, all[0]), all[1] - size);
  return [start, start + size];
}

/** In the address of the page, whole bytes in hexadecimal. */
export const partText = ([from, to]: Part): string => `${Math.round(from).toString(16)}-${Math.round(to).toString(16)}`;

/** null: the text is not a part of the whole range. */
export function partOf(text: string | null, all: Part): Part | null {
  const found = /^([0-9a-f]{1,13})-([0-9a-f]{1,13})$/.exec(text ?? "");
  const [from, to] = [parseInt(found?.[1] ?? "", 16), parseInt(found?.[2] ?? "", 16)];
  return from >= all[0] && to <= all[1] && from < to ? [from, to] : null;
}
