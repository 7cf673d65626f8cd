// SPDX-License-Identifier: Apache-2.0
//
// The address map: its figures and answers match "ttmem map" and "ttmem fit", and it can be zoomed.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const GIB = 1024 ** 3;
const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** Checks that a shown size is @value, rounded to the digits shown. */
function close(text, value) {
  const [, number, unit] = /^([\d.]+) (\w+)$/.exec(text) ?? assert.fail(text);
  const digits = number.split(".")[1]?.length ?? 0;
  assert.ok(Math.abs(Number(number) * UNITS[unit] - value) <= (UNITS[unit] * 10 ** -digits) / 2 + 1e-6, `${text} is ${value}`);
}

const figure = (place, name) => place.locator(".figure", { hasText: new RegExp(`^${name}(?! )`) }).locator("dd").innerText();

async function checkStrip(strip, map) {
  const { banks } = map;
  close(await figure(strip, "Taken"), map.used * banks);
  if (map.occupied === null) assert.equal(await figure(strip, "Occupied"), "not known");
  else close(await figure(strip, "Occupied"), map.occupied);
  close(await figure(strip, "Free"), map.free * banks);
  close(await figure(strip, "Largest free block"), map.largest * banks);
  assert.equal(await figure(strip, "Free blocks"), map.holes.length.toLocaleString("en"));
  const shown = Number((await figure(strip, "Fragmentation")).replace(" %", ""));
  assert.ok(Math.abs(shown - 100 * map.fragmentation) <= 0.5, `${shown} is ${100 * map.fragmentation}`);
}

test("the map shows what ttmem map says, for every memory type", async ({ daemon, visit }) => {
  await daemon.allocator(7);
  const visitor = await visit();
  const { maps } = await daemon.json("map");
  assert.equal(maps.length, 5);
  await visitor.go(`#/device/${maps[0].uid ?? maps[0].device}`);
  const titles = { DRAM: "DRAM", L1: "L1", TRACE: "Trace", L1_SMALL: "L1 small", SYSTEM_MEMORY: "System" };
  for (const map of maps) {
    assert.ok(map.holes.length > 1, "the heap is to be cut up");
    const answer = visitor.page.waitForResponse((one) => one.url().includes(`/api/v1/map?`) && one.url().includes(`type=${map.type}`));
    await visitor.page.click(`[aria-label="Memory"] >> text="${titles[map.type]}"`);
    await answer;
    const strip = visitor.page.locator(".strip");
    await until("its figures", async () => (await figure(strip, "Free blocks")) === map.holes.length.toLocaleString("en"));
    await checkStrip(strip, map);
    // Its table has the same free blocks, the largest first.
    if (!(await strip.locator("details").evaluate((details) => details.open))) await strip.locator("summary").click();
    await until("the largest free block", async () => {
      const [from, to] = await strip.locator("tbody tr:first-child code").allTextContents();
      return Number(to) - Number(from) === map.largest;
    });
    assert.match(await strip.locator("canvas").getAttribute("aria-label"), new RegExp(`${map.blocks} buffers?, ${map.holes.length} free blocks?`));
  }
});

test("the map of L1 shows the headroom where it is known", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "device 0 0 wormhole_b0 n150 0 0x80000 0x80000 8",
    "place 0 L1 0x8000 4096 0 512 8", "place 0 CB 0x1000 32768 0 0x1000 0");
  const visitor = await visit();
  await visitor.go("#/device/0?pool=L1");
  const strip = visitor.page.locator(".strip");
  await until("the headroom", async () => (await figure(strip, "Headroom")) === "24.0 KiB");
  await player.play("place 0 CB 0x3000 32768 0 0 0");
  await visitor.go("#/");
  await visitor.go("#/device/0?pool=L1");
  await until("no headroom", async () => (await figure(strip, "Headroom")) === "not known");
});

test("the fit answers are those of ttmem fit", async ({ daemon, visit }) => {
  await daemon.allocator(8);
  const visitor = await visit();
  for (const type of ["DRAM", "L1"]) {
    const [map] = (await daemon.json("map", "--type", type)).maps;
    await visitor.go(`#/device/${map.uid ?? map.device}?pool=${type}`);
    const sizes = [map.largest * map.banks, map.largest * map.banks + 1];
    if (type === "DRAM") sizes.push(map.free * map.banks + 1e6, (map.bank_size + 64) * map.banks);
    for (const size of sizes) {
      const [wanted] = (await daemon.json("fit", size, "--type", type)).answers;
      const asked = visitor.page.waitForResponse((one) => one.url().includes(`size=${size}`) && one.url().includes(`type=${type}`));
      await visitor.page.fill("#fit-size", "");
      await visitor.page.fill("#fit-size", String(size));
      await asked;
      const word = wanted.fits ? `at ${wanted.hole.address}` : { full: "only", cut_up: "fragmented", too_large: "all of it" }[wanted.reason];
      await until(`${wanted.fits} ${word} for ${size} of ${type}`, async () => {
        const text = await visitor.text(".fit output");
        return text.startsWith(wanted.fits ? "Yes" : "No") && text.includes(word);
      });
    }
  }
  await visitor.page.fill("#fit-size", "much");
  await visitor.has("looks like", ".fit output");
});

