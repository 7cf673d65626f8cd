// SPDX-License-Identifier: Apache-2.0
//
// Time travel: one cursor for the whole page, set by click and by keys; two of them to compare; flags of what happened.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const MIB = 1024 ** 2;
const DEVICE = `device 0 0xa1 wormhole_b0 n150 0 ${12 * 1024 ** 3} ${96 * MIB} 12`;

const text = (visitor, selector) => visitor.page.locator(selector).first().innerText();
const options = async (visitor) => new URLSearchParams((await visitor.page.evaluate(() => location.hash)).split("?")[1] ?? "");
const used = (visitor) => visitor.page.locator(".figure dd span[data-bytes]").first().getAttribute("data-bytes");

/** This instant, once the daemon has recorded the seconds after it. */
async function instant(daemon, seconds = 1) {
  const time = (Date.now() + 50) * 1e6; // stamps of events are converted, which is not exact to the millisecond
  await until("the past", async () => {
    const { series } = await (await fetch(`${daemon.base}/api/v1/series?step=1`)).json();
    return (series[0]?.points ?? []).some((point) => point[0] > time + seconds * 1e9);
  });
  return String(time);
}

/** A process that held 1 MiB, then another 2 MiB instead, and has ended; and the instants between. */
async function story(daemon) {
  const lives = await daemon.player({ comm: "lives" }, DEVICE, `alloc 0 DRAM 0x100000 ${4 * MIB} weights`);
  const ends = await daemon.player({ comm: "ends" }, DEVICE, `alloc 0 DRAM 0x20 ${MIB} first`);
  const early = await instant(daemon);
  await ends.play("free 0 DRAM 0x20", `alloc 0 DRAM 0x800000 ${2 * MIB} second`);
  const late = await instant(daemon, 4); // wide enough to be hit on a chart
  await ends.kill();
  await until("the end", async () =>
    !(await (await fetch(`${daemon.base}/api/v1/smi`)).json()).processes.some((one) => one.pid === ends.pid && one.alive));
  return { lives, ends, early, late };
}

/** Waits until an instant is shown. */
const shows = (visitor) => until("the instant", async () => /ago; exact$/.test(await text(visitor, ".moment-text")));

test("a click on a chart shows the page as it was then, and Live brings back now", async ({ daemon, visit }) => {
  const { ends } = await story(daemon);
  const visitor = await visit();
  await visitor.go("#/?range=300");
  await until("now", async () => (await used(visitor)) === String(4 * MIB));
  assert.ok(await visitor.page.locator(".moment").isHidden());
  await visitor.page.locator("text=Past").first().click();
  const over = visitor.page.locator(".strip-time .u-over");
  await over.waitFor();
  const range = () => visitor.page.locator(".strip-time .chart-canvas").evaluate((one) => [Number(one.dataset.from), Number(one.dataset.to)]);
  await until("the strip", async () => (await range())[1] > 0);
  // Where 6 MiB were in use: found by the legend, as a user would.
  const box = await over.boundingBox();
  const value = () => visitor.page.locator(".strip-time .legend b").first().innerText();
  const at = []; // times: the strip moves on meanwhile
  for (let x = 0.998, misses = 0; x > 0.2 && misses < 4; x -= 0.005) {
    await visitor.page.mouse.move(box.x + box.width * x, box.y + box.height / 2);
    const [from, to] = await range();
    if ((await value()) === "6.00 MiB") at.push(from + (to - from) * x);
    else if (at.length > 0) misses++;
  }
  const [from, to] = await range();
  const middle = ((at[0] + at.at(-1)) / 2 - from) / (to - from);
  await visitor.page.mouse.click(box.x + box.width * middle, box.y + box.height / 2);
  await shows(visitor);
  assert.equal(await used(visitor), String(6 * MIB));
  await visitor.has(`ends`, ".processes");
  await visitor.page.locator(`.processes a[href^="#/process/${ends.pid}"]`).click();
  await visitor.has("second", ".grid");
  assert.match(await text(visitor, ".crumbs .muted"), / · had been running for /);
  assert.ok((await options(visitor)).get("at"), "the next view is of the same instant");
  await visitor.page.locator(".moment button", { hasText: "Live" }).click();
  await visitor.has("has ended", "main .empty");
  assert.match(await text(visitor, ".crumbs .muted"), / · has ended, last active /);
  assert.equal((await options(visitor)).get("at"), null);
  assert.ok(await visitor.page.locator(".moment").isHidden());
});

