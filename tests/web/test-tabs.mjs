// SPDX-License-Identifier: Apache-2.0
//
// Many tabs of one browser, and hidden tabs: a browser opens at most six connections to a server for all of them.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const MIB = 1024 ** 2;
const TABS = 8;

const total = (page) => page.getAttribute("[data-bytes]", "data-bytes").then(Number);
/** The total may have been read before the stream has begun. */
const live = (page) => until("the page to be live", async () => (await page.locator(".state").innerText()) === "Live");
const isStream = (request) => request.url().includes("/api/v1/stream");

test("eight tabs of one browser are all live", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  const visitor = await visit();
  await visitor.go();
  const pages = [visitor.page];
  while (pages.length < TABS) {
    const page = await visitor.context.newPage();
    page.on("request", (request) => visitor.requests.push(request));
    await page.goto(`${daemon.base}/#/`);
    pages.push(page);
  }
  const all = async (pages, bytes) => {
    for (const [i, page] of pages.entries()) {
      await until(`${bytes} bytes in tab ${i}`, async () => (await total(page)) === bytes);
      await live(page);
    }
  };
  await all(pages, MIB);
  await player.play(`alloc 0 DRAM 0x200000 ${2 * MIB} b`);
  await all(pages, 3 * MIB);
  console.log(`     ${visitor.requests.filter(isStream).length} streams for ${TABS} tabs`);
  assert.equal(await pages[0].evaluate(() => fetch("/api/v1/smi").then((answer) => answer.status)), 200);
  // The tab that reads the stream is closed: another one takes over.
  const [first, ...others] = pages;
  visitor.page = others[0];
  await first.close();
  await player.play(`alloc 0 DRAM 0x500000 ${4 * MIB} c`);
  await all(others, 7 * MIB);
});

test("a hidden tab closes its stream", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  const visitor = await visit();
  const { page } = visitor;
  let ended = 0;
  page.on("requestfailed", (request) => isStream(request) && ended++);
  await page.clock.install();
  const look = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await visitor.go();
  await until("the first total", async () => (await total(page)) === MIB);
  await look(true);
  await until("the end of the stream", async () => {
    await page.clock.runFor(1000); // a short visit to another tab keeps it
    return ended === 1;
  });
  await player.play(`alloc 0 DRAM 0x200000 ${2 * MIB} b`);
  assert.equal(visitor.requests.filter(isStream).length, 1, "and does not come back by itself");
  await look(false);
  await until("the new total", async () => {
    await page.clock.runFor(100);
    return (await total(page)) === 3 * MIB;
  });
  await live(page);
  assert.ok(await page.locator(".banner").isHidden());
});

/** Another tab of the same browser, and how many streams it has requested. */
async function another(visitor, daemon) {
  const page = await visitor.context.newPage();
  const tab = { page, streams: 0 };
  page.on("request", (request) => (tab.streams += isStream(request)));
  await page.goto(`${daemon.base}/#/`);
  return tab;
}

test("another tab opens its own stream when the reading tab hangs", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  const visitor = await visit();
  await visitor.go();
  await until("the first tab", async () => (await total(visitor.page)) === MIB);
  const second = await another(visitor, daemon);
  await until("the second tab", async () => (await total(second.page)) === MIB);
  assert.equal(second.streams, 0, "one reads for both");
  // Looks stuck to the others: it keeps the lock, and sends nothing.
  await visitor.page.evaluate(() => (BroadcastChannel.prototype.postMessage = () => undefined));
  await player.play(`alloc 0 DRAM 0x200000 ${2 * MIB} b`);
  await until("the total in the first", async () => (await total(visitor.page)) === 3 * MIB);
  // It has heard nothing for 4 s, asks, and gets no answer.
  await until("a stream of the second's own", () => second.streams === 1);
  await until("the new total", async () => (await total(second.page)) === 3 * MIB);
  // A new tab asks, gets no answer, and reads for itself.
  const third = await another(visitor, daemon);
  await until("a stream of the third's own", () => third.streams === 1);
  await until("the total in the third", async () => (await total(third.page)) === 3 * MIB);
  for (const { page } of [second, third]) {
    await live(page);
    assert.ok(await page.locator(".banner").isHidden());
  }
  assert.equal(visitor.requests.filter(isStream).length, 1, "the first has the lock all the time");
});

test("each tab has its own stream where the browser has no locks", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  const visitor = await visit();
  await visitor.context.addInitScript(() => delete Navigator.prototype.locks);
  await visitor.go();
  assert.equal(await visitor.page.evaluate(() => "locks" in navigator), false);
  const other = await another(visitor, daemon);
  const all = async (bytes) => {
    for (const page of [visitor.page, other.page]) await until(`${bytes} bytes`, async () => (await total(page)) === bytes);
  };
  await all(MIB);
  assert.deepEqual([visitor.requests.filter(isStream).length, other.streams], [1, 1]);
  await player.play(`alloc 0 DRAM 0x200000 ${2 * MIB} b`);
  await all(3 * MIB);
});

test("tabs that share a stream know that it is lost, and since when", async ({ daemon, visit }) => {
  await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  const visitor = await visit();
  visitor.forgive(/ERR_/);
  await visitor.go();
  const other = await another(visitor, daemon);
  for (const page of [visitor.page, other.page]) await live(page);
  assert.equal(other.streams, 0, "one reads for both");
  // As if a cable were cut: the connection stays, and nothing comes.
  daemon.process.kill("SIGSTOP");
  for (const page of [visitor.page, other.page]) {
    const banner = await until("the banner", async () => {
      const text = await page.locator(".banner").innerText();
      return text.includes("connection to ttmemd is lost") && text;
    });
    // Since the last sign of life: it was missed for 4 s before.
    const [, number, unit] = /as it was ([\d.]+) (ms|s|min) ago/.exec(banner);
    assert.ok(unit !== "ms" && (unit === "min" || Number(number) >= 4), banner);
  }
  daemon.process.kill("SIGCONT");
  for (const page of [visitor.page, other.page]) await live(page);
});
