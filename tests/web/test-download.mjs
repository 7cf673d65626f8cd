// SPDX-License-Identifier: Apache-2.0
//
// What is shown can be saved, under the page's own content security policy.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test, until } from "./runner.mjs";

/** Saves as one of the forms that a menu has; returns the name and the bytes of the file. */
async function save(page, menu, form) {
  await menu.locator("button").first().click();
  const waiting = page.waitForEvent("download");
  await menu.getByText(form, { exact: true }).click();
  const file = await waiting;
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

test("tables are saved as CSV and JSON, without formulas", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "=evil()" }, "alloc 0 DRAM 0x1000 4096 =cmd()", "alloc 0 DRAM 0x9000 8192 plain", "alloc 0 L1 0x9000 1 other");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go();
  await visitor.has("=evil()", "table.processes");
  const all = await save(page, page.locator(".save", { has: page.locator('[aria-label="Save: processes"]') }), "CSV");
  assert.equal(all.name, "ttmem-processes.csv");
  assert.match(all.bytes.toString(), new RegExp(`^PID,Process,User,[^]*\r\n${player.pid},'=evil\\(\\),`));
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("plain", ".grid-body");
  await page.fill("#panel-buffers input", "dram");
  await until("two", async () => (await page.locator("#panel-buffers .grid-body .grid-row:visible").count()) === 2);
  const menu = page.locator("#panel-buffers .save");
  const rows = (await save(page, menu, "CSV")).bytes.toString().trimEnd().split("\r\n").map((line) => line.split(",").slice(0, 3));
  assert.deepEqual(rows, [["Size", "Type", "Name"], ["8192", "DRAM", "plain"], ["4096", "DRAM", "'=cmd()"]]);
  const list = JSON.parse((await save(page, menu, "JSON")).bytes);
  assert.deepEqual(list.map((one) => [one.Size, one.Name, one.Address]), [[8192, "plain", "0x9000"], [4096, "=cmd()", "0x1000"]]);
});

test("charts and maps are saved as pictures and figures", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576 12", "alloc 0 DRAM 0 4096 a");
  const visitor = await visit({ dark: true });
  const { page } = visitor;
  await visitor.go("#/device/0xa1");
  await visitor.has("Largest free block");
  const chart = page.locator(".chart").first();
  await chart.locator("canvas").waitFor();
  const isPicture = ({ name, bytes }, wanted) => {
    assert.equal(name, wanted);
    assert.equal(bytes.subarray(1, 4).toString(), "PNG");
    assert.ok(bytes.length > 500, `${bytes.length} bytes`);
  };
  isPicture(await save(page, chart.locator(".save"), "PNG"), "ttmem-DRAM-over-time.png");
  // Parsed as a browser does, which refuses what is not well-formed; our page itself may not parse anything.
  const blank = await page.context().newPage();
  await page.bringToFront();
  const drawn = async ({ name, bytes }, wanted) => {
    assert.equal(name, wanted);
    return blank.evaluate((text) => {
      const all = new DOMParser().parseFromString(text, "image/svg+xml");
      return { root: all.documentElement.tagName, shapes: all.querySelectorAll("rect, path").length, text: all.documentElement.textContent };
    }, bytes.toString());
  };
  const areas = await drawn(await save(page, chart.locator(".save"), "SVG"), "ttmem-DRAM-over-time.svg");
  assert.ok(areas.root === "svg" && areas.shapes >= 3, JSON.stringify(areas));
  assert.match(areas.text, /\d\d:\d\d[^]*KiB[^]*DRAM/);
  const points = (await save(page, chart.locator(".save"), "CSV")).bytes.toString().split("\r\n");
  assert.equal(points[0], "Time,DRAM");
  assert.match(points[1], /^\d{4}-\d\d-\d\dT[\d:.]+Z,\d+$/);
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await page.locator("#panel-flame canvas").first().waitFor();
  await visitor.has("Show all", "#panel-flame");
  isPicture(await save(page, page.locator("#panel-flame .save"), "PNG"), "ttmem-flame-graph.png");
  const flames = await drawn(await save(page, page.locator("#panel-flame .save"), "SVG"), "ttmem-flame-graph.svg");
  assert.match(flames.text, /all: 4\.00 KiB/);
  await visitor.go("#/device/0xa1");
  await visitor.has("Largest free block");
  const map = page.locator(".map .save");
  isPicture(await save(page, map, "PNG"), "ttmem-address-map.png");
  const strip = await drawn(await save(page, map, "SVG"), "ttmem-address-map.svg");
  assert.ok(strip.shapes >= 3 && strip.text.startsWith("0x0 to 0x"), JSON.stringify(strip));
  const [first] = JSON.parse((await save(page, map, "JSON")).bytes);
  assert.deepEqual([first.From, first.Type, first.Name], ["0x0", "DRAM", "a"]);
});
