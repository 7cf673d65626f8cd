// SPDX-License-Identifier: Apache-2.0
//
// Where the keys of a chart lead: from point to point, and closer or farther.

import type { Span } from "../time/moment";

const KEY_STEP = 0.05; // of the visible range, per key press

/** A step of some pixels, at least to the next point. @start: null: the last point. @step: 1 or -1. */
export function nextPoint(times: readonly number[], start: number | null, step: number, shown: number): number {
  const last = times.length - 1;
  if (start === null) return last;
  const wanted = times[start]! + step * shown * KEY_STEP;
  let at = start + step;
  while (at + step >= 0 && at + step <= last && (wanted - times[at + step]!) * step >= 0) at += step;
  return Math.max(0, Math.min(last, at));
}

/** A span around the same middle that is no shorter than the closest zoom. */
export function widened({ min, max }: Span, closest: number): Span {
  const middle = (min + max) / 2;
  const half = Math.max(max - min, closest) / 2;
  return { min: middle - half, max: middle + half };
}

/** @scale: below 1 zooms in. null: all of it. */
export function zoomedAround(shown: Span, middle: number, scale: number, all: Span, closest: number): Span | null {
  const min = Math.max(all.min, middle - (middle - shown.min) * scale);
  const max = Math.min(all.max, middle + (shown.max - middle) * scale);
  return min <= all.min && max >= all.max ? null : widened({ min, max }, closest);
}
