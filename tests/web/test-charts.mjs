// SPDX-License-Identifier: Apache-2.0
//
// Charts: reading values by mouse and by keyboard; zooming in and out.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test, until } from "./runner.mjs";

const MIB = 1024 ** 2;

class ChartOn {
  constructor(visitor, place = ".chart") {
    this.page = visitor.page;
    this.chart = visitor.page.locator(place).first();
    this.over = this.chart.locator(".u-over");
    this.canvas = this.chart.locator(".chart-canvas");
  }

  async range() {
    const [from, to] = await Promise.all(["data-from", "data-to"].map((name) => this.canvas.getAttribute(name)));
    return [Number(from), Number(to)];
  }

  async length() {
    const [from, to] = await this.range();
    return to - from;
  }

  value(name) {
    return this.chart.locator(".legend li", { hasText: name }).locator("b").innerText();
  }

  when() {
    return this.chart.locator(".chart-foot .tools > .muted").innerText();
  }

  async at(share) {
    const box = await this.over.boundingBox();
    return [box.x + box.width * share, box.y + box.height / 2];
  }

  async drag(from, to) {
    await this.page.mouse.move(...(await this.at(from)));
    await this.page.mouse.down();
    await this.page.mouse.move(...(await this.at((from + to) / 2)), { steps: 4 });
    await this.page.mouse.move(...(await this.at(to)), { steps: 4 });
    await this.page.mouse.up();
  }
}

/** A chart of a process with first 1 MiB, then 3 MiB, that shows both. */
async function grown(daemon, visit, hash) {
  const player = await daemon.player({ comm: "grower" }, `alloc 0 DRAM 0x1000 ${MIB} first`);
  const visitor = await visit();
  await visitor.go(typeof hash === "function" ? hash(player) : hash);
  await visitor.page.waitForSelector(".uplot canvas");
  const chart = new ChartOn(visitor);
  await until("the first value", async () => (await chart.value("DRAM")) === "1.00 MiB");
  const points = async () => (await chart.canvas.getAttribute("data-to")) ?? "";
  const before = await points();
  await until("a second point", async () => (await points()) !== before);
  await player.play(`alloc 0 DRAM 0x200000 ${2 * MIB} second`);
  await until("the second value", async () => (await chart.value("DRAM")) === "3.00 MiB");
  return { player, visitor, chart };
}

test("dragging zooms a chart, double-click and Escape show all of it", async ({ daemon, visit }) => {
  const { player, visitor, chart } = await grown(daemon, visit, "#/device/0");
  const all = await chart.length();
  assert.ok(all >= 60, `a minute at least: ${all}`);
  await chart.drag(0.5, 0.75);
  const part = await chart.length();
  assert.ok(Math.abs(part - all / 4) < all * 0.1, `${part} of ${all}`); // it may have grown meanwhile
  const range = await chart.range();
  await chart.chart.locator("text=Show all").waitFor();
  // New points do not reset the zoom.
  await player.play(`alloc 0 DRAM 0x900000 ${MIB} third`);
  await visitor.page.mouse.move(5, 5);
  await until("the newest value", async () => (await chart.value("DRAM")) === "4.00 MiB");
  assert.deepEqual(await chart.range(), range);
  await visitor.page.mouse.dblclick(...(await chart.at(0.5)));
  await until("all again", async () => (await chart.length()) >= 60);
  assert.ok(await chart.chart.locator("text=Show all").isHidden());
  await chart.drag(0.8, 0.6); // from right to left works too
  assert.ok((await chart.length()) < 30);
  await chart.canvas.focus();
  await visitor.page.keyboard.press("Escape");
  assert.ok((await chart.length()) >= 60);
  // A click without a drag sets the time cursor, and does not zoom.
  await visitor.page.mouse.click(...(await chart.at(0.995)));
  await visitor.page.locator(".moment button", { hasText: "Live" }).click();
  assert.ok((await chart.length()) >= 60);
  await chart.drag(0.5, 0.75);
  await chart.chart.locator("text=Show all").click();
  assert.ok((await chart.length()) >= 60);
  // Every chart and map of the page has a table.
  for (const name of [".chart", ".map"])
    assert.equal(await visitor.page.locator(`${name} summary`).count(), await visitor.page.locator(name).count());
});

