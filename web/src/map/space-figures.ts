// SPDX-License-Identifier: Apache-2.0
//
// The figures of a memory, above its map.

import { bytes, count, percent } from "../base/format";
import { figure } from "../parts/view";
import type { Space } from "../data/model";
import type { Layout } from "./holes";

/** How far buffers of L1 may still grow down; undefined for other memories. */
const headroom = (value: number | null | undefined): HTMLElement[] =>
  value === undefined ? []
  : [figure("Headroom", value === null ? "not known" : bytes(value),
      "on each core, from the farthest circular buffer to the lowest buffer; " +
      "dataflow buffers and scratchpads of tt-metal are not seen")];

/** Other processes that hold some of the same memory of the device. */
const shared = ({ shared: all, banks }: Space): HTMLElement[] =>
  !all ? []
  : [figure("Other processes", all.others.map(({ pid, comm, bytes: held }) => `${comm} (${pid}) ${bytes(held)}`).join(", ")),
    figure("Free beside them", `${all.placed ? "" : "at most "}${bytes(all.free * banks)}`,
      "on the device; each process has an allocator of its own, which does not know of the others")];

export function spaceFigures({ space, bank, spans }: Layout): HTMLElement[] {
  if (!space) return [figure("Buffers", count(spans.length)), figure("Free", "not known")];
  const all = (value: number): string => bytes(value * bank.banks);
  return [
    figure("Taken", all(space.used)),
    figure("Occupied", space.occupied === null ? "not known" : bytes(space.occupied), "by buffers, in the banks that they touch"),
    figure("Free", all(space.free)),
    figure("Largest free block", all(space.largest), `${bytes(space.largest)} in each of ${space.banks} banks`),
    figure("Free blocks", count(space.hole_count ?? space.holes.length)),
    figure("Fragmentation", percent(space.fragmentation, 1), "free memory that is not in the largest free block"),
    ...shared(space),
    ...headroom(space.headroom),
  ];
}
