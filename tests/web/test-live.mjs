// SPDX-License-Identifier: Apache-2.0
//
// Changes while the page is open: processes exit, the daemon stops and starts, and without a token only totals are shown.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test, until } from "./runner.mjs";

test("a killed process is a leak at once", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "victim" }, "alloc 0 DRAM 0x1000 3145728 left_behind");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("victim", "table.processes");
  await visitor.has("Nothing went wrong", "main");
  const start = Date.now();
  await player.kill();
  await visitor.has("victim", ".events");
  console.log(`     the leak was on the page ${Date.now() - start} ms after the kill`);
  await until("its end", async () => !(await visitor.text("table.processes")).includes("victim"));
  await visitor.page.click(".events a");
  await visitor.has("left_behind", ".groups");
  await visitor.has("3.00 MiB", ".detail");
});

test("the last rows of an exited process stay visible", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "mortal" }, "alloc 0 DRAM 0x1000 4096 seen_last");
  const visitor = await visit();
  await visitor.page.clock.install();
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("seen_last", ".grid-body");
  await player.kill();
  await visitor.page.locator("text=has ended. Below is what was seen of it last").waitFor();
  const asked = () => visitor.requests.filter((request) => request.url().includes("/buffers")).length;
  const before = asked();
  await visitor.page.clock.runFor(10000); // it was read again every three seconds
  assert.equal(asked(), before);
  await visitor.has("seen_last", ".grid-body");
  await visitor.has("1 buffer", ".tab-bar");
  await visitor.has("4.00 KiB", "main table");
  assert.ok(await visitor.page.locator("text=Refresh").isDisabled());
});

test("the page reconnects when the daemon comes back", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "survivor" }, "alloc 0 DRAM 0x1000 1048576 a");
  const visitor = await visit();
  visitor.forgive(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
  await visitor.go();
  await visitor.has("survivor", "table.processes");
  assert.ok(await visitor.page.locator(".banner").isHidden());
  await daemon.stop("SIGKILL");
  await visitor.has("connection to ttmemd is lost", ".banner");
  assert.equal(await visitor.text(".state"), "Not connected");
  await daemon.start();
  await visitor.page.locator(".banner").waitFor({ state: "hidden" });
  await player.play("alloc 0 DRAM 0x2000 2097152 b");
  await until("the new total", async () => (await visitor.page.getAttribute("[data-bytes]", "data-bytes")) === "3145728");
});

test("details need the token", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "secretive" }, "alloc 0 DRAM 0x1000 4096 secret_name");
  const visitor = await visit({ token: false });
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("run ttmem open", "main");
  await visitor.has("4.00 KiB", "main"); // everybody may see totals
  assert.deepEqual(visitor.requests.filter((request) => /buffers|incidents|leaks/.test(request.url())), []);
  await visitor.page.click("text=Enter the token");
  visitor.forgive(/401/);
  await visitor.page.fill("dialog input", "0".repeat(64));
  await visitor.page.keyboard.press("Enter");
  await visitor.has("That is not the token", "dialog");
  await visitor.page.fill("dialog input", daemon.token);
  await visitor.page.keyboard.press("Enter");
  await visitor.has("secret_name", ".grid-body");
  // It was sent in a header, and is gone with the tab.
  const asked = visitor.requests.filter((request) => request.url().includes("/buffers")).at(-1);
  assert.equal((await asked.allHeaders()).authorization, `Bearer ${daemon.token}`);
  assert.equal(await visitor.page.evaluate(() => JSON.stringify(localStorage)), "{}");
  await visitor.page.click("text=Lock details");
  await visitor.has("run ttmem open", "main");
  assert.ok(!(await visitor.text("main")).includes("secret_name"));
});

test("a token that is no longer valid is asked for again", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "rotated" }, "alloc 0 DRAM 0x1000 1048576 behind_the_token");
  const visitor = await visit();
  visitor.forgive(/401|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("behind_the_token", ".grid-body");
  await daemon.stop();
  rmSync(join(daemon.folder, "state", "http-token"));
  await daemon.start();
  await visitor.has("The token is not right any more: enter it again", ".banner");
  await visitor.has("Live", ".state"); // totals continue
  assert.equal(await visitor.page.evaluate(() => sessionStorage.getItem("ttmem.token")), null);
  await player.play("alloc 0 DRAM 0x200000 2097152 more");
  await visitor.has("3.00 MiB", "main");
  await visitor.has("run ttmem open", "main");
  await visitor.page.click("text=Enter the token");
  await visitor.page.fill("dialog input", daemon.token);
  await visitor.page.keyboard.press("Enter");
  await visitor.has("behind_the_token", ".grid-body");
  await visitor.page.locator(".banner").waitFor({ state: "hidden" });
});

test("no token is asked for where the daemon gives no details", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "closed" }, "alloc 0 DRAM 0x1000 4096 a");
  const visitor = await visit({ token: false });
  await visitor.page.route("**/healthz", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), details: "none" } });
  });
  for (const hash of ["#/", "#/device/0", `#/process/${player.pid}`, "#/incidents"]) {
    await visitor.go(hash);
    await visitor.has("run ttmem open", "main");
    assert.equal(await visitor.page.locator("text=/token$/i >> visible=true").count(), 0);
  }
  assert.deepEqual(visitor.requests.filter((request) => /buffers|incidents\?|leaks|map|fit/.test(request.url())), []);
});

test("details are open to everybody where the daemon says so", async ({ daemon, visit }) => {
  await daemon.stop();
  await daemon.start("--http-details");
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 4096 not_secret");
  const visitor = await visit({ token: false });
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("not_secret", ".grid-body");
  assert.ok(await visitor.page.locator("text=Unlock details").isHidden());
});
