// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbour } from "../src/flame/flame-keys";
import { along, clip, drawnIn, frameAt, frameName, frameNamed, layOut, search, wayTo, WHOLE } from "../src/flame/flame-layout";
import { same, tree } from "../src/flame/tree";
import { change, diffTrees } from "../src/flame/tree-diff";
import { buffer, frame } from "./make.mjs";

/** A tree by hand: a node's value is that of its children, or its own. */
function node(name, inside, where = "") {
  const children = typeof inside === "number" ? [] : inside;
  const sum = (of) => children.reduce((all, child) => all + child[of], 0);
  return { key: `${name}\n${where}`, name, where, children, value: children.length ? sum("value") : inside, buffers: children.length ? sum("buffers") : 1 };
}
const all = () => node("all", [node("b", [node("b2", 40), node("b1", 20), node("c", 10)]), node("a", [node("a1", 30)])]);
const rows = layOut(all());
const named = (name) => rows.flat().find((one) => one.node.name === name);
const drawn = rows.flat();
const from = (at, ...keys) => keys.reduce((here, key) => here && neighbour(drawn, here, key), named(at))?.node.name ?? null;
const near = (a, b) => Math.abs(a - b) < 1e-9;

test("a frame is as wide as its share, above its caller, and in the order of names", () => {
  assert.deepEqual(rows.map((row) => row.map((one) => one.node.name)), [["all"], ["a", "b"], ["a1", "b1", "b2", "c"]]);
  for (const [name, x0, x1] of [["all", 0, 1], ["a", 0, 0.3], ["b", 0.3, 1], ["a1", 0, 0.3], ["b1", 0.3, 0.5], ["b2", 0.5, 0.9], ["c", 0.9, 1]])
    assert.ok(near(named(name).x0, x0) && near(named(name).x1, x1), name);
  assert.equal(named("b2").parent, named("b"));
  const layers = (names) => layOut(node("all", names.map((name) => node(name, 1))))[1].map((one) => one.node.name).join(" ");
  assert.equal(layers(["layer_10", "layer_2", "layer_02", "layer_1"]), "layer_1 layer_02 layer_2 layer_10");
});

test("a frame keeps its place among others when it grows", () => {
  const before = layOut(node("all", [node("x", 1), node("y", 2)]));
  const after = layOut(node("all", [node("y", 2), node("x", 9)]));
  assert.deepEqual(before[1].map((one) => one.node.name), after[1].map((one) => one.node.name));
});

test("nothing at all is one frame without a width of its own", () => {
  const empty = layOut(tree([]));
  assert.deepEqual(empty.map((row) => row.length), [1]);
  assert.equal(drawnIn(empty[0], WHOLE, 100).length, 1);
  assert.equal(search(empty, "x").bytes, 0);
});

test("a point is in a frame or in none", () => {
  assert.equal(frameAt(rows, 0, 0.99), named("all"));
  assert.equal(frameAt(rows, 2, 0), named("a1"));
  assert.equal(frameAt(rows, 2, 0.31), named("b1"));
  assert.equal(frameAt(rows, 2, 0.95), named("c"));
  for (const [depth, x] of [[3, 0.5], [-1, 0.5], [1, 1], [1, -0.1]]) assert.equal(frameAt(rows, depth, x), null, `${depth} ${x}`);
  const gap = layOut(node("all", [{ ...node("half", 5), weight: 5 }]));
  gap[1][0].x1 = 0.5;
  assert.equal(frameAt(gap, 1, 0.7), null);
});

test("frames narrower than half a pixel, or outside the zoomed part, are not drawn", () => {
  const names = (view, width) => drawnIn(rows[2], view, width).map((one) => one.node.name);
  assert.deepEqual(names(WHOLE, 1000), ["a1", "b1", "b2", "c"]);
  assert.deepEqual(names(WHOLE, 6), ["a1", "b1", "b2", "c"], "a tenth of six pixels is more than half of one");
  assert.deepEqual(names(WHOLE, 4), ["a1", "b1", "b2"]);
  assert.deepEqual(names([named("b2").x0, named("b2").x1], 1000), ["b2"], "its neighbours only touch it");
  assert.deepEqual(drawnIn(rows[1], [named("b2").x0, named("b2").x1], 1000).map((one) => one.node.name), ["b"], "but its caller is there");
});

