// SPDX-License-Identifier: Apache-2.0
//
// Keyboard navigation in a flame graph, from the current frame to another visible one. Up goes to a callee, down to the
// caller, left and right along the level, also across callers.

export interface Placed<T> {
  depth: number;
  x0: number;
  x1: number;
  parent: T | null;
}

const best = <T>(list: readonly T[], value: (one: T) => number): T | null =>
  list.reduce<T | null>((most, one) => (most === null || value(one) > value(most) ? one : most), null);

/** null: the key has no meaning here, or there is no frame in that direction. */
export function neighbour<T extends Placed<T>>(drawn: readonly T[], at: T, key: string): T | null {
  const level = drawn.filter((one) => one.depth === at.depth && one !== at);
  switch (key) {
    case "ArrowUp": // the callee with most bytes
      return best(drawn.filter((one) => one.parent === at), (one) => one.x1 - one.x0);
    case "ArrowDown":
      return drawn.find((one) => one === at.parent) ?? null;
    case "ArrowRight":
      return best(level.filter((one) => one.x0 >= at.x1), (one) => -one.x0);
    case "ArrowLeft":
      return best(level.filter((one) => one.x1 <= at.x0), (one) => one.x1);
    case "Home":
      return drawn.find((one) => one.depth === 0 && one !== at) ?? null;
    default:
      return null;
  }
}
