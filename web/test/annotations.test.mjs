// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { differences } from "../src/analysis/difference";
import { changed } from "../src/analysis/sites";
import { indexAt } from "../src/chart/chart-data";
import { movedBy, pinched, wheeled, zoomedAt } from "../src/chart/chart-zoom";
import { eventText, flagLines, flagsOf, nextFlag } from "../src/time/annotations";
import { buffer, memory } from "./make.mjs";

const event = (timeS, kind = "mark", with_ = {}) =>
  ({ time_ns: timeS * 1e9, kind, pid: 5, comm: "train", device: null, name: null, incident: null, ...with_ });
const range = { min: 0, max: 100 };

test("flags that would touch become one, with the colour of the most important", () => {
  const flags = flagsOf([event(50.5, "incident"), event(50), event(10, "phase"), event(90), event(51, "end"), event(101), event(-1)], range, 400);
  assert.deepEqual(flags.map(({ timeS, kind, events }) => [timeS, kind, events.length]), [[10, "phase", 1], [50.5, "incident", 3], [90, "mark", 1]]);
  assert.equal(flagsOf(flags.flatMap((flag) => flag.events), range, 40000).length, 5, "with room each has its own");
  // However many there are, flags are apart.
  const many = flagsOf(Array.from({ length: 5000 }, (_, i) => event(i / 50)), range, 300);
  assert.ok(many.length <= 300 / 9 + 1, String(many.length));
  assert.equal(many.reduce((sum, flag) => sum + flag.events.length, 0), 5000);
  assert.deepEqual(flagsOf([], range, 300), []);
});

test("what a flag says", () => {
  assert.equal(eventText(event(1, "mark", { name: "epoch 3" })), "Mark epoch 3 · train (5)");
  assert.equal(eventText(event(1, "incident", { incident: "alloc_failed" })), "Failed allocation · train (5)");
  assert.equal(eventText(event(1, "restart", { pid: null, comm: null })), "ttmemd started");
  assert.equal(eventText(event(1, "stop", { pid: null, comm: null })), "ttmemd ended");
  assert.equal(eventText(event(1, "lost", { pid: null, comm: null })), "ttmemd last seen");
  assert.match(eventText(event(1, "test", { name: "t.py::test_a" })), /^Test t\.py::test_a · /);
  assert.equal(eventText(event(1, "phase", { comm: null })), "Phase · process (5)", "without the right to see names");
  const [flag] = flagsOf([...Array.from({ length: 9 }, (_, i) => event(10 + i / 100)), event(10.05, "incident", { incident: "leak" })], range, 100);
  const lines = flagLines(flag);
  assert.match(lines[0], /Leak · train \(5\)$/);
  assert.equal(lines.length, 7);
  assert.equal(lines[6], "and 4 more");
});

test("from flag to flag", () => {
  const flags = flagsOf([event(10), event(20), event(30)], range, 1000);
  assert.equal(nextFlag(flags, 20, 1).timeS, 30);
  assert.equal(nextFlag(flags, 20, -1).timeS, 10);
  assert.equal(nextFlag(flags, 20.0004, -1).timeS, 10, "the flag at the cursor itself is not another one");
  assert.equal(nextFlag(flags, 30, 1), undefined);
  assert.equal(nextFlag(flags, 10, -1), undefined);
});

test("the point of a time", () => {
  assert.deepEqual([5, 10, 19, 20, 99].map((time) => indexAt([10, 20, 30], time)), [0, 0, 0, 1, 2]);
  assert.equal(indexAt([], 5), 0);
});

test("zooming keeps the time below the pointer, and stays within what there is", () => {
  const all = { min: 0, max: 100 };
  assert.deepEqual(zoomedAt({ min: 20, max: 60 }, 30, 0.5, all, 2), { min: 25, max: 45 });
  assert.deepEqual(zoomedAt({ min: 20, max: 60 }, 20, 2, all, 2), { min: 20, max: 100 });
  assert.deepEqual(zoomedAt({ min: 60, max: 100 }, 60, 1.5, all, 2), { min: 40, max: 100 }, "moved back inside");
  assert.equal(zoomedAt({ min: 20, max: 60 }, 30, 10, all, 2), null, "all of it");
  assert.deepEqual(zoomedAt({ min: 20, max: 24 }, 22, 0.01, all, 2), { min: 21, max: 23 }, "not closer than allowed");
  assert.deepEqual(movedBy({ min: 20, max: 60 }, 30, all), { min: 50, max: 90 });
  assert.deepEqual(movedBy({ min: 20, max: 60 }, -30, all), { min: 0, max: 40 });
});

test("the plain wheel belongs to the page", () => {
  const on = { spans: () => ({ shown: { min: 20, max: 60 }, all: { min: 0, max: 100 }, closest: 2 }), timeAt: () => 40 };
  const wheel = (with_) => wheeled({ deltaX: 0, deltaY: 0, deltaMode: 0, ctrlKey: false, metaKey: false, shiftKey: false, clientX: 0, ...with_ }, on, 400);
  assert.equal(wheel({ deltaY: 100 }), undefined);
  const closer = wheel({ deltaY: -100, ctrlKey: true });
  assert.ok(closer.max - closer.min < 40 && closer.min > 20 && closer.max < 60);
  const wider = wheel({ deltaY: 3, deltaMode: 1, ctrlKey: true });
  assert.ok(wider.max - wider.min > 40);
  assert.deepEqual(wheel({ deltaX: 40 }), { min: 24, max: 64 });
  assert.deepEqual(wheel({ deltaY: 40, shiftKey: true }), { min: 24, max: 64 });
  assert.equal(wheel({ deltaX: 10, deltaY: 40 }), undefined, "mostly downwards");
  assert.equal(wheeled({ deltaX: 40, deltaY: 0, deltaMode: 0 }, { ...on, spans: () => null }, 400), undefined);
});

test("two fingers hold the times below them", () => {
  assert.deepEqual(pinched([20, 40], [100, 200], 400, 2), { min: 0, max: 80 });
  assert.deepEqual(pinched([20, 40], [100, 300], 400, 2), { min: 10, max: 50 });
  assert.equal(pinched([20, 40], [100, 104], 400, 2), null);
  assert.equal(pinched([20, 40], [300, 100], 400, 2), null, "crossed");
  const closest = pinched([20, 20.001], [0, 400], 400, 2);
  assert.equal(closest.max - closest.min, 2);
});

const process = (pid, used, with_ = {}) => ({ pid, start_ns: pid * 1e9, comm: `p${pid}`, alive: true, devices: [{ device: 0, uid: null, memory: memory({ DRAM: used }) }], ...with_ });

test("what processes hold more or less at two instants", () => {
  const before = { processes: [process(1, 10), process(2, 20), process(3, 30), process(4, 5, { alive: false })] };
  const after = { processes: [process(1, 10), process(2, 50), process(9, 1), process(3, 30, { start_ns: 77e9 })] };
  assert.deepEqual(differences(before, after).map((one) => [one.process.pid, one.state, one.before, one.after]),
    [[2, "", 20, 50], [3, "started", 0, 30], [3, "ended", 30, 0], [9, "started", 0, 1]]);
  assert.deepEqual(differences(before, before), []);
});

test("buffers at one of two instants only", () => {
  const [stays, goes, comes] = [buffer(), buffer(), buffer()];
  const again = buffer({ address: stays.address, born_ns: 9e9 });
  assert.deepEqual(changed([stays, goes], [{ ...stays }, comes]), { added: [comes], gone: [goes] });
  assert.deepEqual(changed([stays], [again]), { added: [again], gone: [stays] }, "another one at the same place");
});
