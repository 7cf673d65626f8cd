// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { holeAt, layOut, memoryOf, perBank, spanAt, takesRoom } from "../src/map/holes";
import { AGE_NAMES, ageClass } from "../src/map/map";
import { moved, nextSpan, partOf, partText, zoomed } from "../src/map/map-keys";
import { takes, verdict } from "../src/views/places";
import { buffer, memory, space } from "./make.mjs";

const bank = { base: 0, size: 0x10000, banks: 12, alignment: 32 };

test("the room that a buffer takes in each bank", () => {
  assert.equal(perBank(buffer({ size: 12 * 64 }), bank), 64);
  assert.equal(perBank(buffer({ size: 12 * 64 + 1 }), bank), 96);
  assert.equal(perBank(buffer({ size: 1 }), bank), 32);
  assert.equal(perBank(buffer({ size: 1, size_per_bank: 4096 }), bank), 4096);
  assert.equal(perBank(buffer({ size: 0 }), { ...bank, alignment: 1 }), 1);
});

test("which memory a buffer lies in", () => {
  const device = { memory: memory({}, { DRAM: { ...bank, banks: 12 }, L1: { ...bank, banks: 64 } }) };
  for (const [with_, wanted] of [
    [{ type: "DRAM" }, "DRAM"], [{ type: "TRACE" }, "TRACE"], [{ type: "CB" }, "L1"], [{ type: "L1_SMALL" }, "L1_SMALL"],
    [{ type: "KERNEL", banks: 12 }, "DRAM"], [{ type: "KERNEL", banks: 64 }, "L1"], [{ type: "KERNEL", banks: 3 }, null], [{ type: "KERNEL" }, null],
  ])
    assert.equal(memoryOf(buffer(with_), device), wanted);
});

test("what lies in others' memory takes none", () => {
  assert.ok(takesRoom(buffer()));
  assert.ok(!takesRoom(buffer({ flags: ["alias"] })));
  assert.ok(!takesRoom(buffer({ flags: ["owns_data", "preallocated"] })));
});

test("holes are the daemon's, buffers lie in between", () => {
  const layout = layOut(1, "one", [
    buffer({ address: "0x2000", size: 12 * 0x1000, name: "high" }), buffer({ address: "0x0", size: 12 * 0x1000, name: "low" }),
    buffer({ address: "0x8000", size: 12, flags: ["alias"] }),
  ], space({ holes: [{ address: "0x1000", size: 0x1000 }, { address: "0x3000", size: 0xd000 }] }));
  assert.deepEqual(layout.spans.map(({ from, to, buffer: { name } }) => [from, to, name]), [[0, 0x1000, "low"], [0x2000, 0x3000, "high"]]);
  assert.deepEqual(layout.bank, { base: 0, size: 0x10000, banks: 12, alignment: 32 });
  for (const [at, name] of [[0, "low"], [0xfff, "low"], [0x1000, null], [0x2000, "high"], [0x2fff, "high"], [0x3000, null]]) {
    assert.equal(spanAt(layout, at)?.buffer.name ?? null, name, String(at));
    assert.equal(holeAt(layout, at) === null, name !== null, String(at));
  }
  assert.equal(holeAt(layout, 0x10000), null);
  assert.equal(holeAt({ ...layout, holes: [] }, 5), null);
});

test("where nobody has declared the memory, its bounds are those of the buffers", () => {
  const layout = layOut(1, "one", [buffer({ address: "0x3000", size: 0x1000 }), buffer({ address: "0x1000", size: 0x800 })], null);
  assert.deepEqual([layout.bank.base, layout.bank.size, layout.bank.banks], [0x1000, 0x3000, 1]);
  assert.deepEqual(layout.holes, [{ from: 0x1800, to: 0x3000 }]);
  assert.deepEqual(layOut(1, "one", [], null).spans, []);
});

test("buffers that lie over each other", () => {
  const layout = layOut(1, "one", [buffer({ address: "0x0", size: 0x1000, name: "wide" }), buffer({ address: "0x400", size: 0x100, name: "inside" })], null);
  assert.equal(spanAt(layout, 0x450).buffer.name, "inside");
  assert.equal(spanAt(layout, 0x600).buffer.name, "wide");
  assert.deepEqual(layout.holes, []);
});

const spans = [[0, 10], [20, 30], [500, 600], [900, 1000]].map(([from, to]) => ({ from, to, buffer: null }));

