// SPDX-License-Identifier: Apache-2.0
//
// The pages show the same figures as the command line: this compares the visible text. Numbers are formatted here
// independently of the page's code.
import assert from "node:assert/strict";
import { machine } from "./machine.mjs";
import { test, until } from "./runner.mjs";

const POOLS = { DRAM: ["DRAM", "TRACE"], L1: ["L1", "L1_SMALL", "CB", "KERNEL"], SYSTEM: ["SYSTEM_MEMORY"] };
const ALL = Object.values(POOLS).flat();

/** Three digits in the largest unit that gives at least one, except for bytes. */
function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.floor(Math.log2(bytes) / 10);
  const value = bytes / 2 ** (10 * power);
  return `${value >= 1000 ? Math.round(value) : value.toPrecision(3)} ${" KMGTP"[power]}iB`;
}

const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
const add = (list, value) => list.reduce((sum, one) => sum + value(one), 0);
const used = (memory, pool) => add(POOLS[pool], (type) => memory[type].used);
const buffers = (memory) => add(ALL, (type) => memory[type].buffers);

/** The text at a bar: used, capacity, and share. */
function bar(memory, pool) {
  const capacity = memory[POOLS[pool][0]].capacity;
  const bytes = used(memory, pool);
  if (!capacity) return [size(bytes), bytes ? "size unknown" : ""];
  const percent = (100 * bytes) / capacity;
  const share = percent === 0 || percent >= 10 ? percent.toFixed(0) : percent.toFixed(1);
  return [`${size(bytes)} / ${size(capacity)}`, `${share} %`];
}

const readBar = async (where, pool) => {
  const one = where.locator(`.bar-${pool.toLowerCase()}`);
  return [await one.locator(".bar-figure").innerText(), await one.locator(".bar-share").innerText()];
};

/** Rows of a table, as arrays of cell texts. */
const rows = (page, table) => page.locator(`${table} tbody tr`).evaluateAll((lines) =>
  lines.map((line) => [...line.cells].map((cell) => cell.innerText.trim())));

const sorted = (list) => list.map(String).sort();

/** The machine, and a process with figures that are not round; all of it as smi reports it. */
async function uneven({ daemon, visit }) {
  await machine(daemon);
  await daemon.player({ comm: "uneven" }, "alloc 0 DRAM 0x100 1234567 a", "alloc 0 L1 0x100 1023 b", "alloc 0 TRACE 0x900 1025 c",
    "alloc 0 L1_SMALL 0x900 15360 d", "alloc 1 SYSTEM_MEMORY 0x10 1072693248 e", "many 1 DRAM 0x1000 64 1234");
  const visitor = await visit();
  await visitor.go();
  const smi = await until("the same total", async () => {
    const now = await daemon.smi();
    return Number(await visitor.page.getAttribute("[data-bytes]", "data-bytes")) === now.totals.bytes && now;
  });
  return { visitor, page: visitor.page, smi, living: smi.processes.filter((process) => process.alive) };
}

test("numbers on the overview are those of ttmem smi", async (given) => {
  const { page, smi, living } = await uneven(given);
  const figures = await page.locator(".figures dd").allInnerTexts();
  assert.deepEqual(figures.slice(0, 4).map((text) => text.trim()),
    [size(smi.totals.bytes), number(smi.totals.buffers), number(smi.devices.length), number(living.length)]);
  assert.equal(await page.locator(".card").count(), smi.devices.length);
  for (const device of smi.devices) {
    const card = page.locator(`.card[href="#/device/${device.uid ?? device.device}"]`);
    for (const pool of ["DRAM", "L1"]) assert.deepEqual(await readBar(card, pool), bar(device.memory, pool));
  }
  assert.ok(living.length >= 3);
  for (const process of living) {
    const row = page.locator(`table.processes tbody tr:has(a[href="#/process/${process.pid}"])`);
    const cell = (name) => row.locator(`.c-${name}`).innerText();
    for (const pool of ["DRAM", "L1"])
      assert.equal(await cell(pool.toLowerCase()), size(add(process.devices, (part) => used(part.memory, pool))));
    assert.equal(await cell("buffers"), number(add(process.devices, (part) => buffers(part.memory))));
  }
});

test("numbers on the pages of devices are those of ttmem smi", async (given) => {
  const { visitor, page, smi, living } = await uneven(given);
  for (const device of smi.devices) {
    await visitor.go(`#/device/${device.uid ?? device.device}`);
    await visitor.has(`Device ${device.device}`, "h1");
    for (const pool of Object.keys(POOLS)) assert.deepEqual(await readBar(page.locator("main"), pool), bar(device.memory, pool));
    const expected = living.flatMap((process) =>
      process.devices.filter((part) => part.device === device.device && part.uid === device.uid).map(({ memory }) =>
        [process.comm, String(process.pid), process.user,
          ...Object.keys(POOLS).map((pool) => size(used(memory, pool))), number(buffers(memory))]));
    assert.deepEqual(sorted(await rows(page, "table.holders")), sorted(expected));
  }
});

test("numbers on the pages of processes are those of ttmem smi", async (given) => {
  const { visitor, page, living } = await uneven(given);
  for (const process of living) {
    await visitor.go(`#/process/${process.pid}`);
    await visitor.has(`${process.comm} (${process.pid})`, "h1");
    const expected = process.devices.map(({ device, memory }) =>
      [`Device ${device}`, ...Object.keys(POOLS).map((pool) => size(used(memory, pool))), number(buffers(memory))]);
    assert.deepEqual(sorted(await rows(page, "section:has(> header h2:text-is('Devices')) table")), sorted(expected));
    await visitor.has(`${number(add(process.devices, (part) => buffers(part.memory)))} buffer`, ".tab-bar");
  }
});

test("a bar of more than 100 percent stays inside its frame and says so", async ({ daemon, visit }) => {
  await daemon.player({}, "device 0 0xa1 wormhole_b0 n150 0 1000000 1000 12", "alloc 0 DRAM 0x1000 1500000 a", "kernel 0 0x30000 65536 1");
  const visitor = await visit();
  await visitor.go();
  await visitor.has("> 999 %", ".bar-l1");
  for (const [pool, text] of [["dram", "150 %"], ["l1", "> 999 %"]]) {
    const one = visitor.page.locator(`.card .bar-${pool}`);
    const share = one.locator(".bar-share");
    assert.deepEqual([await share.innerText(), await share.getAttribute("title")], [text, "More is reported than the device has."]);
    assert.match(await one.locator("[role=img]").getAttribute("aria-label"), /More is reported than the device has\.$/);
    const [track, fill] = [await one.locator(".bar-track").boundingBox(), await one.locator(".bar-fill").boundingBox()];
    assert.ok(fill.width <= track.width);
  }
});
