// SPDX-License-Identifier: Apache-2.0
//
// Human-readable numbers. Sizes use powers of two, as everywhere in ttmem.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let rest = Math.abs(value);
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit++;
  }
  // 1023.97 must not become "1024".
  const digits = unit === 0 ? 0 : rest >= 99.95 ? 0 : rest >= 9.995 ? 1 : 2;
  if (Number(rest.toFixed(digits)) >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit++;
    return `${value < 0 ? "−" : ""}${rest.toFixed(2)} ${UNITS[unit]}`;
  }
  return `${value < 0 ? "−" : ""}${rest.toFixed(digits)} ${UNITS[unit]}`;
}

export function signed(value: number): string {
  return value > 0 ? `+${bytes(value)}` : bytes(value);
}

/** "1.5 GiB", "512k", "4096", "0x1000" in bytes; null: not a size. */
export function parseBytes(text: string): number | null {
  const found = /^\s*(?:(0x[0-9a-f]+)|(\d+(?:\.\d+)?)\s*([kmgtpe]?)(?:i?b)?)\s*$/i.exec(text);
  if (!found) return null;
  if (found[1]) return Number(found[1]);
  const power = found[3] ? "kmgtpe".indexOf(found[3].toLowerCase()) + 1 : 0;
  return Math.ceil(Number(found[2]) * 1024 ** power);
}

const grouped = new Intl.NumberFormat("en");
export const count = (value: number): string => grouped.format(value);

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export function percent(part: number, whole: number): string {
  const value = (100 * part) / whole;
  if (value > 0 && value < 0.05) return "< 0.1 %";
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

const SHARE_MAX = 999; // as in "ttmem smi": above it one of the two figures must be wrong

/** The used share of a memory. Processes may report more than its capacity. */
export const share = (used: number, capacity: number): string =>
  (100 * used) / capacity > SHARE_MAX ? `> ${SHARE_MAX} %` : percent(used, capacity);

/** A length of time, in its two largest units. */
export function duration(ns: number): string {
  const s = Math.max(0, ns / 1e9);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** How long a process has been there. @then: at an instant that is over. */
export function lifetime(process: { alive: boolean; start_ns: number; last_activity_ns: number }, atNs: number, then: boolean): string {
  if (process.alive) return `${then ? "had been running" : "running"} for ${duration(atNs - process.start_ns)}`;
  return `${then ? "had" : "has"} ended${process.last_activity_ns ? `, last active ${clock(process.last_activity_ns)}` : ""}`;
}

/** How long ago, in one unit: for columns. */
export function age(ns: number): string {
  const s = Math.max(0, Math.floor(ns / 1e9));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** The time of day, with the date if it is not today's. */
export function clock(ns: number, now = Date.now()): string {
  if (!ns) return "–";
  const date = new Date(ns / 1e6);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return new Date(now).toDateString() === date.toDateString() ? time : `${day} ${time}`;
}
