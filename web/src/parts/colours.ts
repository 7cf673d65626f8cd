// SPDX-License-Identifier: Apache-2.0
//
// style.css defines the colours, for light and for dark; canvases get them here.

import { browserStore } from "../base/storage";
import type { MemoryType } from "../data/model";

const cache = new Map<string, string>();
let probe: HTMLElement | null = null;

export function colour(name: string): string {
  let value = cache.get(name);
  if (value === undefined) {
    // A variable may depend on the theme; only a computed property has the resulting colour.
    if (!probe) {
      probe = document.createElement("i");
      probe.hidden = true;
      document.documentElement.append(probe);
    }
    probe.style.color = `var(--${name})`;
    value = getComputedStyle(probe).color;
    cache.set(name, value);
  }
  return value;
}

/** One computed colour over another. @share: of the upper one. */
export function blend(over: string, under: string, share: number): string {
  const [a, b] = [over, under].map((text) => text.match(/[\d.]+/g)?.map(Number) ?? []);
  return `rgb(${[0, 1, 2].map((i) => Math.round(share * (a![i] ?? 0) + (1 - share) * (b![i] ?? 0))).join(", ")})`;
}

export const typeVariable = (type: MemoryType): string => `type-${type.toLowerCase().replace("_", "-")}`;
export const typeColour = (type: MemoryType): string => colour(typeVariable(type));

export const SERIES = 8;
/** The n-th colour of the palette; grey beyond its end. */
export const seriesVariable = (n: number): string => (n < SERIES ? `series-${n}` : "series-other");
export const seriesColour = (n: number): string => colour(seriesVariable(n));

/** Each process keeps its first place in the palette, in every chart of a view. */
export class Palette {
  private places = new Map<number, number>();

  place(pid: number): number {
    let place = this.places.get(pid);
    if (place === undefined) this.places.set(pid, (place = this.places.size));
    return place;
  }
}

const listeners = new Set<() => void>();
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export type Theme = "auto" | "light" | "dark";
const STORED = "ttmem.theme";

function changed(): void {
  cache.clear();
  for (const listener of listeners) listener();
}

export function theme(): Theme {
  const stored = browserStore.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : "auto";
}

export function setTheme(value: Theme): void {
  if (value === "auto") {
    browserStore.removeItem(STORED);
    delete document.documentElement.dataset.theme;
  } else {
    browserStore.setItem(STORED, value);
    document.documentElement.dataset.theme = value;
  }
  changed();
}

export function startTheme(): void {
  setTheme(theme());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