test("of a hundred thousand frames only those with pixels are drawn", () => {
  const many = Array.from({ length: 100000 }, (_, i) => buffer({ name: `n${i}`, size: i === 7 ? 1e8 : 1, stack: [frame("inner"), frame("outer")] }));
  const large = layOut(tree(many));
  assert.equal(large[3].length, 100000);
  assert.deepEqual(drawnIn(large[3], WHOLE, 1000).map((one) => one.node.name), ["n7"]);
  assert.equal(frameAt(large, 3, 0.5).node.name, "n7");
});

test("a deep stack is laid out", () => {
  const deep = layOut(tree([buffer({ stack: Array.from({ length: 5000 }, (_, i) => frame(`f${i}`)) })]));
  assert.equal(deep.length, 5002);
});

test("a search marks names and places, and counts bytes once", () => {
  const mixed = layOut(node("all", [node("load", [node("load_layer", 5), node("other", 2)]), node("run", [node("x", 3, "LOAD.py:3")]), node("y", 10)]));
  const { frames, bytes } = search(mixed, " Load ");
  assert.deepEqual([...frames].map((one) => one.node.name).sort(), ["load", "load_layer", "x"]);
  assert.equal(bytes, 10, "load_layer is part of load");
  for (const text of ["", "  ", "none of it", ".*"]) assert.equal(search(mixed, text).frames.size, 0, text);
  const apart = layOut(node("all", [node("m", [node("between", [node("m", 4)])])]));
  assert.equal(search(apart, "m").bytes, 4, "also where a match is further down");
});

test("a frame is found again by its path, or what is left of it", () => {
  const way = wayTo(named("b2"));
  assert.equal(along(rows, way), named("b2"));
  const less = layOut(node("all", [node("b", [node("b1", 20)])]));
  assert.equal(along(less, way).node.name, "b");
  assert.equal(along(layOut(tree([])), way).node.name, "all");
});

test("a text is cut where its frame ends", () => {
  const measure = (text) => [...text].length;
  assert.equal(clip("weights", 7, measure), "weights");
  assert.equal(clip("weights", 6, measure), "weigh…");
  assert.equal(clip("a b c", 3, measure), "a…", "no blank before it");
  assert.equal(clip("weights", 2, measure), "", "one letter says nothing");
  assert.equal(clip("😀😀😀😀", 3, measure), "😀😀…", "no half of a letter");
});

test("two trees become one, with what was and what is", () => {
  const diff = diffTrees(
    node("all", [node("stays", 10), node("gone", [node("g", 4)]), node("shrinks", 8)]),
    node("all", [node("stays", 10), node("shrinks", 2), node("new", [node("n", 6)])]));
  const of = (name) => layOut(diff).flat().find((one) => one.node.name === name).node;
  assert.deepEqual([diff.value, diff.before, diff.weight], [18, { value: 22, buffers: 3 }, 28], "as wide as the larger of each leaf");
  assert.deepEqual(["stays", "g", "gone", "shrinks", "n", "new"].map((name) => [name, of(name).before.value, of(name).value, change(of(name))]), [
    ["stays", 10, 10, 0], ["g", 4, 0, -1], ["gone", 4, 0, -1], ["shrinks", 8, 2, -0.75], ["n", 0, 6, 1], ["new", 0, 6, 1],
  ]);
  assert.equal(of("g").buffers, 0);
  const laid = layOut(diff);
  for (const one of laid.flat()) assert.ok(one.children.every((child) => child.x1 <= one.x1 + 1e-9), `${one.node.name} holds what it calls`);
  assert.ok(near(laid[1].at(-1).x1, 1), "and all of it is the whole width");
});

