// SPDX-License-Identifier: Apache-2.0
//
// Stacks and call sites. A call site is a type and the functions and files of a stack, without lines, so it stays the
// same when lines move; inside one process, lines tell sites apart too. What its buffers are called is a second level:
// names only tell sites apart where there is no stack, and then without their numbers.

import type { Frame, SiteFrame } from "./model";

export interface SiteKey {
  type: string | null;
  name: string | null; // of all its buffers; null: none, or several
  name_count?: number | null; // how many there are, where that was counted
  phase?: string | null;
  stack: readonly Frame[];
  site?: SiteFrame | null;
}

export const frameName = (frame: SiteFrame): string => frame.function ?? frame.module ?? "?";

export function frameWhere(frame: SiteFrame): string {
  const file = frame.file?.split("/").pop() ?? "";
  return file ? (frame.line ? `${file}:${frame.line}` : file) : frame.function ? (frame.module ?? "") : "";
}

export const stem = (name: string): string => name.replace(/[0-9]+/g, "#");

/** @lines: of one process, whose lines do not move. */
export function siteKey(site: SiteKey, lines = false): string {
  if (site.stack.length === 0) return [site.type, site.name === null ? "" : stem(site.name), site.name === null ? site.phase : ""].join("\n");
  const frames = site.stack.map((frame) => `${frameName(frame)}@${frame.file ?? frame.module ?? ""}${lines ? `:${frame.line ?? ""}` : ""}`);
  return [site.type, ...frames].join("\n");
}

export function siteLabel(site: SiteKey): string {
  if (site.name) return site.name;
  if (site.site) return frameName(site.site);
  return site.phase ? `phase ${site.phase}` : "without a name";
}

/** The line below the label: the frame that stands for the stack. */
export function siteWhere(site: SiteKey): string {
  const parts = [];
  if (site.site && site.name) parts.push(frameName(site.site));
  if (site.site) parts.push(frameWhere(site.site));
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
