// SPDX-License-Identifier: Apache-2.0
//
// The interface of a view, and small parts that several views share.

import { clear, h, hint, type Child } from "../base/dom";
import { bytes, count, share } from "../base/format";
import { recorded } from "../data/api";
import {
  poolBound, poolCapacity, POOLS, poolTaken, poolUsed, TYPE_TITLES, TYPES, type Memory, type MemoryType, type Named, type Pool,
} from "../data/model";
import { typeVariable } from "./colours";

export { TYPE_TITLES };

export interface View {
  element: HTMLElement;
  title: string;
  /** There are newer totals, or the connection has changed. */
  update?(): void;
  destroy?(): void;
}

/** How much history a chart shows, in seconds. */
const RANGES = [
  { value: "300", text: "5 min" },
  { value: "900", text: "15 min" },
  { value: "3600", text: "1 h" },
  { value: "21600", text: "6 h" },
  { value: "86400", text: "24 h" },
] as const;

/** Those to choose from: of a recording all of it, and what is shorter. */
export function ranges(recording = recorded()): readonly { value: string; text: string }[] {
  if (!recording) return RANGES;
  const all = Math.max(1, Math.ceil((recording.end_ns - recording.start_ns) / 1e9));
  return [...RANGES.filter((one) => Number(one.value) < all), { value: String(all), text: "All" }];
}

export function rangeOf(text: string | null, recording = recorded()): string {
  const all = ranges(recording);
  return (all.find((one) => one.value === text) ?? all[recording ? all.length - 1 : 1]!).value;
}

/** A bar of one memory: a part for each type in it, against its capacity. */
export class Bar {
  readonly element: HTMLElement;
  private fill = h("div", { class: "bar-fill" });
  private figure = h("span", { class: "bar-figure" });
  private share = h("span", { class: "bar-share" });
  private track: HTMLElement;
  private shown = "";

  constructor(private pool: Pool) {
    this.track = h("div", { class: "bar-track", role: "img" }, this.fill);
    this.element = h(
      "div",
      { class: `bar bar-${pool.toLowerCase()}` },
      h("div", { class: "bar-text" }, h("span", { class: "bar-name" }, POOLS[pool].title), this.figure, this.share),
      this.track,
    );
  }

  set(memory: Memory): void {
    const used = poolUsed(memory, this.pool);
    const { taken, isOccupied } = poolTaken(memory, this.pool);
    const all = [...taken.values()].reduce((sum, one) => sum + one, 0);
    const capacity = poolCapacity(memory, this.pool);
    const parts = POOLS[this.pool].types.filter((type) => taken.get(type)! > 0);
    const text = JSON.stringify([used, capacity, [...taken]]);
    if (text === this.shown) return;
    this.shown = text;
    this.element.dataset.bytes = String(used);
    const whole = Math.max(capacity ?? 0, all, 1);
    const bound = poolBound(memory, this.pool);
    clear(this.figure, h("b", {}, bound + bytes(used)), capacity ? h("span", {}, ` / ${bytes(capacity)}`) : "");
    const ratio = capacity ? all / capacity : 0;
    this.share.textContent = capacity ? share(all, capacity) : used > 0 ? "size unknown" : "";
    this.element.classList.toggle("unknown", !capacity);
    this.share.className = `bar-share ${ratio >= 0.9 ? "bad" : ratio >= 0.75 ? "warn" : ""}`;
    const over = ratio > 1 ? "More is reported than the device has." : "";
    hint(this.share, over || (capacity && isOccupied && all > used ? `Buffers take ${bytes(all)} in all banks.` : ""));
    this.track.setAttribute(
      "aria-label",
      `${POOLS[this.pool].title}: ${bytes(used)}${capacity ? ` of ${bytes(capacity)}` : ""}; ` +
        parts.map((type) => `${TYPE_TITLES[type]} ${bytes(memory[type].used)}`).join(", ") +
        (over && `. ${over}`),
    );
    clear(
      this.fill,
      parts.map((type) =>
        h("i", {
          "--part": `${(100 * taken.get(type)!) / whole}%`,
          "--dot": `var(--${typeVariable(type)})`,
          title: `${TYPE_TITLES[type]} ${bytes(memory[type].used)}`,
        }),
      ),
    );
  }
}

export function typeLegend(types: readonly MemoryType[] = TYPES): HTMLElement {
  return h(
    "ul",
    { class: "legend" },
    types.map((type) => h("li", { "--dot": `var(--${typeVariable(type)})` }, h("span", {}, TYPE_TITLES[type]))),
  );
}

export function panel(title: string, tools: Child, ...content: Child[]): HTMLElement {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title), tools), content);
}

/** Shown below an incomplete table. */
export const cutNote = (shown: number, all: number): Child =>
  shown < all && h("p", { class: "muted pad" }, `The first ${count(shown)} of ${count(all)}.`);

const NAMES = 50;

/** What each name of a call site has, where there are several; `all`: how many there are. */
export function nameTable(names: readonly Named[], all: number): HTMLElement | null {
  if (all < 2) return null;
  const shown = names.slice(0, NAMES);
  return h("div", { class: "scroll" }, h("table", { class: "names" },
    h("thead", {}, h("tr", {}, ["Name", "Bytes", "Buffers"].map((text, i) => h("th", { scope: "col", class: i > 0 ? "number" : "" }, text)))),
    h("tbody", {}, shown.map((one) => h("tr", {}, h("th", { scope: "row", class: "wrap" }, one.name ?? "without a name"),
      h("td", { class: "number" }, bytes(one.bytes)), h("td", { class: "number" }, count(one.buffers)))))),
    cutNote(shown.length, all));
}

export const empty = (text: string): HTMLElement => h("p", { class: "empty" }, text);

export function figure(label: string, value: Child, hint = ""): HTMLElement {
  return h("div", { class: "figure", title: hint }, h("dt", {}, label), h("dd", {}, value));
}
