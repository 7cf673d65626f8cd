// SPDX-License-Identifier: Apache-2.0
//
// A flame graph without a mouse: from the frame one is at to the next one, of those that are drawn. Up and down as on the
// screen: up to what it called, down to its caller; to the sides along the level, also from one caller's to another's.

export interface Placed<T> {
  depth: number;
  x0: number;
  x1: number;
  parent: T | null;
}

const best = <T>(list: readonly T[], value: (one: T) => number): T | null =>
  list.reduce<T | null>((most, one) => (most === null || value(one) > value(most) ? one : most), null);

/** null: the key means nothing here, or there is nothing further that way. */
export function neighbour<T extends Placed<T>>(drawn: readonly T[], at: T, key: string): T | null {
  const level = drawn.filter((one) => one.depth === at.depth && one !== at);
  switch (key) {
    case "ArrowUp": // of several calls the one that answers for most
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
