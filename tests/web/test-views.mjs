// SPDX-License-Identifier: Apache-2.0
//
// Every view opens, says what the command line says, and looks as it should (the pictures are kept).
import assert from "node:assert/strict";
import { PHONE, WIDE } from "./browser.mjs";
import { test, until } from "./runner.mjs";

const GIB = 1024 ** 3;

/** A small machine with something in every corner. */
async function machine(daemon) {
  const device = (number, uid, card) => `device ${number} ${uid} wormhole_b0 ${card} 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;
  const serve = await daemon.player({ comm: "llama-serve", stacks: "fp" },
    device(0, "0xa1", "n300"), device(1, "0xa2", "n300"),
    "push load", `alloc 0 DRAM 0x20 ${3 * GIB} tok_embeddings`, `alloc 1 DRAM 0x20 ${3 * GIB} tok_embeddings`,
    "push layer%200", `alloc 0 DRAM 0x20000000 ${2 * GIB} layers.0.wq`, "pop", "pop",
    "alloc 0 L1 0x20000 8388608 activations", "alloc 0 CB 0x100000 2097152 cb_in0", "kernel 0 0x30000000 65536 1");
  const train = await daemon.player({ comm: "train" }, device(1, "0xa2", "n300"),
    `alloc 1 DRAM 0x30000000 ${GIB} optimizer`, "alloc 7 DRAM 0x1000 4096 elsewhere");
  const broken = await daemon.player({ comm: "kv-evict", stacks: "fp" }, device(0, "0xa1", "n300"),
    "push evict", "alloc 0 DRAM 0x38000000 1048576 kv_cache", "free 0 DRAM 0x38000000", "free 0 DRAM 0x38000000",
    "failed 0 DRAM 99999999999 1000", "alloc 0 DRAM 0x38000000 33554432 kv_page");
  await broken.kill();
  return { serve, train, broken };
}

async function leakIsKnown(visitor) {
  await visitor.go("#/incidents");
  await visitor.has("kv_page", ".groups");
}

test("numbers are those of ttmem smi", async ({ daemon, visit }) => {
  await machine(daemon);
  const visitor = await visit();
  await visitor.go();
  const smi = await daemon.smi();
  const living = smi.processes.filter((process) => process.alive);
  await until("the same total", async () =>
    Number(await visitor.page.getAttribute("[data-bytes]", "data-bytes")) === smi.totals.bytes);
  assert.equal(await visitor.page.locator(".card").count(), smi.devices.length);
  const pools = { dram: ["DRAM", "TRACE"], l1: ["L1", "L1_SMALL", "CB", "KERNEL"] };
  const sum = (memory, types) => types.reduce((all, type) => all + memory[type].used, 0);
  for (const device of smi.devices) {
    const card = visitor.page.locator(`.card[href="#/device/${device.uid ?? device.device}"]`);
    for (const [pool, types] of Object.entries(pools))
      assert.equal(Number(await card.locator(`.bar-${pool}`).getAttribute("data-bytes")), sum(device.memory, types));
  }
  for (const process of living) {
    const row = visitor.page.locator("table.processes tbody tr", { hasText: process.comm });
    for (const [pool, types] of Object.entries(pools))
      assert.equal(
        Number(await row.locator(`.c-${pool}`).getAttribute("data-value")),
        process.devices.reduce((all, part) => all + sum(part.memory, types), 0),
      );
  }
});

for (const [size, name] of [[WIDE, "wide"], [PHONE, "phone"]])
  for (const dark of [false, true])
    test(`every view opens, ${name}${dark ? ", dark" : ""}`, async ({ daemon, visit }) => {
      const { serve } = await machine(daemon);
      const visitor = await visit({ size, dark });
      const shoot = (what) => visitor.shoot(`${what}-${name}${dark ? "-dark" : ""}`, true);
      await leakIsKnown(visitor);
      await visitor.page.click(".groups button:has-text('kv_cache')");
      await visitor.has("Freed again by", ".party");
      await shoot("incidents");
      await visitor.go("#/");
      await visitor.has("kv-evict", ".events");
      await shoot("overview");
      await visitor.go("#/device/0xa1?paint=type");
      await visitor.has("Largest hole", ".figures");
      await visitor.has("fit?", ".fit");
      await visitor.page.waitForSelector(".uplot canvas");
      await shoot("device");
      await visitor.go(`#/process/${serve.pid}`);
      await visitor.has("tok_embeddings", ".grid-body");
      await shoot("process");
      for (const tab of ["sites", "flame", "phases", "compare"]) {
        await visitor.page.click(`#tab-${tab}`);
        await visitor.has(tab === "compare" ? "Mark this moment" : tab === "phases" ? "load/layer 0" : "tok_embeddings", `#panel-${tab}`);
        await shoot(tab);
      }
      // Nothing is wider than the screen.
      const wide = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
    });

test("a device that a process has under two numbers", async ({ daemon, visit }) => {
  const device = (number) => `device ${number} 0xa1 wormhole_b0 n150 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;
  await daemon.player({ comm: "twice" }, device(0), device(5), "alloc 0 DRAM 0x20 1048576 a", "alloc 5 DRAM 0x20 2097152 b");
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  await visitor.has("3.00 MiB", "table.holders tbody tr:has-text('twice')");
});

test("what changed between two moments", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 1000 stays", "alloc 0 DRAM 0x2000 2000 goes");
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}?tab=compare`);
  await visitor.page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  await player.play("free 0 DRAM 0x2000", "alloc 0 DRAM 0x3000 3072 comes", "alloc 0 DRAM 0x4000 1024 comes");
  await visitor.page.click("text=Refresh");
  await visitor.has("comes", "#panel-compare tbody");
  const rows = await visitor.page.locator("#panel-compare tbody tr").allInnerTexts();
  assert.deepEqual(rows.map((row) => row.split(/\t/).map((cell) => cell.trim()).filter(Boolean)), [
    ["comes", "DRAM", "4.00 KiB (2)", "+4.00 KiB"],
    ["goes", "DRAM", "1.95 KiB (1)", "−1.95 KiB"],
  ]);
});
