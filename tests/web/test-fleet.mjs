// SPDX-License-Identifier: Apache-2.0
//
// The fleet: several real daemons, one that is down and one that lies, on the page of another.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { PHONE } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { test, until } from "./runner.mjs";

const DOWN = "127.0.0.1:1";
const EVIL = "<img src=x onerror=window.hacked=1>";

const hosts = (visitor) => visitor.page.locator(".fleet tbody th").allInnerTexts();

/** @run gets two other daemons, both stopped at the end, and a server whose answer is not JSON. */
async function withOthers(run) {
  const others = [new Daemon(), new Daemon()];
  const liar = createServer((_request, response) => response.end(EVIL));
  await new Promise((resolve) => liar.listen(0, "127.0.0.1", resolve));
  try {
    for (const other of others) await other.start();
    await run(others, `127.0.0.1:${liar.address().port}`);
  } finally {
    for (const other of others) await other.close();
    liar.close();
  }
}

test("the fleet shows hosts with trouble first and links to them", async ({ daemon, visit }) => {
  await withOthers(async ([full, fine], liar) => {
    await daemon.stop();
    await daemon.start("--fleet", [fine.address, full.address, DOWN, liar].join(","));
    const visitor = await visit({ token: false });
    await visitor.go();
    await visitor.page.click("nav >> text=Fleet");
    await visitor.has("Not answering", `.fleet tr:has-text("${DOWN}")`);
    await visitor.has("connection refused", ".fleet");
    await visitor.has("its answer is no ttmem.host", ".fleet");
    assert.equal(await visitor.page.title(), "Fleet · ttmem");
    await full.player({}, "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576", "alloc 0 DRAM 0x1000 1020054732");
    await visitor.has("95 %", `.fleet tr:has-text("${full.address}")`);
    await visitor.has("Nearly full", `.fleet tr:has-text("${full.address}")`);
    assert.deepEqual((await hosts(visitor)).slice(0, 2).sort(), [DOWN, liar].sort());
    assert.equal(await visitor.page.locator(".fleet img").count(), 0);
    await visitor.shoot("fleet-wide", true);
    await visitor.page.emulateMedia({ colorScheme: "dark" });
    await visitor.shoot("fleet-wide-dark", true);
    // It goes on while one looks.
    await full.stop();
    await until("its place among the silent", async () => (await hosts(visitor)).indexOf(full.address) < 3 &&
      (await visitor.text(`.fleet tr:has-text("${full.address}")`)).includes("Not answering"));
    // The page itself has talked to its own daemon only: visitor.check(). The link leaves it.
    const link = visitor.page.locator(`.fleet a:has-text("${fine.address}")`);
    assert.equal(await link.getAttribute("href"), `${fine.base}/`);
  });
});

test("the fleet fits a phone", async ({ daemon, visit }) => {
  await daemon.stop();
  await daemon.start("--fleet", DOWN);
  const visitor = await visit({ size: PHONE });
  await visitor.go("#/fleet");
  await visitor.has("Not answering", ".fleet tbody");
  await visitor.shoot("fleet-phone", true);
  assert.ok(await visitor.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test("without a fleet there is no entry for it", async ({ daemon, visit }) => {
  await daemon.player({}, "alloc 0 DRAM 0x1000 1");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("player", "table.processes");
  assert.equal(await visitor.page.locator("nav >> text=Fleet").isVisible(), false);
  visitor.forgive(/404/);
  await visitor.go("#/fleet");
  await visitor.has("no fleet is configured");
});
