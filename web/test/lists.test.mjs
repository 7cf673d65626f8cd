// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { glance, groupUp, happened, joined, nameOf, unread } from "../src/analysis/groups";
import { compare, partNote, siteOf, sumUp } from "../src/analysis/sites";
import { memoryOf, poolTaken } from "../src/data/model";
import { shortId, siteKey, siteLabel, siteWhere } from "../src/data/stack";
import { tips, tree } from "../src/flame/tree";
import { listHeight, reveal, ROW, rowAt, seen, SPARE, TALLEST, topOf } from "../src/parts/window";
import { buffer, frame, incident, memory } from "./make.mjs";

test("what was added between two moments, and what went", () => {
  const stays = buffer({ name: "stays", address: "0x1" });
  const goes = buffer({ name: "goes", address: "0x2", size: 2000 });
  const comes = [buffer({ name: "comes", address: "0x3", size: 3000 }), buffer({ name: "comes", address: "0x4", size: 1000 })];
  const rows = compare([stays, goes], [stays, ...comes]).map(({ name, added, addedBuffers, gone, goneBuffers }) =>
    [name, added, addedBuffers, gone, goneBuffers]);
  assert.deepEqual(rows, [["comes", 4000, 2, 0, 0], ["goes", 0, 0, 2000, 1]]);
});

test("where one of two moments is not complete, it is said", () => {
  const [all, part] = [{ complete: true }, { complete: false }];
  assert.equal(partNote(all, all), "");
  for (const [before, after] of [[all, part], [part, all], [part, part]]) assert.match(partNote(before, after), /only the first ones are compared/);
});

test("freed and allocated again at the same place is a change, though nothing was gained", () => {
  const before = buffer({ address: "0x1", born_ns: 1e18, age_ns: 1e9 });
  const after = { ...before, born_ns: 1e18 + 1e9, age_ns: 0 };
  const [change] = compare([before], [after]);
  assert.deepEqual([change.added, change.gone, change.addedBuffers, change.goneBuffers], [1024, 1024, 1, 1]);
  assert.deepEqual(compare([before], [before]), []);
});

test("births that are counted back anew, and differ by a hair, are the same", () => {
  const before = Array.from({ length: 100 }, (_, i) => buffer({ address: `0x${i}`, born_ns: 1794753917631461976 + i * 1e6, age_ns: 1e9 }));
  const after = before.map((one, i) => ({ ...one, born_ns: one.born_ns + ((i % 7) - 3) * 256, age_ns: 2e9 }));
  assert.deepEqual(compare(before, after), []);
  // Ten hours later the clock was corrected by a tenth of a second.
  const hours = 36000e9;
  assert.deepEqual(compare(before, before.map((one) => ({ ...one, born_ns: one.born_ns + 1e8, age_ns: hours }))), []);
});

test("the same place on two devices, or of two types, is two buffers", () => {
  const one = buffer({ address: "0x1" });
  assert.equal(compare([one], [one, { ...one, device_uid: "0xb2" }])[0].added, 1024);
  assert.equal(compare([one], [one, { ...one, type: "L1" }])[0].added, 1024);
});

test("the difference is that of the sums", () => {
  const before = Array.from({ length: 50 }, (_, i) => buffer({ address: `0x${i}`, size: i, name: `n${i % 7}` }));
  const after = before.slice(20).concat(Array.from({ length: 30 }, (_, i) => buffer({ address: `0x${i + 900}`, size: 3 * i, name: `n${i % 5}` })));
  const sum = (list) => list.reduce((all, one) => all + one.size, 0);
  const changes = compare(before, after);
  assert.equal(changes.reduce((all, one) => all + one.added - one.gone, 0), sum(after) - sum(before));
  const sizes = changes.map((one) => Math.abs(one.added - one.gone));
  assert.deepEqual(sizes, [...sizes].sort((a, b) => b - a));
});

