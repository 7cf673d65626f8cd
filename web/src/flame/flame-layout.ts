// SPDX-License-Identifier: Apache-2.0
//
// Where the frames of a flame graph lie, and which of them are meant: by a point, by a path, by a text. Across, a frame
// has a share of the whole tree, from 0 to 1, so neither zooming nor a new width changes it.

import type { Node } from "./tree";

export interface FlameFrame {
  node: Node;
  parent: FlameFrame | null;
  children: FlameFrame[];
  depth: number;
  x0: number;
  x1: number;
}

/** By depth; in a row from left to right. The first row is the root alone. */
export type FlameRows = FlameFrame[][];

/** The visible part of the width. */
export type View = readonly [from: number, to: number];
export const WHOLE: View = [0, 1];

/** Narrower frames are not drawn: a tree may have many thousands. */
export const FRAME_MIN_PX = 0.5;

const weight = (node: Node): number => node.weight ?? node.value;

const natural = new Intl.Collator("en", { numeric: true });
const NATURAL_MAX = 1000; // it is slow

/** By name, so that a frame stays in its place when others grow, come and go: layer_2 before layer_10. */
function ordered(nodes: readonly Node[]): Node[] {
  const plain = (a: Node, b: Node): number => (a.key < b.key ? -1 : 1);
  return [...nodes].sort(nodes.length > NATURAL_MAX ? plain : (a, b) => natural.compare(a.key, b.key) || plain(a, b));
}

export function layOut(root: Node): FlameRows {
  const whole = weight(root) || 1;
  const rows: FlameRows = [[{ node: root, parent: null, children: [], depth: 0, x0: 0, x1: 1 }]];
  for (let depth = 1; ; depth++) {
    const row: FlameFrame[] = [];
    for (const parent of rows[depth - 1]!) {
      let x = parent.x0;
      for (const node of ordered(parent.node.children)) {
        const frame = { node, parent, children: [], depth, x0: x, x1: (x += weight(node) / whole) };
        parent.children.push(frame);
        row.push(frame);
      }
    }
    if (row.length === 0) return rows;
    rows.push(row);
  }
}

/** The first frame of a row that ends after @x. */
function firstAfter(row: readonly FlameFrame[], x: number): number {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle]!.x1 > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function frameAt(rows: FlameRows, depth: number, x: number): FlameFrame | null {
  const row = rows[depth] ?? [];
  const found = row[firstAfter(row, x)];
  return found && found.x0 <= x ? found : null;
}

/** The frames of a row that are wide enough to be drawn. */
export function drawnIn(row: readonly FlameFrame[], [from, to]: View, width: number): FlameFrame[] {
  const least = (FRAME_MIN_PX * (to - from)) / width;
  const list: FlameFrame[] = [];
  for (let i = firstAfter(row, from); i < row.length && row[i]!.x0 < to; i++) {
    const frame = row[i]!;
    if (Math.min(frame.x1, to) - Math.max(frame.x0, from) >= least) list.push(frame);
  }
  return list;
}

/** The path to a frame, which is the same in the next tree. */
export function wayTo(frame: FlameFrame): string[] {
  const way: string[] = [];
  for (let at = frame; at.parent; at = at.parent) way.unshift(at.node.key);
  return way;
}

/** The frame at the end of a path, or the last one on it that still exists. */
export function along(rows: FlameRows, way: readonly string[]): FlameFrame {
  let at = rows[0]![0]!;
  for (const step of way) {
    const next = at.children.find((one) => one.node.key === step);
    if (!next) break;
    at = next;
  }
  return at;
}

/** FNV-1a, 32 bits. */
function mix(hash: number, text: string): number {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

const STEP = "\n\n"; // between two keys, which have one line end each

/** A short name for the path to a frame, that says nothing to others; the same in the next tree. */
export const frameName = (frame: FlameFrame): string =>
  wayTo(frame).reduce((hash, key) => mix(hash, key + STEP), 2166136261).toString(16).padStart(8, "0");

/** The frame that has this name; null: there is none. */
export function frameNamed(rows: FlameRows, name: string): FlameFrame | null {
  const hashes = new Map<FlameFrame, number>([[rows[0]![0]!, 2166136261]]);
  const wanted = parseInt(name, 16);
  for (const row of rows.slice(1))
    for (const frame of row) {
      const hash = mix(hashes.get(frame.parent!)!, frame.node.key + STEP);
      if (hash === wanted) return frame;
      hashes.set(frame, hash);
    }
  return null;
}

export interface Found {
  frames: Set<FlameFrame>;
  bytes: number;
}

/** The frames with a text in their name or place. Bytes count once, also where a match calls another. */
export function search(rows: FlameRows, text: string): Found {
  const found: Found = { frames: new Set(), bytes: 0 };
  const wanted = text.trim().toLowerCase();
  if (!wanted) return found;
  const counted = new Set<FlameFrame>();
  for (const row of rows)
    for (const frame of row) {
      const below = frame.parent !== null && counted.has(frame.parent);
      if (below) counted.add(frame);
      if (!`${frame.node.name} ${frame.node.where}`.toLowerCase().includes(wanted)) continue;
      found.frames.add(frame);
      if (below) continue;
      counted.add(frame);
      found.bytes += frame.node.value;
    }
  return found;
}

/** The start of a text that fits, with an ellipsis; "" if hardly anything would. */
export function clip(text: string, room: number, measure: (text: string) => number): string {
  if (measure(text) <= room) return text;
  const letters = [...text];
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${letters.slice(0, middle).join("")}…`) <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? "" : `${letters.slice(0, low).join("").trimEnd()}…`;
}
