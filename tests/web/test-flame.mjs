// SPDX-License-Identifier: Apache-2.0
//
// The flame graph by keyboard and screen reader: one stop of the Tab key, arrow keys from frame to frame, each labelled
// with its name, size and share.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const MIB = 1024 ** 2;

/** The label of the focused frame, or "". */
const at = (page) => page.evaluate(() => {
  const frame = document.activeElement;
  return frame?.matches(".flame g.frame") ? frame.getAttribute("aria-label") : "";
});

test("a flame graph can be used by keyboard", async ({ daemon, visit }) => {
  const player = await daemon.player({},
    "push load", "push low", `alloc 0 DRAM 0x1000 ${MIB} first`, "pop",
    "push high", `alloc 0 DRAM 0x1000000 ${3 * MIB} second`, `alloc 0 L1 0x1000 ${4 * MIB} third`, "pop", "pop");
  const visitor = await visit();
  const { page } = visitor;
  const press = async (key, wanted) => {
    await page.keyboard.press(key);
    assert.match(await at(page), wanted, key);
  };
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("third", ".flame");
  assert.equal(await page.locator(".flame g[tabindex='0']").count(), 1, "one stop for all of them");
  await page.locator("#panel-flame button").focus();
  await press("Tab", /^all: 8\.00 MiB in 3 buffers, 100 %$/);
  await press("ArrowUp", /^no stack: 8\.00 MiB/);
  await press("ArrowUp", /^load \(phase\): 8\.00 MiB/);
  await press("ArrowUp", /^high \(phase\): 7\.00 MiB in 2 buffers, 88 %$/); // the widest
  await press("ArrowRight", /^high /); // there is no frame further right
  await press("ArrowLeft", /^low \(phase\): 1\.00 MiB in 1 buffer, 13 %$/);
  await press("ArrowUp", /^first \(DRAM\)/);
  await press("ArrowRight", /^(second \(DRAM\)|third \(L1\))/); // of another caller
  await press("ArrowDown", /^high /);
  await press("ArrowUp", /^third \(L1\): 4\.00 MiB in 1 buffer, 50 %$/);
  assert.match(await visitor.text(".flame-status"), /^third \(L1\): 4\.00 MiB/, "one reads it, too");
  // The focus is visible.
  const seen = () => page.evaluate(() => {
    const rect = getComputedStyle(document.activeElement.querySelector("rect"));
    return { same: rect.stroke === getComputedStyle(document.body).color, wide: parseFloat(rect.strokeWidth) };
  });
  assert.deepEqual(await seen(), { same: true, wide: 4 });
  await visitor.shoot("flame-focus");
  // Zooming in and out keeps the focused frame.
  const width = (name) => page.locator(`.flame g[name="${name}"] rect`).evaluate((rect) => rect.getBoundingClientRect().width);
  const whole = await page.locator(".flame svg").evaluate((drawing) => drawing.clientWidth); // frames grow into theirs
  await press("Enter", /^third /);
  await until("the whole width", async () => Math.abs((await width("third")) - whole) < 2);
  assert.equal(await page.locator('.flame g[name="first"]').count(), 0);
  await press("ArrowDown", /^high /);
  await press("ArrowUp", /^third /);
  await press("Escape", /^third /);
  await until("all of it", async () => Math.abs((await width("third")) - whole / 2) < 2);
  await press("Home", /^all: /);
  await press("Shift+Tab", /^$/);
  await press("Tab", /^all: /);
  // New rows redraw it: the focus stays, or moves to what is left of the path.
  await press("ArrowUp", /^no stack/);
  await press("ArrowUp", /^load/);
  await press("ArrowUp", /^high/);
  await press("ArrowUp", /^third/);
  const read = () => page.evaluate(() => document.querySelector(".tab-bar .tools button").click());
  await player.play(`alloc 0 DRAM 0x2000000 ${8 * MIB} fourth`);
  await read();
  await until("another share", async () => /^third \(L1\): 4\.00 MiB in 1 buffer, 25 %$/.test(await at(page)));
  await player.play("free 0 L1 0x1000");
  await read();
  await until("its caller", async () => /^high \(phase\): 3\.00 MiB in 1 buffer/.test(await at(page)));
});

test("a flame graph is a tree for screen readers, also while frames are searched", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "push a", `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("two", ".flame");
  const tree = await visitor.page.locator(".flame g.frame").evaluateAll((frames) => frames.map((frame) =>
    [frame.getAttribute("role"), frame.getAttribute("aria-level"), frame.getAttribute("aria-label").split(":")[0]].join(" ")));
  assert.deepEqual(tree.sort(), ["treeitem 1 all", "treeitem 2 no stack", "treeitem 3 a (phase)", "treeitem 4 one (DRAM)", "treeitem 4 two (DRAM)"]);
  assert.equal(await visitor.page.locator(".flame[role=tree]").count(), 1);
  // Search results are still marked after the rows were read again.
  const colour = (name) => visitor.page.locator(`.flame g[name="${name}"] rect`).getAttribute("fill");
  await visitor.page.fill("#panel-flame input", "two");
  assert.equal(await colour("two"), "var(--highlight)");
  await player.play(`alloc 0 DRAM 0x2000000 ${MIB} three`);
  await visitor.page.click("text=Refresh");
  await visitor.has("three", ".flame");
  assert.deepEqual([await colour("two"), (await colour("three")).slice(0, 10)], ["var(--highlight)", "light-dark"]);
});

test("a zoomed flame graph says how old it is, and is refreshed when zoomed out", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "push a", `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  const visitor = await visit();
  const { page } = visitor;
  const all = () => page.locator('.flame g[aria-level="1"]').getAttribute("aria-label");
  const note = page.locator("#panel-flame .tools > span");
  const closer = (name) => page.click(`.flame g[name="${name}"]`);
  const more = async (line, number) => {
    await player.play(line);
    await page.click("text=Refresh");
    await visitor.has(`${number} buffers`, ".tab-bar");
  };
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("two", ".flame");
  await closer("two");
  assert.equal(await note.innerText(), "", "it is the newest");
  await more(`alloc 0 DRAM 0x2000000 ${MIB} three`, 3);
  assert.match(await note.innerText(), /^as of \d\d:\d\d:\d\d$/);
  assert.match(await all(), /in 2 buffers/, "nothing moves under who looks closer");
  // Nor when there is less space.
  const widths = () => page.evaluate(() => ["svg", 'g[name="two"] rect'].map((part) => document.querySelector(`.flame ${part}`).getBoundingClientRect().width));
  const before = (await widths())[0];
  await page.setViewportSize({ width: 1000, height: 720 });
  await until("the new width", async () => {
    const [whole, two] = await widths();
    return whole < before && Math.abs(whole - two) < 2;
  });
  assert.match(await all(), /in 2 buffers/);
  await page.locator('.flame g[name="two"]').focus();
  await page.keyboard.press("Escape");
  await until("the newest", async () => /in 3 buffers/.test(await all()));
  assert.equal(await note.innerText(), "");
  // Also for a process that has exited since: no newer data will come.
  await closer("one");
  await more(`alloc 0 DRAM 0x3000000 ${MIB} four`, 4);
  await player.kill();
  await visitor.has("has ended. Below is what was seen of it last");
  assert.match(await all(), /in 3 buffers/);
  await page.click("#panel-flame button");
  await until("the last", async () => /in 4 buffers/.test(await all()));
  await visitor.has("four", ".flame");
});
