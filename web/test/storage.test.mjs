// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { lasts, openStore } from "../src/base/storage";

const deny = () => {
  throw new Error("SecurityError");
};
const map = new Map();
const given = {
  getItem: (name) => map.get(name) ?? null, setItem: (name, text) => map.set(name, text), removeItem: (name) => map.delete(name),
};

test("what a browser gives is used, and left as it was", () => {
  assert.equal(openStore(() => given), given);
  assert.ok(lasts(given));
  assert.equal(map.size, 0);
});

test("what it denies, at whichever step, is kept by the page", () => {
  const denied = [
    deny, () => null, () => undefined, () => ({ ...given, setItem: deny }), () => ({ ...given, getItem: deny }),
    () => ({ ...given, getItem: () => null }),
  ];
  for (const ask of denied) {
    const store = openStore(ask);
    assert.ok(!lasts(store), String(ask));
    store.setItem("a", "1");
    store.setItem("b", "2");
    assert.deepEqual([store.getItem("a"), store.getItem("c"), store.length, store.key(1), store.key(2)], ["1", null, 2, "b", null]);
    store.removeItem("a");
    assert.deepEqual([store.getItem("a"), store.length], [null, 1]);
  }
});
