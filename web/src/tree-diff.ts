// SPDX-License-Identifier: Apache-2.0
//
// Two trees as one: each frame with what it had and what it has. What has gone keeps its place, so a frame is as wide as
// the larger of both, leaf by leaf.

import type { Node } from "./tree";

const nothing = (like: Node): Node => ({ ...like, value: 0, buffers: 0, children: [] });

export function diffTrees(before: Node, after: Node): Node {
  const gone = new Map(before.children.map((child) => [child.key, child]));
  const children = after.children.map((child) => {
    const key = child.key;
    const old = gone.get(key);
    gone.delete(key);
    return diffTrees(old ?? nothing(child), child);
  });
  for (const child of gone.values()) children.push(diffTrees(child, nothing(child)));
  const inside = children.reduce((sum, child) => sum + child.weight!, 0);
  return {
    ...after, children, before: { value: before.value, buffers: before.buffers },
    weight: Math.max(inside, before.value, after.value),
  };
}

/** How much of a frame is new (up to 1) or has gone (down to -1). */
export function change({ value, before }: Node): number {
  const more = value - (before?.value ?? value);
  return more === 0 ? 0 : more / Math.max(value, before!.value);
}
