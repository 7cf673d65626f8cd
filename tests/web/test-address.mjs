// SPDX-License-Identifier: Apache-2.0
//
// The address has everything that was chosen: Back, a reload and another browser show the same.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const options = (page) => Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.split("?")[1] ?? ""));

test("Back restores filter, order and scroll of the overview", async ({ daemon, visit }) => {
  for (let i = 0; i < 12; i++) await daemon.player({ comm: `worker-${i}` }, ...Array.from({ length: 4 }, (_one, k) => `alloc ${4 * i + k} DRAM 0x1000 ${4096 * (i + 1)} a`));
  const visitor = await visit({ size: { width: 900, height: 420 } });
  const { page } = visitor;
  await visitor.go();
  const names = () => page.locator("table.processes tbody th").allInnerTexts();
  await until("all", async () => (await names()).length === 12);
  await page.fill("#filter", "worker-1");
  await page.click("th.c-comm button");
  await until("the order", async () => (await names()).join() === "worker-1,worker-10,worker-11");
  await page.locator("table.processes tbody tr").last().scrollIntoViewIfNeeded();
  const y = await page.evaluate(() => scrollY);
  assert.ok(y > 100, `${y}`);
  // Clicked at once: what was typed and scrolled is not lost.
  await page.click("table.processes tbody a >> nth=2");
  await visitor.has("worker-11 (", "h1");
  assert.equal(await page.evaluate(() => scrollY), 0, "another view begins at its top");
  await page.goBack();
  await until("the order again", async () => (await names()).join() === "worker-1,worker-10,worker-11");
  assert.equal(await page.inputValue("#filter"), "worker-1");
  await until("the place", async () => Math.abs((await page.evaluate(() => scrollY)) - y) < 3);
  assert.deepEqual({ ...options(page), y: "" }, { q: "worker-1", sort: "comm", y: "" });
  await page.goForward();
  await visitor.has("worker-11 (", "h1");
  await page.goBack();
  await until("the place, once more", async () => Math.abs((await page.evaluate(() => scrollY)) - y) < 3);
  // The same address in another browser.
  const other = await visit({ size: { width: 900, height: 420 } });
  await other.go(new URL(page.url()).hash);
  await until("the same", async () => Math.abs((await other.page.evaluate(() => scrollY)) - y) < 3);
  // A link to the overview begins anew.
  await page.click("nav a:has-text('Overview')");
  await until("all of them", async () => (await names()).length === 12);
  assert.deepEqual(options(page), {});
});

test("Back restores filter, order, position and choice of a list of buffers", async ({ daemon, visit }) => {
  const player = await daemon.player({ stacks: "fp" }, "many 0 DRAM 0x1000 64 3000", "many 1 DRAM 0x1000 64 3000");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("6,000 buffers", ".tab-bar");
  await page.fill("#panel-buffers input", "dram");
  await page.click("#panel-buffers .grid-head button:text-is('Address')");
  await page.locator("#panel-buffers .grid-view").evaluate((one) => (one.scrollTop = 26 * 2000));
  await until("the row in the address", async () => options(page).row === "2000");
  const row = page.locator("#panel-buffers .grid-body .grid-row", { has: page.locator(":scope > :nth-child(6) span:text-is('1')") }).nth(12);
  await row.click();
  await until("the details", async () => page.locator("#panel-buffers .buffer").isVisible());
  const shown = await page.locator("#panel-buffers .buffer .facts dd").nth(2).innerText();
  assert.match(shown, /^DRAM of device 1, 0x/);
  const kept = options(page);
  assert.deepEqual([kept.q, kept.sort, kept.of], ["dram", "address", "1 DRAM"]);
  const same = async (one) => {
    await until("the same details", async () => (await one.locator("#panel-buffers .buffer .facts dd").nth(2).innerText()) === shown);
    assert.equal(await one.inputValue("#panel-buffers input"), "dram");
    assert.equal(await one.locator("#panel-buffers [role=columnheader][aria-sort=ascending]").innerText(), "Address ↑".replace(" ↑", ""));
    const top = await one.locator("#panel-buffers .grid-view").evaluate((view) => view.scrollTop);
    assert.ok(Math.abs(top - 26 * 2000) < 26, `${top}`);
  };
  await page.click("nav a:has-text('Leaks')");
  await visitor.has("Leaks and incidents", "h1");
  await page.goBack();
  await same(page);
  await page.reload();
  await same(page);
  await page.click("#panel-buffers .close");
  assert.equal(options(page).address, undefined);
});

