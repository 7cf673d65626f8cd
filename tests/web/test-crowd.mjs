// SPDX-License-Identifier: Apache-2.0
//
// The page stays usable with too many rows, too long names and a slow daemon.
import assert from "node:assert/strict";
import { PHONE } from "./browser.mjs";
import { tell, totals } from "./made-up.mjs";
import { test, until } from "./runner.mjs";

test("the overview shows 10,000 processes on 1,024 devices", async ({ visit }) => {
  const visitor = await visit();
  await tell(visitor, totals(10000, 1024));
  await visitor.go();
  await visitor.has("9,800 more processes", "main");
  await visitor.has("896 more devices", "main");
  const rows = visitor.page.locator("table.processes tbody tr");
  const names = () => visitor.page.locator("table.processes tbody th").allTextContents();
  assert.equal(await rows.count(), 200);
  assert.equal((await names())[0], "proc-9999", "the largest come first");
  await visitor.page.click("text=Show more >> nth=1");
  await until("more rows", async () => (await rows.count()) === 400);
  await visitor.page.click("th.c-pid button");
  await visitor.page.click("th.c-pid button");
  await until("the other end", async () => (await names())[0] === "proc-0");
  // The filter searches all of them, by name, user, container and pid.
  for (const [text, one] of [["proc-1234 user1", 1234], ["c0ffee9876", 9876], ["user0 10000", 9999]]) {
    await visitor.page.fill("#filter", text);
    await until("the one that is meant", async () => (await names()).join() === `proc-${one}`);
  }
  await visitor.page.fill("#filter", "nobody");
  await visitor.has("No process matches", "main");
  assert.equal(await visitor.page.locator(".card").count(), 128);
  const sensors = await visitor.page.locator(".card .sensors").allTextContents();
  assert.deepEqual(sensors.slice(1, 4), ["", "42 °C · 18 W · 1000 MHz", "not answering"], "where there are any");
  await visitor.page.click(".card >> nth=5");
  await visitor.has("Device 5", "h1");
  await until("its ten processes", async () => (await visitor.page.locator("table.holders tbody tr").count()) === 10);
});

test("invisible characters in names are made visible", async ({ daemon, visit }) => {
  const bytes = (text) => [...new TextEncoder().encode(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  const name = "pay\u202elanret\u202cxe\u200b_\u001b[31mred\u0007\u2066!";
  const shown = "pay\\u202elanret\\u202cxe\\u200b_\\x1b[31mred\\x07\\u2066!";
  const player = await daemon.player({ comm: "plain" }, `push ${bytes(name)}`, "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576 1",
    `alloc 0 DRAM 0 536870912 ${bytes(name)}`, `alloc 0 DRAM 0x30000000 64 ${bytes(name)}`, "free 0 DRAM 0x30000000", "free 0 DRAM 0x30000000");
  const visitor = await visit({ size: PHONE });
  const check = async (what) => {
    const found = await visitor.page.evaluate(() => {
      const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/;
      const all = [document.body.textContent, document.title];
      for (const element of document.querySelectorAll("[title], [aria-label]")) all.push(element.title, element.getAttribute("aria-label"));
      return all.find((text) => unseen.test(text ?? "")) ?? null;
    });
    assert.equal(found, null, what);
  };
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has(shown, ".grid-body");
  await visitor.page.click(".grid-body .grid-row");
  await visitor.has(shown, ".buffer .facts");
  for (const tab of ["sites", "flame", "phases"]) {
    await visitor.page.click(`#tab-${tab}`);
    await visitor.has("\\u202e", `#panel-${tab}`);
    await check(tab);
  }
  await visitor.go("#/device/0xa1");
  await visitor.page.locator(".map-canvas").hover({ position: { x: 50, y: 20 } });
  await visitor.has(shown, ".tip");
  await check("device");
  await visitor.go("#/incidents");
  await visitor.has("Freed again by", ".party");
  await visitor.has(shown, ".groups");
  await check("incidents");
  await visitor.go();
  await visitor.has(shown, ".events");
  await check("overview");
  await visitor.go(`#/device/${encodeURIComponent("\u202egnp.\u0007")}`);
  await visitor.has("\\u202egnp.\\x07", "h1");
  await visitor.has("device 0", "main .empty a"); // the existing ones
  await check("a device that is not there");
});

test("a name of 10,000 letters is cut", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `push ${"p".repeat(10000)}`, `alloc 0 DRAM 0x1000 4096 ${"n".repeat(10000)}`);
  const visitor = await visit({ size: PHONE });
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("nnnnn", ".grid-body");
  await visitor.page.click(".grid-body .grid-row");
  await visitor.has("nnnnn", ".buffer .facts");
  assert.ok((await visitor.text(".buffer")).length < 1000, "the book keeps 255 of them");
  assert.ok((await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
});

test("the page stays usable while the daemon does not answer", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "patient" }, "alloc 0 DRAM 0x1000 4096 worth_waiting");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("patient", "table.processes");
  daemon.process.kill("SIGSTOP");
  await visitor.page.click("table.processes tbody a");
  await visitor.has("patient (", "h1");
  await visitor.has("Reading …", ".tab-bar");
  await visitor.has("4.00 KiB", "main"); // the last known data stays
  // Leaving the view and coming back meanwhile causes no later errors.
  await visitor.page.click("text=Leaks and incidents");
  await visitor.has("Leaks and incidents", "h1");
  await visitor.page.goBack();
  await visitor.has("Reading …", ".tab-bar");
  daemon.process.kill("SIGCONT");
  await visitor.has("worth_waiting", ".grid-body");
  assert.ok(await visitor.page.locator(".banner").isHidden());
  assert.ok(player.pid > 0);
});