test("a call site stays the same when the source moves", () => {
  const [a, b] = [frame("f", "x.c", 10), frame("f", "x.c", 99)];
  assert.equal(siteKey({ type: "L1", name: "n", phase: "p", stack: [a] }), siteKey({ type: "L1", name: "n", phase: "q", stack: [b] }));
  assert.notEqual(siteKey({ type: "L1", name: "n", stack: [a] }), siteKey({ type: "L1", name: "n", stack: [frame("g", "x.c")] }));
  assert.notEqual(siteKey({ type: "L1", name: null, phase: "p", stack: [] }), siteKey({ type: "L1", name: null, phase: "q", stack: [] }));
});

test("in one process, lines tell call sites apart", () => {
  const [a, b] = [frame("f", "x.c", 10), frame("f", "x.c", 99)];
  const sums = [...sumUp([buffer({ stack: [a] }), buffer({ stack: [a], size: 1, born_ns: 5 }), buffer({ stack: [b] })]).values()];
  assert.deepEqual(sums.map(({ bytes, buffers, oldestNs }) => [bytes, buffers, oldestNs]), [[1025, 2, 5], [1024, 1, 1000]]);
});

test("buffers of one line are one call site, whatever they are called", () => {
  const stack = [frame("alloc", "pool.c", 3), frame("grow", "x.c", 10)];
  const site = { function: "grow", file: "/src/x.c", line: 10, module: null };
  const rows = Array.from({ length: 100 }, (_, i) => buffer({ stack, site, name: `kv.${i}`, size: i + 1 }));
  const [sum, ...rest] = sumUp(rows).values();
  assert.equal(rest.length, 0);
  assert.deepEqual([sum.buffers, sum.bytes, sum.name_count, sum.name], [100, 5050, 100, null]);
  assert.deepEqual(sum.called.get("kv.7"), { bytes: 8, buffers: 1 });
  // The daemon's frame, not the innermost one.
  assert.deepEqual([siteLabel(sum), siteWhere(sum)], ["grow", "x.c:10 · 100 names"]);
  const [bare, ...others] = sumUp(rows.map((row) => ({ ...row, stack: [], site: null }))).values();
  assert.deepEqual([others.length, bare.name, bare.name_count], [0, "kv.#", 100]);
  const leaks = [{ pid: 3, ended_ns: 20, sites: rows.map(({ type, name }) => ({ type, name, phase: null, stack, site, bytes: 1, buffers: 1 })) }];
  assert.deepEqual(groupUp([], leaks).map((group) => [group.times, group.site.name]), [[100, null]]);
});

test("names of groups differ where the groups do", () => {
  const names = new Set(Array.from({ length: 20000 }, (_, i) => shortId(`leak\nDRAM\nname ${i}`)));
  assert.equal(names.size, 20000);
  assert.match(shortId(""), /^[0-9a-f]{14}$/);
});

test("incidents by call site", () => {
  const stack = [frame("f")];
  const second = { time_ns: 1, thread: 1, name: null, phase: null, size: 10, stack };
  const first = { ...second, name: "n" };
  const groups = groupUp(
    [incident({ pid: 1, count: 3, time_ns: 5, last_ns: 9, first, second }), incident({ pid: 2, time_ns: 2, last_ns: 2, first, second }),
      incident({ kind: "leak" })],
    [{ pid: 3, ended_ns: 20, sites: [{ type: "DRAM", name: "n", phase: null, stack, bytes: 100, buffers: 4 }] },
      { pid: 4, ended_ns: 30, sites: [{ type: "DRAM", name: "n", phase: null, stack, bytes: 1, buffers: 1 }] }],
  );
  assert.deepEqual(groups.map(({ kind, times, bytes, pids, firstNs, lastNs }) => [kind, times, bytes, [...pids], firstNs, lastNs]),
    [["leak", 5, 101, [3, 4], 20, 30], ["double_free", 4, 20, [1, 2], 2, 9]]);
});

test("a list of buffers that goes on on the next page is one list", () => {
  const list = joined([{ pid: 1, buffers: ["a"] }, { pid: 2, buffers: ["b"] }, { pid: 2, offset: 1, buffers: ["c", "d"] }, { pid: 3, buffers: [] }]);
  assert.deepEqual(list.map(({ pid, buffers }) => [pid, buffers]), [[1, ["a"]], [2, ["b", "c", "d"]], [3, []]]);
});

