// SPDX-License-Identifier: Apache-2.0
//
// Leaks and incidents: their groups, the parties involved, and stable links.
import assert from "node:assert/strict";
import { PHONE } from "./browser.mjs";
import { test, until } from "./runner.mjs";

/** The positions of both parties of the incident that is shown. */
const parties = (visitor) => visitor.page.evaluate(() =>
  [...document.querySelectorAll(".party")].map((party) => party.getBoundingClientRect().toJSON()));

test("a clash shows what was in the way, and what was refused", async ({ daemon, visit }) => {
  await daemon.player({ comm: "model", stacks: "fp" }, "alloc 0 L1 0x9000 4096 tensor", "clash 0 L1 0x9000 0 0x1000 0x8800 cbs");
  const visitor = await visit();
  await visitor.go("#/incidents");
  await until("it", async () => (await visitor.page.locator(".groups button:has-text('Clash')").count()) === 1);
  await visitor.page.click(".groups button:has-text('Clash')");
  await visitor.has("Refused", ".party");
  const texts = await visitor.page.locator(".party").allInnerTexts();
  assert.match(texts[0], /^In the way: allocated by[^]*Name\s+tensor[^]*player\.c:\d+/);
  assert.match(texts[1], /^Refused[^]*Name\s+cbs[^]*player\.c:\d+/);
});

test("a link to a double free opens the same for somebody else, both parties side by side", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "evictor", stacks: "fp" },
    "push serve", "alloc 0 DRAM 0x1000 4096 page", "free 0 DRAM 0x1000", "pop", "push shutdown", "free 0 DRAM 0x1000", "free 0 L1 0x77");
  await player.kill();
  const first = await visit();
  await first.go("#/incidents");
  await until("both", async () => (await first.page.locator(".groups button").count()) === 2);
  await first.page.click(".groups button:has-text('Double free')");
  await first.has("Freed first by", ".party");
  await first.has("Freed again by", ".party");
  const link = new URL(first.page.url()).hash;
  assert.match(link, /^#\/incidents\/[0-9a-f]{14}$/);
  const detail = (visitor) => visitor.page.locator(".detail").innerText();
  const shown = await detail(first);
  assert.match(shown, /evictor/);
  const [a, b] = await parties(first);
  assert.ok(a.y === b.y && a.x + a.width <= b.x, "on a wide screen beside each other");
  const texts = await first.page.locator(".party").allInnerTexts();
  assert.match(texts[0], /^Freed first by[^]*Phase\s+serve/);
  assert.match(texts[1], /^Freed again by[^]*Phase\s+shutdown/);
  for (const text of texts) assert.match(text, /player\.c:\d+/, "each with its own stack");
  // A reload does not change the page under the user.
  const party = await first.page.locator(".party").first().elementHandle();
  const heard = first.page.waitForResponse((answer) => answer.url().includes("/api/v1/leaks"));
  await daemon.player({ comm: "other" }, "free 3 DRAM 0x99");
  await heard;
  await until("the other", async () => (await first.page.locator(".groups button").count()) === 3);
  assert.ok(await party.evaluate((element) => element.isConnected));
  const second = await visit({ size: PHONE });
  await second.go(link);
  await second.has("Double free", ".panel header .badge");
  assert.equal(await detail(second), shown);
  const [c, d] = await parties(second);
  assert.ok(c.x === d.x && c.y + c.height <= d.y && c.width < PHONE.width, "on a phone below each other");
  // The link does not depend on the time: the next incident of the same call site is in the same group.
  const again = await daemon.player({ comm: "evictor", stacks: "fp" },
    "push serve", "alloc 0 DRAM 0x1000 4096 page", "free 0 DRAM 0x1000", "pop", "push shutdown", "free 0 DRAM 0x1000");
  await until("twice", async () => /Times\s+2[^]*Last by\s+evictor/.test(await detail(second)));
  assert.equal(new URL(second.page.url()).hash, link);
  await again.kill();
  const third = await visit();
  await third.go("#/incidents/0123456789abcd");
  await third.has("What the link means is not here", "main");
  assert.equal(await third.page.locator(".party").count(), 0);
});