test("the difference between equal trees, and from nothing", () => {
  const equal = diffTrees(all(), all());
  assert.ok(layOut(equal).flat().every((one) => change(one.node) === 0));
  assert.equal(equal.weight, 100);
  const born = diffTrees(tree([]), all());
  assert.equal(change(born), 1);
  assert.equal(change(diffTrees(tree([]), tree([]))), 0);
  assert.equal(change(all()), 0, "a tree that is compared with nothing has not changed");
});

test("buffers that move inside a frame are a change of its parts only", () => {
  const diff = diffTrees(node("all", [node("f", [node("x", 5), node("y", 5)])]), node("all", [node("f", [node("x", 1), node("y", 9)])]));
  assert.equal(change(diff.children[0]), 0);
  assert.deepEqual(diff.children[0].children.map(change), [-0.8, 4 / 9]);
});

test("names that look the same but are not stay two", () => {
  const two = tree([buffer({ name: "a\u202e", size: 1 }), buffer({ name: "a\\u202e", size: 2 })]);
  assert.equal(diffTrees(two, two).weight, 3);
});

test("only a tree that looks the same is the same", () => {
  const one = () => [buffer({ name: "x", size: 4 }), buffer({ name: "y", size: 4 })];
  assert.ok(same(tree(one()), tree(one())));
  for (const other of [one().slice(1), [...one(), buffer({ name: "x", size: 0 })], [buffer({ name: "x", size: 5 }), buffer({ name: "y", size: 3 })]])
    assert.ok(!same(tree(one()), tree(other)));
  assert.ok(!same(diffTrees(tree([]), tree(one())), diffTrees(tree(one()), tree(one()))), "another past");
});

test("arrow keys go through a flame graph as it lies on the screen", () => {
  assert.equal(from("all", "ArrowUp"), "b", "to the widest");
  assert.equal(from("all", "ArrowUp", "ArrowUp"), "b2");
  assert.equal(from("b2", "ArrowLeft"), "b1");
  assert.equal(from("b2", "ArrowLeft", "ArrowLeft"), "a1", "also to what another one called");
  assert.equal(from("a1", "ArrowRight"), "b1", "the next, not the last");
  assert.equal(from("a1", "ArrowDown", "ArrowDown"), "all");
  assert.equal(from("b1", "Home"), "all");
});

test("at an end there is nowhere to go, and other keys mean nothing", () => {
  for (const [at, key] of [["all", "ArrowDown"], ["all", "ArrowLeft"], ["all", "ArrowRight"], ["all", "Home"], ["b2", "ArrowUp"], ["c", "ArrowRight"], ["a1", "ArrowLeft"], ["a", "x"]])
    assert.equal(from(at, key), null, `${at} ${key}`);
});

test("what is too narrow to be drawn is not gone to", () => {
  const [some, b] = [["all", "a", "b"].map(named), named("b")];
  assert.equal(neighbour(some, b, "ArrowUp"), null);
  assert.equal(neighbour([b, named("b2")], b, "ArrowDown"), null, "nor what is not there any more");
});

test("a frame is found again by its short name, in the next tree too", () => {
  const names = rows.flat().slice(1).map(frameName);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[0-9a-f]{8}$/);
  for (const one of rows.flat().slice(1)) assert.equal(frameNamed(rows, frameName(one)), one);
  const next = layOut(node("all", [node("a", [node("a1", 7)]), node("z", 1)]));
  assert.equal(frameNamed(next, frameName(named("a1"))).node.value, 7);
  assert.equal(frameNamed(next, frameName(named("b1"))), null);
  for (const text of ["", "zzz", "0", "12345678901234567890"]) assert.equal(frameNamed(rows, text), null);
});

test("two paths with the same names in another order are two", () => {
  const twice = layOut(node("all", [node("a", [node("b", 1)]), node("b", [node("a", 1)])]));
  assert.equal(new Set(twice.flat().slice(1).map(frameName)).size, 4);
});
