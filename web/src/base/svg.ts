// SPDX-License-Identifier: Apache-2.0
//
// Drawings as SVG: a pen that takes the few calls with which flame graphs and maps are drawn on a canvas, and what charts
// need besides.

/** What the drawings use of a canvas. */
export type Pen = Pick<CanvasRenderingContext2D,
  "fillStyle" | "strokeStyle" | "lineWidth" | "globalAlpha" | "font" | "textBaseline" | "direction" |
  "fillRect" | "strokeRect" | "clearRect" | "fillText" | "setTransform"> & { measureText(text: string): { width: number } };

/** Names come from programs: nothing in them is markup, and what XML cannot have is replaced. */
export const escaped = (text: string): string =>
  text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

export const rounded = (value: number): string => String(Math.round(value * 100) / 100);

const HIDDEN_PX = 0.25;

type Attributes = Record<string, string | number | null | undefined>;

/** @content: markup. */
export function element(name: string, attributes: Attributes, content = ""): string {
  const given = Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined);
  const text = given.map(([key, value]) => ` ${key}="${typeof value === "number" ? rounded(value) : escaped(value!)}"`).join("");
  return `<${name}${text}${content ? `>${content}</${name}>` : "/>"}`;
}

export const textAt = (x: number, y: number, text: string, fill: string, more: Attributes = {}): string =>
  element("text", { x, y, fill, "dominant-baseline": "central", "xml:space": "preserve", ...more }, escaped(text));

/** A whole file. @font: as a canvas has it, "12px sans-serif". */
export function svgFile(width: number, height: number, background: string, font: string, content: string): string {
  const [, size = "12px", family = "sans-serif"] = /^(\S+) (.+)$/.exec(font) ?? [];
  return element("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${rounded(width)} ${rounded(height)}`, "font-size": size, "font-family": family },
    element("rect", { width, height, fill: background }) + content);
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "";
  strokeStyle: Pen["strokeStyle"] = "";
  lineWidth = 1;
  globalAlpha = 1;
  font = "";
  textBaseline: CanvasTextBaseline = "middle";
  direction: CanvasDirection = "ltr";
  private parts: string[] = [];
  private last = { kind: "", x: 0, end: 0 };

  /** @measure: the width of a text in a font. */
  constructor(private measure: (text: string, font: string) => number = () => 0) {}

  private rect(x: number, y: number, width: number, height: number, more: Attributes): void {
    this.parts.push(element("rect", { x, y, width, height, ...more, opacity: this.globalAlpha < 1 ? this.globalAlpha : null }));
  }

  /** One that would be hidden by the last one, of the same colour, is left out: a map may have a hundred thousand. */
  fillRect(x: number, y: number, width: number, height: number): void {
    const [kind, end] = [`${this.fillStyle} ${this.globalAlpha} ${y} ${height}`, x + width];
    if (kind === this.last.kind && x >= this.last.x && end <= this.last.end + HIDDEN_PX) return;
    this.last = { kind, x, end };
    this.rect(x, y, width, height, { fill: String(this.fillStyle) });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.rect(x, y, width, height, { fill: "none", stroke: String(this.strokeStyle), "stroke-width": this.lineWidth });
  }

  fillText(text: string, x: number, y: number): void {
    if (text) this.parts.push(textAt(x, y, text, String(this.fillStyle)));
  }

  measureText(text: string): { width: number } {
    return { width: this.measure(text, this.font) };
  }

  clearRect(): void {} // there is nothing yet

  setTransform(): void {} // pixels of the screen do not matter

  file(width: number, height: number, background: string): string {
    return svgFile(width, height, background, this.font, this.parts.join(""));
  }
}