test("each process has an allocator of its own", async ({ daemon, visit }) => {
  const device = `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} 1200 12`;
  const large = await daemon.player({ comm: "large" }, device, `alloc 0 DRAM 0 ${6 * GIB} low`, `alloc 0 DRAM 0x30000000 ${GIB} high`);
  const small = await daemon.player({ comm: "small" }, device, `alloc 0 DRAM 0 ${3 * GIB} same_place`);
  const visitor = await visit();
  await visitor.go("#/device/0xa1?paint=process");
  await until("two strips", async () => (await visitor.page.locator(".strip").count()) === 2);
  const { maps } = await daemon.json("map");
  for (const { pid } of [large, small]) {
    const strip = visitor.page.locator(`.strip[aria-label*="(${pid})"]`);
    await checkStrip(strip, maps.find((map) => map.pid === pid));
  }
  // The free block between low and high has 3 GiB, above them are 2 GiB. Small has 9 GiB in one block, where large has buffers.
  await visitor.page.fill("#fit-size", "4 GiB");
  await visitor.has("No, for none of them", ".fit output");
  assert.match(await visitor.text(`.strip[aria-label*="(${large.pid})"] output`), /^No .*fragmented.*It would fit without high\./);
  assert.match(await visitor.text(`.strip[aria-label*="(${small.pid})"] output`), /^No .*where another process has buffers: large /);
  await visitor.page.fill("#fit-size", "1 KiB");
  await visitor.has("For 1 of 2 processes", ".fit output");
});

test("a device of undeclared size says so instead of a map", async ({ daemon, visit }) => {
  await daemon.player({}, "alloc 0 DRAM 0x1000 4096 a", "alloc 0 DRAM 0x4000 4096 b");
  const visitor = await visit();
  await visitor.go("#/device/0");
  await visitor.has("not known", ".strip .figures");
  await visitor.has("No process has declared how large the banks are", "main");
  await visitor.has("Not known: no process has declared", ".fit output");
  await visitor.page.click('[aria-label="Memory"] >> text="Trace"');
  await visitor.has("Nobody has Trace of this device", "main");
});

test("the map can be zoomed", async ({ daemon, visit }) => {
  await daemon.player({}, `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} 1200 12`,
    `alloc 0 DRAM 0 ${3 * GIB} low`, `alloc 0 DRAM 0x20000000 ${3 * GIB} middle`);
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  const canvas = visitor.page.locator(".map-canvas");
  const shown = async () => (await visitor.page.locator(".map-ends > span").allInnerTexts()).map((text) => text.trim());
  await until("the whole bank", async () => (await shown()).join() === "0x0,one of 12 banks, 1.00 GiB shown,0x40000000");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
  await visitor.page.mouse.move(...at(0.6));
  await visitor.has("middle", ".tip");
  await visitor.page.mouse.move(...at(0.4));
  await visitor.has("Free block", ".tip");
  await visitor.has("3.00 GiB in all", ".tip");
  // From a quarter to a half: that is the free block.
  await visitor.page.mouse.move(...at(0.25));
  await visitor.page.mouse.down();
  await visitor.page.mouse.move(...at(0.4), { steps: 3 });
  await visitor.page.mouse.move(...at(0.5), { steps: 3 });
  await visitor.page.mouse.up();
  const [from, , to] = await shown();
  assert.ok(Math.abs(Number(from) - 0x10000000) < 0x200000 && Math.abs(Number(to) - 0x20000000) < 0x200000, `${from} ${to}`);
  const whole = async () => (await shown()).includes("0x40000000");
  await visitor.page.mouse.dblclick(...at(0.5));
  await until("all of it again", whole);
  await visitor.page.mouse.move(...at(0.1));
  await visitor.page.mouse.down();
  await visitor.page.mouse.move(...at(0.3), { steps: 3 });
  await visitor.page.mouse.up();
  assert.ok(!(await whole()));
  await canvas.focus();
  await visitor.page.keyboard.press("Escape");
  assert.ok(await whole());
  // From buffer to buffer by keyboard; Enter opens the chosen one.
  await visitor.page.keyboard.press("ArrowRight");
  await visitor.page.keyboard.press("ArrowRight");
  await visitor.has("middle", ".tip");
  await visitor.page.keyboard.press("Enter");
  await visitor.has("middle", ".buffer .facts");
});