test("chart values can be read with the mouse, with arrow keys and in a table", async ({ daemon, visit }) => {
  const { visitor, chart } = await grown(daemon, visit, (player) => `#/process/${player.pid}`);
  // The right end shows the current value, the first point the old one.
  await visitor.page.mouse.move(...(await chart.at(0.999)));
  await until("the newest", async () => (await chart.value("DRAM")) === "3.00 MiB");
  assert.match(await chart.when(), /^\d\d:\d\d:\d\d$/);
  await visitor.page.mouse.move(...(await chart.at(0.02)));
  await until("the oldest", async () => (await chart.value("DRAM")) === "1.00 MiB");
  await visitor.page.mouse.move(5, 5);
  await until("no time", async () => (await chart.when()) === "");
  await chart.canvas.focus();
  await visitor.page.keyboard.press("ArrowRight");
  assert.equal(await chart.value("DRAM"), "3.00 MiB");
  assert.match(await chart.chart.locator("[role=status]").textContent(), /^\d\d:\d\d:\d\d: DRAM 3\.00 MiB/);
  await until("the first value", async () => {
    await visitor.page.keyboard.press("ArrowLeft");
    return (await chart.value("DRAM")) === "1.00 MiB";
  });
  await visitor.page.keyboard.press("+");
  assert.ok((await chart.length()) < 60);
  await visitor.page.keyboard.press("Escape");
  assert.ok((await chart.length()) >= 60);
  assert.match(await chart.canvas.getAttribute("aria-label"), /over time: now 3\.00 MiB \(DRAM 3\.00 MiB\), at most 3\.00 MiB/);
  await chart.chart.locator("summary").focus();
  await visitor.page.keyboard.press("Enter");
  await chart.chart.locator("tbody tr").first().waitFor();
  const rows = (await chart.chart.locator("tbody tr").allInnerTexts()).map((row) => row.split("\t").map((cell) => cell.trim()));
  assert.deepEqual(await chart.chart.locator("thead th").allInnerTexts(), ["Time", "DRAM", "Together"]);
  assert.deepEqual([rows[0][1], rows[0][2], rows.at(-1)[1]], ["3.00 MiB", "3.00 MiB", "1.00 MiB"]);
  for (const row of rows) assert.match(row[0], /^\d\d:\d\d:\d\d$/);
});

test("charts by type and by process add up to the same", async ({ daemon, visit }) => {
  const first = await daemon.player({ comm: "ended" }, `alloc 0 DRAM 0x1000 ${5 * MIB} a`);
  for (let i = 0; i < 10; i++) await daemon.player({ comm: `holder-${i}` }, `alloc 0 DRAM 0x1000 ${(i + 1) * MIB} a`);
  const past = async () => (await (await fetch(`${daemon.base}/api/v1/series?device=0&step=1`)).json()).series[0]?.points ?? [];
  await until("a past with all of them", async () => (await past()).filter((point) => point[1] === 60 * MIB).length >= 4);
  await first.kill();
  await until("a past without one", async () => (await past()).some((point, i, all) => i === all.length - 1 && point[1] === 55 * MIB));
  const visitor = await visit();
  /** Rows of the chart's table: time, bands, and the sum. */
  const table = async (by) => {
    await visitor.go(`#/device/0?by=${by}`);
    await visitor.page.reload();
    const chart = new ChartOn(visitor);
    await visitor.page.waitForSelector(".uplot canvas");
    await chart.chart.locator("summary").click();
    await chart.chart.locator("tbody tr").first().waitFor();
    return { heads: await chart.chart.locator("thead th").allInnerTexts(), rows: await chart.chart.locator("tbody tr").allInnerTexts() };
  };
  const [type, process] = [await table("type"), await table("process")];
  assert.ok(process.heads.includes("Others and ended"), process.heads.join());
  assert.equal(process.heads.filter((head) => head.startsWith("holder-")).length, 8);
  // The table of a long history does not have every second, so each row is compared with the database.
  const known = new Map((await past()).map((point) => [new Date(point[0] / 1e6).toTimeString().slice(0, 8), `${(point[1] / MIB).toFixed(point[1] < 10 * MIB ? 2 : 1)} MiB`]));
  for (const { rows } of [type, process]) {
    const sums = rows.map((row) => row.split("\t").map((cell) => cell.trim())).map((cells) => [cells[0], cells.at(-1)]);
    assert.ok(sums.some(([, sum]) => sum === "60.0 MiB"), "of the time before the end, too");
    for (const [time, sum] of sums) if (known.has(time)) assert.equal(sum, known.get(time), time);
  }
});

