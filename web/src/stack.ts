// SPDX-License-Identifier: Apache-2.0
//
// Stacks and call sites. A call site is a type, a name and the functions and files of a stack, without lines,
// so it stays the same when lines move.

import { h } from "./dom";
import type { Frame } from "./model";

export interface SiteKey {
  type: string | null;
  name: string | null;
  phase?: string | null;
  stack: readonly Frame[];
}

export const frameName = (frame: Frame): string => frame.function ?? frame.module ?? "?";

export function frameWhere(frame: Frame): string {
  const file = frame.file?.split("/").pop() ?? "";
  return file ? (frame.line ? `${file}:${frame.line}` : file) : frame.function ? (frame.module ?? "") : "";
}

export function siteKey(site: SiteKey): string {
  const frames = site.stack.map((frame) => `${frameName(frame)}@${frame.file ?? frame.module ?? ""}`);
  return [site.type, site.name, site.name ? "" : site.phase, ...frames].join("\n");
}

export function siteLabel(site: SiteKey): string {
  if (site.name) return site.name;
  const inner = site.stack[0];
  if (inner) return frameName(inner);
  return site.phase ? `phase ${site.phase}` : "without a name";
}

/** The line below the label: where it was called. */
export function siteWhere(site: SiteKey): string {
  const inner = site.stack.find((frame) => frame.file) ?? site.stack[0];
  const parts = [];
  if (inner && site.name) parts.push(frameName(inner));
  if (inner) parts.push(frameWhere(inner));
  if (!inner && site.name && site.phase) parts.push(`phase ${site.phase}`);
  return parts.filter(Boolean).join(" · ");
}

export function stackList(stack: readonly Frame[]): HTMLElement {
  if (stack.length === 0) return h("p", { class: "muted" }, "No stack was recorded; TTMEM_STACKS turns them on.");
  return h(
    "ol",
    { class: "stack", "aria-label": "Stack, innermost call first" },
    stack.map((frame) =>
      h(
        "li",
        { class: frame.python ? "python" : "" },
        h("code", {}, frameName(frame)),
        h("span", { class: "muted", title: frame.file ?? frame.module ?? "" }, frameWhere(frame)),
        frame.python && h("span", { class: "tag" }, "Python"),
      ),
    ),
  );
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
