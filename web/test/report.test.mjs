// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Book, leaves } from "../src/report/document";
import { known } from "../src/report/timeline";
import { medianLife, moment, phaseBars, recorded, shortLives } from "../src/report/spans";

const span = (phase, from_ns, to_ns, pid = 1) => ({ phase, pid, comm: `p${pid}`, from_ns, to_ns });

test("the parts of a phase are bars below each other, and touching ones are one", () => {
  const { bars, rows } = phaseBars([span("epoch/a", 0, 10), span("epoch/b", 10, 20), span("epoch/a", 20, 30)], 0, 9);
  assert.deepEqual(bars.map(({ label, from, to, row }) => [label, from, to, row]),
    [["epoch", 0, 30, 0], ["a", 0, 10, 1], ["b", 10, 20, 1], ["a", 20, 30, 1]]);
  assert.equal(rows, 2);
});

test("phases that overlap in time get rows of their own, and so do processes", () => {
  const { bars, blocks, rows } = phaseBars([span("a", 0, 10), span("b", 5, 15), span("a", 0, 10, 2), span("c", 12, 20)], 0, 9);
  assert.deepEqual(bars.map(({ label, pid, row }) => [label, pid, row]), [["a", 1, 0], ["b", 1, 1], ["c", 1, 0], ["a", 2, 2]]);
  assert.deepEqual(blocks, [{ pid: 1, comm: "p1", row: 0, rows: 2 }, { pid: 2, comm: "p2", row: 2, rows: 1 }]);
  assert.equal(rows, 3);
  assert.equal(phaseBars([span("a", 0, 10), span("b", 5, 15)], 0, 1).bars.length, 1);
});

test("moments are written as --at takes them", () => {
  assert.deepEqual([0, 0.0000015, 0.0123, 1.5, 59.96, 90, 3600, 5400].map(moment),
    ["0 s", "2 µs", "12.3 ms", "1.5 s", "60 s", "1 min 30 s", "1 h", "1 h 30 min"]);
});

test("a share of the events is never rounded up to all of them", () => {
  assert.equal(recorded(10, 0), "all events");
  assert.equal(recorded(9_999_999, 1), "99.99 % of events");
  assert.equal(recorded(1, 1), "50.00 % of events");
});

test("lives are counted by bits of ns / 1024", () => {
  const lives = (bits) => Array.from({ length: 32 }, (_one, i) => bits[i] ?? 0);
  assert.equal(shortLives(lives({ 0: 1, 10: 2, 11: 4 })), 3);
  assert.equal(medianLife(lives({})), null);
  assert.equal(medianLife(lives({ 3: 5, 20: 5 })), 8 * 1024);
  assert.equal(medianLife(lives({ 3: 4, 20: 6 })), 1024 * 2 ** 20);
});

test("sites get their stacks back, whatever numbers the document has", () => {
  const frames = ["a", "b"].map((name) => ({ function: name, file: null, line: null, module: null, python: false }));
  const book = new Book({ frames, stacks: [{ frames: [1, 0, 9], site: 0 }, { frames: [], site: 7 }, { frames: [0], site: 0, user: 1, via: 0, callers: [1, 9] }] });
  assert.deepEqual(book.frames(2).site, { ...frames[0], user: frames[1], via: frames[0], callers: [frames[1]] });
  assert.deepEqual(book.frames(0), { stack: [frames[1], frames[0]], site: { ...frames[0], user: null, via: null, callers: [] } });
  assert.deepEqual(book.frames(1), { stack: [], site: null });
  assert.deepEqual(book.frames(5), { stack: [], site: null });
  assert.deepEqual(book.frames(null), { stack: [], site: null });
});

test("a site of many names has a leaf for each that is listed, and one for the others", () => {
  const site = { type: "DRAM", phase: null, stack: [], site: null, key: "0", name: null, name_count: 5, bytes: 100, buffers: 9,
    names: [{ name: "a", bytes: 60, buffers: 2 }, { name: null, bytes: 10, buffers: 1 }] };
  assert.deepEqual(leaves(site).map(({ name, size, buffers }) => [name, size, buffers]),
    [["a", 60, 2], [null, 10, 1], ["3 more names", 30, 6]]);
  assert.deepEqual(leaves({ ...site, name: "b", name_count: 1, names: [] }).map(({ name, size }) => [name, size]), [["b", 100]]);
});

test("what is not known is not drawn, and neither is a sum that it is part of", () => {
  const timeline = { times_ns: [1, 2, 3], types: { DRAM: { bytes: [null, 5, 6], high: [null, 5, 6] }, L1: { bytes: [1, 2, 3], high: [1, 2, 3] } } };
  assert.deepEqual(known(timeline, ["DRAM", "L1"], "L1", "bytes"), [null, 2, 3, 3]);
  assert.deepEqual(known(timeline, ["L1"], "L1", "high"), [1, 2, 3, 3]);
  assert.deepEqual(known(timeline, ["DRAM"], "DRAM", "high"), [null, 5, 6, 6]);
});
