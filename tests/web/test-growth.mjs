// SPDX-License-Identifier: Apache-2.0
//
// What keeps growing, on cards and rows. How it is judged is tested without a page; here the daemon's answer is made up,
// because a real one needs a minute of growth.
import assert from "node:assert/strict";
import { test } from "./runner.mjs";

const MIB = 1024 ** 2;

test("growth and the time until the device is full are on its card and on the process's row", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "grows" }, `device 0 0xa1 wormhole_b0 n150 0 ${12 * 1024 ** 3} ${96 * MIB} 12`,
    `alloc 0 DRAM 0x100000 ${MIB} cache`);
  const visitor = await visit();
  const frame = { function: "append", file: "/src/<b>cache.py", line: 12, module: null, python: true };
  const site = {
    pid: player.pid, comm: "grows", type: "DRAM", name: null, name_count: 0, names: [], phase: null, stack: [frame], site: frame,
    bytes: MIB, bytes_before: 0, grown: MIB, buffers: 1, buffers_before: 0, per_second: MIB, looked_ns: 60e9, confidence: "medium",
    oldest_ns: 1, ages: [0, 0, 0, 1],
  };
  const asked = [];
  await visitor.page.route("**/api/v1/growth*", async (route) => {
    asked.push(new URL(route.request().url()).search);
    const answer = await (await route.fetch()).json();
    assert.deepEqual([answer.schema, answer.sites], ["ttmem.growth/1", []], "it is too young to be judged");
    await route.fulfill({ json: { ...answer, sites: [site] } });
  });
  await visitor.go();
  await visitor.has("▲ DRAM +1.00 MiB/s, full in 3 h", ".card .grows");
  await visitor.has("append · <b>cache.py:12", ".card .grows");
  const row = visitor.page.locator(".processes tr .grows");
  assert.equal(await row.innerText(), "▲ DRAM +1.00 MiB/s, full in 3 h");
  assert.equal(await row.getAttribute("title"), "append · <b>cache.py:12");
  assert.equal(await visitor.page.locator(".grows b").count(), 0);
  await visitor.shoot("growth", true);
  assert.deepEqual(asked, [""], "not with every change of the page");
});
