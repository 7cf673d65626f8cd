// SPDX-License-Identifier: Apache-2.0
//
// Accessibility: without a mouse, with sufficient contrast, with a screen reader.
import assert from "node:assert/strict";
import { checkContrast, stops } from "./access.mjs";
import { PHONE, WIDE } from "./browser.mjs";
import { click, frames, hover } from "./flame.mjs";
import { test, until } from "./runner.mjs";

const GIB = 1024 ** 3;

async function machine(daemon) {
  const device = `device 0 0xa1 wormhole_b0 n150 0 ${12 * GIB} ${96 * 1024 ** 2} 12`;
  const alpha = await daemon.player({ comm: "alpha", stacks: "fp" }, device, "push load", `alloc 0 DRAM 0 ${11.2 * GIB} weights`,
    "alloc 0 L1 0x1000 4096 acts", `alloc 0 DRAM 0x3e000000 ${0.3 * GIB} more`);
  await daemon.player({ comm: "beta" }, "alloc 1 DRAM 0x1000 8192 b", "free 1 DRAM 0x77", "free 1 DRAM 0x1000", "free 1 DRAM 0x1000");
  const dead = await daemon.player({ comm: "dead" }, "alloc 1 DRAM 0x1000 8192 left", "failed 1 DRAM 99999999 10");
  await dead.kill();
  return alpha;
}

/** Presses Tab until a stop matches. */
async function tabTo(visitor, selector) {
  for (let i = 0; i < 120; i++) {
    await visitor.page.keyboard.press("Tab");
    if (await visitor.page.evaluate((text) => document.activeElement?.matches(text) ?? false, selector)) return;
  }
  assert.fail(`the Tab key does not come to ${selector}`);
}

test("everything can be reached by the Tab key, and is named", async ({ daemon, visit }) => {
  const { pid } = await machine(daemon);
  const visitor = await visit();
  const reaches = async (hash, ready, ...wanted) => {
    await visitor.go(hash);
    await visitor.has(ready);
    const names = await stops(visitor);
    assert.equal(names[0], "Skip to the content");
    for (const text of ["ttmem", "Overview", "Leaks and incidents", "Lock details", ...wanted])
      assert.ok(names.some((name) => name.includes(text)), `${hash}: ${text} in ${names.join(" | ")}`);
  };
  await reaches("#/", "Double free", "Device 0", "Filter processes", "DRAM", "alpha", "All incidents", "Double free");
  await reaches("#/device/0xa1", "Largest free block", "alpha", "By process", "1 h", "DRAM over time", "As a table", "Address map:", "L1 small", "Age", "Refresh", "Size");
  await reaches(`#/process/${pid}`, "weights", "Device 0", "System", "Memory of the process over time", "Buffers", "Filter buffers", "Live buffers");
  await reaches("#/incidents", "left", "Kind", "7 days", "Failed allocation", "Copy link");
});

test("everything can be done by keyboard", async ({ daemon, visit }) => {
  const { pid } = await machine(daemon);
  const visitor = await visit();
  const { page } = visitor;
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  await visitor.go();
  await visitor.has("beta", "table.processes");
  // Skips the page's header.
  await press("Tab", "Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  const order = () => page.locator("table.processes tbody th").allInnerTexts();
  assert.deepEqual(await order(), ["alpha", "beta"]);
  await tabTo(visitor, "th.c-comm button");
  await press("Enter", "Enter");
  assert.deepEqual(await order(), ["beta", "alpha"]);
  assert.equal(await page.locator("thead th.c-comm").getAttribute("aria-sort"), "descending");
  await press("/");
  await page.keyboard.type("alp");
  await until("the filter", async () => (await order()).join() === "alpha");
  await tabTo(visitor, "table.processes tbody a");
  await press("Enter");
  await visitor.has("alpha (", "h1");
  await visitor.has("weights", ".grid-body");
  // Rows: the first, then the second, which stays selected when the list is read again.
  await tabTo(visitor, ".grid-view");
  await press("ArrowDown", "ArrowDown");
  await visitor.has("more", ".buffer .facts");
  const chosen = () => page.locator(".grid-row.chosen").innerText();
  const before = await chosen();
  const read = page.waitForResponse((answer) => answer.url().includes("/api/v1/buffers"));
  await page.evaluate(() => document.querySelector(".tab-bar .tools button").click()); // the focus stays
  await read;
  await press("ArrowDown", "ArrowUp");
  assert.equal((await chosen()).replace(/\d+ s$/, ""), before.replace(/\d+ s$/, ""));
  await page.locator("#tab-buffers").focus();
  for (const tab of ["sites", "flame", "phases", "compare"]) {
    await press("ArrowRight");
    assert.equal(await page.locator(`#tab-${tab}`).getAttribute("aria-selected"), "true");
    assert.ok(await page.locator(`#panel-${tab}`).isVisible());
  }
  await tabTo(visitor, "#panel-compare button");
  await press("Enter");
  await visitor.has("Nothing has changed", "#panel-compare");
  await visitor.go("#/device/0xa1");
  await visitor.has("Largest free block");
  await tabTo(visitor, '[aria-label="Stacked by"] button:last-child');
  await press("Space");
  await visitor.has(`alpha (${pid})`, ".chart .legend");
  assert.match(page.url(), /by=process/);
  await visitor.go("#/incidents");
  await visitor.has("Double free", ".groups");
  await tabTo(visitor, ".groups button:has(.double_free)");
  await press("Enter");
  await visitor.has("Freed again by", ".party");
});

test("the token can be entered by keyboard", async ({ daemon, visit }) => {
  await machine(daemon);
  const visitor = await visit({ token: false });
  const { page } = visitor;
  await visitor.go("#/incidents");
  await visitor.has("run ttmem open");
  await tabTo(visitor, "main button.primary");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "INPUT", "one can type at once");
  await page.keyboard.press("Escape");
  await until("its end", async () => (await page.locator("dialog").count()) === 0);
  assert.equal(await page.evaluate(() => document.activeElement.innerText), "Enter the token", "one is where one was");
  await page.keyboard.press("Enter");
  await page.keyboard.type(daemon.token);
  await page.keyboard.press("Enter");
  await visitor.has("left", ".groups");
});

