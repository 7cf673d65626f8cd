// SPDX-License-Identifier: Apache-2.0
//
// Draws the rows of a flame graph that are in sight, the outermost call at the bottom.

import { bytes, signed } from "../base/format";
import type { Pen } from "../base/svg";
import { short } from "../base/text";
import { colour } from "../parts/colours";
import { clip, drawnIn, type FlameFrame, type FlameRows, type View } from "./flame-layout";
import { change } from "./tree-diff";

export const ROW_PX = 20;
const PAD_PX = 4;
const LABEL_PX = 24; // narrower frames have no room for text
const LETTERS = 300; // more never fit

/** What is drawn, in pixels of the page. */
export interface Scene {
  rows: FlameRows;
  view: View;
  width: number;
  height: number; // of what is in sight
  top: number; // what is scrolled away above
  near: FlameFrame | null; // those below it in the stack are faded
  found: ReadonlySet<FlameFrame>;
  hovered: FlameFrame | null;
  focused: FlameFrame | null;
  font: string; // its families
}

const SHADES = 6;

function shade(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) % 9973;
  return value % SHADES;
}

/** A third of its bytes, two thirds, or more. */
const strength = (part: number): number => Math.min(3, Math.ceil(Math.abs(part) * 3));

/** The variable with the colour of a frame. */
export function look({ node }: FlameFrame, found: boolean): string {
  if (found) return "highlight";
  if (!node.before) return `flame-${shade(node.name)}`;
  const part = change(node);
  return part === 0 ? "flame-same" : `flame-${part > 0 ? "more" : "less"}-${strength(part)}`;
}

export const rowTop = (rows: FlameRows, depth: number): number => (rows.length - 1 - depth) * ROW_PX;

/** [left, right] of a frame, as far as it is in sight. */
export function extent({ x0, x1 }: FlameFrame, [from, to]: View, width: number): [number, number] {
  const at = (x: number): number => ((Math.min(Math.max(x, from), to) - from) / (to - from)) * width;
  return [at(x0), at(x1)];
}

function write(pen: Pen, { node }: FlameFrame, left: number, room: number, middle: number): void {
  const name = short(node.name, LETTERS);
  const whole = `${name}: ${change(node) ? signed(node.value - node.before!.value) : bytes(node.value)}`;
  const measure = (text: string): number => pen.measureText(text).width;
  pen.fillText(measure(whole) <= room ? whole : clip(name, room, measure), left, middle);
}

function ring(pen: Pen, scene: Scene, frame: FlameFrame, wide: number): void {
  const [left, right] = extent(frame, scene.view, scene.width);
  const top = rowTop(scene.rows, frame.depth) - scene.top;
  const width = Math.max(right - left, 2 * wide); // a narrow one can be seen, too
  pen.lineWidth = wide;
  pen.strokeRect(Math.min(left, scene.width - width) + wide / 2, top + wide / 2, width - wide - 1, ROW_PX - wide - 1);
}

export function paint(pen: Pen, scene: Scene, scale: number): void {
  const { rows, view, width, height, top } = scene;
  const sharp = (value: number): number => Math.round(value * scale) / scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `12px ${scene.font}`;
  pen.textBaseline = "middle";
  pen.direction = "ltr";
  const text = colour("text");
  const first = Math.max(0, rows.length - Math.ceil((top + height) / ROW_PX));
  const last = Math.min(rows.length - 1, rows.length - 1 - Math.floor(top / ROW_PX));
  for (let depth = first; depth <= last; depth++) {
    const y = rowTop(rows, depth) - top;
    const faded = scene.near !== null && depth < scene.near.depth;
    for (const frame of drawnIn(rows[depth]!, view, width)) {
      const [left, right] = extent(frame, view, width).map(sharp) as [number, number];
      pen.globalAlpha = faded ? 0.5 : 1;
      pen.fillStyle = colour(look(frame, scene.found.has(frame)));
      pen.fillRect(left, y, Math.max(right - left - (right - left > 2 ? 1 : 0), 1 / scale), ROW_PX - 1);
      if (right - left < LABEL_PX) continue;
      pen.globalAlpha = 1;
      pen.fillStyle = text;
      write(pen, frame, left + PAD_PX, right - left - 2 * PAD_PX, y + ROW_PX / 2);
    }
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = text;
  if (scene.hovered) ring(pen, scene, scene.hovered, 1);
  if (scene.focused) ring(pen, scene, scene.focused, 2);
}
