// SPDX-License-Identifier: Apache-2.0
//
// Documents for tests, with everything that a test does not care about.
export const frame = (name, file = `${name}.c`, line = 1) => ({ function: name, file, line, module: null, python: false });

let address = 0;
export const buffer = (with_ = {}) => ({
  pid: 1, comm: "one", device: 0, device_uid: "0xa1", type: "DRAM", address: `0x${(address += 0x1000).toString(16)}`, size: 1024,
  refs: 1, born_ns: 1000, age_ns: 0, name: "a", phase: null, thread: 1, flags: [], stack: [], site: null, ...with_,
});

export const incident = (with_ = {}) => ({
  kind: "double_free", time_ns: 1, last_ns: 1, pid: 1, comm: "one", device: 0, device_uid: null, type: "DRAM",
  address: "0x10", size: 10, largest_free: null, count: 1, first: null, second: null, ...with_,
});

const TYPES = ["DRAM", "TRACE", "L1", "L1_SMALL", "CB", "KERNEL", "SYSTEM_MEMORY"];
export const memory = (used = {}, banks = {}) =>
  Object.fromEntries(TYPES.map((type) => [type, {
    used: used[type] ?? 0, buffers: 0, peak: null, bound: "exact", capacity: null, bank: banks[type] ?? null,
  }]));

export const space = (with_ = {}) => ({
  pid: 1, comm: "one", device: 0, uid: "0xa1", type: "DRAM", base: "0x0", bank_size: 0x10000, banks: 12, alignment: 32,
  used: 0, occupied: 0, free: 0x10000, largest: 0x10000, fragmentation: 0, blocks: 0, guessed: 0, unplaced: 0, holes: [],
  ...with_,
});

/** Time-outs that wait for tick(), until reset(). Those of node 18, which Debian 12 has, cannot be cleared. */
export function mockTimeouts() {
  const { setTimeout, clearTimeout } = globalThis;
  const waiting = new Map();
  let now = 0;
  let last = 0;
  globalThis.setTimeout = (run, after = 0) => (waiting.set(++last, { run, at: now + after }), last);
  globalThis.clearTimeout = (timer) => waiting.delete(timer);
  return {
    tick(ms) {
      now += ms;
      for (const [timer, { run, at }] of [...waiting].sort(([, a], [, b]) => a.at - b.at))
        if (at <= now && waiting.delete(timer)) run();
    },
    reset: () => Object.assign(globalThis, { setTimeout, clearTimeout }),
  };
}
