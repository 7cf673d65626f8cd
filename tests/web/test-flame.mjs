// SPDX-License-Identifier: Apache-2.0
//
// The flame graph by keyboard and screen reader: one stop of the Tab key, arrow keys from frame to frame, each labelled
// with its name, size and share.
import assert from "node:assert/strict";
import { click, current as at, frame, frames, hover, pixel } from "./flame.mjs";
import { test, until } from "./runner.mjs";

const MIB = 1024 ** 2;

test("a flame graph can be used by keyboard", async ({ daemon, visit }) => {
  const player = await daemon.player({},
    "push load", "push early", `alloc 0 DRAM 0x1000 ${MIB} first`, "pop",
    "push late", `alloc 0 DRAM 0x1000000 ${3 * MIB} second`, `alloc 0 L1 0x1000 ${4 * MIB} third`, "pop", "pop");
  const visitor = await visit();
  const { page } = visitor;
  const press = async (key, wanted) => {
    await page.keyboard.press(key);
    assert.match(await at(page), wanted, key);
  };
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("third", ".flame");
  assert.equal(await page.locator(".flame [tabindex='0']").count(), 1, "one stop for all of them");
  await page.locator("#panel-flame button").first().focus();
  await press("Tab", /^all: 8\.00 MiB in 3 buffers, 100 %$/);
  await press("ArrowUp", /^no stack: 8\.00 MiB/);
  await press("ArrowUp", /^load \(phase\): 8\.00 MiB/);
  await press("ArrowUp", /^late \(phase\): 7\.00 MiB in 2 buffers, 88 %$/); // the widest
  await press("ArrowRight", /^late /); // there is no frame further right
  await press("ArrowLeft", /^early \(phase\): 1\.00 MiB in 1 buffer, 13 %$/);
  await press("ArrowUp", /^first \(DRAM\)/);
  await press("ArrowRight", /^(second \(DRAM\)|third \(L1\))/); // of another caller
  await press("ArrowDown", /^late /);
  await press("ArrowUp", /^third \(L1\): 4\.00 MiB in 1 buffer, 50 %$/);
  assert.match(await visitor.text(".flame-status"), /^third \(L1\): 4\.00 MiB/, "one reads it, too");
  // The focus is visible: a line in the colour of text around the frame.
  const inked = async () => {
    const { left, top } = await frame(page, "third");
    return page.locator(".flame canvas").evaluate((canvas, [x, y]) => {
      const scale = canvas.width / canvas.clientWidth;
      const ink = getComputedStyle(document.body).color.match(/\d+/g).slice(0, 3).map(Number);
      const seen = [...canvas.getContext("2d").getImageData(Math.round((x + 10) * scale), Math.round((y + 0.5) * scale), 1, 1).data].slice(0, 3);
      return seen.every((value, i) => Math.abs(value - ink[i]) < 8);
    }, [left, top]);
  };
  assert.ok(await inked());
  await visitor.shoot("flame-focus");
  // Zooming in and out keeps the focused frame.
  const width = async (name) => (await frame(page, name)).width;
  const whole = await page.locator(".flame canvas").evaluate((drawing) => drawing.clientWidth);
  await press("Enter", /^third /);
  await until("the whole width", async () => Math.abs((await width("third")) - whole) < 2);
  assert.equal(await frame(page, "first"), null);
  assert.deepEqual((await frames(page)).filter((one) => one.faded).map((one) => one.name), ["all", "no stack", "load", "late"], "what called it");
  await press("ArrowDown", /^late /);
  await press("ArrowUp", /^third /);
  await press("Escape", /^third /);
  await until("all of it", async () => Math.abs((await width("third")) - whole / 2) < 2);
  await press("Home", /^all: /);
  await press("Shift+Tab", /^$/);
  await press("Tab", /^all: /);
  // New rows redraw it: the focus stays, or moves to what is left of the path.
  await press("ArrowUp", /^no stack/);
  await press("ArrowUp", /^load/);
  await press("ArrowUp", /^late/);
  await press("ArrowUp", /^third/);
  const read = () => page.evaluate(() => document.querySelector(".tab-bar .tools button").click());
  await player.play(`alloc 0 DRAM 0x2000000 ${8 * MIB} fourth`);
  await read();
  await until("another share", async () => /^third \(L1\): 4\.00 MiB in 1 buffer, 25 %$/.test(await at(page)));
  await player.play("free 0 L1 0x1000");
  await read();
  await until("its caller", async () => /^late \(phase\): 3\.00 MiB in 1 buffer/.test(await at(page)));
});

