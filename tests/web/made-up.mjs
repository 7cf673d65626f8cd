// SPDX-License-Identifier: Apache-2.0
//
// Machines that no test could build: totals of any number of processes and devices.

const TYPES = ["DRAM", "TRACE", "L1", "L1_SMALL", "CB", "KERNEL", "SYSTEM_MEMORY"];
const memory = (used) => Object.fromEntries(TYPES.map((type) =>
  [type, { used: type === "DRAM" ? used : 0, buffers: 1, peak: null, bound: "exact", capacity: 12 * 1024 ** 3, bank: null }]));

/** Totals of a very large machine, as a daemon would send them. */
export function totals(processes, devices) {
  const now = Date.now() * 1e6;
  const uid = (i) => `0x${(i + 1).toString(16)}`;
  return {
    schema: "ttmem.smi/1", time_ns: now, exact: true, next: null, notes: [], totals: { bytes: 1, buffers: 1 },
    devices: Array.from({ length: devices }, (_, i) => ({
      device: i, uid: uid(i), arch: "wormhole_b0", card: "n300", remote: false, by_number: false, memory: memory(i * 2 ** 20),
      state: i % 4 === 3 ? "not_answering" : "present",
      telemetry: i % 2 ? null : { temperature_c: 41.6, power_w: 18.2, aiclk_mhz: 1000 },
    })),
    processes: Array.from({ length: processes }, (_, i) => ({
      pid: i + 1, ns_pid: i + 1, start_ns: now - i * 1e9, comm: `proc-${i}`, user: `user${i % 9}`, container: i % 2 ? null : `c0ffee${i}`, last_activity_ns: now,
      source: "book", alive: true, exact: true, devices: [{ device: i % devices, uid: uid(i % devices), closed: false, memory: memory(i * 1024) }],
    })),
  };
}

/** The stream tells these totals once, and then nothing. */
export async function tell(visitor, document) {
  let told = false;
  visitor.forgive(/ERR_|Failed to load/);
  await visitor.page.route("**/api/v1/stream?*", (route) => {
    if (!told) void route.fulfill({ contentType: "text/event-stream", body: `event: totals\ndata: ${JSON.stringify(document)}\n\n` });
    told = true;
  });
}
