// SPDX-License-Identifier: Apache-2.0
//
// The line of code of a call site, as in the command's lists (src/model/sites/site-rows.h): the user's own line, the
// function that it called, and where rows of a list would look the same, what tells them apart. Which frame is the
// user's, the daemon has decided.

import type { Place, SiteFrame } from "./model";

export interface Line {
  what: string; // functions: "scratch ← dram"
  where: string; // "app.c:11", "train.py:7 → cuda (torch/…/module.py:1097)"
}

/** What is shown of a row more than of the others. */
interface More {
  long: boolean; // whole names and paths
  callers: Set<number>;
  places: Set<number>; // of callers that have their line, too
  site: boolean; // the frame that stands for the stack
}

const INSTALLED = [/(?:^|\/)(?:site-packages|dist-packages|node_modules)\/(.+)$/, /(?:^|\/)((?:torch|ttnn)\/.+)$/];

/** A function without parameters, template arguments and return type, if it is what a demangler gives. */
export function shortName(name: string): string {
  if (!/[^.]\(|^\(/.test(name) || name.includes(" [0x") || name.includes("operator")) return name;
  let short = "";
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i]!;
    if (name.startsWith("(anonymous namespace)", i) && depth === 0) {
      short += "(anonymous namespace)";
      i += "(anonymous namespace)".length - 1;
    } else if (depth === 0 && c === "(") break;
    else if (depth === 0 && c === " ") short = "";
    else if ("<{[(".includes(c)) depth++;
    else if (">}])".includes(c)) depth = Math.max(depth - 1, 0);
    else if (depth === 0) short += c;
  }
  return short || name;
}

/** "torch/…/module.py:1097" of what is installed, the file without folders of anything else. */
function place({ file, line, module, function: name }: Place, long: boolean, installed = false): string {
  const base = file?.split("/").pop() ?? "";
  const inside = installed && file ? INSTALLED.map((one) => one.exec(file)?.[1]).find(Boolean)?.split("/") : undefined;
  const text = long ? (file ?? "") : inside && inside.length > 1 ? [inside[0], ...(inside.length > 2 ? ["…"] : []), base].join("/") : base;
  return text ? (line ? `${text}:${line}` : text) : name ? (module ?? "") : "";
}

const named = (frame: Place, long: boolean): string =>
  frame.function === null ? (frame.module ?? "?") : long ? frame.function : shortName(frame.function);

const whole = (frame: Place, long: boolean, installed: boolean): string => {
  const where = place(frame, long, installed);
  return where ? `${named(frame, long)} (${where})` : named(frame, long);
};

function write(site: SiteFrame, more: More): Line {
  const own = site.user ?? site;
  const called: string[] = [];
  const behind: string[] = [];
  (site.callers ?? []).forEach((caller, i) => {
    if (more.callers.has(i)) called.unshift(more.places.has(i) ? whole(caller, false, false) : named(caller, false));
    else if (i < Math.max(...more.callers) && called[0] !== "…") called.unshift("…");
  });
  if (site.user && site.via) behind.push(whole(site.via, more.long, true));
  if (more.site) behind.push(...(behind.length ? ["…"] : []), whole(site, more.long, true));
  return {
    what: [...called, named(own, more.long)].join(" ← "),
    where: [place(own, more.long), ...behind].filter(Boolean).join(" → "),
  };
}

const key = (frame: Place | null | undefined): string => (frame ? [frame.function, frame.file, frame.line, frame.module].join("\n") : "");

const NONE: More = { long: false, callers: new Set(), places: new Set(), site: false };

export const siteLine = (site: SiteFrame): Line => write(site, NONE);

/** The lines of the rows of a list, in their order; null for rows without a site. */
export function siteLines(sites: readonly (SiteFrame | null | undefined)[]): (Line | null)[] {
  const rows = sites.flatMap((site, i) => (site ? [{ i, site, more: { ...NONE, callers: new Set<number>(), places: new Set<number>() }, line: siteLine(site) }] : []));
  /** Rows that look the same and differ in this get more. */
  const refine = (differs: (site: SiteFrame) => string, add: (more: More, site: SiteFrame) => void): void => {
    const same = new Map<string, typeof rows>();
    for (const row of rows) {
      const text = `${row.line.what}\n${row.line.where}`;
      const list = same.get(text);
      if (list) list.push(row);
      else same.set(text, [row]);
    }
    for (const list of same.values()) {
      if (new Set(list.map((row) => differs(row.site))).size < 2) continue;
      for (const row of list) {
        add(row.more, row.site);
        row.line = write(row.site, row.more);
      }
    }
  };
  refine((site) => `${key(site.user ?? site)}\n${key(site.via)}`, (more) => (more.long = true));
  const levels = Math.max(0, ...rows.map((row) => row.site.callers?.length ?? 0));
  for (let level = 0; level < levels; level++) {
    const caller = (site: SiteFrame): string => key(site.callers?.[level]);
    const has = (site: SiteFrame): boolean => level < (site.callers?.length ?? 0);
    refine(caller, (more, site) => has(site) && more.callers.add(level));
    refine(caller, (more, site) => has(site) && more.places.add(level));
  }
  refine(key, (more) => (more.site = true));
  const lines: (Line | null)[] = sites.map(() => null);
  for (const row of rows) lines[row.i] = row.line;
  return lines;
}
