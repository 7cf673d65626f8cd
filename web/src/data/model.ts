// SPDX-License-Identifier: Apache-2.0
//
// The documents of docs/schema/, as far as the dashboard uses them, and how their parts are matched.

import { POOL_TYPES, TYPES, type MemoryType, type SpaceType } from "./types";

export * from "./types";

/** Types that share one memory on the device; "ttmem smi" groups them in the same way. */
export type Pool = "DRAM" | "L1" | "SYSTEM";
export const POOLS: Record<Pool, { title: string; types: MemoryType[] }> = {
  DRAM: { title: "DRAM", types: POOL_TYPES.DRAM },
  L1: { title: "L1", types: POOL_TYPES.L1 },
  SYSTEM: { title: "System memory", types: POOL_TYPES.SYSTEM_MEMORY },
};
export const POOL_NAMES = Object.keys(POOLS) as Pool[];

export interface Bank {
  base: number;
  size: number;
  banks: number;
  alignment: number;
}

export interface Usage {
  used: number;
  buffers: number;
  peak: number | null;
  bound: "exact" | "at_least" | "at_most";
  occupied?: number | null; // in all banks that the buffers touch; null: not known
  capacity?: number | null;
  bank?: Bank | null;
}
export type Memory = Record<MemoryType, Usage>;

export interface Device {
  device: number;
  uid: string | null;
  arch: string | null;
  card: string | null;
  remote: boolean;
  by_number: boolean;
  memory: Memory;
  untracked?: number;
  state?: string | null;
  telemetry?: Record<string, number | null> | null;
  limits?: Record<string, number | null> | null;
}

export interface Part {
  device: number;
  uid: string | null;
  closed: boolean;
  stale_after_reset?: boolean; // its memory was lost when the card was reset or removed
  memory: Memory;
}

export interface Process {
  pid: number;
  ns_pid: number;
  start_ns: number;
  comm: string;
  user: string;
  user_id: number;
  container: string | null;
  last_activity_ns: number;
  source: string;
  alive: boolean;
  exact: boolean;
  stale?: boolean; // only a region of tt-metal still lists it
  claim?: boolean; // stale, but such a process lives: nothing proves that it wrote the row
  untracked?: boolean; // has a device open and reports nothing
  differs?: boolean; // book and region disagree
  devices: Part[];
}

/** How well an instant of the past is known: "sums" are without single buffers. */
export interface PastFacts {
  asked_ns: number;
  kind: "exact" | "sums";
  exact_from_ns: number | null;
  sums_from_ns: number | null;
}

/** Something that charts point out. */
export interface PastEvent {
  time_ns: number;
  kind: "mark" | "phase" | "test" | "incident" | "restart" | "stop" | "lost" | "start" | "end";
  pid: number | null;
  comm: string | null;
  device: number | null;
  name: string | null;
  incident: string | null;
}

export interface Totals {
  time_ns: number;
  exact?: boolean; // every figure is
  moment?: PastFacts | null;
  devices: Device[];
  processes: Process[];
  totals: { bytes: number; buffers: number };
  notes: string[];
}

export interface Frame {
  function: string | null;
  file: string | null;
  line: number | null;
  module: string | null;
  python: boolean;
}

export type Place = Pick<Frame, "function" | "file" | "line" | "module">;

/** The frame that stands for a stack, and the user's own. The daemon chooses them; nothing here does. */
export interface SiteFrame extends Place {
  user?: Place | null;
  via?: Place | null; // what the user's frame called
  callers?: readonly Place[]; // of the user's, nearest first
}

export interface Buffer {
  pid: number;
  comm: string;
  device: number;
  device_uid: string | null;
  type: MemoryType;
  address: string;
  size: number;
  size_per_bank?: number;
  banks?: number;
  refs: number;
  born_ns: number;
  age_ns: number;
  name: string | null;
  phase: string | null;
  thread: number;
  flags: string[];
  stack: Frame[];
  site: SiteFrame | null;
}

/** A memory with banks of its own, as the allocator of a process sees it; sizes are per bank. */
export interface SpaceFacts {
  pid: number;
  comm: string;
  device: number;
  uid: string | null;
  type: SpaceType;
  base: string;
  bank_size: number;
  banks: number;
  alignment: number;
  used: number;
  occupied: number | null; // in all banks together
  free: number;
  largest: number;
  fragmentation: number;
  blocks: number;
  guessed: number;
  unplaced: number;
  shared?: Shared | null; // null: no other process holds any of it; left out by reports of older versions
}
/** What all processes of a device hold of a memory; per bank, unless it says otherwise. */
export interface Shared {
  used: number;
  free: number;
  largest: number;
  placed: boolean; // false: of some only the bytes are known
  others: { pid: number; comm: string; bytes: number; placed: boolean }[]; // bytes over all banks
}
export interface Space extends SpaceFacts {
  headroom?: number | null; // only of L1; null: not known, or no circular buffers
  holes: { address: string; size: number }[];
  hole_count?: number; // where only the largest are listed
}
export interface Fit extends SpaceFacts {
  fits: boolean;
  reason: "full" | "cut_up" | "too_large" | "held_by_others" | "taken_by_others" | "depends_on_cores" | null;
  need_per_bank: number;
  hole: { address: string; size: number } | null;
  in_the_way: { pid: number; comm: string; address: string; size: number; size_per_bank: number; name: string | null }[];
}

