// SPDX-License-Identifier: Apache-2.0
//
// What is asked for appears where the user looks, and many devices leave room for the processes.
import assert from "node:assert/strict";
import { PHONE } from "./browser.mjs";
import { tell, totals } from "./made-up.mjs";
import { test, until } from "./runner.mjs";

const DESK = { width: 1440, height: 900 };
const HEAD = 48; // of the page

/** The part of an element that can be seen, from 0 to 1. */
const visible = (locator) => locator.evaluate((element) => {
  const { top, bottom, height } = element.getBoundingClientRect();
  return Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0)) / height;
});

for (const [name, size] of Object.entries({ screen: { width: 1280, height: 720 }, phone: PHONE }))
  test(`details of a chosen buffer are in view on a ${name}`, async ({ daemon, visit }) => {
    const player = await daemon.player({ stacks: "fp" }, "many 0 DRAM 0x1000 64 2000", "alloc 0 DRAM 0x900000 4096 largest");
    const visitor = await visit({ size });
    const { page } = visitor;
    await visitor.go(`#/process/${player.pid}`);
    await visitor.has("largest", ".grid-body");
    const view = page.locator("#panel-buffers .grid-view");
    const detail = page.locator("#panel-buffers .buffer");
    const chosen = page.locator("#panel-buffers .grid-row.chosen");
    const check = async (what) => {
      await until(what, async () => (await detail.isVisible()) && (await visible(detail)) > 0.99);
      assert.ok((await visible(chosen)) > 0.99, `${what}: the row`);
      const [row, panel, frame] = [await chosen.boundingBox(), await detail.boundingBox(), await view.boundingBox()];
      const beside = panel.x >= frame.x + frame.width - 1;
      assert.equal(beside, name === "screen", what);
      assert.ok(beside || row.y + row.height <= panel.y + 1, `${what}: the row is not covered`);
      assert.ok(row.y >= HEAD, `${what}: the row is below the page's head`);
    };
    // The last visible row, at the lower edge of the screen.
    await view.evaluate((one) => scrollBy(0, one.getBoundingClientRect().top - innerHeight + 100));
    await page.mouse.click(size.width / 3, size.height - 20);
    await check("a row at the lower edge");
    await view.evaluate((one) => (one.scrollTop = 9000));
    await page.locator("#panel-buffers .grid-body .grid-row:visible").nth(20).click();
    await check("a row far down");
    // By keyboard: the rows one after the other, into the details, and back.
    await page.keyboard.press("ArrowDown");
    await check("the next");
    const active = await view.getAttribute("aria-activedescendant");
    assert.equal(await chosen.getAttribute("id"), active);
    assert.equal(await chosen.getAttribute("aria-selected"), "true");
    await page.keyboard.press("Enter");
    const focused = () => page.evaluate(() => document.activeElement.className);
    assert.equal(await focused(), "buffer");
    await page.keyboard.press("Escape");
    assert.ok(await detail.isHidden());
    assert.match(await focused(), /grid-view/);
    await page.click("#tab-sites");
    await page.locator("#panel-sites .grid-body .grid-row").first().click();
    await until("the stack", async () => (await page.locator("#panel-sites .buffer .stack").isVisible()) && (await visible(page.locator("#panel-sites .buffer"))) > 0.99);
    await page.click("#panel-sites .close");
    assert.ok(await page.locator("#panel-sites .buffer").isHidden());
  });

test("a chosen incident is in view, on a screen and on a phone", async ({ daemon, visit }) => {
  const letters = (i) => String.fromCharCode(97 + (i % 26)).repeat(1 + Math.floor(i / 26));
  const player = await daemon.player({ comm: "many" }, ...Array.from({ length: 60 }, (_one, i) => `alloc 0 DRAM ${0x1000 * (i + 1)} 4096 site_${letters(i)}`));
  await player.kill();
  for (const size of [DESK, PHONE]) {
    const visitor = await visit({ size });
    const { page } = visitor;
    await visitor.go("#/incidents");
    await until("all", async () => (await page.locator(".groups button").count()) === 60);
    const wanted = page.locator(".groups button").nth(50);
    const name = await wanted.locator(".name").innerText();
    await wanted.click();
    const heading = page.locator(".beside h2");
    await until("it", async () => (await heading.innerText()) === name);
    await until("it in view", async () => (await visible(heading)) > 0.99);
    await until("its figures", async () => (await visible(page.locator(".beside .figures"))) > 0.99);
    assert.ok((await heading.boundingBox()).y >= HEAD);
  }
});

