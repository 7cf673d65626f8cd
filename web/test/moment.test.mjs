// SPDX-License-Identifier: Apache-2.0
//
// The page's time cursor, against a small fake of the daemon.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, remember } from "../src/base/router";
import { live } from "../src/data/live";
import { fromNs } from "../src/data/series";
import { Cursor, instantOf, spanOf, tellInstant, windowOf } from "../src/time/moment";

const S = 1e9;
const NOON = 1_700_000_000 * S;
const facts = (kind, exact = NOON - 600 * S) => ({ asked_ns: NOON, kind, exact_from_ns: exact, sums_from_ns: NOON - 1e6 * S });

test("an instant of the address is whole milliseconds, or none", () => {
  assert.equal(instantOf("1700000000123456789"), 1700000000123e6);
  for (let i = 0; i < 1000; i++) {
    const text = `1794876033${String(i).padStart(3, "0")}000000`;
    assert.equal(fromNs(instantOf(text)), text, "a double cannot hold it, but it stays the same millisecond");
  }
  for (const text of [null, "", "0", "-1", "1e18", "x", "17000000001234567890123", " 1"]) assert.equal(instantOf(text), null, String(text));
});

test("a zoom of the address has a length, or is none", () => {
  assert.deepEqual(spanOf("100-160.5"), { min: 100, max: 160.5 });
  for (const text of [null, "", "5-5", "6-5", "a-b", "1-", "-1-5", "1-2-3", "1e3-1e4"]) assert.equal(spanOf(text), null, String(text));
});

test("a chart loads the newest part of the past, or the part around an older instant", () => {
  assert.deepEqual(windowOf(900, 10000, []), { from: 9100, to: null });
  assert.deepEqual(windowOf(900, 10000, [9200, 9990]), { from: 9100, to: null });
  assert.deepEqual(windowOf(900, 10000, [5000]), { from: 4550, to: 5450 });
  assert.deepEqual(windowOf(900, 10000, [5000, 5100]), { from: 4600, to: 5500 });
  assert.deepEqual(windowOf(900, 10000, [5000, 7000]), { from: 4955, to: 7045 }, "longer than asked for, with an edge");
  assert.deepEqual(windowOf(900, 10000, [9000, 9900]), { from: 8955, to: 9945 });
  assert.deepEqual(windowOf(900, 10000, [9050]), { from: 8600, to: 9500 });
  assert.deepEqual(windowOf(900, 10000, [9000, 9999]), { from: 8955, to: null }, "up to now");
});

test("the bar says which instant it is, and how well it is known", () => {
  const now = NOON + 125 * S;
  assert.match(tellInstant(NOON, now, facts("exact")), /^As it was at (\S+ )?\d\d:\d\d:\d\d, 2 min 5 s ago; exact$/);
  assert.match(tellInstant(NOON, now, facts("exact"), null, false), /ago; exact, but not all is known$/);
  assert.match(tellInstant(NOON, now, facts("sums")), /; sums only: the flight recorder reaches back to (\S+ )?\d\d:\d\d:\d\d$/);
  assert.match(tellInstant(NOON, now, facts("sums", null)), /; sums only: the flight recorder has nothing$/);
  assert.match(tellInstant(NOON, now, null), /ago$/, "not read yet");
});

/** The page around a cursor: an address, and a daemon that answers at a word. */
function page(hash) {
  const asked = [];
  globalThis.window = globalThis;
  globalThis.addEventListener = () => undefined;
  globalThis.location = { hash };
  globalThis.history = { replaceState: (_state, _title, to) => (globalThis.location.hash = to) };
  globalThis.fetch = (url, { signal }) => new Promise((resolve, reject) => {
    const at = new URL(url, "http://x").searchParams.get("at");
    signal.addEventListener("abort", () => reject(new Error("aborted")));
    asked.push({
      at: Number(at),
      answer: (document = { time_ns: Number(at), devices: [], processes: [], notes: [], totals: { bytes: 7, buffers: 1 }, moment: facts("exact") }, status = 200) =>
        resolve(new Response(JSON.stringify(document), { status })),
    });
  });
  live.totals = { time_ns: NOON, devices: [], processes: [], notes: [], totals: { bytes: 1, buffers: 1 } };
  const cursor = new Cursor();
  const turn = () => new Promise((resolve) => {
    const stop = cursor.onChange(() => { stop(); resolve(); });
  });
  const request = async (number) => {
    while (asked.length < number) await new Promise((resolve) => setTimeout(resolve, 5));
    return asked[number - 1];
  };
  const options = () => {
    remember({}); // what waits is written
    return Object.fromEntries(parse(location.hash).options);
  };
  return { cursor, asked, turn, request, options };
}