test("arrow keys in the map go on from what one is at, or begin at what can be seen", () => {
  const all = [0, 1000];
  assert.equal(nextSpan(spans, -1, 1, all), 0);
  assert.equal(nextSpan(spans, -1, -1, all), 3);
  assert.equal(nextSpan(spans, 1, 1, all), 2);
  assert.equal(nextSpan(spans, 3, 1, all), 3, "there is nothing further");
  assert.equal(nextSpan(spans, 0, -1, all), 0);
  assert.equal(nextSpan(spans, -1, 1, [400, 800]), 2);
  assert.equal(nextSpan(spans, 0, 1, [400, 800]), 2, "what one was at cannot be seen any more");
  assert.equal(nextSpan(spans, 0, -1, [550, 560]), 2);
  assert.equal(nextSpan(spans, -1, 1, [100, 200]), 2, "in a hole: the next one");
  assert.equal(nextSpan(spans, -1, -1, [100, 200]), 1);
  assert.equal(nextSpan(spans.slice(0, 3), -1, 1, [700, 800]), 2, "behind the last");
  assert.equal(nextSpan(spans.slice(2), -1, -1, [100, 200]), 0, "before the first");
  assert.equal(nextSpan([], -1, 1, all), -1);
  assert.equal(nextSpan([], -1, -1, all), -1);
});

test("the part that is shown goes with what one is at", () => {
  const all = [0, 1000];
  assert.deepEqual(moved([400, 560], spans[2], all), [400, 560], "some of it is seen");
  assert.deepEqual(moved([0, 100], spans[2], all), [500, 600]);
  assert.deepEqual(moved([0, 200], spans[3], all), [800, 1000], "not over the end");
  assert.deepEqual(moved([700, 900], spans[0], all), [0, 200]);
});

test("plus and minus in the map", () => {
  const all = [0, 4096];
  assert.deepEqual(zoomed(all, 2048, 0.5, all), [1024, 3072]);
  assert.deepEqual(zoomed(all, 0, 0.5, all), [0, 2048]);
  assert.deepEqual(zoomed([1024, 2048], 1280, 2, all), [768, 2816], "what is in the middle stays in its place");
  assert.deepEqual(zoomed([3072, 4096], 3072, 2, all), [2048, 4096], "not over the end");
  assert.equal(zoomed([1024, 3072], 2048, 2, all), null);
  assert.deepEqual(zoomed([1024, 1280], 1152, 0.5, all), [1024, 1280], "that is close enough");
  assert.deepEqual(zoomed([1024, 1034], 1029, 0.5, all), [1024, 1034], "somebody has dragged over less");
});

test("the part that is shown is in the address, and only a part of the whole is taken from there", () => {
  const all = [0x1000, 0x9000];
  assert.equal(partText([0xfff + 0.75, 0x2000 + 0.25]), "1000-2000");
  assert.deepEqual(partOf(partText([0x1234, 0x2345]), all), [0x1234, 0x2345]);
  for (const text of [null, "", "1000", "1000-", "2000-1000", "1000-1000", "0-2000", "1000-9001", "-1-2", "1000-2000-3000", "0x1000-0x2000", `1000-${"f".repeat(14)}`])
    assert.equal(partOf(text, all), null, String(text));
});

test("ages fall into five classes, a limit into the older one", () => {
  const minute = 60e9;
  assert.deepEqual([0, minute - 1, minute, 10 * minute, 60 * minute, 24 * 60 * minute, 1e18].map(ageClass), [0, 0, 1, 2, 3, 4, 4]);
  assert.equal(AGE_NAMES.length, ageClass(Infinity) + 1);
});

const MIB = 2 ** 20;
const asked = { banks: 12, need_per_bank: 768 * MIB, free: 900 * MIB, largest: 900 * MIB, in_the_way: [], hole: null, fits: false };

test("what a buffer takes is shown in each bank and over all banks", () => {
  assert.deepEqual(takes(64 * MIB, 12), ["64.0 MiB", "768 MiB"]);
});

test("an allocation that other processes leave no room for does not fit", () => {
  const shared = { used: 500 * MIB, free: 500 * MIB, largest: 500 * MIB, placed: true,
    others: [{ pid: 75, comm: "train", bytes: 4096 * MIB, placed: true }] };
  assert.match(verdict({ ...asked, shared, reason: "held_by_others" }), /^No .*the device has 5\.86 GiB: train \(75\) holds 4\.00 GiB\.$/);
  assert.match(verdict({ ...asked, shared, reason: "taken_by_others" }), /^No .*another process has buffers: train \(75\)/);
  assert.match(verdict({ ...asked, banks: 64, shared: null, reason: "depends_on_cores" }), /^Not known: only sharded .* over all 64 cores/);
});