test("nothing live overwrites an earlier instant, and the address restores it", async ({ daemon, visit }) => {
  const { lives, early } = await story(daemon);
  const visitor = await visit();
  await visitor.go(`#/?at=${early}`);
  await shows(visitor);
  assert.equal(await used(visitor), String(5 * MIB));
  await lives.play(`alloc 0 DRAM 0x900000 ${MIB} more`);
  const other = await visit();
  await other.go();
  await until("it elsewhere", async () => (await used(other)) === String(5 * MIB) && (await other.page.locator(".processes tbody tr:not(.ended)").count()) === 1);
  assert.equal(await visitor.page.locator(".processes tbody tr").count(), 2);
  await visitor.page.reload();
  await shows(visitor);
  assert.equal(await visitor.page.locator(".processes tbody tr").count(), 2);
  // A step forward and back; a second earlier the daemon may not have been there.
  await visitor.page.locator(".moment button", { hasText: "1 s ›" }).click();
  await until("a second more", async () => (await options(visitor)).get("at") === String(BigInt(early) + 1000000000n));
  await visitor.page.locator(".moment button", { hasText: "‹ 1 s" }).click();
  await until("as before", async () => (await options(visitor)).get("at") === early);
});

test("keys set and move the cursor, and the device's map follows", async ({ daemon, visit }) => {
  const { early } = await story(daemon);
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  const canvas = visitor.page.locator(".chart-canvas").first();
  await visitor.page.waitForSelector(".uplot canvas");
  await until("points", async () => (await canvas.getAttribute("data-to")) !== null);
  await canvas.focus();
  await visitor.page.keyboard.press("ArrowLeft");
  assert.ok(await visitor.page.locator(".moment").isHidden(), "reading values is not travelling");
  await visitor.page.keyboard.press("ArrowLeft");
  await visitor.page.keyboard.press("Enter");
  await until("the cursor", async () => (await options(visitor)).get("at") !== null);
  const first = Number((await options(visitor)).get("at"));
  await visitor.page.keyboard.press("ArrowLeft");
  await until("an earlier one", async () => Number((await options(visitor)).get("at")) < first);
  assert.ok(await visitor.page.locator(".cursor-line:not(.second)").first().isVisible());
  await visitor.go(`#/device/0xa1?at=${early}`);
  await shows(visitor);
  await until("two strips", async () => (await visitor.page.locator(".strip").count()) === 2);
  await visitor.has("ends", ".holders");
});

test("at the cursor the legends have the figures of the tiles, not those of the history's step before", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "holder" }, DEVICE, `alloc 0 DRAM 0x20 ${4 * MIB} a`, `alloc 0 L1 0x20 ${MIB} b`);
  const at = await instant(daemon, 3);
  const visitor = await visit();
  // An instant between two steps of the history: the page must not show both.
  await visitor.page.route("**/api/v1/smi?at=*", async (route) => {
    const answer = await route.fetch();
    const totals = await answer.json();
    const all = [...totals.devices, ...totals.processes.flatMap((process) => process.devices)];
    for (const { memory } of all) memory.DRAM.used = 28 * MIB;
    await route.fulfill({ response: answer, json: totals });
  });
  const legend = (chart) => visitor.page.locator(`${chart} .legend b`).first().innerText();
  for (const [view, chart] of [[`#/?at=${at}`, ".strip-time"], [`#/device/0xa1?at=${at}`, ".chart"],
    [`#/device/0xa1?by=process&at=${at}`, ".chart"], [`#/process/${player.pid}?at=${at}`, ".chart"]]) {
    await visitor.go(view);
    await shows(visitor);
    await until(`the instant on ${view}`, async () => (await legend(chart)) === "28.0 MiB");
  }
  const line = await visitor.page.locator(".cursor-line:not(.second)").first().boundingBox();
  const [x, y] = [line.x + line.width / 2, line.y + line.height / 2];
  await visitor.page.mouse.move(x + 1, y);
  await until("the cursor's line", async () => (await legend(".chart")) === "28.0 MiB");
  const over = await visitor.page.locator(".u-over").first().boundingBox();
  await visitor.page.mouse.move(over.x + over.width - 1, y);
  await until("the history", async () => (await legend(".chart")) === "4.00 MiB");
  await visitor.page.mouse.move(5, 5);
  await until("the cursor again", async () => (await legend(".chart")) === "28.0 MiB");
  await player.kill();
});

test("what is not known of an instant is said on every view", async ({ daemon, visit }) => {
  await daemon.player({}, DEVICE, `alloc 0 DRAM 0x20 ${MIB} a`);
  const at = await instant(daemon);
  const visitor = await visit();
  await visitor.page.route("**/api/v1/smi?at=*", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), exact: false, notes: ["sensors are not recorded"] } });
  });
  await visitor.go(`#/device/0xa1?at=${at}`);
  await until("the instant", async () => /ago; exact, but not all is known$/.test(await text(visitor, ".moment-text")));
  await visitor.page.click(".moment summary");
  await visitor.has("sensors are not recorded", ".moment .notes");
});

