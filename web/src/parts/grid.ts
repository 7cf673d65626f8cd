// SPDX-License-Identifier: Apache-2.0
//
// A table of any length: only visible rows exist in the page. Sorting and filtering work on the list, so
// a hundred thousand rows scroll as fast as a hundred. What there is to say about the chosen row is shown beside the
// table, where the screen is wide enough, or else at the lower edge of the screen.

import { clear, h, hint, say, type Child } from "../base/dom";
import type { Figures } from "../base/figures";
import { remember, rememberSoon, type Place } from "../base/router";
import { listHeight, reveal, rowAt, seen, topOf } from "./window";

export interface Column<T> {
  id: string;
  title: string;
  number?: boolean; // right-aligned, sorted largest first
  width: string; // of the grid: "5rem", "minmax(8rem, 2fr)"
  narrow?: string | false; // width on a phone; false: hidden
  dot?: boolean; // on a phone only the swatch is shown
  text(item: T): string;
  sort?(item: T): number | string;
  swatch?(item: T): string; // a CSS variable: a dot of that colour before the text
  hint?(item: T): string;
}

export interface Options<T> {
  detail?(item: T): Child; // what is shown of the chosen row
  key?(item: T): unknown; // the same when the list is read again
  chosen?(item: T | null): void;
  /** Keeps order and position in the address, under names that begin so. */
  place?: Place;
}

interface Line<T> {
  element: HTMLElement;
  cells: HTMLElement[];
  item: T | null;
}

const HEAD = 28; // pixels; as in style.css
const TOP = 56; // of the page's head, below which nothing is hidden

const look = (column: { number?: boolean; narrow?: string | false; dot?: boolean }): string =>
  `${column.number ? "number" : ""} ${column.narrow === false ? "wide-only" : ""} ${column.dot ? "dot-only" : ""}`;

let made = 0;

export class Grid<T> {
  readonly element: HTMLElement;
  private id = `grid-${++made}`;
  private body = h("div", { class: "grid-body", role: "rowgroup" });
  private spacer = h("div", { class: "grid-spacer" });
  private nothing = h("p", { class: "grid-nothing muted", hidden: true });
  private view: HTMLElement;
  private detail = h("div", { class: "buffer", role: "region", "aria-label": "Details", tabindex: -1, hidden: true });
  private heads: HTMLElement[] = [];
  private rows: Line<T>[] = [];
  private all: readonly T[] = [];
  private shown: T[] = [];
  private order: { column: Column<T>; down: boolean };
  private filter: (item: T) => boolean = () => true;
  private chosen: unknown = null; // key
  private key: (item: T) => unknown;
  private wanted: number; // row to begin with, from the address

