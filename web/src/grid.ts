// SPDX-License-Identifier: Apache-2.0
//
// A table of any length: only visible rows exist in the page. Sorting and filtering work on the list, so
// a hundred thousand rows scroll as fast as a hundred.

import { h, hint, say } from "./dom";
import { listHeight, reveal, seen } from "./window";

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

const look = (column: { number?: boolean; narrow?: string | false; dot?: boolean }): string =>
  `${column.number ? "number" : ""} ${column.narrow === false ? "wide-only" : ""} ${column.dot ? "dot-only" : ""}`;

export class Grid<T> {
  readonly element: HTMLElement;
  private body = h("div", { class: "grid-body", role: "rowgroup" });
  private spacer = h("div", { class: "grid-spacer" });
  private nothing = h("p", { class: "grid-nothing muted", hidden: true });
  private view: HTMLElement;
  private heads: HTMLElement[] = [];
  private rows: { element: HTMLElement; cells: HTMLElement[]; item: T | null }[] = [];
  private all: readonly T[] = [];
  private shown: T[] = [];
  private order: { column: Column<T>; down: boolean };
  private filter: (item: T) => boolean = () => true;
  private chosen: unknown = null; // key

  constructor(
    label: string,
    private columns: Column<T>[],
    sortBy: string,
    private choose?: (item: T) => void,
    private key: (item: T) => unknown = (item) => item, // the same when the list is read again
  ) {
    const first = columns.find((column) => column.id === sortBy) ?? columns[0]!;
    this.order = { column: first, down: first.number === true };
    const head = h("div", { class: "grid-row grid-head", role: "row" }, columns.map((column) => this.head(column)));
    this.view = h("div", { class: "grid-view", tabindex: 0, "aria-label": `${label}, rows` }, this.spacer, this.body, this.nothing);
    this.element = h("div", { class: "grid", role: "table", "aria-label": label }, head, this.view);
    this.element.style.setProperty("--columns", columns.map((column) => column.width).join(" "));
    this.element.style.setProperty("--columns-narrow",
      columns.flatMap((column) => (column.narrow === false ? [] : [column.narrow ?? column.width])).join(" "));
    this.view.addEventListener("scroll", () => this.draw(), { passive: true });
    this.view.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(this.view);
  }

  private head(column: Column<T>): HTMLElement {
    const button = h("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      const same = this.order.column === column;
      this.order = { column, down: same ? !this.order.down : column.number === true };
      this.arrange();
    });
    const element = h(
      "div",
      { role: "columnheader", class: look(column), "aria-sort": "none" },
      button,
    );
    this.heads.push(element);
    return element;
  }

  set(items: readonly T[]): void {
    this.all = items;
    this.arrange();
  }

  where(filter: (item: T) => boolean): void {
    this.filter = filter;
    this.view.scrollTop = 0;
    this.arrange();
  }

  get length(): number {
    return this.shown.length;
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
    this.element.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.view.style.setProperty("--rows", String(Math.max(3, this.shown.length)));
    this.spacer.style.height = `${listHeight(this.shown.length)}px`;
    this.draw();
  }

  private row(i: number): { element: HTMLElement; cells: HTMLElement[]; item: T | null } {
    let row = this.rows[i];
    if (row) return row;
    const cells = this.columns.map((column) =>
      h("div", { role: "cell", class: look(column) }, h("span", {})),
    );
    const element = h("div", { class: "grid-row", role: "row" }, cells);
    row = { element, cells, item: null };
    const made = row;
    if (this.choose) {
      element.classList.add("link");
      element.addEventListener("click", () => made.item && this.pick(made.item));
    }
    this.rows[i] = row;
    this.body.append(element);
    return row;
  }

  private pick(item: T): void {
    this.chosen = this.key(item);
    this.draw();
    this.choose?.(item);
  }

  private press(event: KeyboardEvent): void {
    if (!this.choose || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    const now = this.chosen === null ? -1 : this.shown.findIndex((item) => this.key(item) === this.chosen);
    const next = Math.max(0, Math.min(this.shown.length - 1, now + (event.key === "ArrowDown" ? 1 : -1)));
    const item = this.shown[next];
    if (!item) return;
    event.preventDefault();
    this.view.scrollTop = reveal(this.shown.length, next, this.view.scrollTop, this.view.clientHeight);
    this.pick(item);
  }

  private draw(): void {
    const { first, last, offset } = seen(this.shown.length, this.view.scrollTop, this.view.clientHeight);
    this.body.style.transform = `translateY(${offset}px)`;
    for (let i = first; i < last; i++) this.fill(this.row(i - first), this.shown[i]!, i);
    for (let i = last - first; i < this.rows.length; i++) this.rows[i]!.element.hidden = true;
  }

  private fill(row: { element: HTMLElement; cells: HTMLElement[]; item: T | null }, item: T, number: number): void {
    row.element.hidden = false;
    row.item = item;
    row.element.setAttribute("aria-rowindex", String(number + 2));
    row.element.classList.toggle("chosen", this.chosen !== null && this.key(item) === this.chosen);
    this.columns.forEach((column, i) => {
      const cell = row.cells[i]!;
      say(cell.firstElementChild!, column.text(item));
      if (column.swatch) cell.style.setProperty("--dot", `var(--${column.swatch(item)})`);
      if (column.swatch) cell.classList.add("dotted");
      if (column.hint) hint(cell, column.hint(item));
    });
  }
}
