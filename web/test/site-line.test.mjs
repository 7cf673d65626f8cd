// SPDX-License-Identifier: Apache-2.0
//
// The line of code of a call site, in a list.
import assert from "node:assert/strict";
import { test } from "node:test";
import { shortName, siteLine, siteLines } from "../src/data/site-line";
import { folded, siteLabel, siteWhere, tellApart } from "../src/data/stack";

const place = (name, file, line, module = null) => ({ function: name, file, line, module });
const dram = place("dram", "/w/app.c", 11);
const main = place("main", "/w/app.c", 30);
const site = (frame, more = {}) => ({ ...frame, user: frame, via: null, callers: [], ...more });
const texts = (sites) => siteLines(sites).map((line) => line && `${line.what} | ${line.where}`);

test("a row has the user's line and what it called", () => {
  const lambda = place("<lambda>", "/v/lib/python3.11/site-packages/torch/nn/modules/module.py", 1097);
  const made = { ...lambda, user: place("make_model", "/w/train.py", 7), via: { ...lambda, function: "cuda" }, callers: [] };
  assert.deepEqual(siteLine(made), { what: "make_model", where: "train.py:7 → cuda (torch/…/module.py:1097)" });
  assert.deepEqual(siteLine({ ...lambda, user: null, via: null, callers: [] }), { what: "<lambda>", where: "module.py:1097" });
  // Of a document that does not have them.
  assert.deepEqual(siteLine(dram), { what: "dram", where: "app.c:11" });
});

test("rows that share a frame show the callers in which they differ", () => {
  const [scratch, weights, make] = [place("scratch", "/w/app.c", 20), place("weights", "/w/app.c", 24), place("make", "/w/app.c", 5)];
  assert.deepEqual(texts([site(dram, { callers: [scratch, main] }), site(dram, { callers: [weights, main] }), null, site(main)]), [
    "scratch ← dram | app.c:11", "weights ← dram | app.c:11", null, "main | app.c:30",
  ]);
  assert.deepEqual(texts([site(dram, { callers: [make, scratch] }), site(dram, { callers: [make, weights] })]), [
    "scratch ← … ← dram | app.c:11", "weights ← … ← dram | app.c:11",
  ]);
  assert.deepEqual(texts([site(dram, { callers: [main] }), site(dram, { callers: [{ ...main, line: 31 }] })]), [
    "main (app.c:30) ← dram | app.c:11", "main (app.c:31) ← dram | app.c:11",
  ]);
  assert.deepEqual(texts([site(dram), site(dram)]), ["dram | app.c:11", "dram | app.c:11"]);
});

test("rows that differ in names and installed code alone show these", () => {
  const via = place("step", "/v/site-packages/torch/optim/adam.py", 200);
  const group = (line) => ({ ...place("_init_group", "/v/site-packages/torch/optim/adam.py", line), user: main, via, callers: [] });
  assert.deepEqual(texts([group(178), group(182)]), [
    "main | app.c:30 → step (torch/…/adam.py:200) → … → _init_group (torch/…/adam.py:178)",
    "main | app.c:30 → step (torch/…/adam.py:200) → … → _init_group (torch/…/adam.py:182)",
  ]);
  assert.deepEqual(texts([site(place("f(int)", "/a/m.cc", 6)), site(place("f(long)", "/a/m.cc", 6))]), ["f(int) | /a/m.cc:6", "f(long) | /a/m.cc:6"]);
});

test("signatures are shortened to names", () => {
  assert.equal(shortName("std::vector<int> app::make<std::string>(int)"), "app::make");
  assert.equal(shortName("(anonymous namespace)::fill(int) const"), "(anonymous namespace)::fill");
  for (const name of ["<lambda>", "main.(*T).Make", "./app(main+0x1f) [0x5500]", "T::operator<<(int)", "load"]) assert.equal(shortName(name), name);
});

test("labels of a list tell its rows apart", () => {
  const row = (caller) => ({ type: "DRAM", name: null, stack: [], site: site(dram, { callers: [caller] }) });
  const rows = tellApart([row(main), row(place("load", "/w/app.c", 9))]);
  assert.deepEqual(rows.map((one) => [siteLabel(one), siteWhere(one)]), [["main ← dram", "app.c:11"], ["load ← dram", "app.c:11"]]);
});

test("frames of a module without names are one line", () => {
  const none = (offset) => ({ ...place(`t.so+0x${offset}`, null, null, "t.so"), python: false });
  const named = { ...place("f", null, null, "t.so"), python: false };
  assert.deepEqual(folded([none(1), none(2), named, none(3)]).map((frame) => frame.function), ["t.so (2 frames)", "f", "t.so+0x3"]);
});
