// SPDX-License-Identifier: Apache-2.0
//
// Incidents arrive on the stream, without polling or a reload. ./dev load paint measures how long that takes.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

test("a leak arrives by the stream without polling", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "victim" }, "alloc 0 DRAM 0x1000 3145728 left_behind");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("victim", "table.processes");
  await visitor.has("Nothing went wrong", "main");
  // From now on requests for incidents or leaks are never answered.
  await visitor.page.route(/\/api\/v1\/(incidents|leaks|ps|smi)/, () => undefined);
  await visitor.page.evaluate(() => (window.isTheSame = true));
  const start = Date.now();
  await player.kill();
  await visitor.has("victim", ".events");
  console.log(`     the leak was on the page ${Date.now() - start} ms after the kill`);
  assert.match(await visitor.text(".events"), /1 buffer[^s][^]*3\.00 MiB[^]*\d\d:\d\d:\d\d/);
  await until("its end", async () => !(await visitor.text("table.processes")).includes("victim"));
  assert.ok(await visitor.page.evaluate(() => window.isTheSame), "the page was not loaded again");
  const streams = visitor.requests.filter((request) => request.url().includes("/api/v1/stream"));
  assert.equal(streams.length, 1, "one connection all the time");
});

test("a leak that is on the stream and in the list is counted once", async ({ daemon, visit }) => {
  const names = ["first", "second", "third"];
  const player = await daemon.player({ comm: "victim" }, ...names.map((name, i) => `alloc 0 DRAM 0x${i + 1}000000 1048576 ${name}`));
  const other = await daemon.player({ comm: "other" }, "alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("victim", "table.processes");
  await visitor.has("Nothing went wrong", "main");
  // The stream has it first: until now requests return an empty list.
  let open = false;
  await visitor.page.route("**/api/v1/incidents*", (route) => (open ? route.continue() : route.fulfill({ json: { incidents: [], next: null } })));
  await player.kill();
  const lines = () => visitor.page.locator(".events li").allInnerTexts();
  await until("what was heard", async () => /victim/.test((await lines()).join()));
  assert.match((await lines())[0], /3 buffers[^]*3\.00 MiB/);
  await until("the database to have it", async () => (await daemon.json("incidents")).incidents.filter(({ kind }) => kind === "leak").length === 3);
  // Another incident happens, and the whole list is read.
  open = true;
  const read = visitor.page.waitForResponse(async (answer) => answer.url().includes("/api/v1/incidents") && (await answer.json()).incidents.length >= 3);
  await other.play("free 0 DRAM 0x1000");
  await read;
  await until("both", async () => (await lines()).length === 2);
  const leak = (await lines()).find((line) => line.startsWith("Leak"));
  assert.match(leak, /3 buffers[^]*3\.00 MiB/, "not what was heard and what was read");
  await until("a process that leaked and a double free", async () => (await visitor.page.locator(".figures dd").allInnerTexts())[4].trim() === "2");
});

test("lists of incidents are read when the stream says that they have changed, and not at intervals", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "twice" }, "alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000");
  const visitor = await visit();
  await visitor.page.addInitScript(() => {
    const real = window.setInterval.bind(window);
    window.intervals = [];
    window.setInterval = (run, ms) => {
      window.intervals.push(run);
      return real(run, ms);
    };
  });
  const asked = () => visitor.requests.filter((request) => /\/api\/v1\/(incidents|leaks)/.test(request.url())).length;
  await visitor.go("#/incidents");
  await visitor.has("Nothing went wrong", "main");
  // When the view is opened, and again when the stream has begun.
  await until("both lists, twice", () => asked() === 4);
  await visitor.page.evaluate(async () => {
    for (let i = 0; i < 20; i++) for (const run of window.intervals) run();
    await fetch("/healthz");
  });
  assert.equal(asked(), 4);
  await player.play("free 0 DRAM 0x1000");
  await visitor.has("Double free", ".groups");
  assert.ok(asked() > 4);
});

test("no request waits for another one in the browser's cache", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "asked" }, "alloc 0 DRAM 0x1000 64 a");
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("asked");
  const asked = visitor.requests.filter((request) => /\/(api|healthz)/.test(request.url()));
  const paths = asked.map((request) => new URL(request.url()).pathname);
  for (const path of ["/healthz", "/api/v1/stream", "/api/v1/buffers"]) assert.ok(paths.includes(path), `${path} in ${paths}`);
  // What a browser sends of its own accord with a request that goes past its cache.
  for (const [i, request] of asked.entries()) assert.equal((await request.allHeaders())["cache-control"], "no-cache", paths[i]);
});
