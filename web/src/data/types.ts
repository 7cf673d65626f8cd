// SPDX-License-Identifier: Apache-2.0
//
// The types of memory. tools/build/type_lists.py writes this file from include/ttmem/types.def.

/** By pool: the memory of the device that a type counts as. */
export const TYPES = ["DRAM", "TRACE", "L1", "L1_SMALL", "CB", "KERNEL", "SYSTEM_MEMORY"] as const;
export type MemoryType = (typeof TYPES)[number];

export const POOL_TYPES: Record<"DRAM" | "L1" | "SYSTEM_MEMORY", MemoryType[]> = {
  DRAM: ["DRAM", "TRACE"],
  L1: ["L1", "L1_SMALL", "CB", "KERNEL"],
  SYSTEM_MEMORY: ["SYSTEM_MEMORY"],
};

export const TYPE_TITLES: Record<MemoryType, string> = {
  DRAM: "DRAM",
  TRACE: "Trace",
  L1: "L1",
  L1_SMALL: "L1 small",
  CB: "Circular buffers",
  KERNEL: "Kernels",
  SYSTEM_MEMORY: "System memory",
};

/** Memories with banks of their own; see src/model/memory/free-blocks.h. */
export const SPACE_TYPES = ["DRAM", "L1", "TRACE", "L1_SMALL", "SYSTEM_MEMORY"] as const;
export type SpaceType = (typeof SPACE_TYPES)[number];

/** Where its buffers lie. Kernels may also lie in L1. */
export const TYPE_PLACES: Record<MemoryType, SpaceType> = {
  DRAM: "DRAM",
  TRACE: "TRACE",
  L1: "L1",
  L1_SMALL: "L1_SMALL",
  CB: "L1",
  KERNEL: "DRAM",
  SYSTEM_MEMORY: "SYSTEM_MEMORY",
};
