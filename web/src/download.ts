// SPDX-License-Identifier: Apache-2.0
//
// Saves what is shown: tables as CSV or JSON, drawings as PNG. All of it is made here; the daemon is not asked again.

import { colour } from "./colours";
import { h } from "./dom";
import { asCsv, asJson, fileName, type Figures } from "./figures";

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

/** A small menu. @drawing: where there is a canvas. */
export function saveMenu(name: string, figures: (() => Figures) | null, drawing?: Element): HTMLElement {
  const item = (text: string, run: () => void): HTMLElement => {
    const button = h("button", { type: "button", class: "small" }, text);
    button.addEventListener("click", () => {
      run();
      menu.open = false;
      menu.querySelector("summary")!.focus();
    });
    return button;
  };
  const menu = h("details", { class: "save" }, h("summary", { "aria-label": `Save: ${name}` }, "Save"), h("div", { class: "tools" },
    figures && item("CSV", () => save(name, "csv", new Blob([asCsv(figures())], { type: "text/csv" }))),
    figures && item("JSON", () => save(name, "json", new Blob([asJson(figures())], { type: "application/json" }))),
    drawing && item("PNG", () => {
      const canvas = drawing.querySelector("canvas");
      if (canvas) void picture(canvas).then((blob) => blob && save(name, "png", blob));
    })));
  menu.addEventListener("keydown", (event) => event.key === "Escape" && (menu.open = false));
  return menu;
}
