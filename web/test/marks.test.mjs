// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { compare } from "../src/analysis/sites";
import { findMark, forgetMarks, keepMark, knowMark, knownMark, markAt, MARKS_CHARS_MAX, pack, unpack } from "../src/time/marks";
import { buffer, frame } from "./make.mjs";

/** A session storage with room for so many characters. */
class Shelf {
  constructor(room = 5_000_000) {
    this.room = room;
    this.map = new Map();
  }
  get length() {
    return this.map.size;
  }
  key(i) {
    return [...this.map.keys()][i] ?? null;
  }
  getItem(name) {
    return this.map.get(name) ?? null;
  }
  removeItem(name) {
    this.map.delete(name);
  }
  setItem(name, text) {
    if (text.length > this.room) throw new Error("QuotaExceededError");
    this.map.set(name, text);
  }
}

const NOW = 6e9;
const who = (pid, startNs = 1) => ({ pid, startNs });
const rows = (timeNs, ...buffers) => ({ buffers, timeNs, complete: true });

test("a mark that was kept compares as the moment itself", () => {
  const stack = [frame("inner"), frame("outer")];
  const before = [buffer({ name: null, stack, phase: "a" }), buffer({ name: "b", device_uid: null, device: 3 }), buffer({ name: "b", phase: "other" })];
  const after = [before[0], buffer({ name: null, stack, phase: "a" }), { ...before[1], born_ns: 9e9 }];
  const mark = unpack(pack(rows(5e9, ...before)), 1, NOW);
  assert.deepEqual(compare(mark.buffers, after), compare(before, after));
  assert.deepEqual(compare(mark.buffers, before), [], "nothing has changed");
  assert.deepEqual([mark.timeNs, mark.complete], [5e9, true]);
});

test("each process has its newest mark, and none of another with its number", () => {
  const shelf = new Shelf();
  for (const time of [10, 9, 20]) assert.ok(keepMark(shelf, who(1), rows(time, buffer({ size: time }))));
  assert.ok(keepMark(shelf, who(11), rows(30)));
  assert.equal(findMark(shelf, who(1), NOW).buffers[0].size, 20);
  assert.equal(findMark(shelf, who(1, 2), NOW), null);
  assert.equal(shelf.length, 2);
  assert.equal(findMark(shelf, who(11), NOW).buffers.length, 0);
});

test("equal call sites are kept once", () => {
  const stack = Array.from({ length: 30 }, (_, i) => frame(`function_with_a_long_name_${i}`));
  const many = Array.from({ length: 10000 }, () => buffer({ stack }));
  assert.ok(pack(rows(1, ...many)).length < 10000 * 80);
});

test("the oldest make room, and what is too large is not kept", () => {
  const shelf = new Shelf();
  const half = (pid) => rows(pid, buffer({ name: "x".repeat(MARKS_CHARS_MAX * 0.4) }));
  for (const pid of [1, 2, 3]) assert.ok(keepMark(shelf, who(pid), half(pid)));
  assert.deepEqual([1, 2, 3].map((pid) => findMark(shelf, who(pid), NOW) !== null), [false, true, true]);
  assert.ok(!keepMark(shelf, who(4), rows(4, buffer({ name: "x".repeat(MARKS_CHARS_MAX) }))));
  assert.ok(findMark(shelf, who(3), NOW), "the others stay");
  assert.ok(!keepMark(new Shelf(10), who(1), rows(1, buffer())), "where there is no room at all");
  // An older mark of the same process would be a lie.
  assert.ok(!keepMark(shelf, who(3), rows(5, buffer({ name: "x".repeat(MARKS_CHARS_MAX) }))));
  assert.equal(findMark(shelf, who(3), NOW), null);
});

test("what is stored may be anything", () => {
  const shelf = new Shelf();
  for (const text of ["", "{", "null", "[]", '{"rows":[[7,0,null,"0x0",1,1]],"sites":[]}', '{"rows":[1],"sites":[]}', '{"rows":[[0,0,null,"0x0",1,1]],"sites":[{}]}']) {
    shelf.setItem("ttmem.mark/1/1/1", text);
    assert.equal(findMark(shelf, who(1), NOW), null, text);
  }
  shelf.setItem("ttmem.token", "secret");
  assert.ok(keepMark(shelf, who(1), rows(2)));
  assert.equal(shelf.getItem("ttmem.token"), "secret");
});

test("a mark in which only one thing is wrong is none", () => {
  const good = () => JSON.parse(pack(rows(5e9, buffer({ stack: [frame("a"), { ...frame("b"), file: null, line: null }], phase: "p" }))));
  const read = (packed) => unpack(JSON.stringify(packed), 1, NOW);
  assert.equal(read(good()).buffers.length, 1);
  const wrong = [
    (mark) => (mark.timeNs = "x"), (mark) => (mark.timeNs = null), (mark) => (mark.timeNs = -1), (mark) => (mark.timeNs = NOW + 1),
    (mark) => (mark.sites = {}), (mark) => (mark.sites = [null]), (mark) => (mark.rows = 7), (mark) => (mark.rows = [null]),
    (mark) => (mark.sites[0].type = "toString"), (mark) => (mark.sites[0].type = null), (mark) => (mark.sites[0].name = 7),
    (mark) => (mark.sites[0].phase = {}), (mark) => (mark.sites[0].stack = "ab"), (mark) => (mark.sites[0].stack = [null]),
    (mark) => (mark.sites[0].stack[0].file = 7), (mark) => (mark.sites[0].stack[0].function = {}),
    (mark) => (mark.sites[0].stack[0].module = []), (mark) => (mark.sites[0].stack[0].line = "1"),
    (mark) => (mark.rows[0][0] = 1), (mark) => (mark.rows[0][0] = 0.5), (mark) => (mark.rows[0][0] = "length"),
    (mark) => (mark.rows[0][1] = "0"), (mark) => (mark.rows[0][2] = 7), (mark) => (mark.rows[0][3] = 7),
    (mark) => (mark.rows[0][4] = -5), (mark) => (mark.rows[0][4] = "5"), (mark) => (mark.rows[0][4] = null),
    (mark) => (mark.rows[0][5] = -1), (mark) => (mark.rows[0][5] = "x"), (mark) => mark.rows[0].pop(),
  ];
  for (const spoil of wrong) {
    const mark = good();
    spoil(mark);
    assert.equal(read(mark), null, String(spoil));
  }
  assert.equal(unpack(JSON.stringify(good()).replace('"timeNs":5000000000', '"timeNs":-1e999'), 1, NOW), null);
});

test("who locks details leaves no marks behind, and nothing else is touched", () => {
  const shelf = new Shelf();
  shelf.setItem("ttmem.other", "stays");
  for (const pid of [1, 2, 3]) keepMark(shelf, who(pid), rows(pid, buffer()));
  knowMark(who(1), rows(1, buffer()));
  assert.ok(knownMark(who(1)) && !knownMark(who(1, 2)));
  forgetMarks(shelf);
  assert.deepEqual([...shelf.map.keys()], ["ttmem.other"]);
  assert.equal(knownMark(who(1)), null);
});

test("of a moment that was marked elsewhere the time is known", () => {
  const now = rows(100, buffer({ born_ns: 10 }), buffer({ born_ns: 60 }));
  const mark = markAt(50, now, who(1, 5));
  assert.deepEqual(mark.buffers, [now.buffers[0]]);
  assert.equal(mark.timeNs, 50);
  for (const wrong of [NaN, 4, 101, Infinity]) assert.equal(markAt(wrong, now, who(1, 5)), null, String(wrong));
});
