// SPDX-License-Identifier: Apache-2.0
//
// What the daemon knows of processes that have ended: how, what each left behind, and its highest moments. The two lists
// are kept apart there, and a start time computed from clocks differs slightly each time.

import { bytes } from "../base/format";
import type { EndedProcess, Peak } from "../data/model";

export interface Ended {
  key: string;
  pid: number;
  comm: string;
  startNs: number;
  end: EndedProcess | null; // null: it is not kept any more
  peaks: Peak[]; // empty: not kept
}

const SAME_NS = 1e9;

/** Newest first. */
export function joinEnded(ends: readonly EndedProcess[], peaks: readonly Peak[]): Ended[] {
  const byPid = new Map<number, Ended[]>();
  const add = (pid: number, comm: string, startNs: number, end: EndedProcess | null): Ended => {
    const list = byPid.get(pid) ?? [];
    const one = { key: `${pid} ${startNs} ${end?.ended_ns ?? ""}`, pid, comm, startNs, end, peaks: [] };
    byPid.set(pid, [...list, one]);
    return one;
  };
  // One that became another program has ended under each of its names.
  for (const end of ends) add(end.pid, end.comm, end.start_ns, end);
  for (const peak of peaks) {
    if (!peak.ended) continue;
    const same = (byPid.get(peak.pid) ?? []).filter((other) => Math.abs(other.startNs - peak.start_ns) < SAME_NS);
    const one = same.find((other) => other.comm === peak.comm) ?? same[0] ?? add(peak.pid, peak.comm, peak.start_ns, null);
    one.peaks.push(peak);
  }
  return [...byPid.values()].flat().sort((a, b) => lastOf(b) - lastOf(a));
}

/** When it ended, or the last that is known of it. */
export const lastOf = (one: Ended): number => one.end?.ended_ns ?? Math.max(one.startNs, ...one.peaks.map((peak) => peak.time_ns));

/** The most that was live at one time, of one device and type. */
export const mostOf = (one: Ended): Peak | null =>
  one.peaks.reduce<Peak | null>((most, peak) => (!most || peak.bytes > most.bytes ? peak : most), null);

const TRIES = 5; // a process that the daemon did not track is in no list of ended ones

/**
 * Processes that are not among the living any more, and whose ends are not listed yet: the daemon writes them a little
 * later.
 */
export class Awaited {
  private living = new Set<number>();
  private gone = new Map<number, number>(); // pid: how often it was looked for

  /** Returns whether there is something to look for. */
  see(processes: readonly { pid: number }[]): boolean {
    const living = new Set(processes.map(({ pid }) => pid));
    for (const pid of this.living) if (!living.has(pid)) this.gone.set(pid, 0);
    this.living = living;
    return this.gone.size > 0;
  }

  /** With the list as it is now. Returns whether there is still something to look for. */
  find(ends: readonly EndedProcess[]): boolean {
    const pids = new Set(ends.map(({ pid }) => pid));
    for (const [pid, tries] of this.gone) {
      if (pids.has(pid) || tries >= TRIES) this.gone.delete(pid);
      else this.gone.set(pid, tries + 1);
    }
    return this.gone.size > 0;
  }
}

/** What each bank held at most, in words: that times the banks is what a region must have. Empty: not known. */
export function perBank({ type, per_bank: most }: Peak): string {
  if (!most?.bytes) return "";
  // Regions of L1 are given per bank.
  const all = most.banks && !type.startsWith("L1") ? `of ${most.banks} banks, ${bytes(most.bytes * most.banks)} together` : "bank";
  return `, ${most.bound === "exact" ? "" : "at least "}${bytes(most.bytes)} in each ${all}`;
}