const HOUR_S = 3600;

/** A faked history: 1 MiB in steps of a minute, and 5 MiB each second of a part. Returns the requests. */
async function twoSteps(visitor) {
  const parts = [];
  await visitor.page.route("**/api/v1/series?*", (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const part = asked.has("to");
    const [step, value] = part ? [1, 5 * MIB] : [60, MIB];
    const now = Math.floor(Date.now() / 1000);
    const [begin, to] = part ? ["from", "to"].map((name) => Number(asked.get(name)) / 1e9) : [now - HOUR_S, now];
    if (part) parts.push({ from: begin, to });
    // A process is younger than this history and requests it from its own start: it gets the whole dragged range.
    const from = Math.min(begin, to - 1200);
    const points = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => [(from + i * step) * 1e9, value, 1, value]);
    return route.fulfill({ json: { next: null, series: [{ pid: Number(asked.get("pid")) || null, device: 0, uid: null, type: "DRAM", step_s: step, points }] } });
  });
  return parts;
}

for (const where of ["device", "process"])
  test(`zooming into the history of a ${where} loads finer steps`, async ({ daemon, visit }) => {
    const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
    const visitor = await visit();
    const parts = await twoSteps(visitor);
    const chart = new ChartOn(visitor);
    await visitor.go(`#/${where}/${where === "device" ? 0 : player.pid}?range=86400`);
    await until("the past", async () => (await chart.length()) >= HOUR_S - 60);
    await chart.chart.locator("summary").click();
    const cells = async () => new Set(await chart.chart.locator("tbody td:nth-child(2)").allInnerTexts());
    const shows = (text) => until(`${text} only`, async () => [...(await cells())].join() === text);
    await shows("1.00 MiB");
    await chart.drag(0.5, 0.75);
    await shows("5.00 MiB"); // the table has what is visible
    const [from, to] = await chart.range();
    assert.equal(parts.length, 1);
    assert.equal(parts[0].to, Math.ceil(to));
    if (where === "device") assert.equal(parts[0].from, Math.floor(from));
    // A closer zoom is loaded already; a wider one is not, and is requested once, when the user has stopped.
    await chart.canvas.focus();
    await visitor.page.keyboard.press("+");
    assert.ok((await chart.length()) < to - from);
    for (let i = 0; i < 2; i++) await visitor.page.keyboard.press("-");
    await until("another part", () => parts.length === 2);
    assert.ok((await chart.length()) > to - from);
    await visitor.page.keyboard.press("Escape");
    await shows("1.00 MiB");
    assert.equal(parts.length, 2);
    // And a real daemon has them.
    await visitor.page.unrouteAll();
    const point = await until("a second of the past", async () => {
      const now = Math.floor(Date.now() / 1000);
      const answer = await fetch(`${daemon.base}/api/v1/series?device=0&from=${now - 60}000000000&to=${now}000000000`);
      return (await answer.json()).series[0];
    });
    assert.equal(point.step_s, 1);
  });

/** Fills the database of a stopped daemon with a history in steps of ten seconds; the last minutes have seconds, too. */
const AGE = `
import sqlite3, sys
past = sqlite3.connect(sys.argv[1])
first = "SELECT min(t), series, used, used_max, buffers, buffers_max FROM points_1 GROUP BY series"
(now,) = past.execute("SELECT min(t) FROM points_1").fetchone()
rows = past.execute(first).fetchall()
for table, seconds, step in (("points_10", 1200, 10), ("points_1", 240, 60)):
    for t in range((now - seconds) // step * step, now, step):
        past.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?, ?, ?, ?)", [(t, *row[1:]) for row in rows])
past.commit()
`;

