// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, clock, count, duration, lifetime, parseBytes, percent, plural, share, signed } from "../src/base/format";
import { short, visible } from "../src/base/text";

const KIB = 1024;

test("sizes have three digits", () => {
  for (const [value, text] of [
    [0, "0 B"], [1, "1 B"], [1023, "1023 B"], [KIB, "1.00 KiB"], [1.5 * KIB, "1.50 KiB"], [9.994 * KIB, "9.99 KiB"],
    [9.996 * KIB, "10.0 KiB"], [99.94 * KIB, "99.9 KiB"], [99.96 * KIB, "100 KiB"], [1023.4 * KIB, "1023 KiB"],
    [12 * KIB ** 3, "12.0 GiB"], [2 ** 64, "16.0 EiB"], [2 ** 74, "16384 EiB"], [-KIB, "−1.00 KiB"],
    [null, "–"], [undefined, "–"],
  ])
    assert.equal(bytes(value), text);
});

test("a size just below the next unit does not become 1024 of the smaller", () => {
  for (const power of [1, 2, 3, 4, 5]) assert.ok(!bytes(KIB ** power * 1023.97).startsWith("1024"), bytes(KIB ** power * 1023.97));
  assert.equal(bytes(KIB * 1023.97), "1.00 MiB");
  assert.equal(bytes(-KIB * 1023.97), "−1.00 MiB");
});

test("differences have a sign", () => {
  assert.equal(signed(KIB), "+1.00 KiB");
  assert.equal(signed(-KIB), "−1.00 KiB");
  assert.equal(signed(0), "0 B");
});

test("sizes as people write them", () => {
  for (const [text, value] of [
    ["4096", 4096], [" 1k ", KIB], ["1 KiB", KIB], ["1.5GiB", 1.5 * KIB ** 3], ["512 mb", 512 * KIB ** 2], ["0x10", 16], ["0", 0],
    ["0.3", 1], ["2e", 2 * KIB ** 6], ["", null], ["much", null], ["-1", null], ["1 2", null], ["1..5", null], ["0x", null],
    ["1e3", null], ["NaN", null], ["Infinity", null],
  ])
    assert.equal(parseBytes(text), value, text);
});

test("what is shown of a size can be read again", () => {
  for (const value of [0, 1, 512, KIB, 3 * KIB ** 2, 7 * KIB ** 3]) assert.equal(parseBytes(bytes(value)), value);
});

test("ages in one unit, lengths in two", () => {
  const s = 1e9;
  for (const [ns, one, two] of [
    [0, "0 s", "0 ms"], [-5 * s, "0 s", "0 ms"], [0.25 * s, "0 s", "250 ms"], [59.9 * s, "59 s", "59 s"], [60 * s, "1 min", "1 min 0 s"],
    [3599 * s, "59 min", "59 min 59 s"], [3600 * s, "1 h", "1 h 0 min"], [90061 * s, "1 d", "1 d 1 h"],
  ]) {
    assert.equal(age(ns), one);
    assert.equal(duration(ns), two);
  }
});

test("shares", () => {
  assert.equal(percent(0, 5), "0 %");
  assert.equal(percent(1, 1000), "0.1 %");
  assert.equal(percent(1, 1e6), "< 0.1 %");
  assert.equal(percent(1, 2), "50 %");
  assert.equal(percent(5, 5), "100 %");
});

test("numbers of things", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(plural(1, "process", "processes"), "1 process");
  assert.equal(plural(0, "buffer"), "0 buffers");
});

test("the time of day, with the day where it is another", () => {
  const noon = Date.UTC(2024, 5, 1, 10, 30, 5);
  assert.equal(clock(noon * 1e6, noon), "12:30:05"); // the tests' time zone is Berlin's
  assert.equal(clock(noon * 1e6, noon + 86400e3), "2024-06-01 12:30:05");
  assert.equal(clock(0), "–");
});

test("what cannot be seen is written out", () => {
  assert.equal(visible("abc\u202Edef"), "abc\\u202edef");
  assert.equal(visible("a\u200bb\ufeffc\u2066d"), "a\\u200bb\\ufeffc\\u2066d");
  assert.equal(visible("\u0000\u001b[31m\u009b"), "\\x00\\x1b[31m\\x9b");
  for (const text of ["plain", "<b>", "naïve 日本語 עברית 🙂", "two\nlines\tand a tab"]) assert.equal(visible(text), text);
});

test("a long text is cut between letters", () => {
  assert.equal(short("abcdef", 6), "abcdef");
  assert.equal(short("abcdefg", 6), "abcde…");
  assert.equal(short("🙂".repeat(7), 6), `${"🙂".repeat(5)}…`);
  assert.ok(short("x".repeat(1e6), 40).length === 40);
});

test("a share of more than all is shown, one of nonsense is cut", () => {
  assert.deepEqual([share(1, 2), share(150, 100), share(999, 100), share(5838, 100), share(0, 5)], ["50 %", "150 %", "999 %", "> 999 %", "0 %"]);
});

test("a process that has ended does not run any more", () => {
  const one = { alive: true, start_ns: 10e9, last_activity_ns: 0 };
  assert.equal(lifetime(one, 15e9, false), "running for 5 s");
  assert.equal(lifetime(one, 15e9, true), "had been running for 5 s");
  const gone = { ...one, alive: false };
  assert.equal(lifetime(gone, 15e9, false), "has ended");
  assert.equal(lifetime(gone, 15e9, true), "had ended");
  assert.equal(lifetime({ ...gone, last_activity_ns: 12e9 }, 15e9, true), `had ended, last active ${clock(12e9)}`);
});
