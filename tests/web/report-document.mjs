// SPDX-License-Identifier: Apache-2.0
//
// A document of docs/schema/report.json with something in every part of the page, and hostile names.

export const EVIL = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>";

const START = 1_800_000_000_000_000_000;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const at = (seconds) => START + Math.round(seconds * 1e9);

const frame = (name, file, line, python = false) => ({ function: name, file, line, module: python ? null : "libttnn.so", python });
const FRAMES = [
  frame("main", "train.py", 12, true), frame("Model.forward", "model.py", 80, true), frame("Attention.forward", "attention.py", 41, true),
  frame("create_device_tensor", "tensor.cpp", 301), frame("load_weights", "loader.py", 22, true), frame("matmul", "matmul.cpp", 77),
  frame(EVIL, EVIL, 1), frame("KvCache.grow", "cache.py", 9, true),
];
const STACKS = [
  { frames: [3, 4, 0], site: 4 }, { frames: [3, 2, 1, 0], site: 2 }, { frames: [5, 2, 1, 0], site: 2 },
  { frames: [6, 0], site: 6 }, { frames: [3, 7, 1, 0], site: 7 },
];

const site = (type, stack, name, bytes, buffers, more = {}) =>
  ({ type, name, name_count: 1, names: [{ name, phase: null, bytes, buffers }], phase: null, stack, bytes, buffers, ...more });
const held = (seconds, sites) => ({
  time_ns: at(seconds), bytes: sites.reduce((sum, one) => sum + one.bytes, 0), unexplained: 0,
  buffers: sites.reduce((sum, one) => sum + one.buffers, 0), site_count: sites.length, sites,
});

function timeline(steps, seconds) {
  const times = [], dram = [], l1 = [], cb = [];
  for (let i = 0; i <= steps; i++) {
    const t = (seconds * i) / steps;
    times.push(at(t));
    dram.push(Math.round(t < 6 ? (3 * GIB * t) / 6 : 3 * GIB + (GIB / 2) * (1 + Math.sin(t)) + (t > 20 ? 40 * MIB * (t - 20) : 0)));
    l1.push(Math.round(t < 6 ? 0 : 60 * MIB * Math.abs(Math.sin(2 * t))));
    cb.push(t < 6 ? 0 : 24 * MIB);
  }
  const both = (bytes) => ({ bytes, high: bytes.map((one) => Math.round(one * 1.02)) });
  return { times_ns: times, types: { DRAM: both(dram), L1: both(l1), CB: both(cb) } };
}

function phases(seconds) {
  const list = [{ phase: "load", pid: 4711, comm: "python3", from_ns: at(0.2), to_ns: at(6) }];
  for (let epoch = 0; epoch < 3; epoch++)
    for (let layer = 0; layer < 6; layer++) {
      const from = 6 + ((seconds - 8) * (epoch * 6 + layer)) / 18;
      list.push({ phase: `epoch ${epoch}/layer ${layer}`, pid: 4711, comm: "python3", from_ns: at(from), to_ns: at(from + (seconds - 8) / 19) });
    }
  list.push({ phase: EVIL, pid: 4712, comm: "<img src=x>", from_ns: at(10), to_ns: at(30) });
  return list;
}

function map(pid, type, base, size, banks) {
  const buffers = [], holes = [];
  let address = base, used = 0;
  for (let i = 0; i < 120; i++) {
    const length = MIB * (1 + ((i * 7) % 11));
    if (address + 2 * length > base + size) break;
    buffers.push({ address: `0x${address.toString(16)}`, length, size: length * banks, type, name: i === 5 ? EVIL : `layers.${i}.weight`,
      phase: "load", born_ns: at(i / 30), stack: i % 5 });
    address += length;
    used += length;
    if (i % 6 === 5) {
      holes.push({ address: `0x${address.toString(16)}`, size: MIB * (i % 4 + 1) });
      address += MIB * (i % 4 + 1);
    }
  }
  holes.push({ address: `0x${address.toString(16)}`, size: base + size - address });
  const free = size - used;
  const largest = Math.max(...holes.map((hole) => hole.size));
  return { pid, comm: "python3", device: 0, uid: "0xa1", type, base: `0x${base.toString(16)}`, bank_size: size, banks, alignment: 32, used,
    occupied: used * banks, free, largest, fragmentation: 1 - largest / free, blocks: buffers.length, guessed: 0, unplaced: 0, hole_count: holes.length, holes, buffers };
}

