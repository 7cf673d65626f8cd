// SPDX-License-Identifier: Apache-2.0
//
// Processes that have ended, and what tells living ones of one name apart.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

test("ended processes are listed with what they left and their peaks", async ({ daemon, visit }) => {
  const leaky = await daemon.player({ comm: "leaky" }, "alloc 0 DRAM 0x1000 4096 kept", "alloc 0 DRAM 0x9000 8192 passing", "free 0 DRAM 0x9000");
  const clean = await daemon.player({ comm: "clean" }, "alloc 0 L1 0x1000 2048 a", "free 0 L1 0x1000");
  const late = await daemon.player({ comm: "late" }, "alloc 0 L1 0x1000 2048 a", "free 0 L1 0x1000");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go();
  for (const name of ["leaky", "late"]) await visitor.has(name, "table.processes");
  await leaky.kill();
  await clean.end();
  await page.click("text=Ended ones");
  await visitor.has("Ended processes", "h1");
  const row = (name) => page.locator(".grid-body .grid-row:not([hidden])", { hasText: name });
  await until("both", async () => (await row("leaky").count()) + (await row("clean").count()) === 2);
  await until("what it left", async () => /(SIGKILL|died)[^]*4\.00 KiB/.test(await row("leaky").innerText()));
  await until("how it ended", async () => /exit code 0[^]*–/.test(await row("clean").innerText()));
  // One that ends meanwhile.
  await late.kill();
  await row("late").waitFor();
  await row("leaky").click();
  await visitor.has("4.00 KiB in 1 buffer", ".buffer .facts");
  // Beside the details there is little room for how it ended.
  const cut = await row("leaky").locator("*").evaluateAll((all) =>
    all.filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline").map((one) => one.textContent));
  assert.deepEqual(cut, []);
  await visitor.shoot("ended-details");
  await visitor.has("DRAM of device 0: 12.0 KiB", ".buffer");
  await visitor.has("passing", ".buffer table");
  await page.fill("#filter", "clean");
  await until("one", async () => (await page.locator(".grid-body .grid-row:visible").count()) === 1);
  await row("clean").click();
  await visitor.has("L1 of device 0: 2.00 KiB", ".buffer");
  // The page of a process that is not there leads here.
  await visitor.go(`#/process/${leaky.pid}`);
  await page.click("main .empty a:has-text('Ended processes')");
  await until("it", async () => (await page.locator(".grid-body .grid-row:visible").count()) === 1);
  await page.locator(".grid-body .grid-row").first().click();
  await page.click(".buffer .facts a");
  await visitor.has("kept", ".groups");
  const stranger = await visit({ token: false });
  await stranger.go("#/ended");
  await stranger.has("are for users who are signed in");
});

test("command lines tell processes of one name apart, without their secrets", async ({ daemon, visit }) => {
  const one = await daemon.player({ comm: "python3", words: ["serve.py", "--token", "hunter2"] }, "alloc 0 DRAM 0x1000 4096 a");
  await daemon.player({ comm: "python3", words: ["train.py", "--lr=1"] }, "alloc 0 DRAM 0x1000 8192 a");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go();
  await visitor.has("serve.py --token ***", "table.processes");
  await visitor.has("train.py --lr=1", "table.processes");
  await page.fill("#filter", "train.py");
  await until("one of them", async () => (await page.locator("table.processes tbody tr").count()) === 1);
  await visitor.go(`#/process/${one.pid}`);
  await visitor.has("serve.py --token ***", ".command");
  assert.match(await visitor.text(".crumbs .muted"), /^user \S+ · running for/);
  assert.doesNotMatch(await page.content(), /hunter2/);
  const stranger = await visit({ token: false });
  await stranger.go();
  await stranger.has("python3", "table.processes");
  assert.doesNotMatch(await stranger.page.content(), /serve\.py/);
  assert.ok(!stranger.requests.some((request) => request.url().includes("/commands")));
});