test("malformed answers are reported and the page recovers", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 4096 a");
  const visitor = await visit();
  visitor.forgive(/status of 50\d|Failed to load/);
  await visitor.page.route("**/api/v1/buffers*", (route) => route.fulfill({ status: 503, json: { error: "too many wait", status: 503 } }));
  await visitor.page.route("**/api/v1/series*", (route) => route.fulfill({ status: 500, body: "not even JSON" }));
  await visitor.page.route("**/api/v1/incidents*", (route) => route.fulfill({ status: 200, body: "{" }));
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("too many wait", ".tab-bar");
  await visitor.has("The past cannot be shown: the daemon answered 500", "main");
  await visitor.go("#/incidents");
  await visitor.has("The daemon does not answer", "main");
  // It tries again and recovers.
  await visitor.page.unrouteAll();
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("1 buffer", ".tab-bar");
});

test("totals are polled when the stream has no free place", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 1048576 a");
  const visitor = await visit();
  visitor.forgive(/status of 503/);
  let tries = 0;
  await visitor.page.clock.install();
  await visitor.page.route("**/api/v1/stream?*", (route) => {
    tries++;
    return route.fulfill({ status: 503, json: { error: "too many listen already", status: 503 } });
  });
  const total = async () => Number(await visitor.page.getAttribute("[data-bytes]", "data-bytes"));
  await visitor.go();
  await visitor.has("Too many listen to ttmemd already", ".banner");
  await until("a total", async () => (await total()) === 1048576);
  assert.equal(tries, 1);
  await player.play("alloc 0 DRAM 0x200000 2097152 b");
  await visitor.page.clock.runFor(6000);
  await until("the next one", async () => (await total()) === 3145728);
  assert.equal(tries, 1, "the stream is not asked for each time");
  // Half a minute later there is a free slot.
  await visitor.page.unroute("**/api/v1/stream?*");
  await until("the stream", async () => {
    await visitor.page.clock.runFor(5000);
    return (await visitor.text(".state")) === "Live";
  });
  assert.ok(await visitor.page.locator(".banner").isHidden());
});