test("zooming into a long history loads finer steps from the daemon", async ({ daemon, visit }) => {
  await daemon.player({}, `alloc 0 DRAM 0x1000 ${MIB} a`);
  /** What it has recorded each second since a moment. */
  const seconds = async (since) =>
    ((await (await fetch(`${daemon.base}/api/v1/series?device=0&step=1&from=${since}000000000`)).json()).series[0]?.points ?? []).map((point) => point[0]);
  await until("something to remember", async () => (await seconds(0)).length >= 1);
  await daemon.stop();
  execFileSync("/usr/bin/python3", ["-c", AGE, join(daemon.folder, "state", "history.db")]);
  const start = Math.floor(Date.now() / 1000);
  await daemon.start();
  await until("some seconds", async () => (await seconds(start)).length >= 5);
  // The last ones are too close to the edge for a mouse.
  const recorded = (await seconds(start)).slice(0, -2).map((time) => new Date(time / 1e6).toTimeString().slice(0, 8));
  const visitor = await visit();
  const chart = new ChartOn(visitor);
  await visitor.go("#/device/0?range=86400");
  await until("the past", async () => (await chart.length()) >= 1140);
  await chart.chart.locator("summary").click();
  const shown = () => chart.chart.locator("tbody tr > :first-child").allInnerTexts();
  const missing = async () => {
    const list = new Set(await shown());
    return recorded.filter((time) => !list.has(time));
  };
  await until("the table", async () => (await shown()).length > 0);
  assert.notDeepEqual(await missing(), [], "a long past comes in long steps");
  await chart.drag(0.9, 0.999);
  await until("each second", async () => (await missing()).length === 0);
});

test("a chart of a single point is a minute long", async ({ daemon, visit }) => {
  await daemon.player({}, "alloc 0 DRAM 0x1000 1 a");
  const visitor = await visit();
  await visitor.page.route("**/api/v1/series?*", (route) => route.fulfill({ json: { next: null, series: [] } }));
  await visitor.page.clock.install();
  await visitor.page.clock.pauseAt(Date.now() + 60000); // no second point
  await visitor.go("#/device/0");
  await until("the chart", async () => {
    await visitor.page.clock.runFor(100);
    return (await visitor.page.locator(".uplot canvas").count()) > 0;
  });
  assert.equal(await new ChartOn(visitor).length(), 60);
});

test("a chart without data says so", async ({ daemon, visit }) => {
  await daemon.player({}, "alloc 0 DRAM 0x1000 1 a");
  const visitor = await visit();
  await visitor.go("#/device/0");
  await visitor.has("Nothing was in use in this time", ".chart:has([aria-label^=L1])");
  assert.equal(await visitor.page.locator(".uplot").count(), 1);
});

test("sparklines are described for screen readers and in a table", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `alloc 0 DRAM 0x1000 ${2 * MIB} a`, `alloc 1 DRAM 0x1000 ${MIB} b`);
  const visitor = await visit();
  await visitor.go();
  const says = (device) => visitor.page.locator(`.card[href="#/device/${device}"] svg`).getAttribute("aria-label");
  await until("the first", async () => /^DRAM in the last .*: at least 2\.00 MiB, now 2\.00 MiB, at most 2\.00 MiB$/.test(await says(0)));
  await player.play(`alloc 0 DRAM 0x900000 ${4 * MIB} c`);
  await until("the second", async () => /: at least 2\.00 MiB, now 6\.00 MiB, at most 6\.00 MiB$/.test(await says(0)));
  await player.play("free 0 DRAM 0x1000");
  await until("the third", async () => /: at least 2\.00 MiB, now 4\.00 MiB, at most [46]\.00 MiB$/.test(await says(0)));
  await visitor.page.click("main summary");
  const rows = () => visitor.page.locator("table.sparks tbody tr").evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.innerText)));
  await until("both devices", async () => (await rows()).length === 2);
  const [one, two] = await rows();
  // A sparkline has a point every two seconds: shorter peaks may be missing.
  const most = one.splice(3, 1)[0];
  assert.deepEqual(one, ["Device 0", "4.00 MiB", "2.00 MiB", "–", "–", "–", "–", "–"]); // now comes first: a phone shows only that without scrolling
  assert.match(most, /^[46]\.00 MiB$/);
  assert.deepEqual(two.slice(1, 4), ["1.00 MiB", "1.00 MiB", "1.00 MiB"]);
  // It is updated while it is open.
  await player.play(`alloc 1 DRAM 0x900000 ${MIB} d`);
  await until("more", async () => (await rows())[1][3] === "2.00 MiB");
  await visitor.shoot("sparks-table", true);
});
