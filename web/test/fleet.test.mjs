// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { COLUMNS, summary } from "../src/analysis/fleet";

const GIB = 2 ** 30;
const facts = (with_ = {}) => ({
  devices: 4, processes: 1200, bytes: 3 * GIB, memory: { DRAM: { used: 3 * GIB, capacity: 12 * GIB }, L1: { used: 0, capacity: null } },
  fullest: { device: 2, type: "DRAM", used: 11 * GIB, capacity: 12 * GIB }, hour: { over_ns: 3600e9, bytes: GIB, incidents: 2 }, ...with_,
});
const texts = (of) => Object.fromEntries(COLUMNS.map(({ title, text }) => [title, text(of)]));

test("what a host tells, in words", () => {
  assert.deepEqual(texts(facts()), {
    Fullest: "Device 2 DRAM: 92 %", DRAM: "3.00 GiB · 25 %", L1: "0 B", Devices: "4", Processes: "1,200", "Incidents, 1 h": "2",
    "Growth, 1 h": "+1.00 GiB",
  });
});

test("growth names its time where that is less than the hour, and is not told of no time", () => {
  const growth = (over_ns, bytes) => texts(facts({ hour: { over_ns, bytes, incidents: 0 } }))["Growth, 1 h"];
  assert.equal(growth(600e9, -1024), "−1.00 KiB in 10 min 0 s");
  assert.equal(growth(3599e9, 0), "0 B");
  assert.equal(growth(0, 5), "–");
});

test("a host whose memory has no known size has no fullest device", () => {
  assert.equal(texts(facts({ fullest: null })).Fullest, "–");
});

test("hosts that do not answer are counted, and add nothing", () => {
  const host = (with_) => ({ host: "a", url: "http://a/", problem: null, trouble: [], facts: facts(), ...with_ });
  assert.deepEqual(summary([host(), host({ facts: null, trouble: ["silent"] }), host()]), { silent: 1, used: 6 * GIB });
  assert.deepEqual(summary([]), { silent: 0, used: 0 });
});