test("a flame graph is a tree for screen readers, also while frames are searched", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "push a", `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("two", ".flame");
  const tree = (await frames(visitor.page)).map(({ level, text }) => `treeitem ${level} ${text.split(":")[0]}`);
  assert.deepEqual(tree.sort(), ["treeitem 1 all", "treeitem 2 no stack", "treeitem 3 a (phase)", "treeitem 4 one (DRAM)", "treeitem 4 two (DRAM)"]);
  assert.equal(await visitor.page.locator(".flame canvas[role=tree][aria-activedescendant]").count(), 1);
  // The browser passes it on to a screen reader, although nothing inside a canvas is displayed.
  const session = await visitor.context.newCDPSession(visitor.page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const heard = nodes.filter((one) => !one.ignored && /^tree/.test(one.role?.value)).map((one) => `${one.role.value} ${one.name.value}`);
  assert.match(heard[0], /^tree Flame graph of 2\.00 MiB of live memory\. Arrow keys /);
  assert.deepEqual(heard.slice(1).map((one) => one.split(":")[0]).sort(),
    ["treeitem a (phase)", "treeitem all", "treeitem no stack", "treeitem one (DRAM)", "treeitem two (DRAM)"]);
  // Search results are still marked after the rows were read again.
  const look = async (name) => (await frame(visitor.page, name)).look;
  await visitor.page.fill("#panel-flame input", "TWO");
  assert.equal(await look("two"), "highlight");
  assert.equal(await visitor.text(".flame-matched"), "1 frame: 1.00 MiB, 50 %");
  await player.play(`alloc 0 DRAM 0x2000000 ${MIB} three`);
  await visitor.page.click("text=Refresh");
  await visitor.has("three", ".flame");
  assert.deepEqual([await look("two"), (await look("three")).replace(/\d/, "N")], ["highlight", "flame-N"]);
  assert.equal(await visitor.text(".flame-matched"), "1 frame: 1.00 MiB, 33 %");
  // They are drawn in that colour, in both themes.
  visitor.forgive(/willReadFrequently/);
  for (const colorScheme of ["light", "dark"]) {
    await visitor.page.emulateMedia({ colorScheme });
    const wanted = await visitor.page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.color = "var(--highlight)";
      const text = getComputedStyle(probe).color;
      probe.remove();
      return text.match(/\d+/g).map(Number);
    });
    // A canvas is drawn again by the page, which hears of the theme after the style has changed.
    await until(`${colorScheme} marks`, async () => String((await pixel(visitor.page, "two")).slice(0, 3)) === String(wanted));
  }
});

test("a zoomed flame graph says how old it is, and is refreshed when zoomed out", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "push a", `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  const visitor = await visit();
  const { page } = visitor;
  const all = async () => (await frame(page, "all")).text;
  const note = page.locator("#panel-flame .flame-as-of");
  const closer = (name) => click(page, name);
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
  const widths = async () => [await page.locator(".flame canvas").evaluate((drawing) => drawing.clientWidth), (await frame(page, "two")).width];
  const before = (await widths())[0];
  await page.setViewportSize({ width: 1000, height: 720 });
  await until("the new width", async () => {
    const [whole, two] = await widths();
    return whole < before && Math.abs(whole - two) < 2;
  });
  assert.match(await all(), /in 2 buffers/);
  await page.locator(".flame canvas").focus();
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

test("a flame graph is filtered by type and device, and has tooltips", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 1 DRAM 0x1000 ${2 * MIB} two`, `alloc 1 L1 0x1000 ${4 * MIB} three`);
  const visitor = await visit();
  const { page } = visitor;
  const leaves = async () => (await frames(page)).filter((one) => one.level === 3).map((one) => one.name).join();
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("three", ".flame");
  assert.equal(await leaves(), "one,three,two");
  await hover(page, "three");
  await visitor.has("4.00 MiB in 1 buffer, 57 %", ".flame-frame .tip");
  await page.getByLabel("All types").selectOption({ label: "DRAM" });
  assert.equal(await leaves(), "one,two");
  assert.match((await frame(page, "all")).text, /^all: 3\.00 MiB in 2 buffers/);
  await page.getByLabel("All devices").selectOption({ label: "Device 1" });
  assert.equal(await leaves(), "two");
  // The choice stays when rows are read again, and when there is none of it.
  await player.play(`alloc 1 DRAM 0x1000000 ${MIB} four`, `alloc 0 DRAM 0x2000000 ${MIB} five`);
  await page.click("text=Refresh");
  await until("the new one", async () => (await leaves()) === "four,two");
  await player.play("free 1 DRAM 0x1000", "free 1 DRAM 0x1000000");
  await page.click("text=Refresh");
  await until("nothing", async () => (await leaves()) === "");
  await page.getByLabel("All devices").selectOption({ label: "All devices" });
  assert.equal(await leaves(), "five,one");
});

/** Clicks on the right half of the upper row, and says whether the colour there has reached the left end at once. */
const zoomsAtOnce = (page) => page.evaluate(() => {
  const canvas = document.querySelector(".flame canvas");
  const { left, top, width } = canvas.getBoundingClientRect();
  const pen = canvas.getContext("2d");
  const colour = (share) => [...pen.getImageData(Math.round(share * canvas.width) + 3, 3, 1, 1).data].join();
  const wanted = colour(0.5);
  if (colour(0) === wanted) throw new Error("one could not tell");
  canvas.dispatchEvent(new MouseEvent("click", { clientX: left + 0.75 * width, clientY: top + 5, bubbles: true }));
  return colour(0) === wanted;
});

test("a flame graph moves when it is zoomed, but not for who wants no motion", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  for (const reducedMotion of ["no-preference", "reduce"]) {
    const visitor = await visit();
    await visitor.page.emulateMedia({ reducedMotion });
    await visitor.go(`#/process/${player.pid}?tab=flame`);
    await visitor.has("two", ".flame");
    await visitor.page.fill("#panel-flame input", "two"); // in another colour than the first
    visitor.forgive(/willReadFrequently/);
    assert.equal(await zoomsAtOnce(visitor.page), reducedMotion === "reduce");
  }
});

