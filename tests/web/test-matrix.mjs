// SPDX-License-Identifier: Apache-2.0
//
// Every view in every browser, in every size and theme, of machines from one process to 500 and to 64 devices. That takes
// long, so that "./dev test web" visits a sample: each machine in each browser, and over all of them each size and each
// theme. "./dev test web --all" visits all.
import assert from "node:assert/strict";
import { objections } from "./axe.mjs";
import { hasFirefox, withFirefox } from "./firefox.mjs";
import { test, until } from "./runner.mjs";

const ALL = process.env.TTMEM_WEB_ALL === "1";
const GIB = 1024 ** 3;
const DOWN = "127.0.0.1:1";
const SHIFT_MAX = 0.1;
const SIZES = [{ width: 390, height: 844 }, { width: 1024, height: 768 }, { width: 1440, height: 900 }];
const THEMES = ["light", "dark"];
const MACHINES = [
  { name: "1 process", processes: 1, devices: 1 },
  { name: "40 processes", processes: 40, devices: 8 },
  { name: "500 processes", processes: 500, devices: 8 },
  { name: "64 devices", processes: 4, devices: 64 },
];
const BROWSERS = ["chromium", ...(hasFirefox ? ["firefox"] : [])];

const uid = (number) => `0x${(0xa00 + number).toString(16)}`;

/** A process with something in every view; of the first one every device is known. */
function lines(number, devices) {
  const declared = Array.from({ length: number === 0 ? devices : 1 }, (_, i) => (number + i) % devices);
  return [
    ...declared.map((one) => `device ${one} ${uid(one)} wormhole_b0 n300 0 ${12 * GIB} ${96 * 1024 ** 2} 12`),
    "push load", "push layer%200",
    ...declared.map((one) => `alloc ${one} DRAM ${0x100000 + number * 0x1000000} ${(1 + number % 16) * 2 ** 20} weights.${number}`),
    "pop", `alloc ${number % devices} L1 ${0x20000 + number * 1024} 1024 activations.${number}`, "pop",
  ];
}

async function fill(daemon, { processes, devices }) {
  await daemon.stop();
  await daemon.start("--fleet", `${daemon.address},${DOWN}`);
  const players = await daemon.crowd(Array.from({ length: processes }, (_, i) => ({ comm: `worker-${i}`, stacks: "fp", lines: lines(i, devices) })));
  const broken = await daemon.player({ comm: "kv-evict" }, ...lines(processes, devices),
    "alloc 0 DRAM 0x7000000 4096 twice", "free 0 DRAM 0x7000000", "free 0 DRAM 0x7000000");
  await broken.kill();
  await until("its incidents", async () => (await daemon.json("incidents")).incidents.length >= 2);
  return players[0];
}

/** The views: where they are, and a text that is there once they are complete. */
const views = (player) => [
  ["overview", "#/", "worker-"],
  ["device", `#/device/${uid(0)}`, "worker-"],
  ["process", `#/process/${player.pid}`, "weights.0"],
  ["sites", `#/process/${player.pid}?tab=sites`, "MiB"],
  ["flame", `#/process/${player.pid}?tab=flame`, "Call sites"],
  ["phases", `#/process/${player.pid}?tab=phases`, "load/layer 0"],
  ["compare", `#/process/${player.pid}?tab=compare`, "Mark"],
  ["incidents", "#/incidents", "twice"],
  ["ended", "#/ended", "kv-evict"],
  ["fleet", "#/fleet", "connection refused"],
];

/** Runs in the page: what must hold of every view. */
function look() {
  return {
    titles: document.querySelectorAll("main h1").length,
    wider: document.documentElement.scrollWidth - innerWidth,
    banner: document.querySelector(".banner:not([hidden])")?.textContent ?? "",
    below: (document.querySelector("#tab-buffers")?.getBoundingClientRect().bottom ?? 0) - innerHeight,
    isPhone: innerWidth < 600,
    blank: [...document.querySelectorAll("canvas")].filter((one) => one.checkVisibility() && one.width * one.height === 0).length,
  };
}

/** Runs in the page before it: adds up how far what is shown moved by itself (only Chromium tells). */
function watchShifts() {
  window.shifted = 0;
  if (!PerformanceObserver.supportedEntryTypes.includes("layout-shift")) return;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({ type: "layout-shift", buffered: true });
}

const isThere = (text) => document.querySelector("main")?.textContent.includes(text);

async function inChromium({ daemon, visit }, size, theme, player, name) {
  const visitor = await visit({ size, dark: theme === "dark" });
  await visitor.page.addInitScript(watchShifts);
  for (const [view, hash, text] of views(player)) {
    await visitor.page.goto(`${daemon.base}/licences.txt`); // so that each view is loaded, not only changed to
    await visitor.page.goto(`${daemon.base}/${hash}`);
    await visitor.page.waitForFunction(isThere, text);
    judge(`${view} of ${name}`, await visitor.page.evaluate(look));
    const shifted = await visitor.page.evaluate(() => window.shifted);
    assert.ok(shifted < SHIFT_MAX, `${view} of ${name} moved by ${shifted}`);
    if (ALL) await visitor.shoot(`matrix-${name}-${view}-${size.width}-${theme}`.replace(/ /g, "-"));
  }
}

async function inFirefox({ daemon }, size, theme, player, name) {
  await withFirefox(daemon.base, async (page) => {
    await page.setViewport(size);
    await page.evaluateOnNewDocument((text) => sessionStorage.setItem("ttmem.token", text), daemon.token);
    for (const [view, hash, text] of views(player)) {
      await page.goto(`${daemon.base}/${hash}`);
      await page.reload(); // likewise
      await page.waitForFunction(isThere, {}, text).catch(async (error) => {
        const shown = await page.evaluate(() => document.querySelector("main")?.textContent);
        throw new Error(`${view} of ${name} in Firefox lacks "${text}", it has "${shown}"`, { cause: error });
      });
      judge(`${view} of ${name} in Firefox`, await page.evaluate(look));
      if (name === MACHINES[0].name) assert.deepEqual(await objections(page, `${view} in Firefox`), []);
    }
  }, { dark: theme === "dark" });
}

function judge(what, seen) {
  assert.equal(seen.titles, 1, `${what} has one title`);
  assert.ok(seen.wider <= 0, `${what} is ${seen.wider} pixels wider than the screen`);
  assert.equal(seen.banner, "", what);
  assert.ok(seen.isPhone || seen.below <= 0, `${what}: its tabs are ${seen.below} pixels below the screen`);
  assert.equal(seen.blank, 0, `${what}: everything is drawn`);
}

const VISITS = { chromium: inChromium, firefox: inFirefox };
for (const [i, machine] of MACHINES.entries())
  test(`every view of ${machine.name}, in ${BROWSERS.join(" and ")}`, async (made) => {
    const player = await fill(made.daemon, machine);
    for (const [j, browser] of BROWSERS.entries())
      for (const [k, size] of SIZES.entries())
        for (const [l, theme] of THEMES.entries())
          if (ALL || ((i + j) % SIZES.length === k && i % THEMES.length === l))
            await VISITS[browser](made, size, theme, player, machine.name);
  });
