// SPDX-License-Identifier: Apache-2.0
//
// Two instants of the machine: what each process holds more or less.

import { processBytes, type Process, type Totals } from "../data/model";

export interface Difference {
  process: Process;
  state: "" | "started" | "ended";
  before: number;
  after: number;
}

const keyOf = ({ pid, start_ns }: Process): string => `${pid} ${Math.round(start_ns / 1e9)}`;

/** The processes whose memory differs, or that were there at one of both only; the largest difference first. */
export function differences(before: Totals, after: Totals): Difference[] {
  const list = new Map<string, Difference>();
  for (const process of after.processes)
    if (process.alive) list.set(keyOf(process), { process, state: "started", before: 0, after: processBytes(process) });
  for (const process of before.processes) {
    if (!process.alive) continue;
    const same = list.get(keyOf(process));
    const bytes = processBytes(process);
    if (same) Object.assign(same, { state: "", before: bytes });
    else list.set(keyOf(process), { process, state: "ended", before: bytes, after: 0 });
  }
  return [...list.values()]
    .filter((one) => one.state !== "" || one.before !== one.after)
    .sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before) || a.process.pid - b.process.pid);
}
