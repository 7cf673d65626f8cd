// SPDX-License-Identifier: Apache-2.0
//
// What the daemon knows of processes that have ended: what each left behind, and its highest moments. The two lists are
// kept apart there, and a start time computed from clocks differs slightly each time.

import type { LeakedProcess, Peak } from "./model";

export interface Ended {
  key: string;
  pid: number;
  comm: string;
  startNs: number;
  leak: LeakedProcess | null; // null: it left nothing, or that is not kept any more
  peaks: Peak[]; // empty: not kept
}

const SAME_NS = 1e9;

/** Newest first. */
export function joinEnded(leaks: readonly LeakedProcess[], peaks: readonly Peak[]): Ended[] {
  const byPid = new Map<number, Ended[]>();
  const find = (pid: number, comm: string, startNs: number): Ended => {
    const list = byPid.get(pid) ?? [];
    let one = list.find((other) => Math.abs(other.startNs - startNs) < SAME_NS);
    if (!one) list.push((one = { key: `${pid} ${startNs}`, pid, comm, startNs, leak: null, peaks: [] }));
    byPid.set(pid, list);
    return one;
  };
  for (const leak of leaks) find(leak.pid, leak.comm, leak.start_ns).leak = leak;
  for (const peak of peaks) if (peak.ended) find(peak.pid, peak.comm, peak.start_ns).peaks.push(peak);
  return [...byPid.values()].flat().sort((a, b) => lastOf(b) - lastOf(a));
}

/** When it ended, or the last that is known of it. */
export const lastOf = (one: Ended): number => one.leak?.ended_ns ?? Math.max(one.startNs, ...one.peaks.map((peak) => peak.time_ns));

/** The most that was live at one time, of one device and type. */
export const mostOf = (one: Ended): Peak | null =>
  one.peaks.reduce<Peak | null>((most, peak) => (!most || peak.bytes > most.bytes ? peak : most), null);
