// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbour } from "../src/flame-keys";

const frame = (name, parent, x0, x1) => ({ name, parent, depth: parent ? parent.depth + 1 : 0, x0, x1 });

const all = frame("all", null, 0, 1);
const a = frame("a", all, 0, 0.3);
const b = frame("b", all, 0.3, 1);
const a1 = frame("a1", a, 0, 0.3);
const b1 = frame("b1", b, 0.3, 0.5);
const b2 = frame("b2", b, 0.5, 0.9);
const drawn = [all, b, a, b2, a1, b1];
const from = (at, ...keys) => keys.reduce((here, key) => here && neighbour(drawn, here, key), at)?.name ?? null;

test("arrow keys go through a flame graph as it lies on the screen", () => {
  assert.equal(from(all, "ArrowUp"), "b", "to the widest");
  assert.equal(from(all, "ArrowUp", "ArrowUp"), "b2");
  assert.equal(from(b2, "ArrowLeft"), "b1");
  assert.equal(from(b2, "ArrowLeft", "ArrowLeft"), "a1", "also to what another one called");
  assert.equal(from(a1, "ArrowRight"), "b1", "the next, not the last");
  assert.equal(from(a1, "ArrowDown", "ArrowDown"), "all");
  assert.equal(from(b1, "Home"), "all");
});

test("at an end there is nowhere to go, and other keys mean nothing", () => {
  for (const [at, key] of [[all, "ArrowDown"], [all, "ArrowLeft"], [all, "ArrowRight"], [all, "Home"], [b2, "ArrowUp"], [b2, "ArrowRight"], [a1, "ArrowLeft"], [a, "x"]])
    assert.equal(from(at, key), null, `${at.name} ${key}`);
});

test("what is too narrow to be drawn is not gone to", () => {
  assert.equal(neighbour([all, a, b], b, "ArrowUp"), null);
  assert.equal(neighbour([b, b2], b, "ArrowDown"), null, "nor what is not there any more");
});
