// SPDX-License-Identifier: Apache-2.0
//
// Saves what is shown: tables as CSV or JSON, drawings as PNG or SVG. All of it is made here; the daemon is not asked again.

import { h } from "../base/dom";
import { asCsv, asJson, fileName, type Figures } from "../base/figures";
import { colour } from "./colours";

function save(name: string, form: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: fileName(name, form) }).click();
  setTimeout(() => URL.revokeObjectURL(address)); // the download has begun
}

/** With the background that it has on the page, which a canvas lacks. */
async function picture(canvas: HTMLCanvasElement): Promise<Blob | null> {
  const copy = h("canvas", { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d")!;
  context.fillStyle = colour("surface");
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return new Promise((resolve) => copy.toBlob(resolve));
}

/** @svg: null if there is nothing to draw. */
export interface Drawing {
  element: Element; // where there is a canvas
  svg(): string | null;
}

/** The width of a text, for drawings without a canvas. */
export function measured(): (text: string, font: string) => number {
  const pen = h("canvas", {}).getContext("2d")!;
  return (text, font) => {
    pen.font = font;
    return pen.measureText(text).width;
  };
}

/** A button that unfolds the forms. */
export function saveMenu(name: string, figures: (() => Figures) | null, drawing?: Drawing): HTMLElement {
  const button = h("button", { type: "button", class: "small", "aria-label": `Save: ${name}`, "aria-expanded": "false" }, "Save");
  const forms = h("div", { class: "tools", hidden: true });
  const unfold = (open: boolean): void => {
    forms.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  const add = (form: string, run: () => void): void => {
    const item = h("button", { type: "button", class: "small" }, form.toUpperCase());
    item.addEventListener("click", () => {
      run();
      unfold(false);
      button.focus({ preventScroll: true });
    });
    forms.append(item);
  };
  if (figures) {
    add("csv", () => save(name, "csv", new Blob([asCsv(figures())], { type: "text/csv" })));
    add("json", () => save(name, "json", new Blob([asJson(figures())], { type: "application/json" })));
  }
  if (drawing) {
    add("png", () => {
      const canvas = drawing.element.querySelector("canvas");
      if (canvas) void picture(canvas).then((blob) => blob && save(name, "png", blob));
    });
    add("svg", () => {
      const text = drawing.svg();
      if (text) save(name, "svg", new Blob([text], { type: "image/svg+xml" }));
    });
  }
  button.addEventListener("click", () => unfold(forms.hidden));
  const menu = h("div", { class: "save" }, button, forms);
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || forms.hidden) return;
    unfold(false);
    button.focus({ preventScroll: true });
    event.stopPropagation();
  });
  return menu;
}
