// SPDX-License-Identifier: Apache-2.0
//
// Every view opens and has the right layout (screenshots are kept).
import assert from "node:assert/strict";
import { PHONE, WIDE } from "./browser.mjs";
import { machine } from "./machine.mjs";
import { test } from "./runner.mjs";

const GIB = 1024 ** 3;

async function leakIsKnown(visitor) {
  await visitor.go("#/incidents");
  await visitor.has("kv_page", ".groups");
}

for (const [size, name] of [[WIDE, "wide"], [PHONE, "phone"]])
  test(`every view opens, ${name}, light and dark`, async ({ daemon, visit }) => {
    const { serve } = await machine(daemon);
    const visitor = await visit({ size });
    /** In both themes: canvases must redraw themselves on a change. */
    const shoot = async (what) => {
      for (const colorScheme of ["light", "dark"]) {
        await visitor.page.emulateMedia({ colorScheme });
        await visitor.shoot(`${what}-${name}${colorScheme === "dark" ? "-dark" : ""}`, true);
      }
      await visitor.page.emulateMedia({ colorScheme: "light" });
    };
    await leakIsKnown(visitor);
    await visitor.page.click(".groups button:has-text('kv_cache')");
    await visitor.has("Freed again by", ".party");
    await shoot("incidents");
    await visitor.go("#/");
    await visitor.has("kv-evict", ".events");
    await shoot("overview");
    await visitor.go("#/device/0xa1?paint=type");
    await visitor.has("Largest free block", ".figures");
    await visitor.has("fit?", ".fit");
    await visitor.page.waitForSelector(".uplot canvas");
    await shoot("device");
    await visitor.go(`#/process/${serve.pid}`);
    await visitor.has("tok_embeddings", ".grid-body");
    await shoot("process");
    for (const tab of ["sites", "flame", "phases", "compare"]) {
      await visitor.page.click(`#tab-${tab}`);
      await visitor.has(tab === "compare" ? "Mark this moment" : tab === "phases" ? "load/layer 0" :
        tab === "sites" ? "activations" : "tok_embeddings", `#panel-${tab}`);
      await shoot(tab);
    }
    // No content is wider than the screen.
    const wide = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  });

test("a device that a process opened under two numbers is summed", async ({ daemon, visit }) => {
  const device = (number) => `device ${number} 0xa1 wormhole_b0 n150 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;
  await daemon.player({ comm: "twice" }, device(0), device(5), "alloc 0 DRAM 0x20 1048576 a", "alloc 5 DRAM 0x20 2097152 b");
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  await visitor.has("3.00 MiB", "table.holders tbody tr:has-text('twice')");
});

test("two moments of a process are compared", async ({ daemon, visit }) => {
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

test("a marked moment survives a reload, and a link to it works in another browser", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 1000 stays", "alloc 0 DRAM 0x2000 2000 goes");
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}?tab=compare`);
  await visitor.page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  await player.play("free 0 DRAM 0x2000", "alloc 0 DRAM 0x3000 3072 comes");
  const cells = (one) => one.page.locator("#panel-compare tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText).filter(Boolean)));
  const expected = [["comes", "DRAM", "3.00 KiB (1)", "+3.00 KiB"], ["goes", "DRAM", "1.95 KiB (1)", "−1.95 KiB"]];
  await visitor.page.reload();
  await visitor.has("comes", "#panel-compare tbody");
  assert.deepEqual(await cells(visitor), expected);
  assert.match(await visitor.text("#panel-compare .tools"), /Since \d\d:\d\d:\d\d \(\d+ m?s\)$/);
  // Another visitor has the time, but not the buffers of that moment.
  const link = new URL(visitor.page.url()).hash;
  assert.match(link, /[?&]since=\d{19}(&|$)/);
  const other = await visit();
  await other.go(link);
  await other.has("comes", "#panel-compare tbody");
  assert.deepEqual(await cells(other), [["comes", "DRAM", "3.00 KiB (1)"]]);
  await other.has("marked elsewhere: what went since is not known here", "#panel-compare");
  await other.shoot("compare-elsewhere");
  // A mark of their own works like any other.
  await other.page.click("text=Mark now");
  await other.has("Nothing has changed", "#panel-compare");
});
