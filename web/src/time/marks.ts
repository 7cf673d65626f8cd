// SPDX-License-Identifier: Apache-2.0
//
// Moments that the user has marked, to compare with later ones. They survive a reload, while the tab exists, in its
// session storage. That is small, so equal call sites are stored once, the oldest marks are dropped first, and one that is
// too large is not stored. Data read from there is not trusted.

import { lasts, type Store } from "../base/storage";
import { TYPES, type Buffer, type MemoryType, type SiteFrame } from "../data/model";
import type { Rows } from "../data/rows";
import { siteKey, type SiteKey } from "../data/stack";

const PREFIX = "ttmem.mark/";
export const MARKS_CHARS_MAX = 4_000_000; // of all of them; browsers give 5 million

/** Identifies a process: a pid alone may be reused. */
export interface Who {
  pid: number;
  startNs: number;
}

type PackedRow = [site: number, device: number, uid: string | null, address: string, size: number, bornNs: number];

interface Packed {
  timeNs: number;
  complete: boolean;
  sites: SiteKey[];
  rows: PackedRow[];
}

export function pack(rows: Rows): string {
  const sites = new Map<string, number>();
  const packed: Packed = { timeNs: rows.timeNs, complete: rows.complete, sites: [], rows: [] };
  for (const buffer of rows.buffers) {
    const { type, name, phase, stack, site: frame } = buffer;
    const key = `${siteKey(buffer, true)}\n${name}\n${phase}`;
    let site = sites.get(key);
    if (site === undefined) {
      sites.set(key, (site = packed.sites.length));
      packed.sites.push({ type, name, phase, stack, site: frame });
    }
    packed.rows.push([site, buffer.device, buffer.device_uid, buffer.address, buffer.size, buffer.born_ns]);
  }
  return JSON.stringify(packed);
}

const isText = (value: unknown): boolean => value === null || value === undefined || typeof value === "string";
const isAmount = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value) && value >= 0;
const isWhole = (value: unknown): boolean => isAmount(value) && Number.isInteger(value);

const isFrame = (frame: SiteFrame | null): boolean =>
  typeof frame === "object" && frame !== null && isText(frame.function) && isText(frame.file) && isText(frame.module) &&
  (frame.line === null || isWhole(frame.line));

const isSite = (site: SiteKey | null): boolean =>
  typeof site === "object" && site !== null && TYPES.includes(site.type as MemoryType) && isText(site.name) && isText(site.phase) &&
  Array.isArray(site.stack) && site.stack.every(isFrame) && (!site.site || isFrame(site.site));

const isRow = (row: PackedRow | null, sites: number): boolean =>
  Array.isArray(row) && isWhole(row[0]) && row[0] < sites && isWhole(row[1]) && isText(row[2]) && typeof row[3] === "string" &&
  isAmount(row[4]) && isAmount(row[5]);

/** Whether it is a mark, and its time is in the past. */
const isPacked = (packed: Packed | null, presentNs: number): packed is Packed =>
  typeof packed === "object" && packed !== null && isAmount(packed.timeNs) && packed.timeNs <= presentNs &&
  Array.isArray(packed.sites) && packed.sites.every(isSite) &&
  Array.isArray(packed.rows) && packed.rows.every((row) => isRow(row, packed.sites.length));

/** What a comparison needs of each buffer; null: not a mark. @presentNs: now, by the same clock as the mark. */
export function unpack(text: string, pid: number, presentNs: number): Rows | null {
  try {
    const packed = JSON.parse(text) as Packed | null;
    if (!isPacked(packed, presentNs)) return null;
    const buffers = packed.rows.map(([site, device, device_uid, address, size, born_ns]): Buffer => {
      const { type, name, phase, stack, site: frame } = packed.sites[site]!;
      return {
        pid, comm: "", device, device_uid, type: type as MemoryType, address, size, refs: 1, born_ns, age_ns: Math.max(0, packed.timeNs - born_ns),
        name: name ?? null, phase: phase ?? null, thread: 0, flags: [], stack: [...stack], site: frame ?? null,
      };
    });
    return { buffers, timeNs: packed.timeNs, complete: packed.complete === true };
  } catch {
    return null;
  }
}

const isOf = (key: string, { pid, startNs }: Who): boolean => key.startsWith(PREFIX) && key.endsWith(`/${pid}/${startNs}`);

/** The names of all marks, the oldest first. */
function names(store: Store): string[] {
  const list: string[] = [];
  for (let i = 0; i < store.length; i++) {
    const key = store.key(i) ?? "";
    if (key.startsWith(PREFIX)) list.push(key);
  }
  return list.sort((a, b) => Number(a.split("/")[1]) - Number(b.split("/")[1]));
}

/** Returns whether it will survive a reload. */
export function keepMark(store: Store, who: Who, rows: Rows): boolean {
  for (const name of names(store)) if (isOf(name, who)) store.removeItem(name);
  const text = pack(rows);
  if (text.length > MARKS_CHARS_MAX) return false;
  const others = names(store);
  let sum = others.reduce((all, name) => all + (store.getItem(name)?.length ?? 0), text.length);
  for (let oldest = others.shift(); oldest && sum > MARKS_CHARS_MAX; oldest = others.shift()) {
    sum -= store.getItem(oldest)?.length ?? 0;
    store.removeItem(oldest);
  }
  try {
    store.setItem(`${PREFIX}${rows.timeNs}/${who.pid}/${who.startNs}`, text);
    return lasts(store);
  } catch {
    return false; // storage full
  }
}

/** Marks in the page's memory, by process, including those too large to be stored. */
const known = new Map<string, Rows>();
const knownAs = ({ pid, startNs }: Who): string => `${pid} ${startNs}`;

export const knowMark = (who: Who, rows: Rows): void => void known.set(knownAs(who), rows);
export const knownMark = (who: Who): Rows | null => known.get(knownAs(who)) ?? null;

/** Names and stacks are details: locking them removes the stored ones. */
export function forgetMarks(store: Store): void {
  known.clear();
  for (const name of names(store)) store.removeItem(name);
}

export function findMark(store: Store, who: Who, presentNs: number): Rows | null {
  const name = names(store).reverse().find((one) => isOf(one, who));
  return name ? unpack(store.getItem(name) ?? "", who.pid, presentNs) : null;
}

/**
 * An approximation of a moment marked in another browser, of which only the time is known: buffers that are live now and
 * were allocated before it. null: the time is not valid for this process.
 */
export function markAt(sinceNs: number, now: Rows, who: Who): Rows | null {
  if (!(sinceNs >= who.startNs && sinceNs <= now.timeNs)) return null;
  return { buffers: now.buffers.filter((buffer) => buffer.born_ns <= sinceNs), timeNs: sinceNs, complete: false };
}
