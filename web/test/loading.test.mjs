// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { loadBuffers, ROWS_MAX } from "../src/data/rows";
import { Events } from "../src/time/events";
import { buffer, frame } from "./make.mjs";

const { fetch } = globalThis;
afterEach(() => (globalThis.fetch = fetch));

/** Answers each request with the next document; keeps what was asked for. */
function answer(...documents) {
  const asked = [];
  globalThis.fetch = async (address) => {
    asked.push(new URL(address, "http://a").searchParams);
    return new Response(JSON.stringify(documents.shift()), { status: 200 });
  };
  return asked;
}
const page = (next, buffers) => ({ time_ns: 5, buffers, next });
const { signal } = new AbortController();

test("buffers are read page after page, and equal stacks are kept once", async () => {
  const asked = answer(page("b", [buffer({ stack: [frame("f")] })]), page(null, [buffer({ stack: [frame("f")] }), buffer({ stack: [frame("g")] })]));
  const counts = [];
  const { buffers, complete, timeNs } = await loadBuffers({ pid: 7 }, signal, (count) => counts.push(count));
  assert.deepEqual([buffers.length, complete, timeNs, counts], [3, true, 5, [1, 3]]);
  assert.equal(buffers[0].stack, buffers[1].stack);
  assert.notEqual(buffers[0].stack, buffers[2].stack);
  assert.deepEqual(asked.map((one) => [one.get("pid"), one.get("cursor")]), [["7", null], ["7", "b"]]);
});

test("a list that is too long for a browser is cut, and says so", async () => {
  const many = Array.from({ length: ROWS_MAX }, () => ({ stack: [] }));
  const asked = answer(page("more", many));
  const { buffers, complete } = await loadBuffers({}, signal);
  assert.deepEqual([buffers.length, complete, asked.length], [ROWS_MAX, false, 1]);
  answer(page(null, many));
  assert.equal((await loadBuffers({}, signal)).complete, true);
});

test("what happened is asked for by its time, of one process or device", async () => {
  const told = [];
  const events = new Events((list) => told.push(list));
  const asked = answer({ moments: [{ kind: "mark" }] }, { moments: [] });
  await events.load(1.5, null, { pid: 7 });
  await events.load(1, 2, {});
  assert.deepEqual(told, [[{ kind: "mark" }], []]);
  assert.deepEqual(asked.map((one) => [one.get("pid"), one.get("from"), one.get("to")]),
    [["7", "1500000000", null], [null, "1000000000", "2000000000"]]);
});

test("an answer that comes too late, or none, changes nothing", async () => {
  const events = new Events(() => assert.fail("it was told"));
  globalThis.fetch = async () => {
    events.stop();
    return new Response('{"moments": [1]}', { status: 200 });
  };
  await events.load(1, 2, {});
  globalThis.fetch = async () => new Response("{}", { status: 404 });
  await events.load(1, 2, {});
  assert.deepEqual(events.list, []);
});