test("what is chosen on the page of a device is in its address", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576 12", "alloc 0 DRAM 0 4096 a");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go("#/device/0xa1");
  await visitor.has("Largest free block");
  await page.fill("#fit-size", "3 MiB");
  await until("it", async () => options(page).fit === "3 MiB");
  await page.reload();
  await visitor.has("Largest free block");
  assert.equal(await page.inputValue("#fit-size"), "3 MiB");
  // The part of the map that is seen.
  const shown = () => page.locator(".map-ends").innerText();
  const all = await shown();
  await page.locator(".map canvas").focus();
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  const part = await shown();
  assert.notEqual(part, all);
  await until("the part", async () => /^[0-9a-f]+-[0-9a-f]+$/.test(options(page)[`map-${player.pid}`] ?? ""));
  await page.click("nav a:has-text('Leaks')");
  await visitor.has("Leaks and incidents", "h1");
  await page.goBack();
  await until("the same part", async () => (await page.locator(".map-ends").count()) > 0 && (await shown()) === part);
  await page.click(".map-ends button");
  await until("all of it", async () => options(page)[`map-${player.pid}`] === undefined);
  assert.equal(await shown(), all);
});

test("zoom, text and filters of a flame graph are in the address", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "push load", "alloc 0 DRAM 0x1000 3145728 weights", "alloc 0 L1 0x1000 1048576 other");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  const zoomed = () => page.locator("#panel-flame [data-faded]").count();
  await page.locator("#panel-flame [role=treeitem]").first().waitFor({ state: "attached" });
  await page.locator("#panel-flame canvas").focus();
  for (const key of ["ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
  await until("the frame", async () => /^[0-9a-f]{8}$/.test(options(page)["flame-frame"] ?? ""));
  const faded = await zoomed();
  assert.ok(faded > 0);
  await page.fill("#panel-flame input", "weights");
  await page.selectOption("#panel-flame select", "DRAM");
  await until("both", async () => options(page)["flame-find"] === "weights" && options(page)["flame-type"] === "DRAM");
  const before = options(page);
  await page.click("nav a:has-text('Leaks')");
  await visitor.has("Leaks and incidents", "h1");
  await page.goBack();
  await until("the zoom again", async () => (await zoomed()) === faded);
  assert.equal(await page.inputValue("#panel-flame input"), "weights");
  assert.equal(await page.locator("#panel-flame select").first().inputValue(), "DRAM");
  await visitor.has("3.00 MiB", "#panel-flame .flame-matched");
  assert.deepEqual(options(page), before);
  await page.click("#panel-flame button:has-text('Show all')");
  await until("all of it", async () => options(page)["flame-frame"] === undefined && (await zoomed()) === 0);
});

test("a link can be copied without access to the clipboard", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "one" }, "free 0 DRAM 0x77");
  const visitor = await visit();
  const { page } = visitor;
  // As on a page that is not secure (http, and not this machine).
  await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await visitor.go("#/incidents");
  await visitor.has("Unknown free", ".beside .badge");
  await page.click("text=Copy link");
  await visitor.has("Copy it with Ctrl+C", ".beside");
  const told = await page.evaluate(() => ({ text: getSelection().toString() || document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd) }));
  const other = await visit();
  await other.page.goto(told.text);
  await other.has("Unknown free", ".beside .badge");
  await player.kill();
});