  constructor(
    label: string,
    private columns: Column<T>[],
    sortBy: string,
    private options: Options<T> = {},
  ) {
    this.key = options.key ?? ((item) => item);
    const first = columns.find((column) => column.id === sortBy)!;
    this.order = this.ordered(this.kept("sort") ?? "") ?? { column: first, down: first.number === true };
    this.wanted = Number(this.kept("row")) || 0;
    const head = h("div", { class: "grid-row grid-head", role: "row" }, columns.map((column) => this.head(column)));
    this.view = h("div", { class: "grid grid-view", role: options.detail ? "grid" : "table", "aria-label": label, tabindex: 0 },
      h("div", { class: "grid-top", role: "rowgroup" }, head), this.spacer, this.body);
    this.element = h("div", { class: "split" }, h("div", {}, this.view, this.nothing), this.detail);
    this.element.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.element.style.setProperty("--columns-narrow",
      columns.flatMap((column) => (column.narrow === false ? [] : [column.narrow ?? column.width])).join(" "));
    this.view.addEventListener("scroll", () => {
      this.draw();
      if (!this.wanted) this.keep({ row: String(rowAt(this.shown.length, this.view.scrollTop, this.height) || "") }, true);
    }, { passive: true });
    this.element.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.resized()).observe(this.view);
  }

  /** Of the part that shows rows. */
  private get height(): number {
    return Math.max(0, this.view.clientHeight - HEAD);
  }

  private kept(name: string): string | null {
    const { place } = this.options;
    return place?.route.options.get(place.name + name) ?? null;
  }

  private keep(values: Record<string, string>, soon = false): void {
    const { place } = this.options;
    if (!place) return;
    (soon ? rememberSoon : remember)(Object.fromEntries(Object.entries(values).map(([name, value]) => [place.name + name, value || null])));
  }

  /** The order that a text of the address means: the name of a column, with "-" if the largest come first. */
  private ordered(text: string): { column: Column<T>; down: boolean } | null {
    const column = this.columns.find((one) => one.id === text.replace(/^-/, ""));
    return column ? { column, down: text.startsWith("-") } : null;
  }

  private head(column: Column<T>): HTMLElement {
    const button = h("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      const same = this.order.column === column;
      this.order = { column, down: same ? !this.order.down : column.number === true };
      this.keep({ sort: `${this.order.down ? "-" : ""}${column.id}` });
      this.arrange();
    });
    const element = h("div", { role: "columnheader", class: look(column), "aria-sort": "none" }, button);
    this.heads.push(element);
    return element;
  }

  set(items: readonly T[]): void {
    this.all = items;
    this.arrange();
    this.resized();
  }

  /** The position from the address needs rows, and a height. */
  private resized(): void {
    if (this.wanted && this.shown.length && this.height) {
      this.view.scrollTop = topOf(this.shown.length, this.wanted, this.height);
      this.wanted = 0;
    }
    this.draw();
  }

  where(filter: (item: T) => boolean): void {
    this.filter = filter;
    this.view.scrollTop = 0;
    this.arrange();
  }

  get length(): number {
    return this.shown.length;
  }

  /** All rows that the filter lets through, in their order; numbers as such. */
  figures(): Figures {
    return {
      heads: this.columns.map((column) => column.title),
      rows: this.shown.map((item) => this.columns.map((column) => (column.number && column.sort ? column.sort(item) : column.text(item)))),
    };
  }

  private arrange(): void {
    const { column, down } = this.order;
    const value = column.sort ?? ((item: T) => column.text(item));
    const sign = down ? -1 : 1;
    this.shown = this.all.filter(this.filter);
    this.shown.sort((a, b) => {
      const x = value(a);
      const y = value(b);
      return x < y ? -sign : x > y ? sign : 0;
    });
    this.columns.forEach((other, i) =>
      this.heads[i]!.setAttribute("aria-sort", other !== column ? "none" : down ? "descending" : "ascending"),
    );
    this.nothing.hidden = this.shown.length > 0;
    say(this.nothing, this.all.length > 0 ? "Nothing matches." : "There are none.");
    this.view.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.view.style.setProperty("--rows", String(this.shown.length));
    this.spacer.style.height = `${listHeight(this.shown.length)}px`;
    this.draw();
  }

  private row(i: number): Line<T> {
    const known = this.rows[i];
    if (known) return known;
    const cells = this.columns.map((column) =>
      h("div", { role: this.options.detail ? "gridcell" : "cell", class: look(column) }, h("span", {})),
    );
    const row: Line<T> = { element: h("div", { class: "grid-row", role: "row" }, cells), cells, item: null };
    if (this.options.detail) {
      row.element.classList.add("link");
      row.element.addEventListener("click", () => row.item && this.pick(row.item));
    }
    this.rows[i] = row;
    this.body.append(row.element);
    return row;
  }

  /** Chooses a row and shows what there is to say about it. */
  pick(item: T): void {
    this.chosen = this.key(item);
    this.draw();
    this.options.chosen?.(item);
    const close = h("button", { type: "button", class: "plain close", "aria-label": "Close the details" }, "✕");
    close.addEventListener("click", () => this.leave());
    clear(this.detail, close, this.options.detail!(item));
    this.detail.hidden = false;
    this.element.classList.add("open");
    this.detail.scrollTop = 0;
    this.bring();
  }

  /** Scrolls the page as little as needed to see both the row and its details. */
  private bring(): void {
    const row = this.rows.find((one) => one.element.classList.contains("chosen"))?.element.getBoundingClientRect();
    if (!row) return;
    const panel = this.detail.getBoundingClientRect();
    const below = panel.left < row.right; // then it covers other rows, at the lower edge of the screen
    const hidden = (below ? row.bottom + panel.height : panel.bottom) - innerHeight;
    if (hidden > 0) scrollBy(0, Math.min(hidden, Math.max(0, row.top - TOP - HEAD)));
  }

  private leave(): void {
    this.detail.hidden = true;
    this.element.classList.remove("open");
    this.chosen = null;
    this.options.chosen?.(null);
    this.draw();
    this.view.focus({ preventScroll: true });
  }

  private press(event: KeyboardEvent): void {
    if (event.key === "Escape" && !this.detail.hidden) {
      event.preventDefault();
      return this.leave();
    }
    if (event.target !== this.view || !this.options.detail) return;
    if (event.key === "Enter" && !this.detail.hidden) this.detail.focus({ preventScroll: true });
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const now = this.chosen === null ? -1 : this.shown.findIndex((item) => this.key(item) === this.chosen);
    const next = Math.max(0, Math.min(this.shown.length - 1, now + (event.key === "ArrowDown" ? 1 : -1)));
    const item = this.shown[next];
    if (!item) return;
    event.preventDefault();
    this.show(next);
    this.pick(item);
  }

  private show(index: number): void {
    this.view.scrollTop = reveal(this.shown.length, index, this.view.scrollTop, this.height);
  }

  /** Chooses the first row that fits, as if it had been clicked. */
  open(fits: (item: T) => boolean): boolean {
    const index = this.shown.findIndex(fits);
    if (index < 0) return false;
    this.show(index);
    this.pick(this.shown[index]!);
    return true;
  }

  private draw(): void {
    const { first, last, offset } = seen(this.shown.length, this.view.scrollTop, this.height);
    this.body.style.transform = `translateY(${offset}px)`;
    let active = "";
    for (let i = first; i < last; i++)
      if (this.fill(this.row(i - first), this.shown[i]!, i)) active = `${this.id}-${i}`;
    for (let i = last - first; i < this.rows.length; i++) this.rows[i]!.element.hidden = true;
    if (active) this.view.setAttribute("aria-activedescendant", active);
    else this.view.removeAttribute("aria-activedescendant");
  }

  /** Returns whether it is the chosen one. */
  private fill(row: Line<T>, item: T, number: number): boolean {
    const chosen = this.chosen !== null && this.key(item) === this.chosen;
    row.element.hidden = false;
    row.item = item;
    row.element.id = `${this.id}-${number}`;
    row.element.setAttribute("aria-rowindex", String(number + 2));
    row.element.classList.toggle("chosen", chosen);
    if (this.options.detail) row.element.ariaSelected = String(chosen);
    this.columns.forEach((column, i) => {
      const cell = row.cells[i]!;
      say(cell.firstElementChild!, column.text(item));
      if (column.swatch) cell.style.setProperty("--dot", `var(--${column.swatch(item)})`);
      if (column.swatch) cell.classList.add("dotted");
      if (column.hint) hint(cell, column.hint(item));
    });
    return chosen;
  }
}
