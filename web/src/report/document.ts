// SPDX-License-Identifier: Apache-2.0
//
// The document of docs/schema/report.json. Each frame and each stack is in it once; here sites and parties get theirs
// back, so that everything that shows those of the daemon can show these.

import { plural } from "../base/format";
import type { Frame, Incident, MemoryType, Named, Party, SiteFrame, Space } from "../data/model";
import type { SiteKey } from "../data/stack";
import type { Weighed } from "../flame/tree";

interface Packed {
  type: MemoryType;
  name: string | null;
  name_count?: number;
  names?: Named[];
  phase: string | null;
  stack: number | null;
}

interface HeldSite extends Packed {
  bytes: number;
  buffers: number;
}

/** What is live at a moment. */
export interface HeldPacked {
  time_ns: number;
  bytes: number;
  unexplained: number; // of them, that no buffer is known for: they were lost in a gap
  buffers: number;
  site_count: number;
  sites: HeldSite[];
}

interface PassingSite extends Packed {
  pid: number;
  comm: string;
  allocs: number;
  frees: number;
  bytes: number; // of all allocations
  high: number; // on one device
  lives: number[]; // freed buffers by how long they lived: bit length of ns / 1024
}

interface GrownSite extends Packed {
  pid: number;
  comm: string;
  first_bytes: number;
  last_bytes: number;
  first_buffers: number;
  last_buffers: number;
  oldest_ns: number;
  confidence: string;
}

export interface Gap {
  pid: number;
  comm: string;
  device: number;
  from_ns: number;
  to_ns: number;
  events: number;
  allocs: number;
  frees: number;
  peak: boolean; // a new peak is in it
}

export interface Mark {
  time_ns: number;
  pid: number;
  comm: string;
  name: string;
}

export interface PhaseSpan {
  phase: string;
  pid: number;
  comm: string;
  from_ns: number;
  to_ns: number;
}

export interface Owner {
  pid: number;
  comm: string;
  user: string | null;
  container: string | null;
  start_ns: number;
  ended_ns: number | null;
  exit: { code: number | null; signal: number | null } | null;
}

interface PackedParty extends Omit<Party, "stack" | "site"> {
  stack: number | null;
}
interface PackedIncident extends Omit<Incident, "first" | "second" | "device_uid"> {
  first: PackedParty | null;
  second: PackedParty | null;
}

export interface Block {
  address: string;
  length: number; // in each bank
  size: number;
  type: MemoryType;
  name: string | null;
  phase: string | null;
  born_ns: number;
  stack: number | null;
}

export interface MapPacked extends Space {
  hole_count: number;
  buffers: Block[];
}

/** A memory over time; null where it did not exist. Of all banks together. */
export interface Fragments {
  pid: number;
  comm: string;
  device: number;
  type: MemoryType;
  size: number;
  used: (number | null)[];
  free: (number | null)[];
  largest: (number | null)[];
}

export interface Report {
  file: string;
  command: string | null;
  host: string | null;
  start_ns: number;
  end_ns: number;
  events: number;
  missed: number;
  complete: boolean;
  torn: number;
  processes: Owner[];
  process_count: number;
  /** Of each step what was in use when that was most, and the most of each type alone. */
  timeline: { times_ns: number[]; types: Partial<Record<MemoryType, { bytes: (number | null)[]; high: (number | null)[] }>> };
  gaps: Gap[];
  marks: Mark[];
  phases: PhaseSpan[];
  incidents: PackedIncident[];
  incident_count: number;
  peak: HeldPacked | null;
  end: HeldPacked | null;
  temporaries: { site_count: number; sites: PassingSite[] };
  growth: { first_ns: number; last_ns: number; samples: number; site_count: number; sites: GrownSite[] };
  fragmentation: { times_ns: number[]; spaces: Fragments[] };
  maps: MapPacked[];
  map_count: number;
  frames: Frame[];
  stacks: { frames: number[]; site: number | null; user?: number | null; via?: number | null; callers?: number[] }[];
  notes: string[];
}

/** A site of the document with its frames, and a key that no other has. */
export type Whole<T extends Packed> = Omit<T, "stack"> & SiteKey & { key: string };
export type Held = Whole<HeldSite>;
export type Passing = Whole<PassingSite>;
export type Grown = Whole<GrownSite>;

export class Book {
  constructor(readonly report: Report) {}

  frames(stack: number | null): { stack: Frame[]; site: SiteFrame | null } {
    const found = stack === null ? undefined : this.report.stacks[stack];
    if (!found) return { stack: [], site: null };
    const all = found.frames.flatMap((i) => this.report.frames[i] ?? []);
    const one = (number: number | null | undefined): Frame | null => (number === null || number === undefined ? null : (this.report.frames[number] ?? null));
    const site = one(found.site);
    return { stack: all, site: site && { ...site, user: one(found.user), via: one(found.via), callers: (found.callers ?? []).flatMap((i) => one(i) ?? []) } };
  }

  sites<T extends Packed>(list: readonly T[]): Whole<T>[] {
    return list.map((one, i) => ({ ...one, ...this.frames(one.stack), key: String(i) }));
  }

  incidents(): Incident[] {
    const party = (one: PackedParty | null): Party | null => one && { ...one, ...this.frames(one.stack) };
    return this.report.incidents.map((one) => ({ ...one, device_uid: null, first: party(one.first), second: party(one.second) }));
  }
}

/** A site as leaves of the flame graph: one for each name that is listed, and one for the others. */
export function leaves(site: Held): Weighed[] {
  const own = { type: site.type, phase: site.phase ?? null, stack: [...site.stack] };
  const names = site.names ?? [];
  const rest = names.reduce((left, one) => ({ size: left.size - one.bytes, buffers: left.buffers - one.buffers }), { size: site.bytes, buffers: site.buffers });
  const more = (site.name_count ?? 0) - names.length;
  return [
    ...names.map((one) => ({ ...own, name: one.name, size: one.bytes, buffers: one.buffers })),
    ...(rest.buffers > 0 ? [{ ...own, ...rest, name: site.name ?? (more > 0 ? plural(more, names.length ? "more name" : "name") : null) }] : []),
  ];
}
