// SPDX-License-Identifier: Apache-2.0
//
// What keeps growing, as the daemon judges it ("ttmem growth"): how fast, until when there is room, and which call site.

import { bytes, duration } from "../base/format";
import { get, mayAsk, recorded } from "../data/api";
import { memoryOf, POOL_NAMES, poolCapacity, POOLS, poolTaken, type Device, type MemoryType, type Pool, type Process } from "../data/model";
import { siteLabel, siteWhere, type SiteKey } from "../data/stack";
import { moment } from "../time/moment";

const AGAIN_MS = 30000; // growth is slow
const FAR_S = 365 * 86400; // nobody plans for longer

export interface GrowingSite extends SiteKey {
  pid: number;
  type: MemoryType;
  per_second: number; // bytes
}

/** How fast a memory of something grows, and why. */
export interface Growing {
  pool: Pool;
  perSecond: number;
  fullS: number | null; // seconds until it is full; null: not known, or far away
  site: GrowingSite; // that grows fastest
}

/** Seconds until a memory is full. */
export function timeToFull(device: Device, pool: Pool, perSecond: number): number | null {
  const capacity = poolCapacity(device.memory, pool);
  if (capacity === null || perSecond <= 0) return null;
  const taken = [...poolTaken(device.memory, pool).taken.values()].reduce((sum, one) => sum + one, 0);
  const left = Math.max(0, capacity - taken) / perSecond;
  return left < FAR_S ? left : null;
}

/** Of each site of a process its part on a device: as much of it as of all that the process has of that type. */
function partOn(site: GrowingSite, process: Process, device: Device): number {
  const all = process.devices.reduce((sum, part) => sum + part.memory[site.type].used, 0);
  const own = memoryOf(process, device)?.[site.type].used ?? 0;
  return all > 0 ? (site.per_second * own) / all : 0;
}

function fastest(sites: readonly GrowingSite[], pool: Pool): GrowingSite | undefined {
  return sites.filter((site) => POOLS[pool].types.includes(site.type)).sort((a, b) => b.per_second - a.per_second)[0];
}

/** What grows on a device, all its processes together: the memory that is full first. */
export function growthOn(device: Device, processes: readonly Process[], sites: readonly GrowingSite[]): Growing | null {
  const found = POOL_NAMES.flatMap((pool) => {
    const own = sites.flatMap((site) => {
      const process = processes.find((one) => one.pid === site.pid);
      const per_second = process && POOLS[pool].types.includes(site.type) ? partOn(site, process, device) : 0;
      return per_second > 0 ? [{ ...site, per_second }] : [];
    });
    const site = fastest(own, pool);
    const perSecond = own.reduce((sum, one) => sum + one.per_second, 0);
    return site ? [{ pool, perSecond, fullS: timeToFull(device, pool, perSecond), site }] : [];
  });
  return found.sort((a, b) => (a.fullS ?? Infinity) - (b.fullS ?? Infinity))[0] ?? null;
}

/** What grows in a process, and when the first of its devices is full by all that grows there. */
export function growthOf(process: Process, devices: readonly Device[], processes: readonly Process[], sites: readonly GrowingSite[]): Growing | null {
  const own = sites.filter((site) => site.pid === process.pid);
  for (const pool of POOL_NAMES) {
    const site = fastest(own, pool);
    if (!site) continue;
    const perSecond = own.reduce((sum, one) => sum + (POOLS[pool].types.includes(one.type) ? one.per_second : 0), 0);
    const full = devices.flatMap((device) => {
      const there = memoryOf(process, device) ? growthOn(device, processes, sites) : null;
      return there?.pool === pool && there.fullS !== null ? [there.fullS] : [];
    });
    return { pool, perSecond, fullS: full.length ? Math.min(...full) : null, site };
  }
  return null;
}

/** A rate in the unit in which it is a number that one can imagine. */
export function rate(perSecond: number): string {
  const [times, unit] = perSecond >= 2 ** 20 ? [1, "s"] : perSecond * 60 >= 2 ** 20 ? [60, "min"] : [3600, "h"];
  return `+${bytes(Math.round(perSecond * times))}/${unit}`;
}

/** "DRAM +1.00 MiB/s, full in 3 min". */
export const growthText = ({ pool, perSecond, fullS }: Growing): string =>
  `▲ ${pool === "SYSTEM" ? "System memory" : pool} ${rate(perSecond)}${fullS === null ? "" : `, full in ${roughly(fullS)}`}`;

/** Not more digits than are known. */
const roughly = (seconds: number): string => duration((seconds < 60 ? Math.max(1, Math.round(seconds)) : seconds < 3600 ? Math.round(seconds / 60) * 60
  : Math.round(seconds / 3600) * 3600) * 1e9).replace(/ 0 (s|min|h)$/, "");

export const growthSite = ({ site }: Growing): string => [siteLabel(site), siteWhere(site)].filter(Boolean).join(" · ");

/** Of an earlier instant only a recording knows it. */
const isKnown = (): boolean => mayAsk() && (moment.at === null || recorded() !== null);

/** The newest answer of the daemon, for the views. */
export class Growth {
  private list: readonly GrowingSite[] = [];
  private key = "";
  private asked = -Infinity;

  get sites(): readonly GrowingSite[] {
    return isKnown() ? this.list : [];
  }

  /** Asks again if it is time to; calls back if there is something new. */
  async learn(changed: () => void): Promise<void> {
    const key = recorded() ? String(moment.shown) : "";
    if (!isKnown() || (key === this.key && (recorded() || performance.now() - this.asked < AGAIN_MS))) return;
    this.asked = performance.now();
    this.key = key;
    const answer = await get<{ sites: GrowingSite[] }>("/api/v1/growth", moment.parameters()).catch(() => null); // as before
    if (!answer || key !== this.key) return;
    this.list = answer.sites;
    changed();
  }
}

export const growth = new Growth();