export function reportDocument({ seconds = 40, incidents = true } = {}) {
  const party = (time, name, stack) => ({ time_ns: at(time), thread: 4711, name, phase: "epoch 1/layer 3", size: 2 * MIB, stack });
  const incident = (kind, time, name, more = {}) => ({ kind, time_ns: at(time), last_ns: at(time), pid: 4711, comm: "python3", device: 0, type: "DRAM",
    address: "0x10000", size: 2 * MIB, largest_free: null, count: 1, first: party(time - 1, name, 1), second: party(time, name, 2), ...more });
  const times = Array.from({ length: 33 }, (_one, i) => at((seconds * i) / 32));
  const peakSites = [
    site("DRAM", 0, "tok_embeddings", 2 * GIB, 4), site("DRAM", 1, "activations", 900 * MIB, 64), site("L1", 2, "out", 60 * MIB, 12),
    site("DRAM", 3, EVIL, 32 * MIB, 2), site("DRAM", 4, null, 800 * MIB, 200, { name_count: 200, names: [{ name: "kv.0", phase: null, bytes: 4 * MIB, buffers: 1 }, { name: "kv.1", phase: null, bytes: 4 * MIB, buffers: 1 }] }),
    site("CB", null, "cb_in0", 24 * MIB, 8),
  ];
  return {
    schema: "ttmem.report/1", time_ns: at(seconds), file: "run.ttrec", command: "python3 train.py --epochs 3", host: "qb-04", start_ns: START, end_ns: at(seconds),
    events: 1_204_300, missed: 240, complete: true, torn: 0,
    processes: [
      { pid: 4711, comm: "python3", user: "alice", container: null, start_ns: START, ended_ns: at(seconds), exit: { code: 0, signal: null } },
      { pid: 4712, comm: "<img src=x>", user: "alice", container: null, start_ns: at(8), ended_ns: at(31), exit: { code: null, signal: 9 } },
    ],
    process_count: 2,
    timeline: timeline(400, seconds),
    gaps: [{ pid: 4711, comm: "python3", device: 0, from_ns: at(17), to_ns: at(18.5), events: 240, allocs: 120, frees: 120, peak: false }],
    marks: [{ time_ns: at(6), pid: 4711, comm: "python3", name: "weights loaded" }, { time_ns: at(20), pid: 4711, comm: "python3", name: EVIL }],
    phases: phases(seconds),
    incidents: incidents ? [incident("double_free", 12, "kv_page"), incident("alloc_failed", 33, EVIL, { largest_free: 12 * MIB, first: null })] : [],
    incident_count: incidents ? 2 : 0,
    peak: held(33, peakSites), end: held(seconds, [site("DRAM", 4, null, 800 * MIB, 200, { name_count: 200, names: [] }), site("DRAM", 3, EVIL, 32 * MIB, 2)]),
    temporaries: { site_count: 2, sites: [1, 3].map((stack, i) => ({ type: "L1", name: null, phase: null, stack, pid: 4711, comm: "python3",
      allocs: 400_000 / (i + 1), frees: 400_000 / (i + 1), bytes: 90 * GIB, high: 4 * MIB,
      lives: Array.from({ length: 32 }, (_one, bit) => (bit === 8 ? 300_000 / (i + 1) : bit === 14 ? 100_000 / (i + 1) : 0)) })) },
    growth: { first_ns: at(4), last_ns: at(seconds), samples: 16, site_count: 1, sites: [{ type: "DRAM", name: null, name_count: 200, phase: null, stack: 4, pid: 4711, comm: "python3",
      first_bytes: 0, last_bytes: 800 * MIB, first_buffers: 0, last_buffers: 200, oldest_ns: at(20), confidence: "low" }] },
    fragmentation: { times_ns: times, spaces: [{ pid: 4711, comm: "python3", device: 0, type: "DRAM", size: 12 * GIB,
      used: times.map((_one, i) => (i < 2 ? null : 3 * GIB + i * 20 * MIB)), free: times.map((_one, i) => (i < 2 ? null : 9 * GIB - i * 20 * MIB)),
      largest: times.map((_one, i) => (i < 2 ? null : 9 * GIB - i * 150 * MIB)) },
    { pid: 4711, comm: "python3", device: 0, type: "L1", size: 96 * MIB, used: times.map(() => 20 * MIB), free: times.map(() => 76 * MIB), largest: times.map((_one, i) => (70 - i) * MIB) }] },
    map_count: 2,
    maps: [map(4711, "DRAM", 0x20, GIB, 12), map(4711, "L1", 0x20000, 96 * MIB, 64)],
    frames: FRAMES, stacks: STACKS, exact: false, next: null, notes: [],
  };
}

/** As the command puts it into the page. */
export const embedded = (report) => JSON.stringify(report).replace(/</g, "\\u003c");
