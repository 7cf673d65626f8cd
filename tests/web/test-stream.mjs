// SPDX-License-Identifier: Apache-2.0
//
// News come by the stream: nobody has to ask for them, nor to open the page again. How long that takes is
// measured by ./dev load paint.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

test("a leak comes by the stream alone", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "victim" }, "alloc 0 DRAM 0x1000 3145728 left_behind");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("victim", "table.processes");
  await visitor.has("Nothing went wrong", "main");
  // From now on whoever asks for incidents or leaks waits for ever.
  await visitor.page.route(/\/api\/v1\/(incidents|leaks|ps|smi)/, () => undefined);
  await visitor.page.evaluate(() => (window.isTheSame = true));
  const start = Date.now();
  await player.kill();
  await visitor.has("victim", ".events");
  console.log(`     the leak was on the page ${Date.now() - start} ms after the kill`);
  assert.match(await visitor.text(".events"), /1 buffer\n.*3\.00 MiB\n\d\d:\d\d:\d\d/);
  await until("its end", async () => !(await visitor.text("table.processes")).includes("victim"));
  assert.ok(await visitor.page.evaluate(() => window.isTheSame), "the page was not loaded again");
  const streams = visitor.requests.filter((request) => request.url().endsWith("/api/v1/stream"));
  assert.equal(streams.length, 1, "one connection all the time");
});
