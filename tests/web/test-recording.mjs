// SPDX-License-Identifier: Apache-2.0
//
// The dashboard of a recording: ttmem report --serve. Who may see it is tested in integration/trust/test_playback.py.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { frame } from "./flame.mjs";
import { test, until } from "./runner.mjs";

const TTMEM = join(process.env.TTMEM_BUILD, "src/cli/ttmem");
const PLAYER = join(process.env.TTMEM_BUILD, "tests/programs/player");
const MIB = 1024 ** 2;
const CUT_OFF = /ERR_CONNECTION|ERR_INCOMPLETE|Failed to (load|fetch)/; // the server ends before the page
const GAP_MS = 50; // instants of the page are whole milliseconds

const ended = (child) => new Promise((resolve) => child.once("exit", resolve));
const text = (visitor, selector) => visitor.page.locator(selector).first().innerText();
const used = (visitor) => visitor.page.locator(".figure dd span[data-bytes]").first().getAttribute("data-bytes");
const at = async (visitor) => new URLSearchParams((await visitor.page.evaluate(() => location.hash)).split("?")[1]).get("at");

/** Records a process that holds 4 MiB, for a while 2 MiB more, and ends without freeing the 4. */
async function record(daemon) {
  const path = join(daemon.folder, "run.ttrec");
  const run = spawn(TTMEM, ["run", "--record", path, "--", PLAYER], { env: daemon.env, stdio: ["pipe", "pipe", "ignore"] });
  const done = ended(run);
  const answers = createInterface(run.stdout)[Symbol.asyncIterator]();
  for (const line of [
    `device 0 0xa1 wormhole_b0 n150 0 ${12 * 1024 ** 3} ${96 * MIB} 12`, `alloc 0 DRAM 0x100000 ${4 * MIB} weights`, "mark loaded",
    `alloc 0 DRAM 0x800000 ${2 * MIB} temporary`, "free 0 DRAM 0x800000", "free 0 DRAM 0x900000",
  ]) {
    run.stdin.write(`${line}\n`);
    assert.equal((await answers.next()).value, "ok");
    await new Promise((resolve) => setTimeout(resolve, GAP_MS));
  }
  run.stdin.end();
  await done;
  return path;
}

/** Shows it to visitors. */
async function serve(daemon, path) {
  const env = { ...daemon.env, SUDO_UID: String(process.getuid()) };
  const child = spawn(TTMEM, ["report", "--serve", path], { env, stdio: ["ignore", "pipe", "inherit"] });
  const done = ended(child);
  const { value: link } = await createInterface(child.stdout)[Symbol.asyncIterator]().next();
  const base = new URL(link).origin;
  return {
    link, server: { base, token: "none" },
    end: async () => {
      child.kill("SIGINT");
      assert.equal(await done, 0);
    },
  };
}

/** Until then rows move: a press and its release would not be on the same one. */
const peak = (visitor) => until("the peak", async () => /after the start; exact$/.test(await text(visitor, ".moment-text")));

test("a recording is shown in the dashboard, at any of its instants", async ({ daemon, visit }) => {
  const { link, server, end } = await serve(daemon, await record(daemon));
  try {
    const visitor = await visit({ token: false });
    visitor.daemon = server;
    await visitor.page.goto(link);
    await peak(visitor);
    assert.equal(await used(visitor), String(6 * MIB));
    assert.equal(await text(visitor, ".state"), "run.ttrec");
    // The list of incidents is read on its own: it may still be that of the end, with which the page began.
    await until("what came later to go", async () => !/Unknown free/.test(await text(visitor, "main")));
    // The strip has all of it, in steps of a part of a second, with its mark.
    const strip = visitor.page.locator(".strip-time");
    await until("the strip", async () => (await strip.locator(".chart-canvas").getAttribute("data-to")) !== null);
    assert.equal(await strip.getByRole("button", { name: "All" }).getAttribute("aria-pressed"), "true");
    await strip.locator(".event-flag").first().waitFor();
    const before = await at(visitor);
    await strip.locator(".chart-canvas").focus();
    await visitor.page.keyboard.press("ArrowLeft");
    await visitor.page.keyboard.press("ArrowLeft");
    await until("an earlier instant", async () => (await at(visitor)) < before);
    await visitor.shoot("recording-peak", true);
    // Its end: what the process has left.
    await visitor.page.locator(".moment button", { hasText: "End" }).click();
    await until("the end", async () => (await used(visitor)) === "0");
    await visitor.has("Unknown free", ".events");
    await visitor.page.locator(".processes tbody tr.ended a").first().click();
    await visitor.has("weights", ".grid");
    assert.doesNotMatch(await text(visitor, ".grid"), /temporary/);
    assert.match(await text(visitor, ".crumbs .muted"), /^user \S+ · had ended, last active /);
    await visitor.shoot("recording-end", true);
    // Another browser needs a link of its own.
    const other = await visit({ token: false });
    other.daemon = server;
    other.forgive(/401/);
    await other.page.goto(link);
    await other.has("each link works once", ".banner");
    assert.doesNotMatch(await text(other, "body"), /run\.ttrec|player/);
    visitor.forgive(CUT_OFF);
    other.forgive(CUT_OFF);
    await end();
    await visitor.has("has ended: run it again", ".banner");
  } finally {
    await end();
  }
});

/** Where a chart's legend says so, as a user finds it: from the left, the middle of the first part of the chart. */
async function place(visitor, chart, wanted) {
  const box = await chart.locator(".u-over").boundingBox();
  const found = [];
  for (let x = 0.01; x < 1; x += 0.02) {
    await visitor.page.mouse.move(box.x + box.width * x, box.y + box.height / 2);
    const is = (await chart.locator(".legend b").first().innerText()) === wanted;
    if (is) found.push(x);
    else if (found.length) break;
  }
  return { x: (box.width * (found[0] + found.at(-1))) / 2, y: box.height / 2 };
}

test("two cursors set on a chart show the difference of the instants as a flame graph", async ({ daemon, visit }) => {
  const { link, server, end } = await serve(daemon, await record(daemon));
  try {
    const visitor = await visit({ token: false });
    visitor.daemon = server;
    await visitor.page.goto(link);
    await peak(visitor);
    await visitor.page.locator(".processes tbody a").first().click();
    await visitor.page.locator(".moment button", { hasText: "End" }).click();
    await until("the end", async () => (await at(visitor)) === null);
    const chart = visitor.page.locator("main .panel", { hasText: "Timeline" });
    await until("the chart", async () => (await chart.locator(".chart-canvas").getAttribute("data-to")) !== null);
    const low = await place(visitor, chart, "4.00 MiB");
    const high = await place(visitor, chart, "6.00 MiB");
    await chart.locator(".u-over").click({ position: high });
    await until("the first", async () => (await at(visitor)) !== null);
    await chart.locator(".u-over").click({ position: low, modifiers: ["Shift"] });
    await until("the other one", async () => /compared with/.test(await text(visitor, ".moment")));
    // That opens Compare, with the difference from the second cursor to the first.
    await visitor.has("temporary", "#panel-compare .flame");
    const { look, text: told } = await frame(visitor.page, "temporary", "#panel-compare");
    assert.deepEqual([look, told], ["flame-more-3", "temporary (DRAM): 2.00 MiB in 1 buffer, +2.00 MiB from 0 B"]);
    assert.equal((await frame(visitor.page, "weights", "#panel-compare")).look, "flame-same");
    await visitor.shoot("recording-compare", true);
    visitor.forgive(CUT_OFF);
  } finally {
    await end();
  }
});