test("a cursor shows its instant and nothing newer; Live brings back now", async () => {
  const { cursor, turn, request, options } = page("#/device/0?by=type");
  const before = live.totals;
  assert.equal(cursor.totals, before);
  assert.deepEqual(cursor.parameters(), {});
  cursor.set(NOON - 60 * S + 5);
  assert.deepEqual(options(), { by: "type", at: "1699999940000000000" });
  live.totals = { ...before, totals: { bytes: 2, buffers: 1 } };
  assert.equal(cursor.totals, before, "until it is read nothing newer is shown");
  assert.ok(cursor.loading);
  assert.ok(!cursor.known, "these totals are of another instant");
  const changed = turn();
  (await request(1)).answer();
  await changed;
  assert.equal(cursor.totals.totals.bytes, 7);
  assert.equal(cursor.clockNs(), NOON - 60 * S);
  assert.deepEqual(cursor.parameters(), { at: "1699999940000000000" });
  assert.ok(!cursor.loading);
  assert.ok(cursor.known);
  live.totals = { ...before, totals: { bytes: 3, buffers: 1 } };
  assert.equal(cursor.totals.totals.bytes, 7);
  cursor.live();
  assert.equal(cursor.totals.totals.bytes, 3);
  assert.deepEqual(options(), { by: "type" });
  assert.deepEqual(cursor.parameters(), {});
});

test("an instant that is not known is empty, and the daemon's words say why", async () => {
  const { cursor, turn, request } = page("#/");
  cursor.set(NOON - 60 * S);
  const changed = turn();
  (await request(1)).answer({ error: "nothing is known of then" }, 404);
  await changed;
  assert.equal(cursor.trouble, "nothing is known of then");
  assert.ok(!cursor.known);
  assert.deepEqual(cursor.totals.processes, []);
  assert.equal(cursor.totals.totals.bytes, 0);
});

test("while the cursor moves only its last place is asked for", async () => {
  const { cursor, asked, request } = page("#/");
  for (let i = 20; i > 10; i--) cursor.set(NOON - i * S);
  assert.equal((await request(1)).at, NOON - 11 * S);
  assert.equal(asked.length, 1);
});

test("the address restores cursors and zoom; the next view has them too", async () => {
  const { cursor, turn, request, options } = page("#/?at=1699999940000000000&vs=1699999910000000000&zoom=1699999900-1699999950");
  cursor.follow(location.hash);
  assert.deepEqual([cursor.at, cursor.other, cursor.zoom], [NOON - 60 * S, NOON - 90 * S, { min: 1699999900, max: 1699999950 }]);
  (await request(1)).answer();
  const changed = turn();
  (await request(2)).answer();
  await changed;
  assert.equal(cursor.otherTotals.time_ns, NOON - 90 * S);
  assert.deepEqual(cursor.otherParameters(), { at: "1699999910000000000" });
  assert.deepEqual(cursor.wanted(), [1699999940, 1699999910, 1699999900, 1699999950]);
  location.hash = "#/process/7";
  cursor.follow(location.hash);
  assert.deepEqual(options(), { at: "1699999940000000000", vs: "1699999910000000000" });
  assert.equal(cursor.zoom, null, "of another view");
  location.hash = "#/?at=1699999930000000000";
  cursor.follow(location.hash);
  assert.deepEqual([cursor.at, cursor.other], [NOON - 70 * S, null]);
});

test("no instant lies in the future", () => {
  const { cursor } = page("#/");
  cursor.set(NOON + 3600 * S);
  assert.ok(cursor.at <= live.clockNs());
  cursor.live();
});

test("a click sets the cursor, with Shift or after asking for it the other one", () => {
  const { cursor, options } = page("#/");
  cursor.pick(NOON - 50 * S, false);
  cursor.pick(NOON - 40 * S, true);
  assert.deepEqual([cursor.at, cursor.other], [NOON - 50 * S, NOON - 40 * S]);
  cursor.compare(null);
  cursor.choose(true);
  cursor.pick(NOON - 30 * S, false);
  assert.deepEqual([cursor.at, cursor.other, cursor.choosing], [NOON - 50 * S, NOON - 30 * S, false]);
  cursor.look({ min: 1, max: 2.5 });
  assert.equal(options().zoom, "1.000-2.500");
  cursor.look(null);
  assert.equal(options().zoom, undefined);
  cursor.live();
});
