// SPDX-License-Identifier: Apache-2.0
//
// Two trees as one: each frame with what it had and what it has. What has gone keeps its place, so a frame is as wide as
// the larger of both, leaf by leaf.

import type { Node } from "./tree";

export const diffTrees = (before: Node, after: Node): Node => merge(before, after);

/** One of the two may be missing. */
function merge(before: Node | undefined, after: Node | undefined): Node {
  const { key, name, where } = (after ?? before)!;
  const [had, has] = [before?.value ?? 0, after?.value ?? 0];
  const children = pairs(before?.children ?? [], after?.children ?? []);
  const inside = children.reduce((sum, child) => sum + child.weight!, 0);
  return {
    key, name, where, value: has, buffers: after?.buffers ?? 0, children, before: { value: had, buffers: before?.buffers ?? 0 },
    weight: Math.max(inside, had, has),
  };
}

function pairs(before: readonly Node[], after: readonly Node[]): Node[] {
  if (before.length === 0) return after.map((child) => merge(undefined, child));
  const rest = new Map(before.map((child) => [child.key, child]));
  const both = after.map((child) => {
    const old = rest.get(child.key);
    rest.delete(child.key);
    return merge(old, child);
  });
  for (const child of rest.values()) both.push(merge(child, undefined));
  return both;
}

/** How much of a frame is new (up to 1) or has gone (down to -1). */
export function change({ value, before }: Node): number {
  const more = value - (before?.value ?? value);
  return more === 0 ? 0 : more / Math.max(value, before!.value);
}