/** Cards with their texts: heights, and whether anything wraps or is cut. */
const cards = (page) => page.locator(".card").evaluateAll((all) => all.map((card) => ({
  height: Math.round(card.getBoundingClientRect().height),
  wrapped: [...card.querySelectorAll("h3, .bar-name, .bar-figure, .bar-share")].filter((one) => one.checkVisibility())
    .filter((one) => one.getClientRects().length > 1 || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline").map((one) => one.className),
  over: card.scrollWidth > card.clientWidth,
})));

for (const devices of [13, 32, 64])
  test(`${devices} devices leave room for processes`, async ({ visit }) => {
    const visitor = await visit({ size: DESK });
    await tell(visitor, totals(40, devices));
    await visitor.go();
    await visitor.has("proc-39", "table.processes");
    const list = await cards(visitor.page);
    assert.equal(list.length, devices);
    assert.deepEqual([...new Set(list.map((card) => card.height))].length, 1, "all equally high");
    assert.deepEqual(list.filter((card) => card.wrapped.length || card.over), []);
    const third = await visitor.page.locator("table.processes tbody tr").nth(2).boundingBox();
    assert.ok(third.y + third.height < DESK.height, `the third process ends at ${third.y + third.height}`);
    await visitor.shoot(`devices-${devices}`);
    const name = await visitor.page.locator(".card").nth(3).evaluate((card) => card.textContent);
    assert.match(name, /Device 3.*not answering/s, "everything is still told to who cannot see it");
  });

test("the label of a remote card is whole where cards are narrow", async ({ visit }) => {
  const visitor = await visit({ size: { width: 1200, height: 800 } });
  const machine = totals(2, 4);
  for (const one of machine.devices) Object.assign(one, { remote: true, telemetry: machine.devices[0].telemetry });
  await tell(visitor, machine);
  await visitor.go();
  await visitor.has("n300 · wormhole_b0 · remote", ".card");
  await visitor.shoot("cards-remote");
  const cut = await visitor.page.locator(".card header, .card header > *").evaluateAll((all) =>
    all.filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline").map((one) => one.textContent));
  assert.deepEqual(cut, []);
  assert.match(await visitor.page.locator(".card h3 + .muted").first().getAttribute("title"), /^n300 · wormhole_b0 · remote; unique id 0x1$/);
});

test("no page is longer than five screens of a phone with 32 devices", async ({ daemon, visit }) => {
  const lines = Array.from({ length: 32 }, (_one, i) => [
    `device ${i} 0xb${i.toString(16)} wormhole_b0 n300 0 12884901888 100663296 12`, `alloc ${i} DRAM 0x1000 ${4096 * (i + 1)} w`]);
  const player = await daemon.player({ comm: "all" }, ...lines.flat());
  const real = await visit({ size: PHONE });
  const long = async (visitor, what) => {
    const screens = (await visitor.page.evaluate(() => document.documentElement.scrollHeight / innerHeight));
    assert.ok(screens <= 5, `${what} has ${screens.toFixed(1)} screens`);
  };
  await real.go(`#/process/${player.pid}`);
  await real.has("32 buffers", ".tab-bar");
  await long(real, "the process");
  await real.go("#/device/0xb3");
  await real.has("Largest free block");
  await long(real, "the device");
  const made = await visit({ size: PHONE });
  await tell(made, totals(500, 32));
  await made.go();
  await made.has("more processes", "main");
  await made.page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight)); // what is out of sight is estimated
  await long(made, "the overview");
  await made.shoot("phone-32", true);
});