test("what was heard, and then read, is counted once", () => {
  const site = (name, with_) => incident({ kind: "leak", pid: 7, first: { name, phase: null, stack: [] }, ...with_ });
  const heard = [
    site(null, { time_ns: 100, last_ns: 100, count: 2, first: null }), // of all that the process left
    incident({ pid: 8, time_ns: 90, second: { name: "x", phase: null, stack: [frame("f")] } }),
    incident({ pid: 9, time_ns: 95 }),
  ];
  assert.deepEqual(unread(heard, []), heard, "nothing was read yet");
  assert.deepEqual(unread(heard, [site("a", { time_ns: 100, last_ns: 100 }), site("b", { time_ns: 100, last_ns: 100 })]), heard.slice(1));
  // The same one, which has happened again since.
  const again = incident({ pid: 8, time_ns: 90, last_ns: 200, count: 5, second: { name: "x", phase: null, stack: [frame("f")] } });
  assert.deepEqual(unread(heard, [again]), [heard[0], heard[2]]);
  // Neither an older leak of that number, nor one of another process, nor another kind.
  assert.deepEqual(unread(heard, [site("a", { time_ns: 50, last_ns: 50 }), site("a", { pid: 6, time_ns: 100, last_ns: 100 }), incident({ pid: 7, last_ns: 100 })]), heard);
});

test("at a glance, one line for a process and kind", () => {
  const leaks = Array.from({ length: 300 }, (_, i) => incident({ kind: "leak", pid: 7, count: 2, size: 10, last_ns: i }));
  const rows = glance([...leaks, incident({ pid: 7, last_ns: 999, count: 5 })]);
  assert.deepEqual(rows.map(({ kind, places, times, bytes, lastNs }) => [kind, places, times, bytes, lastNs]),
    [["double_free", 1, 5, 10, 999], ["leak", 300, 600, 3000, 299]]);
  assert.equal(rows[1].one, leaks[299]);
  assert.ok(rows[1].least, "the daemon keeps so many call sites of a process");
  assert.ok(!rows[0].least && !glance(leaks.slice(50))[0].least);
  const party = (name) => ({ time_ns: 1, thread: 1, name, phase: null, size: 10, stack: [] });
  assert.notEqual(nameOf(incident({ first: party("a") })), nameOf(incident({ first: party("b") })));
  assert.equal(siteOf(incident({ first: party("a"), second: party(null) })).name, "a");
});

test("a flame graph's tree", () => {
  const stack = [frame("inner"), frame("outer")]; // innermost first
  const root = tree([
    buffer({ stack, size: 10, name: "x" }), buffer({ stack, size: 5, name: "x" }), buffer({ stack, size: 1, name: null }),
    buffer({ stack: [frame("other"), frame("outer")], size: 4 }), buffer({ phase: "a/b", size: 7, name: "y" }),
  ]);
  assert.equal(root.value, 27);
  assert.equal(root.buffers, 5);
  const [outer, none] = root.children;
  assert.deepEqual([outer.name, outer.value, outer.children.map((node) => [node.name, node.value])], ["outer", 20, [["inner", 16], ["other", 4]]]);
  assert.deepEqual([none.name, none.children[0].name, none.children[0].children[0].name], ["no stack", "a", "b"]);
  for (const walk = [root]; walk.length; ) {
    const node = walk.pop();
    if (node.children.length) assert.equal(node.children.reduce((sum, child) => sum + child.value, 0), node.value);
    walk.push(...node.children);
  }
  assert.deepEqual(tips(root).map(({ path, node }) => [path.join(">"), node.value]), [
    ["outer>inner>x", 15], ["no stack>a>b>y", 7], ["outer>other>a", 4], ["outer>inner>without a name", 1],
  ]);
  assert.deepEqual(tips(tree([])), []);
});