test("an update of a flame graph is drawn at once, never from nothing", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} one`, `alloc 0 DRAM 0x1000000 ${MIB} two`);
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("two", ".flame");
  visitor.forgive(/willReadFrequently/);
  // Whenever the browser paints, the outermost frame is as wide as the graph.
  await page.evaluate(() => {
    const canvas = document.querySelector(".flame canvas");
    window.seen = { empty: 0, paints: 0, same: () => canvas.isConnected };
    const look = () => {
      const pen = canvas.getContext("2d");
      const inked = [0.02, 0.5, 0.98].every((share) => pen.getImageData(Math.round(share * canvas.width), canvas.height - 6, 1, 1).data[3] > 0);
      window.seen.paints++;
      if (!inked) window.seen.empty++;
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  for (const [i, name] of ["three", "four"].entries()) {
    await player.play(`alloc 0 DRAM ${0x2000000 * (i + 1)} ${2 * MIB} ${name}`);
    await page.click("text=Refresh");
    await visitor.has(name, ".flame");
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  const { empty, paints, same } = await page.evaluate(() => ({ ...window.seen, same: window.seen.same() }));
  assert.ok(paints > 2);
  assert.equal(empty, 0);
  assert.ok(same, "it is the same element");
});

test("a deep flame graph starts at the outermost call and scrolls with the keyboard", async ({ daemon, visit }) => {
  const calls = Array.from({ length: 60 }, (_, i) => `push call_${i}`);
  const player = await daemon.player({}, ...calls, `alloc 0 DRAM 0x1000 ${MIB} one`);
  const visitor = await visit({ scale: 2 });
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}?tab=flame`);
  await visitor.has("one", ".flame");
  const graph = () => page.locator(".flame").evaluate((one) => {
    const canvas = one.querySelector("canvas");
    return { below: one.scrollHeight - one.clientHeight - one.scrollTop, above: one.scrollTop, high: canvas.clientHeight, seen: one.clientHeight, scale: canvas.width / canvas.clientWidth };
  });
  const start = await graph();
  assert.ok(Math.abs(start.below) < 1 && start.above > 300, JSON.stringify(start));
  assert.equal(start.high, start.seen, "the canvas is as high as what is in sight");
  assert.ok(Math.abs(start.scale - 2) < 0.01, "each pixel of the screen is used");
  await page.locator(".flame canvas").focus();
  const depth = (await frame(page, "one")).level;
  for (let i = 1; i < depth; i++) await page.keyboard.press("ArrowUp");
  assert.match(await at(page), /^one \(DRAM\)/);
  assert.equal((await graph()).above, 0);
  // An update leaves it there.
  await player.play(`alloc 0 DRAM 0x1000000 ${MIB} two`);
  await page.click("text=Refresh");
  await visitor.has("two", ".flame");
  assert.equal((await graph()).above, 0);
  await page.locator(".flame canvas").focus();
  await page.keyboard.press("Home");
  assert.ok(Math.abs((await graph()).below) < 1);
  // So does another tab in between.
  await page.click("#tab-phases");
  await page.click("#tab-flame");
  await until("the same place", async () => Math.abs((await graph()).below) < 1);
  await visitor.shoot("flame-deep");
});

test("what changed since a mark is a flame graph, too", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} stays`, `alloc 0 DRAM 0x1000000 ${MIB} goes`);
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}?tab=compare`);
  await page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  await player.play("free 0 DRAM 0x1000000", `alloc 0 DRAM 0x2000000 ${2 * MIB} comes`);
  await page.click("text=Refresh");
  await visitor.has("comes", "#panel-compare .flame");
  const looks = Object.fromEntries((await frames(page, "#panel-compare")).map((one) => [one.name, one.look]));
  assert.deepEqual(looks, { all: "flame-more-1", "no stack": "flame-more-1", stays: "flame-same", goes: "flame-less-3", comes: "flame-more-3" });
  const text = async (name) => (await frame(page, name, "#panel-compare")).text;
  assert.equal(await text("goes"), "goes (DRAM): 0 B in 0 buffers, −1.00 MiB from 1.00 MiB");
  assert.equal(await text("all"), "all: 3.00 MiB in 2 buffers, +1.00 MiB from 2.00 MiB");
  assert.equal(await text("stays"), "stays (DRAM): 1.00 MiB in 1 buffer, unchanged");
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await visitor.shoot(`flame-diff-${colorScheme}`, true);
  }
});
