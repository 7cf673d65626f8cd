// SPDX-License-Identifier: Apache-2.0
//
// The keyboard focus survives when content is reloaded or moves.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const GIB = 1024 ** 3;

/** The name of the focused element, or BODY for none. */
const at = (page) => page.evaluate(() => {
  const { activeElement: here } = document;
  return here === document.body ? "BODY" : (here.innerText || here.getAttribute("aria-label") || here.tagName).trim();
});

const DEVICE = `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;

/** After this much of the page's time it has read everything again. */
const AGAIN_MS = 11000;

test("a refresh keeps the keyboard focus", async ({ daemon, visit }) => {
  const large = await daemon.player({ comm: "large" }, DEVICE, `alloc 0 DRAM 0 ${3 * GIB} a`, "free 0 DRAM 0x77");
  const small = await daemon.player({ comm: "small" }, DEVICE, "alloc 0 DRAM 0x18000000 4096 b");
  const visitor = await visit();
  const { page } = visitor;
  const answer = (part) => page.waitForResponse((one) => one.url().includes(part));
  const refresh = () => page.evaluate(() => [...document.querySelectorAll("main button")].find((one) => one.innerText === "Refresh").click());
  await page.clock.install();
  await visitor.go();
  await visitor.has("Unknown free", ".events");
  const order = () => page.locator("table.processes tbody th").allInnerTexts();
  await until("both", async () => (await order()).join() === "large,small");

  // An incident: the list is reloaded unchanged, then with one more entry.
  await page.locator(".events a").focus();
  const read = answer("/api/v1/incidents");
  await page.clock.fastForward(AGAIN_MS);
  await (await read).finished();
  await small.play("free 0 DRAM 0x99");
  await until("one more", async () => (await page.locator(".events a").count()) === 2);
  assert.match(await at(page), /^Unknown free[^]*large/);

  // A process that grows moves up, and the focus moves with it.
  await page.locator("table.processes tbody a", { hasText: "small" }).focus();
  await small.play(`alloc 0 DRAM 0x20000000 ${6 * GIB} c`);
  await until("another order", async () => (await order()).join() === "small,large");
  assert.equal(await at(page), "small");

  // More than fit into the list of changes; numbers would make them one call site.
  const letters = (i) => String.fromCharCode(97 + (i % 20)).repeat(1 + Math.floor(i / 20));
  await visitor.go(`#/process/${small.pid}?tab=compare`);
  await page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  await small.play(...Array.from({ length: 60 }, (_one, i) => `alloc 0 L1 ${0x10000 + i * 0x1000} 1024 site_${letters(i)}`));
  await refresh();
  await visitor.has("in 60 buffers", "#panel-compare");
  await page.locator("#panel-compare .more button").focus();
  await small.play("alloc 0 L1 0x80000 1024 site_other");
  await refresh();
  await visitor.has("in 61 buffers", "#panel-compare");
  assert.equal(await at(page), "Show more");

  // Zoomed in on the map; the button to zoom out disappears when it is used.
  await visitor.go("#/device/0xa1");
  const map = page.locator(`.strip[aria-label*="(${small.pid})"]`);
  await map.locator(".map-canvas").scrollIntoViewIfNeeded();
  const box = await map.locator(".map-canvas").boundingBox();
  await page.mouse.move(box.x + 50, box.y + 9);
  await page.mouse.down();
  await page.mouse.move(box.x + 250, box.y + 9, { steps: 3 });
  await page.mouse.up();
  await map.getByText("Whole bank").focus();
  await small.play("free 0 DRAM 0x18000000");
  await refresh();
  await until("one less", async () => /: 1 buffer,/.test(await map.locator(".map-canvas").getAttribute("aria-label")));
  assert.equal(await at(page), "Whole bank");
  await page.keyboard.press("Enter");
  assert.match(await at(page), /^Address map/);

  // The list of existing devices, shown for one that does not exist.
  await visitor.go("#/device/99");
  await page.locator("main .panel a", { hasText: "device 0" }).focus();
  await page.clock.fastForward(AGAIN_MS);
  assert.equal(await at(page), "device 0");

  // Without the token.
  await page.click("text=Lock details");
  await visitor.go("#/");
  await page.locator(".panel button", { hasText: "Enter the token" }).focus();
  await page.clock.fastForward(AGAIN_MS);
  assert.equal(await at(page), "Enter the token");
});

test("following a link moves the focus to the new view", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "goal" }, DEVICE, "alloc 0 DRAM 0 4096 a");
  const visitor = await visit({ token: false });
  const { page } = visitor;
  const heard = () => page.evaluate(() => `${document.activeElement.tagName} ${document.activeElement.getAttribute("aria-label")}`);
  // A view is shown first and then takes the focus.
  const hears = (what) => until(`the focus on ${what}`, async () => (await heard()) === what);
  await page.clock.install();
  await visitor.go();
  await visitor.has("goal", "table.processes");
  assert.equal(await at(page), "BODY", "who has only come begins at the top of the page");
  await page.locator("table.processes tbody a").focus();
  await page.keyboard.press("Enter");
  await visitor.has("goal (", "h1");
  await hears(`MAIN Process ${player.pid}`);
  await page.keyboard.press("Tab");
  assert.equal(await at(page), "Overview", "the first that there is in it");
  await page.clock.fastForward(AGAIN_MS);
  assert.equal(await at(page), "Overview", "reading again is not going there");
  await page.locator("nav a", { hasText: "Leaks and incidents" }).focus();
  await page.keyboard.press("Enter");
  await visitor.has("run ttmem open");
  await hears("MAIN Leaks and incidents");
  await page.goBack();
  await visitor.has("goal (", "h1");
  await hears(`MAIN Process ${player.pid}`);
  // The view is rebuilt after the token is entered; the button is gone.
  await page.locator("main button.primary").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.type(daemon.token);
  await page.keyboard.press("Enter");
  await visitor.has("4.00 KiB", ".grid-body");
  await hears(`MAIN Process ${player.pid}`);
});
