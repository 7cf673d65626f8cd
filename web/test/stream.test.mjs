// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { codeIn, link, parse, pick } from "../src/base/router";
import { Failed, get, NeedsToken, problem } from "../src/data/api";
import { parseMessage, Reader, Retry, retryAfter, RETRY_MS } from "../src/data/sse";

const STREAM = 'event: totals\ndata: {"a":1}\n\n: keep-alive\n\nevent: incident\ndata: {"kind":"leak"}\n\n';
const MESSAGES = [{ kind: "totals", data: '{"a":1}' }, { kind: "incident", data: '{"kind":"leak"}' }];

test("messages, in whatever pieces they come", () => {
  for (let size = 1; size <= STREAM.length; size++) {
    const reader = new Reader();
    const got = [];
    for (let at = 0; at < STREAM.length; at += size) got.push(...reader.take(STREAM.slice(at, at + size)));
    assert.deepEqual(got, MESSAGES, `pieces of ${size}`);
  }
});

test("what has no end yet is no message", () => {
  const reader = new Reader();
  assert.deepEqual(reader.take("event: totals\ndata: x\n"), []);
  assert.deepEqual(reader.take("\n"), [{ kind: "totals", data: "x" }]);
  assert.deepEqual(reader.take(""), []);
});

test("a large message in many pieces costs its length once", () => {
  const reader = new Reader();
  const piece = "x".repeat(1 << 16);
  reader.take("event: totals\ndata: ");
  for (let i = 0; i < 500; i++) assert.deepEqual(reader.take(piece), []);
  assert.equal(reader.take("\n\n")[0].data.length, 500 << 16);
});

test("a message without an end is given up", () => {
  const reader = new Reader();
  const piece = "x".repeat(1 << 26);
  assert.throws(() => {
    for (let i = 0; i < 8; i++) reader.take(piece);
  }, /without an end/);
});

test("comments and several lines of data", () => {
  assert.equal(parseMessage(": keep-alive"), null);
  assert.deepEqual(parseMessage("event: a\ndata: 1\ndata: 2"), { kind: "a", data: "1\n2" });
});

test("attempts are made further and further apart, until one has worked", () => {
  const retry = new Retry();
  const waits = Array.from({ length: 10 }, () => retry.next());
  assert.deepEqual(waits.slice(0, RETRY_MS.length), [...RETRY_MS]);
  assert.ok(waits.slice(RETRY_MS.length).every((wait) => wait === RETRY_MS.at(-1)), "and never given up");
  retry.worked();
  assert.equal(retry.next(), RETRY_MS[0]);
});

test("a server that is full says when to come again", () => {
  for (const [said, seconds] of [["30", 30], ["60", 60], ["0", 5], ["1", 5], ["999999", 300], [null, 30], ["", 30], ["-1", 30], ["soon", 30], ["Wed, 21 Oct 2026 07:28:00 GMT", 30]])
    assert.equal(retryAfter(said), seconds, String(said));
});

test("addresses say where one is, and are read again", () => {
  for (const [view, id, options] of [
    ["overview", "", {}], ["device", "0xa1", { by: "process" }], ["device", "a/b?c#d", {}], ["process", "42", { tab: "flame" }], ["incidents", "", { kind: "leak" }],
  ]) {
    const route = parse(link(view, id, options));
    assert.deepEqual([route.view, route.id, Object.fromEntries(route.options)], [view, id, options]);
  }
});

test("an address may be anything", () => {
  for (const hash of ["", "#", "#/", "#/nothing", "#/process/0", "#/process/1x", "#/process/-1", "#/device", "#//", "#/__proto__/x"])
    assert.equal(parse(hash).view, "overview", hash);
  assert.equal(parse("#/device/%E0%A4%A").id, "%E0%A4%A");
});

test("only a name of one's own is a name", () => {
  const names = { buffers: "Buffers", flame: "Flame graph" };
  assert.equal(pick(names, "flame", "buffers"), "flame");
  for (const wrong of [null, "", "toString", "constructor", "__proto__", "Flame"]) assert.equal(pick(names, wrong, "buffers"), "buffers", wrong);
});

test("whose fault it is: the daemon's, the token's, or the page's own", async (context) => {
  const answer = (status, text) => async () => new Response(text, { status });
  const asked = async (fetch) => {
    context.mock.method(globalThis, "fetch", fetch);
    return problem(await get("/x").then(() => null, (error) => error));
  };
  assert.equal(await asked(async () => { throw new TypeError("Failed to fetch"); }), "The daemon does not answer.");
  assert.equal(await asked(answer(200, '{"cut')), "The daemon does not answer.");
  assert.equal(await asked(answer(503, '{"error":"too many"}')), "too many");
  assert.equal(problem(new NeedsToken()), "Details are locked.");
  assert.equal(problem(new Failed("no", 500)), "no");
  const said = context.mock.method(console, "error", () => undefined);
  assert.equal(problem(new TypeError("x is null")), "This page has made a mistake: x is null");
  assert.equal(said.mock.callCount(), 1);
});

test("a link of ttmem open has a code, and leads somewhere", () => {
  const code = "0123456789abcdef".repeat(4);
  assert.deepEqual(codeIn(`#/open/${code}`), { code, to: "#/" });
  assert.deepEqual(codeIn(`#/open/${code}/process/12`), { code, to: "#/process/12" });
  assert.deepEqual(codeIn(`#/open/${code}/device/0xa1?range=60`), { code, to: "#/device/0xa1?range=60" });
  for (const hash of ["", "#/", "#/open", "#/open/", "#/open/XYZ", "#/process/12", "#/incidents/open/abc"])
    assert.equal(codeIn(hash), null, hash);
});
