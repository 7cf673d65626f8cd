// SPDX-License-Identifier: Apache-2.0
//
// Buffers summed by call site, and the difference between two moments.

import type { Buffer, Incident } from "../data/model";
import { siteKey, stem, type SiteKey } from "../data/stack";

export interface Sum extends SiteKey {
  key: string;
  bytes: number;
  buffers: number;
  oldestNs: number;
  called: Map<string | null, { bytes: number; buffers: number }>; // what each of its names has
}

/** Of one process. */
export function sumUp(buffers: readonly Buffer[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const buffer of buffers) {
    const key = siteKey(buffer, true);
    let sum = sums.get(key);
    if (!sum) {
      const { type, name, phase, stack, site } = buffer;
      sum = { key, type, name, phase, stack, site, bytes: 0, buffers: 0, oldestNs: Infinity, called: new Map() };
      sums.set(key, sum);
    }
    sum.bytes += buffer.size;
    sum.buffers++;
    sum.oldestNs = Math.min(sum.oldestNs, buffer.born_ns);
    const named = sum.called.get(buffer.name) ?? { bytes: 0, buffers: 0 };
    named.bytes += buffer.size;
    named.buffers++;
    sum.called.set(buffer.name, named);
  }
  for (const sum of sums.values()) {
    sum.name_count = sum.called.size;
    if (sum.name_count > 1) sum.name = sum.stack.length === 0 && sum.name !== null ? stem(sum.name) : null;
  }
  return sums;
}

/** The call site that caused an incident, with the name of its buffer. */
export function siteOf(incident: Incident): SiteKey {
  // Whoever closes a device does nothing wrong.
  const parties = incident.kind === "held_at_close" ? [incident.first] : [incident.second, incident.first];
  const party = parties.find((one) => one?.stack.length) ?? incident.second ?? incident.first;
  const name = incident.second?.name ?? incident.first?.name ?? null;
  return { type: incident.type, name, phase: party?.phase, stack: party?.stack ?? [], site: party?.site ?? null };
}

/** Which memory a buffer is in. */
export const poolOf = (buffer: Buffer): string => `${buffer.device_uid ?? buffer.device} ${buffer.type}`;

/** The place of a buffer, unique in one process at one moment. */
export const placeOf = (buffer: Buffer): string => `${poolOf(buffer)} ${buffer.address}`;

const BORN_NS = 1e6;
const BORN_SHARE = 2e-5;

/**
 * Whether the buffers at one place at two moments are the same one, not a later allocation. Allocation times are computed
 * back from the clock at each request, so they differ slightly each time, and more as clocks are adjusted over hours.
 */
export const isSame = (before: Buffer, after: Buffer): boolean =>
  Math.abs(after.born_ns - before.born_ns) <= BORN_NS + BORN_SHARE * after.age_ns;

export interface Change extends SiteKey {
  key: string;
  added: number;
  addedBuffers: number;
  gone: number;
  goneBuffers: number;
}

/** The note to show if not all buffers were read, at one moment or both; "" if all were. */
export const partNote = (before: { complete: boolean }, after: { complete: boolean }): string =>
  before.complete && after.complete ? "" : "There are too many buffers to read all, so only the first ones are compared: " +
    "some that count as added were there before, and some that count as gone are still there.";

/** The buffers of one process that are at one of two instants only. */
export function changed(before: readonly Buffer[], after: readonly Buffer[]): { added: Buffer[]; gone: Buffer[] } {
  const had = new Map(before.map((buffer) => [placeOf(buffer), buffer]));
  const stayed = new Set<Buffer>();
  const added = after.filter((buffer) => {
    const old = had.get(placeOf(buffer));
    if (!old || !isSame(old, buffer)) return true;
    stayed.add(old);
    return false;
  });
  return { added, gone: before.filter((buffer) => !stayed.has(buffer)) };
}

export function compare(before: readonly Buffer[], after: readonly Buffer[]): Change[] {
  const both = changed(before, after);
  const [added, gone] = [sumUp(both.added), sumUp(both.gone)];
  const changes: Change[] = [];
  for (const key of new Set([...added.keys(), ...gone.keys()])) {
    const more = added.get(key);
    const less = gone.get(key);
    const site = (more ?? less)!;
    changes.push({
      key, type: site.type, name: more && less && more.name !== less.name ? null : site.name, phase: site.phase, stack: site.stack, site: site.site,
      added: more?.bytes ?? 0, addedBuffers: more?.buffers ?? 0,
      gone: less?.bytes ?? 0, goneBuffers: less?.buffers ?? 0,
    });
  }
  return changes.sort((a, b) => Math.abs(b.added - b.gone) - Math.abs(a.added - a.gone) || b.added - a.added);
}
