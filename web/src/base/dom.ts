// SPDX-License-Identifier: Apache-2.0
//
// Creates elements. Text only ever becomes a text node: names, phases and stacks come from other processes and
// may contain anything. Invisible characters are written out.

import { visible } from "./text";

export type Child = Node | string | number | null | undefined | false | Child[];
type Value = string | number | boolean | null | undefined | ((event: never) => void);
export type Props = Record<string, Value>;

function append(to: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(to, child);
    else to.append(child instanceof Node ? child : visible(String(child)));
  }
}

const SPOKEN = new Set(["title", "aria-label", "alt"]);

function apply(element: HTMLElement | SVGElement, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (name.startsWith("--")) element.style.setProperty(name, String(value));
    else element.setAttribute(name, value === true ? "" : SPOKEN.has(name) ? visible(String(value)) : String(value));
  }
}

/** A frame that scrolls is a stop of the Tab key while it has to be: without a mouse there is no other way to scroll it. */
function stopWhileItScrolls(entries: ResizeObserverEntry[]): void {
  for (const { target } of entries)
    if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight)
      apply(target as HTMLElement, { tabindex: 0, role: "group", "aria-label": "A table that scrolls" });
    else for (const name of ["tabindex", "role", "aria-label"]) target.removeAttribute(name);
}

let frames: ResizeObserver | null = null;

export function h<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[T] {
  const element = document.createElement(tag);
  apply(element, props);
  append(element, children);
  if (element.classList.contains("scroll")) (frames ??= new ResizeObserver(stopWhileItScrolls)).observe(element);
  return element;
}

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(element, props);
  append(element, children);
  return element;
}

/** An element that is removed loses the focus, even if it is put back at once: this restores it. */
function keepingFocus(change: () => void): void {
  const at = document.activeElement;
  change();
  if (at !== document.activeElement && at?.isConnected && (at instanceof HTMLElement || at instanceof SVGElement))
    at.focus({ preventScroll: true });
}

export function clear(element: Element, ...children: Child[]): void {
  keepingFocus(() => {
    element.replaceChildren();
    append(element, children);
  });
}

/**
 * Like clear(), for content that is rebuilt at each update and is mostly the same. Equal nodes are left alone, so that a
 * focused link keeps the focus. Listeners are not compared: nodes that look the same must behave the same.
 */
export function renew(element: Element, ...children: Child[]): void {
  const next = element.cloneNode(false) as Element;
  append(next, children);
  if (next.isEqualNode(element)) return;
  const at = element.contains(document.activeElement) ? document.activeElement!.getAttribute("href") : null;
  element.replaceChildren(...next.childNodes);
  if (at !== null) element.querySelector<HTMLElement>(`a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
}

/** Sets a text only when it differs: an update that changes nothing must cost nothing. */
export function say(element: Element, text: string): void {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

export interface Row<T> {
  element: HTMLElement;
  update(item: T): void;
}

/** Syncs the children of an element with a list: rows are kept by key, and moved only when needed. */
export class Keyed<T> {
  private rows = new Map<string, Row<T>>();

  constructor(
    private parent: Element,
    private key: (item: T) => string,
    private make: (item: T) => Row<T>,
  ) {}

  show(items: readonly T[]): void {
    keepingFocus(() => this.arrange(items));
  }

  private arrange(items: readonly T[]): void {
    const rest = new Map(this.rows);
    let at: Element | null = this.parent.firstElementChild;
    this.rows.clear();
    for (const item of items) {
      const key = this.key(item);
      const row = rest.get(key) ?? this.make(item);
      rest.delete(key);
      this.rows.set(key, row);
      row.update(item);
      if (row.element === at) at = at.nextElementSibling;
      else this.parent.insertBefore(row.element, at);
    }
    for (const row of rest.values()) row.element.remove();
  }
}

/** One of several choices, as buttons: usable by keyboard, announced by screen readers as pressed or not. */
export function choice<T extends string>(
  label: string,
  options: readonly { value: T; text: string }[],
  chosen: T,
  choose: (value: T) => void,
): HTMLElement {
  const buttons = options.map(({ value, text }) => {
    const button = h("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      choose(value);
    });
    return button;
  });
  return h("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

/** Sets the tooltip, if it differs. */
export function hint(element: HTMLElement, text: string): void {
  const shown = visible(text);
  if (element.title !== shown) element.title = shown;
}

/** A list that can be very long: shows one step of rows, and a button for more. */
export class More {
  readonly element = h("div", { class: "more", hidden: true });
  private text = h("span", { class: "muted" });
  private shown: number;

  /** @shown: how many to begin with, if that is more than one step. */
  constructor(
    step: number,
    private noun: string,
    changed: (shown: number) => void,
    shown = 0,
  ) {
    const button = h("button", { type: "button", class: "small" }, "Show more");
    this.shown = Math.max(step, shown || 0);
    button.addEventListener("click", () => {
      this.shown += step;
      changed(this.shown);
    });
    this.element.append(this.text, button);
  }

  cut<T>(list: readonly T[]): readonly T[] {
    const rest = list.length - this.shown;
    this.element.hidden = rest <= 0;
    if (rest <= 0) return list;
    say(this.text, `${rest.toLocaleString("en")} more ${this.noun}`);
    return list.slice(0, this.shown);
  }
}
