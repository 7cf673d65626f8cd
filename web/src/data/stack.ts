// SPDX-License-Identifier: Apache-2.0
//
// Stacks and call sites. A call site is a type and the functions and files of a stack, without lines, so it stays the
// same when lines move; inside one process, lines tell sites apart too. What its buffers are called is a second level:
// names only tell sites apart where there is no stack, and then without their numbers.

import type { Frame, Place, SiteFrame } from "./model";
import { siteLine, siteLines, type Line } from "./site-line";

export interface SiteKey {
  type: string | null;
  name: string | null; // of all its buffers; null: none, or several
  name_count?: number | null; // how many there are, where that was counted
  phase?: string | null;
  stack: readonly Frame[];
  site?: SiteFrame | null;
  line?: Line | null; // of code, told apart from the others of a list
}

export const frameName = (frame: Place): string => frame.function ?? frame.module ?? "?";

export function frameWhere(frame: Place): string {
  const file = frame.file?.split("/").pop() ?? "";
  return file ? (frame.line ? `${file}:${frame.line}` : file) : frame.function ? (frame.module ?? "") : "";
}

const isNameless = ({ function: name, file, module }: Frame): boolean => !file && module !== null && (name === null || name.startsWith(`${module}+0x`));

/** For people: frames of one module without names become one, "libtorch_cpu.so (12 frames)". */
export function folded(stack: readonly Frame[]): Frame[] {
  const shown: { frame: Frame; count: number }[] = [];
  for (const frame of stack) {
    const last = shown.at(-1);
    if (last && isNameless(last.frame) && isNameless(frame) && last.frame.module === frame.module) last.count++;
    else shown.push({ frame, count: 1 });
  }
  return shown.map(({ frame, count }) => (count > 1 ? { ...frame, function: `${frame.module} (${count} frames)`, module: null } : frame));
}

export const stem = (name: string): string => name.replace(/[0-9]+/g, "#");

/** @lines: of one process, whose lines do not move. */
export function siteKey(site: SiteKey, lines = false): string {
  if (site.stack.length === 0) return [site.type, site.name === null ? "" : stem(site.name), site.name === null ? site.phase : ""].join("\n");
  const frames = site.stack.map((frame) => `${frameName(frame)}@${frame.file ?? frame.module ?? ""}${lines ? `:${frame.line ?? ""}` : ""}`);
  return [site.type, ...frames].join("\n");
}

/** Gives the rows of a list lines that tell them apart. */
export function tellApart<T extends SiteKey>(rows: readonly T[]): readonly T[] {
  siteLines(rows.map((row) => row.site)).forEach((line, i) => (rows[i]!.line = line));
  return rows;
}

const lineOf = (site: SiteKey): Line | null => site.line ?? (site.site ? siteLine(site.site) : null);

export function siteLabel(site: SiteKey): string {
  const line = lineOf(site);
  if (site.name) return site.name;
  if (line) return line.what;
  return site.phase ? `phase ${site.phase}` : "without a name";
}

/** The line below the label. */
export function siteWhere(site: SiteKey): string {
  const parts = [];
  const line = lineOf(site);
  if (line && site.name) parts.push(line.what);
  if (line) parts.push(line.where);
  if (site.name_count && site.name_count > 1) parts.push(`${site.name_count} names`);
  if (!site.site && site.name && site.phase) parts.push(`phase ${site.phase}`);
  return parts.filter(Boolean).join(" · ");
}

/** A short name for a long key, the same on every machine: FNV-1a, twice 32 bits. */
export function shortId(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    low = Math.imul(low ^ text.charCodeAt(i), 0x01000193);
    high = Math.imul(high ^ text.charCodeAt(i), 0x85ebca6b) ^ (high >>> 13);
  }
  return ((low >>> 0).toString(16).padStart(8, "0") + (high >>> 0).toString(16).padStart(8, "0")).slice(0, 14);
}