/** What one name of a call site has. */
export interface Named {
  name: string | null;
  bytes: number;
  buffers: number;
}

export interface Site {
  type: MemoryType | null;
  name: string | null;
  name_count: number | null; // null: not known
  names: Named[]; // the largest
  phase: string | null;
  stack: Frame[];
  site: SiteFrame | null;
  bytes: number;
  buffers: number;
}

/** A process that has ended. */
export interface EndedProcess {
  pid: number;
  comm: string;
  user: string | null;
  container: string | null;
  start_ns: number;
  ended_ns: number;
  how: "closed" | "died";
  exec: boolean;
  exit: { code: number | null; signal: number | null; name?: string | null } | null;
  bytes: number; // that it left
  buffer_count: number;
}

export interface LeakedProcess extends EndedProcess {
  listed: number;
  offset?: number; // of its buffers, so many were on earlier pages
  sites: Site[];
  buffers: Buffer[];
}

/** The most that a process had of a device and type at one time, and what it was made of. */
export interface Peak {
  pid: number;
  comm: string;
  device: number;
  start_ns: number;
  ended?: boolean;
  type: MemoryType;
  bytes: number;
  time_ns: number;
  buffers: number;
  per_bank?: { bytes: number; bound: string; banks: number | null } | null; // the most in each; null: not known
  groups: { key: string | null; name?: string | null; site?: SiteFrame | null; bytes: number; buffers: number }[];
}

export interface Party {
  time_ns: number;
  thread: number;
  name: string | null;
  phase: string | null;
  size: number;
  stack: Frame[];
  site: SiteFrame | null;
}

export interface Incident {
  kind: string;
  time_ns: number;
  last_ns: number;
  pid: number;
  comm: string;
  device: number;
  devices?: number[]; // all that it happened on
  device_uid: string | null;
  type: MemoryType | null;
  address: string | null;
  size: number;
  largest_free: number | null;
  size_per_bank?: number;
  bank_size?: number;
  explanation?: string;
  count: number;
  first: Party | null;
  second: Party | null;
  holders?: { pid: number; comm: string; type: MemoryType | null; used: number; buffers: number }[];
  sites?: Site[];
}

export interface Line {
  pid: number | null;
  device: number;
  uid: string | null;
  type: MemoryType | null;
  step_s: number;
  points: [number, number, number, number][];
}

export const KINDS: Record<string, string> = {
  leak: "Leak",
  double_free: "Double free",
  unknown_free: "Unknown free",
  size_change: "Size change",
  alloc_failed: "Failed allocation",
  clash: "Clash",
  trace_overlap: "Trace overlap",
  overlap: "Overlap",
  held_at_close: "Held at close",
};

/** The name of a device in URLs: its unique id, or its number if it has none. */
export const deviceKey = (device: { device: number; uid: string | null }): string =>
  device.uid ?? String(device.device);

/**
 * What a process holds of a device. Its part belongs to the row with its unique id or, if neither has one, with its number.
 * One process may have opened a device under two numbers.
 */
export function memoryOf(process: Process, device: Device): Memory | undefined {
  const parts = process.devices.filter((part) =>
    device.uid ? part.uid === device.uid : !part.uid && part.device === device.device,
  );
  if (parts.length < 2) return parts[0]?.memory;
  const sum = structuredClone(parts[0]!.memory);
  for (const { memory } of parts.slice(1))
    for (const type of TYPES) {
      sum[type].used += memory[type].used;
      sum[type].buffers += memory[type].buffers;
    }
  return sum;
}

export function poolUsed(memory: Memory, pool: Pool): number {
  return POOLS[pool].types.reduce((sum, type) => sum + memory[type].used, 0);
}

/** What its buffers take of the memory, by type: the banks that they touch, or their sizes where that is not known. */
export function poolTaken(memory: Memory, pool: Pool): { taken: Map<MemoryType, number>; isOccupied: boolean } {
  const { types } = POOLS[pool];
  const isOccupied = types.every((type) => typeof memory[type].occupied === "number");
  return { taken: new Map(types.map((type) => [type, (isOccupied ? memory[type].occupied : null) ?? memory[type].used])), isOccupied };
}

export function poolCapacity(memory: Memory, pool: Pool): number | null {
  return memory[pool === "SYSTEM" ? "SYSTEM_MEMORY" : pool].capacity ?? null;
}

/** "≥" or "≤" if a figure is a bound. */
export function poolBound(memory: Memory, pool: Pool): string {
  const bounds = new Set(POOLS[pool].types.map((type) => memory[type].bound));
  return bounds.has("at_least") ? "≥ " : bounds.has("at_most") ? "≤ " : "";
}

export const held = (memory: Memory): number =>
  TYPES.reduce((sum, type) => sum + memory[type].used, 0);
export const buffersOf = (memory: Memory): number =>
  TYPES.reduce((sum, type) => sum + memory[type].buffers, 0);

export const processBytes = (process: Process, pool?: Pool): number =>
  process.devices.reduce(
    (sum, part) => sum + (pool ? poolUsed(part.memory, pool) : held(part.memory)), 0,
  );
export const processBuffers = (process: Process): number =>
  process.devices.reduce((sum, part) => sum + buffersOf(part.memory), 0);
