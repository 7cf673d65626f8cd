// SPDX-License-Identifier: Apache-2.0
//
// Computes which rows of a long list are visible. A list taller than a browser's limit is compressed: then one pixel of
// the scroll bar stands for several of the list.

export const ROW = 26; // pixels; as in style.css
export const SPARE = 12; // rows above and below the visible ones
export const TALLEST = 15_000_000; // pixels; browsers stop a little above

export const listHeight = (count: number): number => Math.min(count * ROW, TALLEST);

/** From scroll positions to positions in the list. */
const stretch = (count: number, height: number): number => {
  const room = listHeight(count) - height;
  return room > 0 ? Math.max(1, (count * ROW - height) / room) : 1;
};

export interface Seen {
  first: number;
  last: number; // exclusive
  offset: number; // of the first one, in pixels of the bar
}

/** @top: scrollTop; @height: of the visible part. */
export function seen(count: number, top: number, height: number): Seen {
  const at = Math.max(0, top) * stretch(count, height);
  const first = Math.max(0, Math.min(Math.floor(at / ROW) - SPARE, count));
  const last = Math.max(first, Math.min(count, Math.ceil((at + height) / ROW) + SPARE));
  return { first, last, offset: top + first * ROW - at };
}

/** The scrollTop that shows a row: the current one if the row is visible, else the nearest. */
export function reveal(count: number, index: number, top: number, height: number): number {
  const scale = stretch(count, height);
  const at = top * scale;
  if (index * ROW < at) return (index * ROW) / scale;
  if ((index + 1) * ROW > at + height) return ((index + 1) * ROW - height) / scale;
  return top;
}

/** The row at the top of the visible part, and the scrollTop that brings a row there. */
export const rowAt = (count: number, top: number, height: number): number => Math.floor((top * stretch(count, height)) / ROW);
export const topOf = (count: number, index: number, height: number): number => (index * ROW) / stretch(count, height);