test("names that JavaScript has a use for are names", () => {
  const root = tree([buffer({ name: "__proto__", phase: "constructor/__proto__" }), buffer({ name: "constructor" })]);
  assert.equal(root.value, 2048);
  assert.equal(compare([], [buffer({ name: "__proto__" }), buffer({ name: "toString" })]).length, 2);
});

test("rows that can be seen", () => {
  assert.deepEqual(seen(0, 0, 400), { first: 0, last: 0, offset: 0 });
  assert.deepEqual(seen(5, 0, 400), { first: 0, last: 5, offset: 0 });
  const { first, last, offset } = seen(100000, 1000 * ROW, 400);
  assert.equal(first, 1000 - SPARE);
  assert.equal(last, 1000 + Math.ceil(400 / ROW) + SPARE);
  assert.equal(offset, (1000 - SPARE) * ROW);
});

test("every row can be seen, however long the list", () => {
  for (const count of [1, 100, 100000, 1e7]) {
    const height = 416;
    const most = Math.max(0, listHeight(count) - height);
    assert.ok(listHeight(count) <= TALLEST);
    const bottom = seen(count, most, height);
    assert.equal(bottom.last, count);
    // The last row ends where the bar does.
    assert.ok(Math.abs(bottom.offset + (count - bottom.first) * ROW - listHeight(count)) < 1);
    for (const index of [0, Math.floor(count / 3), count - 1]) {
      const top = reveal(count, index, most / 2, height);
      const now = seen(count, top, height);
      assert.ok(top >= 0 && top <= most + 1, `${count} ${index} ${top}`);
      assert.ok(index >= now.first && index < now.last, `${count} ${index}`);
      assert.equal(reveal(count, index, top, height), top, "a row that is seen moves nothing");
    }
  }
});

test("what a process holds of a device, under whatever numbers", () => {
  const part = (device, uid, used) => ({ device, uid, closed: false, memory: memory({ DRAM: used }) });
  const process = { devices: [part(0, "0xa1", 1), part(5, "0xa1", 2), part(1, "0xa2", 4), part(0, null, 8)] };
  const used = (device, uid) => memoryOf(process, { device, uid })?.DRAM.used;
  assert.deepEqual([used(0, "0xa1"), used(1, "0xa2"), used(0, null), used(5, null), used(0, "0xa3")], [3, 4, 8, undefined, undefined]);
  assert.equal(process.devices[0].memory.DRAM.used, 1, "the parts stay as they are");
});

test("each time counts, and a process that leaked is one", () => {
  const list = [incident({ count: 231 }), incident({ count: 2, pid: 2 }), incident({ kind: "leak", count: 7 }), incident({ kind: "leak", count: 9, address: "0x20" })];
  assert.equal(happened(glance(list)), 234);
  assert.equal(happened([]), 0);
});

test("the row at the top can be found again, in lists of any length", () => {
  for (const [count, height] of [[10, 400], [1000, 400], [5_000_000, 400]])
    for (const row of [0, 1, 7, count - 20].filter((one) => one >= 0 && one * ROW < count * ROW - height)) {
      const top = topOf(count, row, height);
      assert.ok(top <= listHeight(count), `${count} ${row}`);
      assert.ok(Math.abs(rowAt(count, top + 1e-6, height) - row) <= 0, `${count}: ${rowAt(count, top, height)} is not ${row}`);
    }
});

test("a pool is as full as the banks that its buffers touch, where that is known of all of them", () => {
  const memory = (dram, trace) => ({ DRAM: { used: 10, occupied: dram }, TRACE: { used: 4, occupied: trace } });
  const taken = (...occupied) => {
    const { taken: parts, isOccupied } = poolTaken(memory(...occupied), "DRAM");
    return [parts.get("DRAM"), parts.get("TRACE"), isOccupied];
  };
  assert.deepEqual(taken(24, 12), [24, 12, true]);
  assert.deepEqual(taken(24, null), [10, 4, false]);
  assert.deepEqual(taken(24, undefined), [10, 4, false]);
});