test("memory that two processes hold is shown with both of them", async ({ daemon, visit }) => {
  const device = "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576 12";
  await daemon.player({ comm: "older" }, device, "alloc 0 DRAM 0x1000 4096 weights");
  await daemon.player({ comm: "younger" }, device, "alloc 0 DRAM 0x1000 8192 cache");
  const visitor = await visit();
  await visitor.go("#/incidents");
  await visitor.page.click(".groups button:has-text('Overlap')");
  await visitor.has("Held first by", ".party");
  await visitor.has("Allocated over it by", ".party");
  const shown = await visitor.page.locator(".detail").innerText();
  assert.match(shown, /weights[^]*cache/);
  assert.match(shown, /older \(\d+\)\s+DRAM\s+4\.00 KiB[^]*younger \(\d+\)\s+DRAM\s+8\.00 KiB/);
});

test("one process with many leaks does not crowd out the others", async ({ daemon, visit }) => {
  const names = Array.from({ length: 40 }, (_, i) => `alloc 0 DRAM 0x${(i + 1).toString(16)}000 4096 layer.${String.fromCharCode(97 + (i % 20)).repeat(i < 20 ? 1 : 2)}`);
  const early = await daemon.player({ comm: "early" }, "alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000", "free 0 DRAM 0x1000");
  const many = await daemon.player({ comm: "many" }, ...names);
  const visitor = await visit();
  await visitor.go();
  await visitor.has("early", ".events");
  await many.kill();
  await visitor.has("40 buffers", ".events");
  await until("two lines", async () => (await visitor.page.locator(".events li").count()) === 2);
  // Also when all of it comes from the database.
  await visitor.page.reload();
  await visitor.has("160 KiB", ".events");
  assert.equal(await visitor.page.locator(".events li").count(), 2);
  await visitor.page.click(".events a:has-text('many')");
  await until("its call sites", async () => (await visitor.page.locator(".groups button").count()) === 40);
  await visitor.has("40 call sites", ".crumbs");
  await early.kill();
});

test("one line that leaks a hundred names is one call site, with its names", async ({ daemon, visit }) => {
  const names = Array.from({ length: 100 }, (_, i) => `alloc 0 DRAM 0x${(i + 1).toString(16)}000 ${4096 + i} kv.${i}`);
  const player = await daemon.player({ comm: "kv" }, ...names);
  const visitor = await visit();
  await visitor.go("#/incidents");
  await player.kill();
  await visitor.has("100 buffers", ".groups button");
  assert.equal(await visitor.page.locator(".groups button").count(), 1);
  await visitor.page.click(".groups button");
  await visitor.has("kv.99", ".detail table.names");
  await visitor.has("The first 16 of 100.", ".detail");
});

test("a failed allocation says what the memory was held for, by call site and by name", async ({ daemon, visit }) => {
  const names = Array.from({ length: 30 }, (_, i) => `alloc 0 DRAM 0x${(i + 1).toString(16)}000 ${4096 + i} kv.${i}`);
  await daemon.player({ comm: "kv" }, ...names, "failed 0 DRAM 99999999 10");
  const visitor = await visit();
  await visitor.go("#/incidents");
  await visitor.page.click(".groups button:has-text('Failed allocation')");
  await visitor.has("kv.#", ".detail table");
  const unfolded = visitor.page.locator(".detail details table.names");
  assert.equal(await unfolded.isVisible(), false);
  await visitor.page.click(".detail details summary");
  await unfolded.waitFor();
  assert.match(await unfolded.innerText(), /kv\.29\s+4\.03 KiB\s+1/);
  await visitor.has("The first 16 of 30.", ".detail details");
  await visitor.shoot("incident-names");
});
