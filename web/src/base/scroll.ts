// SPDX-License-Identifier: Apache-2.0
//
// The scroll position of the page, kept in the address. A view that is opened again is short until its data is there, so
// the page scrolls as soon as it is long enough, unless the user has begun to do something else meanwhile.

import { rememberSoon } from "./router";

const LEAST = 40; // pixels: less is the top of the page

let wanted: number | null = null;

/** While it waits, what is out of sight counts with its real height; see style.css. */
const expect = (y: number | null): void => {
  wanted = y;
  document.documentElement.classList.toggle("whole", y !== null && y > 0);
};

function attempt(): void {
  if (wanted === null) return;
  scrollTo(0, wanted);
  if (document.documentElement.scrollHeight - innerHeight >= wanted) wanted = null;
}

/** Scrolls to where the address says, or to the top. */
export function restoreScroll(text: string | null): void {
  expect(Math.max(0, Number(text) || 0));
  scrollTo(0, 0);
  attempt();
}

export function startScroll(): void {
  history.scrollRestoration = "manual"; // the browser would scroll before there is anything
  new ResizeObserver(attempt).observe(document.body);
  for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) addEventListener(kind, () => expect(null), { passive: true, capture: true });
  addEventListener("scroll", () => {
    if (wanted === null) rememberSoon({ y: scrollY < LEAST ? null : String(Math.round(scrollY)) });
  }, { passive: true });
}