test("two cursors show the buffers that were added and that went", async ({ daemon, visit }) => {
  const { ends, lives, early, late } = await story(daemon);
  const visitor = await visit();
  await visitor.go(`#/process/${ends.pid}?at=${late}&vs=${early}`);
  await until("the comparison", async () => /^From /.test(await text(visitor, "#panel-compare .tools .muted")));
  assert.match(await text(visitor, ".compare"), /2\.00 MiB in 1 buffer/);
  assert.match(await text(visitor, ".compare"), /1\.00 MiB in 1 buffer/);
  assert.match(await text(visitor, ".changes"), /second[\s\S]*first|first[\s\S]*second/);
  await visitor.go(`#/device/0xa1?at=${late}&vs=${early}`);
  await until("two maps", async () => (await visitor.page.locator(`.strip[aria-label*="${ends.pid}"] .map:visible`).count()) === 2);
  await visitor.has("gone since", ".legend");
  assert.match(await visitor.page.locator(`.strip[aria-label*="${ends.pid}"] canvas`).first().getAttribute("aria-label"), /1 at this instant only/);
  await visitor.go(`#/?vs=${early}`);
  await visitor.has("ended", ".differences");
  assert.doesNotMatch(await text(visitor, ".differences"), new RegExp(`\\(${lives.pid}\\)`));
  await visitor.page.locator(".moment button", { hasText: "Stop comparing" }).click();
  await until("no comparison", async () => (await visitor.page.locator(".differences:visible").count()) === 0);
});

test("marks are flags on charts, read by mouse, by keys and in the table, as tests and restarts are", async ({ daemon, visit }) => {
  await daemon.stop();
  await daemon.start();
  const player = await daemon.player({ comm: "marker" }, DEVICE, "push pytest-7-0123abcd", "push 1%20a/test_b.py::test_c", `alloc 0 DRAM 0x20 ${MIB} a`);
  await instant(daemon);
  await player.play("mark half%20way");
  await instant(daemon);
  const visitor = await visit();
  await visitor.go(`#/process/${player.pid}`);
  const flag = visitor.page.locator(".event-flag.mark").first();
  await flag.waitFor();
  const box = await flag.boundingBox();
  await visitor.page.mouse.move(box.x, box.y + 60);
  await visitor.has("half way", ".chart-tip");
  await visitor.page.mouse.move(5, 5);
  await visitor.page.locator(".chart-canvas").first().focus();
  await until("the mark", async () => {
    await visitor.page.keyboard.press("PageUp");
    return /half way/.test(await visitor.page.locator(".chart [role=status]").first().textContent());
  });
  await visitor.page.locator(".chart summary").first().click();
  await visitor.has("half way", ".event-list");
  await visitor.has("Test a/test_b.py::test_c", ".event-list");
  await until("the daemon's", async () => /ttmemd started[^]*ttmemd ended[^]*ttmemd started/.test(await text(visitor, ".event-list")));
});

test("charts of a view share their zoom, which is in the address", async ({ daemon, visit }) => {
  const player = await daemon.player({}, DEVICE, `alloc 0 DRAM 0x20 ${MIB} a`, `alloc 0 L1 0x20 ${MIB} b`);
  await instant(daemon);
  const visitor = await visit();
  await visitor.go("#/device/0xa1");
  await until("two charts", async () => (await visitor.page.locator(".uplot").count()) === 2);
  const range = (i) => visitor.page.locator(".chart-canvas").nth(i).evaluate((one) => [Number(one.dataset.from), Number(one.dataset.to)]);
  const over = visitor.page.locator(".u-over").first();
  const box = await over.boundingBox();
  await visitor.page.mouse.move(box.x + box.width / 2, box.y + 50);
  await visitor.page.keyboard.down("Control");
  await visitor.page.mouse.wheel(0, -300);
  await visitor.page.keyboard.up("Control");
  await until("a zoom", async () => (await options(visitor)).get("zoom") !== null);
  const [from, to] = await range(0);
  assert.ok(to - from < 50, `${to - from}`);
  assert.deepEqual(await range(1), [from, to]);
  await visitor.page.reload();
  await until("the same", async () => (await visitor.page.locator(".uplot").count()) === 2 && Math.abs((await range(1))[0] - from) < 0.01);
  await visitor.page.locator(".chart-canvas").nth(1).focus();
  await visitor.page.keyboard.press("Escape");
  await until("all of it", async () => (await options(visitor)).get("zoom") === null);
  await player.kill();
});

test("a failed allocation links to the memory at that instant", async ({ daemon, visit }) => {
  const player = await daemon.player({ comm: "asker", stacks: "fp" }, DEVICE, `alloc 0 DRAM 0x20000000 ${12 * MIB} in_the_way`);
  await instant(daemon);
  await player.play(`failed 0 DRAM ${11 * 1024 ** 3} 1000`);
  await instant(daemon);
  await player.kill();
  const visitor = await visit();
  await visitor.go("#/incidents?kind=alloc_failed");
  await visitor.page.locator("a", { hasText: "Why did it fail?" }).click();
  await shows(visitor);
  await visitor.has("asker", ".holders");
  await until("the answer", async () => /^No/.test(await text(visitor, ".fit output")));
  await visitor.has("in_the_way", ".why");
  assert.equal(await visitor.page.locator("#fit-size").inputValue(), String(11 * 1024 ** 3));
});
