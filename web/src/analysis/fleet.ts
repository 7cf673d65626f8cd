// SPDX-License-Identifier: Apache-2.0
//
// What the daemon knows of other machines, in words.

import { bytes, count, duration, share, signed } from "../base/format";

interface Amount {
  used: number;
  capacity: number | null;
}

export interface Host {
  host: string;
  url: string;
  problem: string | null;
  trouble: (keyof typeof TROUBLES)[];
  facts: {
    devices: number;
    processes: number;
    bytes: number;
    memory: Record<"DRAM" | "L1", Amount>;
    fullest: (Amount & { device: number; type: string }) | null;
    hour: { over_ns: number; bytes: number; incidents: number };
  } | null;
}

export interface Fleet {
  time_ns: number;
  hosts: Host[];
  notes: string[];
}

export const TROUBLES = { silent: "Not answering", full: "Nearly full", incidents: "Incidents", grows: "Growing", degraded: "Degraded" };

const amount = ({ used, capacity }: Amount): string => bytes(used) + (capacity ? ` · ${share(used, capacity)}` : "");

type Facts = NonNullable<Host["facts"]>;

/** What a host that answers tells of itself. */
export const COLUMNS: { title: string; number?: true; text(facts: Facts): string }[] = [
  { title: "Fullest", text: ({ fullest }) => (fullest ? `Device ${fullest.device} ${fullest.type}: ${share(fullest.used, fullest.capacity ?? 1)}` : "–") },
  { title: "DRAM", number: true, text: ({ memory }) => amount(memory.DRAM) },
  { title: "L1", number: true, text: ({ memory }) => amount(memory.L1) },
  { title: "Devices", number: true, text: ({ devices }) => count(devices) },
  { title: "Processes", number: true, text: ({ processes }) => count(processes) },
  { title: "Incidents, 1 h", number: true, text: ({ hour }) => count(hour.incidents) },
  { title: "Growth, 1 h", number: true, text: ({ hour }) =>
    hour.over_ns ? signed(hour.bytes) + (hour.over_ns < 3.5e12 ? ` in ${duration(hour.over_ns)}` : "") : "–" },
];

/** A host without facts has not answered. */
export const summary = (hosts: readonly Host[]): { silent: number; used: number } => ({
  silent: hosts.filter(({ facts }) => !facts).length,
  used: hosts.reduce((sum, { facts }) => sum + (facts?.bytes ?? 0), 0),
});
