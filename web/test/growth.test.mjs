// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { growthOf, growthOn, growthSite, growthText, rate, timeToFull } from "../src/analysis/growth";
import { frame, memory } from "./make.mjs";

const MIB = 2 ** 20;
const device = (uid, used, capacity) => {
  const all = memory({ DRAM: used });
  all.DRAM.capacity = capacity;
  return { device: 0, uid, memory: all };
};
const process = (pid, parts) => ({ pid, devices: Object.entries(parts).map(([uid, used]) => ({ device: 0, uid, memory: memory({ DRAM: used }) })) });
const site = (pid, per_second, name = null, type = "DRAM") => ({ pid, type, per_second, name, stack: [], site: frame("call", "/src/model.py", 7) });

test("a device is full when all that grows on it has taken the rest", () => {
  const one = device("0xa", 600 * MIB, 1000 * MIB);
  const processes = [process(1, { "0xa": 500 * MIB }), process(2, { "0xa": 100 * MIB })];
  const found = growthOn(one, processes, [site(1, MIB, "slow"), site(2, 3 * MIB, "fast"), site(9, 100 * MIB)]);
  assert.deepEqual([found.pool, found.perSecond, found.fullS, found.site.name], ["DRAM", 4 * MIB, 100, "fast"]);
  assert.equal(growthText(found), "▲ DRAM +4.00 MiB/s, full in 2 min");
  assert.equal(growthSite(found), "fast · call · model.py:7");
  assert.equal(growthOn(one, processes, [site(1, MIB, "x", "L1")]), null, "it has nothing of that type");
});

test("what a process takes on several devices is shared among them as it is", () => {
  const devices = [device("0xa", 300 * MIB, 1000 * MIB), device("0xb", 100 * MIB, 150 * MIB)];
  const both = process(1, { "0xa": 300 * MIB, "0xb": 100 * MIB });
  const sites = [site(1, 4 * MIB)];
  assert.equal(growthOn(devices[0], [both], sites).perSecond, 3 * MIB);
  const found = growthOf(both, devices, [both], sites);
  assert.deepEqual([found.perSecond, found.fullS], [4 * MIB, 50]);
  assert.equal(growthOf(process(2, {}), devices, [both], sites), null);
});

test("without a capacity, or in far future, nothing is said of the end", () => {
  assert.equal(timeToFull(device("0xa", 1, null), "DRAM", 1), null);
  assert.equal(timeToFull(device("0xa", 0, 2 ** 40), "DRAM", 1), null);
  assert.equal(timeToFull(device("0xa", 20, 10), "DRAM", 1), 0, "more is taken than there is");
  const lone = growthOn(device("0xa", MIB, null), [process(1, { "0xa": MIB })], [site(1, 1024)]);
  assert.equal(growthText(lone), "▲ DRAM +3.52 MiB/h");
});

test("rates have units for people", () => {
  assert.deepEqual([2 * MIB, MIB / 10, 100].map(rate), ["+2.00 MiB/s", "+6.00 MiB/min", "+352 KiB/h"]);
});
