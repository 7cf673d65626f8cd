// SPDX-License-Identifier: Apache-2.0
//
// Buffers added up by call site, and the difference between two moments.

import type { Buffer, Incident } from "./model";
import { siteKey, type SiteKey } from "./stack";

export interface Sum extends SiteKey {
  key: string;
  bytes: number;
  buffers: number;
  oldestNs: number;
}

export function sumUp(buffers: readonly Buffer[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const buffer of buffers) {
    const key = siteKey(buffer);
    const sum = sums.get(key);
    if (sum) {
      sum.bytes += buffer.size;
      sum.buffers++;
      sum.oldestNs = Math.min(sum.oldestNs, buffer.born_ns);
    } else
      sums.set(key, {
        key, type: buffer.type, name: buffer.name, phase: buffer.phase, stack: buffer.stack,
        bytes: buffer.size, buffers: 1, oldestNs: buffer.born_ns,
      });
  }
  return sums;
}

/** Who did it: the call that is the incident, under the name of what it was about. */
export function siteOf(incident: Incident): SiteKey {
  const party = incident.second ?? incident.first;
  const name = incident.second?.name ?? incident.first?.name ?? null;
  return { type: incident.type, name, phase: party?.phase, stack: party?.stack ?? [] };
}

/** One buffer's life: what is allocated again at the same place is another one. */
export const identity = (buffer: Buffer): string =>
  `${buffer.device_uid ?? buffer.device} ${buffer.type} ${buffer.address} ${buffer.born_ns}`;

export interface Change extends SiteKey {
  key: string;
  added: number;
  addedBuffers: number;
  gone: number;
  goneBuffers: number;
}

export function compare(before: readonly Buffer[], after: readonly Buffer[]): Change[] {
  const had = new Set(before.map(identity));
  const has = new Set(after.map(identity));
  const added = sumUp(after.filter((buffer) => !had.has(identity(buffer))));
  const gone = sumUp(before.filter((buffer) => !has.has(identity(buffer))));
  const changes: Change[] = [];
  for (const key of new Set([...added.keys(), ...gone.keys()])) {
    const more = added.get(key);
    const less = gone.get(key);
    const site = (more ?? less)!;
    changes.push({
      key, type: site.type, name: site.name, phase: site.phase, stack: site.stack,
      added: more?.bytes ?? 0, addedBuffers: more?.buffers ?? 0,
      gone: less?.bytes ?? 0, goneBuffers: less?.buffers ?? 0,
    });
  }
  return changes.sort((a, b) => Math.abs(b.added - b.gone) - Math.abs(a.added - a.gone) || b.added - a.added);
}
