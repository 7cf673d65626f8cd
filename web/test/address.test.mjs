// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { link, parse, pick, remember, rememberSoon } from "../src/base/router";
import { mockTimeouts } from "./make.mjs";

let clicked = null;
let replaced = 0;

beforeEach(() => {
  clicked = null;
  replaced = 0;
  globalThis.window = globalThis;
  globalThis.location = { hash: "#/process/7?tab=sites" };
  globalThis.history = { replaceState: (_state, _title, hash) => {
    location.hash = hash;
    replaced++;
  } };
  globalThis.addEventListener = (_kind, listener) => (clicked = listener);
});

const timed = (run) => async () => {
  const time = mockTimeouts();
  try {
    await run(time);
  } finally {
    time.reset();
  }
};

test("addresses that mean nothing are the overview", () => {
  for (const hash of ["", "#", "#/", "#/nonsense", "#/process/abc", "#/process/0", "#/device", "#/%E0%A4%A"]) assert.equal(parse(hash).view, "overview", hash);
  assert.deepEqual([parse("#/device/0xa1").id, parse("#/incidents").view], ["0xa1", "incidents"]);
  assert.equal(parse(link("device", "a/b ?#%", { x: "y&z" })).id, "a/b ?#%");
  assert.equal(parse(link("device", "a/b ?#%", { x: "y&z" })).options.get("x"), "y&z");
  assert.equal(pick({ a: 1 }, "toString", "a"), "a");
});

test("what is remembered joins what is there, and null removes it", () => {
  remember({ sort: "-size", q: "a b" });
  assert.deepEqual(Object.fromEntries(parse(location.hash).options), { tab: "sites", sort: "-size", q: "a b" });
  remember({ tab: null, q: null });
  assert.equal(location.hash, "#/process/7?sort=-size");
});

test("many changes are one change of the address", timed((time) => {
  for (const q of ["a", "ab", "abc"]) rememberSoon({ q });
  rememberSoon({ row: "12" });
  assert.equal(replaced, 0);
  time.tick(1000);
  assert.equal(replaced, 1);
  assert.deepEqual(Object.fromEntries(parse(location.hash).options), { tab: "sites", q: "abc", row: "12" });
}));

test("a click writes at once what is to be remembered", timed((time) => {
  rememberSoon({ q: "abc" });
  clicked();
  assert.equal(parse(location.hash).options.get("q"), "abc");
  time.tick(1000);
  assert.equal(replaced, 1);
}));

test("what belongs to a view that was left is not written into the next", timed((time) => {
  rememberSoon({ q: "abc" });
  location.hash = "#/process/8";
  time.tick(1000);
  assert.equal(location.hash, "#/process/8");
  remember({ tab: "flame" });
  assert.equal(location.hash, "#/process/8?tab=flame");
}));