test("a client with the token gets a stream although others hold all places", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 1048576 a");
  const total = async (visitor) => Number(await visitor.page.getAttribute("[data-bytes]", "data-bytes"));
  const anybody = await visit({ token: false });
  anybody.forgive(/status of 503|ERR_/);
  await anybody.page.clock.install();
  await anybody.go();
  await anybody.has("Live", ".state");
  const crowd = new AbortController();
  const listen = () => fetch(`${daemon.base}/api/v1/stream`, { signal: crowd.signal });
  const taken = await Promise.all(Array.from({ length: 63 }, listen));
  assert.deepEqual([...new Set(taken.map((answer) => answer.status))], [200]);
  const late = await listen();
  assert.deepEqual([late.status, late.headers.get("retry-after")], [503, "30"]);
  const known = await visit();
  await known.go();
  await known.has("Live", ".state");
  // Of the listeners without a token, the oldest is disconnected: its page says so, and polls instead.
  await until("the banner", async () => {
    await anybody.page.clock.runFor(1000);
    return /Too many listen to ttmemd already/.test(await anybody.text("body"));
  });
  await player.play("alloc 0 DRAM 0x200000 2097152 b");
  for (const visitor of [known, anybody])
    await until("the new total", async () => {
      if (visitor === anybody) await visitor.page.clock.runFor(1000);
      return (await total(visitor)) === 3145728;
    });
  assert.equal(await known.text(".state"), "Live");
  assert.equal(await anybody.text(".state"), "Every 5 s");
  crowd.abort();
  await until("a place", async () => {
    await anybody.page.clock.runFor(5000);
    return (await anybody.text(".state")) === "Live";
  });
});

/** A page whose daemon has one process with these buffers. */
async function madeUp(visitor, documents, buffers) {
  visitor.forgive(/ERR_|Failed to load/);
  const waiting = [];
  await visitor.page.route("**/api/v1/stream?*", async (route) => {
    const next = documents.shift() ?? (await new Promise((resolve) => waiting.push(resolve)));
    await route.fulfill({ contentType: "text/event-stream", body: `event: totals\ndata: ${JSON.stringify(next)}\n\n` }).catch(() => undefined);
  });
  await visitor.page.route("**/api/v1/buffers*", (route) => route.fulfill({ json: { time_ns: Date.now() * 1e6, buffers, next: null } }));
  return async (document) => {
    await until("the next question", () => waiting.length > 0);
    waiting.splice(0).at(-1)(document); // those before it were given up
  };
}

const made = (i) => ({
  pid: 1, comm: "proc-0", device: 0, device_uid: "0x1", type: "DRAM", address: `0x${(4096 * i).toString(16)}`, size: 1000 + i, refs: 1,
  born_ns: 1, age_ns: 1, name: `name ${i}`, phase: `phase ${i}`, thread: 1, flags: [],
  stack: [{ function: `function_${i}`, file: null, line: null, module: null, python: false }],
});

test("a truncated table says so", async ({ visit }) => {
  const visitor = await visit();
  await madeUp(visitor, [totals(1, 1)], Array.from({ length: 1234 }, (_, i) => made(i)));
  await visitor.go("#/process/1?tab=phases");
  await visitor.has("The first 500 of 1,234.", "#panel-phases");
  await visitor.page.click("#tab-flame");
  await visitor.page.click("#panel-flame summary");
  await visitor.has("The first 200 of 1,234.", "#panel-flame");
});

test("a marked moment belongs to one process, not to a reused pid", async ({ visit }) => {
  const visitor = await visit();
  const [one, other] = [totals(1, 1), totals(1, 1)];
  other.processes[0].start_ns = one.processes[0].start_ns + 1e12;
  const tell = await madeUp(visitor, [one], [made(1)]);
  await visitor.page.clock.install();
  await visitor.go("#/process/1?tab=compare");
  await visitor.page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  await tell(other);
  await until("nothing marked", async () => {
    await visitor.page.clock.runFor(500); // read again every three seconds
    return /Mark this moment/.test(await visitor.text("#panel-compare"));
  });
});
