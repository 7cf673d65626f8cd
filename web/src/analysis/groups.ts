// SPDX-License-Identifier: Apache-2.0
//
// Groups incidents by the call site that caused them or, for the overview, by process.

import type { Incident, LeakedProcess, Site } from "../data/model";
import { shortId, siteKey, type SiteKey } from "../data/stack";
import { siteOf } from "./sites";

export interface Leak {
  process: LeakedProcess;
  site: Site;
}

export interface Group {
  id: string;
  kind: string;
  site: SiteKey;
  times: number; // of a leak: buffers
  bytes: number;
  pids: Set<number>;
  firstNs: number;
  lastNs: number;
  incidents: Incident[];
  leaks: Leak[];
}

function into(groups: Map<string, Group>, kind: string, site: SiteKey): Group {
  const id = shortId(`${kind}\n${siteKey(site)}`);
  let group = groups.get(id);
  if (group) {
    if (group.site.name !== site.name) group.site = { ...group.site, name: null };
    if (group.site.name_count !== site.name_count) group.site = { ...group.site, name_count: null };
  } else {
    group = { id, kind, site, times: 0, bytes: 0, pids: new Set(), firstNs: Infinity, lastNs: 0, incidents: [], leaks: [] };
    groups.set(id, group);
  }
  return group;
}

/** A list of buffers may go on on the next page, with the same process again. */
export function joined(processes: readonly LeakedProcess[]): LeakedProcess[] {
  const list: LeakedProcess[] = [];
  for (const process of processes) {
    const last = list.at(-1);
    if (process.offset && last) last.buffers.push(...process.buffers);
    else list.push(process);
  }
  return list;
}

export function groupUp(incidents: readonly Incident[], processes: readonly LeakedProcess[]): Group[] {
  const groups = new Map<string, Group>();
  for (const incident of incidents) {
    if (incident.kind === "leak") continue; // the leak reports have more
    const group = into(groups, incident.kind, siteOf(incident));
    group.times += incident.count;
    group.bytes += incident.size;
    group.pids.add(incident.pid);
    group.firstNs = Math.min(group.firstNs, incident.time_ns);
    group.lastNs = Math.max(group.lastNs, incident.last_ns);
    group.incidents.push(incident);
  }
  for (const process of processes)
    for (const site of process.sites) {
      const group = into(groups, "leak", site);
      group.times += site.buffers;
      group.bytes += site.bytes;
      group.pids.add(process.pid);
      group.firstNs = Math.min(group.firstNs, process.ended_ns);
      group.lastNs = Math.max(group.lastNs, process.ended_ns);
      group.leaks.push({ process, site });
    }
  return [...groups.values()].sort((a, b) => b.lastNs - a.lastNs);
}

/** Identifies an incident, however often it has happened since. */
export const nameOf = (incident: Incident): string =>
  `${incident.kind} ${incident.pid} ${incident.time_ns} ${siteKey(siteOf(incident))}`;

/**
 * Incidents from the stream that are not in the list that was read, so that each is counted once. The stream sends one
 * notice per leaking process; the database has one entry per call site.
 */
export function unread(heard: readonly Incident[], read: readonly Incident[]): Incident[] {
  const names = new Set(read.map(nameOf));
  const leaks = read.filter((one) => one.kind === "leak");
  return heard.filter((incident) => !names.has(nameOf(incident)) && !(incident.kind === "leak" &&
    leaks.some((one) => one.pid === incident.pid && one.last_ns >= incident.time_ns)));
}

/** What happened to one process, of one kind. */
export interface Glance {
  kind: string;
  pid: number;
  comm: string;
  places: number; // distinct incidents
  times: number; // of a leak: buffers
  bytes: number;
  lastNs: number;
  one: Incident; // the newest
  least: boolean; // a lower bound: of a process that leaked, the daemon keeps only the largest call sites
}

/** How often something went wrong: each time counts, and a process that leaked is one. */
export const happened = (rows: readonly Glance[]): number =>
  rows.reduce((sum, row) => sum + (row.kind === "leak" ? 1 : row.times), 0);

const LEAK_SITES_MAX = 256; // STORE_LEAK_SITES_MAX of the daemon

export function glance(incidents: readonly Incident[]): Glance[] {
  const rows = new Map<string, Glance>();
  for (const incident of incidents) {
    const key = `${incident.kind} ${incident.pid} ${incident.comm}`;
    const row = rows.get(key);
    if (!row)
      rows.set(key, {
        kind: incident.kind, pid: incident.pid, comm: incident.comm, places: 1, times: incident.count,
        bytes: incident.size, lastNs: incident.last_ns, one: incident, least: false,
      });
    else {
      row.places++;
      row.times += incident.count;
      row.bytes += incident.size;
      if (incident.last_ns > row.lastNs) row.one = incident;
      row.lastNs = Math.max(row.lastNs, incident.last_ns);
    }
  }
  for (const row of rows.values()) row.least = row.kind === "leak" && row.places >= LEAK_SITES_MAX;
  return [...rows.values()].sort((a, b) => b.lastNs - a.lastNs);
}