test("text has contrast, light and dark", async ({ daemon, visit }) => {
  const { pid } = await machine(daemon);
  const visitor = await visit();
  const check = (what) => checkContrast(visitor, what);
  await visitor.go();
  await visitor.has("Double free", ".events");
  await visitor.has("96 %", ".card");
  await check("overview");
  await visitor.go("#/device/0xa1");
  await visitor.page.fill("#fit-size", "1 MiB");
  await visitor.has("Yes", ".fit output");
  await check("device");
  await visitor.page.fill("#fit-size", "2 GiB");
  await visitor.has("No", ".fit output");
  await visitor.page.locator(".map-canvas").hover({ position: { x: 50, y: 20 } });
  await visitor.has("weights", ".tip");
  await check("device, with a tip");
  await visitor.go(`#/process/${pid}`);
  await visitor.page.click(".grid-body .grid-row");
  for (const tab of ["buffers", "sites", "phases", "compare"]) {
    await visitor.page.click(`#tab-${tab}`);
    await check(tab);
  }
  await visitor.page.click("#tab-flame");
  await visitor.has("weights", ".flame");
  await check("flame");
  await visitor.page.fill("#panel-flame input", "weights");
  await check("flame, with frames that were looked for");
  await visitor.page.fill("#panel-flame input", "");
  await click(visitor.page, "weights");
  await until("what called it", async () => (await frames(visitor.page)).some((one) => one.faded));
  await check("flame, closer");
  await hover(visitor.page, "weights");
  await visitor.has("weights", ".flame-frame .tip");
  await check("flame, with a tip");
  await visitor.go("#/incidents");
  for (const kind of ["Leak", "Double free", "Failed allocation", "Unknown free"]) {
    await visitor.page.click(`.groups button:has-text('${kind}')`);
    await check(kind);
  }
  await visitor.page.click("text=Lock details");
  await visitor.page.click("text=Enter the token");
  await check("the dialog");
  visitor.forgive(/ERR_|Failed to load/);
  await visitor.page.keyboard.press("Escape");
  await daemon.stop("SIGKILL");
  await visitor.has("connection to ttmemd is lost", ".banner");
  await check("not connected");
});

test("no view is wider than a screen or a phone", async ({ daemon, visit }) => {
  const long = "a_name_without_any_place_to_break_it_".repeat(6); // as long as a name can be
  const player = await daemon.player({ comm: "fifteen-letters" }, `push ${long}`, `alloc 0 DRAM 0x1000 4096 ${long}`, `alloc 0 DRAM 0x9000 4096 ${long}2`,
    "free 0 DRAM 0x1000", "free 0 DRAM 0x1000");
  for (const size of [WIDE, PHONE]) {
    const visitor = await visit({ size });
    const fits = async (what) => {
      const over = await visitor.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${what} is ${over} pixels wider than ${size.width}`);
    };
    await visitor.go();
    await visitor.has("fifteen-letters", ".events");
    await fits("the overview");
    await visitor.go("#/device/0?by=process");
    await visitor.has("fifteen-letters", ".chart .legend");
    await fits("the device");
    await visitor.go(`#/process/${player.pid}`);
    await visitor.page.click(".grid-body .grid-row");
    for (const tab of ["buffers", "sites", "flame", "phases", "compare"]) {
      await visitor.page.click(`#tab-${tab}`);
      if (tab === "compare") await visitor.page.click("text=Mark now");
      await fits(tab);
    }
    await visitor.go("#/incidents");
    await visitor.has("Freed again by", ".party");
    await fits("incidents");
    await visitor.go(`#/device/${"x".repeat(3000)}`);
    await visitor.has("There is no device", "main");
    await fits("a device that is not there");
  }
});

test("tables on a phone hide empty columns and leave room between columns", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 4096 a");
  const visitor = await visit({ size: PHONE });
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}?tab=compare`);
  await page.click("text=Mark now");
  const changes = async (line, wanted) => {
    await player.play(line);
    await page.click(".tab-bar .tools button");
    await visitor.has(wanted, "#panel-compare");
    // A name of one word is one line, and an empty column is hidden.
    assert.ok((await page.locator(".changes tbody tr").first().boundingBox()).height < 35);
    return (await page.locator(".changes thead th:visible").allInnerTexts()).join();
  };
  assert.equal(await changes("alloc 0 DRAM 0x9000 8192 added_later", "added_later"), "Call site,Type,Added,Difference");
  assert.equal(await changes("free 0 DRAM 0x1000", "+4.00 KiB"), "Call site,Type,Added,Gone,Difference");
  // The focus ring of a chart does not overlap what is below it.
  await page.locator(".chart-canvas").focus();
  await page.keyboard.press("ArrowLeft");
  const room = await page.evaluate(() => {
    const [canvas, foot] = [".chart-canvas", ".chart-foot"].map((part) => document.querySelector(part));
    const ring = getComputedStyle(canvas);
    return foot.getBoundingClientRect().top - canvas.getBoundingClientRect().bottom - parseFloat(ring.outlineWidth) - parseFloat(ring.outlineOffset);
  });
  assert.ok(room > 1, `${room} pixels`);
});
