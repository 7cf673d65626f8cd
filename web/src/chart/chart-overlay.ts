// SPDX-License-Identifier: Apache-2.0
//
// What lies over a chart: the page's two cursors, which can be dragged, and the flags of what happened. The chart's
// keys and its table do the same without a pointer.

import { clear, h } from "../base/dom";
import type { PastEvent } from "../data/model";
import { FLAG_COLOURS, flagLines, flagsOf, type Flag } from "../time/annotations";
import type { Span } from "../time/moment";

const NEAR_PX = 6;
const MOVE_PX = 3; // a shorter movement is a click

/** What the overlay needs of its chart. */
export interface Under {
  timeAt(x: number): number; // seconds, from pixels of the page
  drag(timeS: number, second: boolean): void;
}

export class Overlay {
  readonly element: HTMLElement;
  flags: Flag[] = [];
  private flagged = h("div", {});
  private tip = h("div", { class: "chart-tip", hidden: true });
  private lines: [HTMLElement, HTMLElement];
  private range: Span = { min: 0, max: 1 };
  private times: readonly (number | null)[] = []; // of the cursors
  private drawn = "";

  constructor(private under: Under) {
    this.lines = [this.line(false), this.line(true)];
    this.element = h("div", { class: "overlay", "aria-hidden": "true" }, this.flagged, this.lines, this.tip);
  }

  private line(second: boolean): HTMLElement {
    const line = h("div", { class: second ? "cursor-line second" : "cursor-line", hidden: true }, h("i", {}));
    let start: number | null = null;
    // The chart below would start to zoom.
    for (const name of ["mousedown", "click", "dblclick"]) line.addEventListener(name, (event) => event.stopPropagation());
    line.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      line.setPointerCapture(event.pointerId);
      start = event.clientX;
    });
    line.addEventListener("pointermove", (event) => {
      if (start !== null && Math.abs(event.clientX - start) >= MOVE_PX) this.under.drag(this.under.timeAt(event.clientX), second);
    });
    for (const name of ["pointerup", "pointercancel"]) line.addEventListener(name, () => (start = null));
    return line;
  }

  /** @cursors: in seconds. @width: of the chart, in pixels. */
  draw(range: Span, width: number, cursors: readonly [number | null, number | null], events: readonly PastEvent[]): void {
    this.range = range;
    this.times = cursors;
    this.flags = flagsOf(events, range, width);
    cursors.forEach((time, i) => {
      const line = this.lines[i]!;
      line.hidden = time === null || time < range.min || time > range.max;
      if (time !== null) line.style.left = this.left(time);
    });
    const drawn = JSON.stringify([range, width, this.flags.map((flag) => [flag.timeS, flag.kind, flag.events.length])]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    clear(this.flagged, this.flags.map((flag) => {
      const pole = h("i", { class: `event-flag ${flag.kind}` }, flag.events.length > 1 && h("b", {}, flag.events.length > 99 ? "99+" : flag.events.length));
      pole.style.left = this.left(flag.timeS);
      return pole;
    }));
  }

  /** The times of all lines that are seen, for a picture. */
  poles(): { timeS: number; variable: string; dashed: boolean }[] {
    const cursors = this.lines.flatMap((line, i) => (line.hidden ? [] : [{ timeS: this.times[i]!, variable: "text", dashed: false }]));
    return [...this.flags.map(({ timeS, kind }) => ({ timeS, variable: FLAG_COLOURS[kind] ?? "muted", dashed: true })), ...cursors];
  }

  private left(timeS: number): string {
    return `${(100 * (timeS - this.range.min)) / (this.range.max - this.range.min)}%`;
  }

  /** The flag at a place, in pixels of the chart. */
  near(x: number, width: number): Flag | null {
    const time = this.range.min + (x / width) * (this.range.max - this.range.min);
    const reach = (NEAR_PX / width) * (this.range.max - this.range.min);
    const found = this.flags.filter((flag) => Math.abs(flag.timeS - time) <= reach);
    return found.sort((a, b) => Math.abs(a.timeS - time) - Math.abs(b.timeS - time))[0] ?? null;
  }

  /** Shows what a flag stands for. */
  tell(flag: Flag | null): void {
    this.tip.hidden = !flag;
    if (!flag) return;
    clear(this.tip, flagLines(flag).map((line) => h("div", {}, line)));
    const width = this.element.clientWidth;
    const x = ((flag.timeS - this.range.min) / (this.range.max - this.range.min)) * width;
    this.tip.style.left = `${Math.max(0, Math.min(width - this.tip.offsetWidth, x - this.tip.offsetWidth / 2))}px`;
  }
}
