// SPDX-License-Identifier: Apache-2.0
//
// Zooming a time axis by wheel and by two fingers. The plain wheel scrolls the page: only with Ctrl (which is also what a
// pinch on a touch pad sends) it zooms, and sideways it moves.

import type { Span } from "../time/moment";

const WHEEL = 0.0025; // of the zoom, per pixel
const LINE_PX = 16;

/** @anchor: a time that stays in place. @scale: below 1 zooms in. null: all of it. */
export function zoomedAt(shown: Span, anchor: number, scale: number, all: Span, closest: number): Span | null {
  const length = Math.max(closest, (shown.max - shown.min) * scale);
  const share = (anchor - shown.min) / Math.max(1e-9, shown.max - shown.min);
  const min = anchor - share * length;
  return inside({ min, max: min + length }, all);
}

/** @by: seconds. */
export const movedBy = (shown: Span, by: number, all: Span): Span | null =>
  inside({ min: shown.min + by, max: shown.max + by }, all);

function inside({ min, max }: Span, all: Span): Span | null {
  if (max - min >= all.max - all.min) return null;
  const back = Math.max(0, max - all.max) - Math.max(0, all.min - min);
  return { min: min - back, max: max - back };
}

/** The pixels of a wheel event, whatever its unit. */
const pixels = (delta: number, mode: number): number => (mode === 1 ? delta * LINE_PX : mode === 2 ? delta * 400 : delta);

export interface Zoomable {
  /** What is shown and all there is; null: nothing is drawn. */
  spans(): { shown: Span; all: Span; closest: number } | null;
  timeAt(x: number): number; // in pixels of the page
  zoomTo(span: Span | null): void;
}

/** What the wheel does; undefined: nothing, the page scrolls. */
export function wheeled(event: Pick<WheelEvent, "deltaX" | "deltaY" | "deltaMode" | "ctrlKey" | "metaKey" | "shiftKey" | "clientX">,
  on: Zoomable, width: number): Span | null | undefined {
  const spans = on.spans();
  if (!spans) return undefined;
  const { shown, all, closest } = spans;
  if (event.ctrlKey || event.metaKey)
    return zoomedAt(shown, on.timeAt(event.clientX), Math.exp(pixels(event.deltaY, event.deltaMode) * WHEEL), all, closest);
  const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
  // All of it is shown: there is nothing to move, and the browser may use it to go back.
  if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY) || shown.max - shown.min >= all.max - all.min) return undefined;
  return movedBy(shown, (pixels(sideways, event.deltaMode) / Math.max(1, width)) * (shown.max - shown.min), all) ?? undefined;
}

/** Makes an element zoom by wheel and by two fingers. */
export function zoomBy(element: HTMLElement, on: Zoomable): void {
  const fingers = new Map<number, number>();
  let held: [number, number] | null = null; // the times below two fingers
  element.addEventListener("wheel", (event) => {
    const span = wheeled(event, on, element.clientWidth);
    if (span === undefined) return;
    event.preventDefault();
    on.zoomTo(span);
  }, { passive: false });
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, event.clientX);
    const [a, b] = [...fingers.values()];
    held = a !== undefined && b !== undefined ? [on.timeAt(a), on.timeAt(b)] : null;
  });
  element.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    const [a, b] = [...fingers.values()];
    const spans = on.spans();
    if (!held || a === undefined || b === undefined || !spans) return;
    const box = element.getBoundingClientRect();
    const span = pinched(held, [a - box.left, b - box.left], box.width, spans.closest);
    if (span) on.zoomTo(inside(span, spans.all));
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"])
    element.addEventListener(end, (event) => {
      fingers.delete((event as PointerEvent).pointerId);
      held = null;
    });
}

/** The span in which two times lie below the two fingers. null: the fingers are too close. */
export function pinched(times: readonly [number, number], at: readonly [number, number], width: number, closest: number): Span | null {
  const apart = at[1] - at[0];
  if (Math.abs(apart) < 8 || times[0] === times[1]) return null;
  const perPixel = (times[1] - times[0]) / apart;
  if (perPixel <= 0) return null;
  const length = Math.max(closest, perPixel * width);
  const min = times[0] - at[0] * (length / width);
  return { min, max: min + length };
}
