// SPDX-License-Identifier: Apache-2.0
//
// Live bytes by merged stack, as a tree: the data of a flame graph and of its table.

import { visible } from "../base/text";
import type { Buffer } from "../data/model";
import { frameName, frameWhere } from "../data/stack";

export interface Node {
  key: string; // unlike those of its siblings, and the same in the next tree
  name: string;
  where: string;
  value: number;
  buffers: number;
  children: Node[];
  before?: { value: number; buffers: number }; // in a difference
  weight?: number; // how wide it is, if not as its value
}

interface Building extends Node {
  children: Building[];
  by?: Map<string, Building>; // a leaf has none
}

const make = (key: string, name: string, where: string): Building =>
  ({ key, name, where, value: 0, buffers: 0, children: [] });

function step(node: Building, name: string, where: string): Building {
  const key = `${name}\n${where}`;
  node.by ??= new Map();
  let child = node.by.get(key);
  if (!child) {
    child = make(key, visible(name), visible(where));
    node.by.set(key, child);
    node.children.push(child);
  }
  return child;
}

/** A buffer, or several of one call site: then `size` is that of all. */
export type Weighed = Pick<Buffer, "stack" | "phase" | "name" | "type" | "size"> &
  Partial<Pick<Buffer, "device" | "device_uid">> & { buffers?: number };

/** Buffers without a stack go by phase. The leaf is type and name. */
export function tree(buffers: readonly Weighed[]): Node {
  const root = make("", "all", "");
  for (const buffer of buffers) {
    const path = [root];
    let at = root;
    const go = (name: string, where: string): void => {
      at = step(at, name, where);
      path.push(at);
    };
    if (buffer.stack.length > 0)
      for (let i = buffer.stack.length - 1; i >= 0; i--)
        go(frameName(buffer.stack[i]!), frameWhere(buffer.stack[i]!));
    else {
      go("no stack", "");
      if (buffer.phase) for (const part of buffer.phase.split("/")) go(part, "phase");
    }
    go(buffer.name ?? "without a name", buffer.type);
    for (const node of path) {
      node.value += buffer.size;
      node.buffers += buffer.buffers ?? 1;
    }
  }
  return root;
}

/** Whether one would look like the other. */
export const same = (a: Node, b: Node): boolean =>
  a.key === b.key && a.value === b.value && a.buffers === b.buffers && a.weight === b.weight &&
  a.before?.value === b.before?.value && a.before?.buffers === b.before?.buffers &&
  a.children.length === b.children.length && a.children.every((child, i) => same(child, b.children[i]!));

const much = ({ value, before }: Node): number => (before ? Math.abs(value - before.value) : value);

/** The leaves with the paths to them, the largest first, or the largest changes. */
export function tips(root: Node): { path: string[]; node: Node }[] {
  const rows: { path: string[]; node: Node }[] = [];
  const walk = (node: Node, path: string[]): void => {
    if (node.children.length === 0) rows.push({ path, node });
    for (const child of node.children) walk(child, [...path, child.name]);
  };
  if (root.children.length > 0) walk(root, []);
  return rows.sort((a, b) => much(b.node) - much(a.node));
}
