// SPDX-License-Identifier: Apache-2.0
//
// What happened, as flags on charts: marks, phases, tests, incidents, starts and ends of processes and of the daemon. Flags
// that would touch each other become one.

import { clock, plural } from "../base/format";
import { KINDS, type PastEvent } from "../data/model";
import type { Span } from "./moment";

const APART_PX = 9;
const SAME_S = 1e-3; // cursors are whole milliseconds
const LINES = 6; // of a flag's text

// The most important first: it gives the flag its colour.
const RANK: Record<PastEvent["kind"], { rank: number; title: string }> = {
  incident: { rank: 0, title: "Incident" },
  restart: { rank: 1, title: "ttmemd started" },
  lost: { rank: 2, title: "ttmemd last seen" }, // it was killed
  stop: { rank: 3, title: "ttmemd ended" },
  mark: { rank: 4, title: "Mark" },
  test: { rank: 5, title: "Test" },
  phase: { rank: 6, title: "Phase" },
  start: { rank: 7, title: "Start" },
  end: { rank: 8, title: "End" },
};

/** The variables of the colours that style.css gives to flags; the others have none. */
export const FLAG_COLOURS: Partial<Record<PastEvent["kind"], string>> = {
  incident: "bad", restart: "warn", lost: "warn", stop: "warn", mark: "accent",
};

const rankOf = (event: PastEvent): number => RANK[event.kind]?.rank ?? 9;

export interface Flag {
  timeS: number; // of its most important event
  kind: PastEvent["kind"];
  events: PastEvent[];
}

/** @width: of the range, in pixels. */
export function flagsOf(events: readonly PastEvent[], range: Span, width: number): Flag[] {
  const near = ((range.max - range.min) * APART_PX) / Math.max(1, width);
  const flags: Flag[] = [];
  let first = -Infinity;
  for (const event of [...events].sort((a, b) => a.time_ns - b.time_ns)) {
    const timeS = event.time_ns / 1e9;
    if (timeS < range.min || timeS > range.max) continue;
    const last = flags[flags.length - 1];
    if (!last || timeS - first > near) {
      first = timeS;
      flags.push({ timeS, kind: event.kind, events: [event] });
      continue;
    }
    const most = last.events.reduce((best, one) => (rankOf(one) < rankOf(best) ? one : best));
    if (rankOf(event) < rankOf(most)) [last.timeS, last.kind] = [timeS, event.kind];
    last.events.push(event);
  }
  return flags;
}

export function eventText(event: PastEvent): string {
  const what = event.incident ? (KINDS[event.incident] ?? event.incident) : (RANK[event.kind]?.title ?? event.kind);
  const who = event.pid !== null && `${event.comm ?? "process"} (${event.pid})`;
  return [what + (event.name ? ` ${event.name}` : ""), who].filter(Boolean).join(" · ");
}

/** What a flag stands for, the most important lines first. */
export function flagLines({ events }: Flag): string[] {
  const sorted = [...events].sort((a, b) => rankOf(a) - rankOf(b) || a.time_ns - b.time_ns);
  const lines = sorted.slice(0, LINES).map((event) => `${clock(event.time_ns)} ${eventText(event)}`);
  return sorted.length > LINES ? [...lines, `and ${plural(sorted.length - LINES, "more", "more")}`] : lines;
}

/** The nearest flag before or after a time; undefined: there is none. */
export function nextFlag(flags: readonly Flag[], timeS: number, step: number): Flag | undefined {
  if (step > 0) return flags.find((flag) => flag.timeS > timeS + SAME_S);
  return flags.filter((flag) => flag.timeS < timeS - SAME_S).pop();
}