test("the map can be zoomed and walked buffer by buffer by keyboard", async ({ daemon, visit }) => {
  await daemon.player({}, `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} 1200 12`, `alloc 0 DRAM 0 ${GIB / 2} low`,
    `alloc 0 DRAM 0x1c000000 ${GIB / 2} middle`, `alloc 0 DRAM 0x22000000 ${GIB / 2} next`, `alloc 0 DRAM 0x3c000000 ${GIB / 2} high`);
  const visitor = await visit();
  const { page } = visitor;
  visitor.forgive(/willReadFrequently/); // this test reads pixels
  await visitor.go("#/device/0xa1");
  await visitor.has("1.00 GiB shown", ".map-ends");
  const shown = async () => (await page.locator(".map-ends > span").allInnerTexts()).map((text) => text.trim().replace(/^one of 12 banks, /, ""));
  /** Presses a key. Returns the text of the tip, and the distance between the middles of tip and outline. */
  const press = async (key) => {
    await page.keyboard.press(key);
    return page.evaluate(() => {
      const canvas = document.querySelector(".map-canvas");
      const tip = document.querySelector(".tip");
      if (tip.hidden) return [null, 0];
      const wanted = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
      const row = canvas.getContext("2d").getImageData(0, 1, canvas.width, 1).data;
      const marked = [...Array(canvas.width).keys()].filter((x) => wanted.every((value, i) => row[4 * x + i] === value));
      const [frame, box] = [canvas.getBoundingClientRect(), tip.getBoundingClientRect()];
      const middle = ((marked[0] + marked.at(-1)) / 2) * (frame.width / canvas.width);
      // At the edge the tip stays inside the map.
      const place = Math.max(0, Math.min(frame.width - box.width, middle - box.width / 2));
      return [tip.firstChild.textContent, Math.round(Math.abs(box.left - frame.left - place) / 3)];
    });
  };
  await page.locator(".map-canvas").focus();
  assert.deepEqual(await press("+"), [null, 0]);
  assert.deepEqual(await press("+"), [null, 0]);
  assert.deepEqual(await shown(), ["0x18000000", "256 MiB shown Whole bank", "0x28000000"]);
  assert.deepEqual(await press("ArrowRight"), ["middle", 0], "the first that can be seen");
  assert.deepEqual(await press("+"), ["middle", 0], "around what one is at");
  assert.deepEqual((await shown())[1], "128 MiB shown Whole bank");
  assert.deepEqual(await press("ArrowRight"), ["next", 0]);
  await visitor.shoot("map-keys");
  assert.deepEqual(await press("ArrowRight"), ["high", 0], "the map goes along");
  assert.deepEqual(await shown(), ["0x38000000", "128 MiB shown Whole bank", "0x40000000"]);
  for (let i = 0; i < 2; i++) assert.deepEqual(await press("-"), ["high", 0]);
  assert.deepEqual(await shown(), ["0x20000000", "512 MiB shown Whole bank", "0x40000000"]);
  assert.deepEqual(await press("-"), ["high", 0]);
  assert.deepEqual(await shown(), ["0x0", "1.00 GiB shown", "0x40000000"]);
  assert.deepEqual(await press("+"), ["high", 0]);
  assert.deepEqual(await press("Escape"), [null, 0]);
  assert.equal((await shown())[1], "1.00 GiB shown");
});

test("the map has tables of its free blocks and its buffers", async ({ daemon, visit }) => {
  await daemon.player({}, `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} 1200 12`, "many 0 DRAM 0x1000 768 3000", `alloc 0 DRAM 0x20000000 ${3 * GIB} last_one`);
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  const map = visitor.page.locator(".map");
  await map.locator("summary").click();
  const grid = map.locator('[role="table"][aria-label="Buffers"]');
  await until("all of them", async () => (await grid.getAttribute("aria-rowcount")) === "3002");
  await visitor.has("The largest 100 of 3,002.", ".map"); // free blocks
  assert.equal(await map.locator("table tbody tr").count(), 100);
  const rows = grid.locator(".grid-body .grid-row:visible");
  const first = (await rows.first().locator("[role=cell]").allInnerTexts()).map((text) => text.trim());
  assert.deepEqual([first[0], first[2], first[3], first[4]], ["0x1000", "64 B", "768 B", "DRAM"]);
  await grid.focus();
  await visitor.page.keyboard.press("End");
  await visitor.has("last_one", ".map .grid-body");
  assert.ok((await rows.count()) < 100, "only rows that can be seen are there");
  const last = (await rows.last().locator("[role=cell]").allInnerTexts()).map((text) => text.trim());
  assert.deepEqual(last.slice(0, 6), ["0x20000000", "0x30000000", "256 MiB", "3.00 GiB", "DRAM", "last_one"]);
  await visitor.shoot("map-table", true);
});
