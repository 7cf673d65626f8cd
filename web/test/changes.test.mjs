// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { applyChange } from "../src/data/changes";

/** Random numbers that are the same each time. */
function dice(seed) {
  return (sides) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % sides;
  };
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isRows = (list) => list.every((row) => isObject(row) && typeof Object.values(row)[0] === "number");
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** The daemon's side, from the words of docs/http.md; undefined: they are the same. */
function change(was, now) {
  if (same(was, now)) return undefined;
  if (Array.isArray(was) && Array.isArray(now) && isRows(was) && isRows(now)) return steps(was, now);
  if (isObject(was) && isObject(now) && same(Object.keys(was), Object.keys(now)))
    return Object.fromEntries(Object.keys(now).map((key) => [key, change(was[key], now[key])]).filter(([, value]) => value !== undefined));
  return now !== null && typeof now === "object" ? { "=": now } : now;
}

function steps(was, now) {
  const list = [];
  const count = (one) => {
    const last = list.at(-1);
    if (typeof last === "number" && last * one > 0) list[list.length - 1] += one;
    else list.push(one);
  };
  const key = (row) => (row ? Object.values(row)[0] : Infinity);
  for (let i = 0, j = 0; i < was.length || j < now.length; ) {
    if (key(was[i]) < key(now[j])) i++, count(-1);
    else if (key(was[i]) > key(now[j])) list.push({ "+": now[j++] });
    else {
      const one = change(was[i++], now[j++]);
      if (one === undefined) count(1);
      else list.push(one);
    }
  }
  if (list.at(-1) > 0) list.pop(); // that the rest is the same goes without saying
  return list;
}

const TEXTS = ["", "a", "=", "+", "null", "\u2028"];
const plain = (roll) => [roll(3), TEXTS[roll(6)], roll(2) === 1, null, roll(2) + 0.5][roll(5)];

function random(roll, depth = 0) {
  const kind = depth > 4 ? 0 : roll(5);
  if (kind < 2) return plain(roll);
  if (kind === 2) return Array.from({ length: roll(4) }, () => random(roll, depth + 1));
  if (kind === 3) {
    let n = 0;
    return Array.from({ length: roll(6) }, () => ({ n: (n += 1 + roll(3)), v: random(roll, depth + 1) }));
  }
  return Object.fromEntries(["a", "b", "c", "d"].filter(() => roll(8)).map((key) => [key, random(roll, depth + 1)]));
}

test("changes lead from any document to any other, and leave the old one alone", () => {
  const roll = dice(1);
  let kept = 0;
  for (let i = 0; i < 20000; i++) {
    const was = random(roll);
    const now = random(roll);
    const before = JSON.stringify(was);
    const one = change(was, now);
    if (one === undefined) kept++;
    else assert.deepEqual(applyChange(was, JSON.parse(JSON.stringify(one))), now, `${before} -> ${JSON.stringify(now)}`);
    assert.equal(JSON.stringify(was), before);
  }
  assert.ok(kept > 0 && kept < 10000);
});

test("each step of a list", () => {
  const rows = [1, 2, 3, 4].map((n) => ({ n, v: 0 }));
  const numbers = (steps) => applyChange(rows, steps).map(({ n, v }) => [n, v].join());
  assert.deepEqual(numbers([]), ["1,0", "2,0", "3,0", "4,0"]);
  assert.deepEqual(numbers([2, { v: 5 }]), ["1,0", "2,0", "3,5", "4,0"]);
  assert.deepEqual(numbers([-2]), ["3,0", "4,0"]);
  assert.deepEqual(numbers([1, -2, { "+": { n: 9, v: 9 } }]), ["1,0", "9,9", "4,0"]);
  assert.deepEqual(numbers([{ "=": { n: 7, v: 7 } }]), ["7,7", "2,0", "3,0", "4,0"]);
});

test("rows that have not changed stay the same objects", () => {
  const was = { rows: [{ n: 1, v: 1 }, { n: 2, v: { w: 1 } }], other: { x: 1 } };
  const now = applyChange(was, { rows: [{ v: 2 }] });
  assert.equal(now.rows[1], was.rows[1]);
  assert.equal(now.other, was.other);
  assert.notEqual(now.rows[0], was.rows[0]);
});
