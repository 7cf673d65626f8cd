// SPDX-License-Identifier: Apache-2.0
//
// The page of "ttmem report", as a file, with a document that has something in every part.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkContrast, stops } from "./access.mjs";
import { objections } from "./axe.mjs";
import { PHONE, WIDE } from "./browser.mjs";
import { hasFirefox, withFirefox } from "./firefox.mjs";
import { embedded, reportDocument } from "./report-document.mjs";
import { test, until } from "./runner.mjs";

const PAGE = readFileSync(join(process.env.TTMEM_BUILD, "web/work/dist-report/page.html"), "utf8");
const ARTEFACTS = process.env.TTMEM_ARTEFACTS ?? "build/artefacts";

/** Writes the page of a document. A function, because "$" has a meaning in a replacement. */
function write(daemon, report = reportDocument()) {
  const path = join(daemon.folder, "report.html");
  writeFileSync(path, PAGE.replace("@DATA@", () => embedded(report)));
  return path;
}

/** What holds in every browser: all sections are there, and no name has become markup. Runs in the page. */
function look() {
  const text = (selector) => document.querySelector(selector)?.textContent ?? "";
  return {
    hacked: window.hacked,
    markup: document.querySelectorAll("main img, main script, main iframe, header img").length,
    title: text("h1"),
    completeness: text("#completeness"),
    empty: [...document.querySelectorAll("main .empty")].map((one) => one.textContent),
    sections: [...document.querySelectorAll("nav a")].filter((one) => !document.querySelector(one.getAttribute("href"))).length,
    frames: document.querySelectorAll("#peak .flame [role=treeitem]").length,
    phases: document.querySelectorAll(".phase-bar").length,
    incidents: document.querySelectorAll("button.trouble").length,
    hostile: document.querySelector("main").textContent.split("window.hacked=1").length > 10,
    drawn: [...document.querySelectorAll("canvas")].every((one) => one.width > 100),
    canvases: document.querySelectorAll("canvas").length,
  };
}

function check(seen) {
  const { frames, phases, ...rest } = seen;
  assert.deepEqual(rest, {
    hacked: undefined, markup: 0, title: "python3 train.py --epochs 3", completeness: "99.98 % of events; totals exact", empty: [],
    sections: 0, incidents: 2, hostile: true, drawn: true, canvases: 4,
  });
  assert.ok(frames >= 10 && phases >= 20, `${frames} frames, ${phases} phases`);
}

test("a report shows every part, and hostile names stay text", async ({ daemon, visit }) => {
  const path = write(daemon);
  for (const [name, options] of Object.entries({ light: {}, dark: { dark: true }, phone: { size: PHONE } })) {
    const visitor = await visit(options);
    await visitor.goFile(path);
    await visitor.page.waitForSelector(".phase-bar");
    check(await visitor.page.evaluate(look));
    const width = await visitor.page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, (options.size ?? WIDE).width, "the page does not scroll sideways");
    await visitor.shoot(`report-${name}`, true);
    for (const summary of await visitor.page.locator("summary:visible").all()) await summary.click();
    assert.deepEqual(await objections(visitor.page, name), []);
  }
});

test("a report lets neither markup nor another origin in", async ({ daemon, visit }) => {
  const visitor = await visit();
  await visitor.goFile(write(daemon));
  visitor.forgive(/Content Security Policy|TrustedHTML|violates|blocked|Not allowed to load/i);
  const outcome = await visitor.page.evaluate(async () => {
    const script = document.createElement("script");
    const tries = { fetch: await fetch("http://127.0.0.2:1/").then(() => "went", () => "refused") };
    try {
      document.body.innerHTML += "<b>markup</b>";
      tries.markup = "went";
    } catch {
      tries.markup = "refused";
    }
    try {
      script.text = "window.hacked = 1";
      document.body.append(script);
    } catch {
      // Rejected even earlier.
    }
    tries.script = window.hacked ? "went" : "refused";
    return tries;
  });
  assert.deepEqual(outcome, { fetch: "refused", markup: "refused", script: "refused" });
  visitor.requests = visitor.requests.filter((request) => !request.url().startsWith("http://127.0.0.2"));
});

test("a report can be used by keyboard", async ({ daemon, visit }) => {
  const visitor = await visit();
  const { page } = visitor;
  await visitor.goFile(write(daemon));
  await page.waitForSelector("button.trouble");
  await page.locator("#timeline .chart-canvas").focus();
  await page.keyboard.press("ArrowRight");
  await visitor.has("40 s", "#timeline .chart-foot");
  const range = () => page.evaluate(() => document.querySelector("#timeline .chart-canvas").dataset.from);
  await page.keyboard.press("+");
  await until("the zoom", async () => Number(await range()) > 10);
  await page.keyboard.press("Escape");
  await until("everything", async () => Number(await range()) === 0);
  await page.locator("button.trouble").nth(1).focus();
  await page.keyboard.press("Enter");
  await visitor.has("Asked for by", "#incidents .detail");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("data-id")), "1");
  await page.locator("#end .grid-view").focus();
  await page.keyboard.press("ArrowDown");
  await visitor.has("KvCache.grow", "#end .buffer .stack");
  await page.locator("#peak .flame canvas").focus();
  await page.keyboard.press("ArrowUp");
  await visitor.has("main", "#peak .flame-status");
  await page.locator("#map canvas").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await visitor.has("layers.0.weight", "#map .buffer");
});

test("a report has contrast, and its stops of the Tab key have names", async ({ daemon, visit }) => {
  const visitor = await visit();
  await visitor.goFile(write(daemon));
  await visitor.page.waitForSelector(".phase-bar");
  const names = await stops(visitor);
  for (const wanted of ["Timeline", "weights loaded", "Highlight frames", "Call sites at the peak", "Growth"])
    assert.ok(names.includes(wanted), `the Tab key does not come to ${wanted}: ${names.join(", ")}`);
  await checkContrast(visitor, "report");
});

test("a report of a run in which nothing happened says so", async ({ daemon, visit }) => {
  const none = { site_count: 0, sites: [] };
  const visitor = await visit();
  await visitor.goFile(write(daemon, {
    ...reportDocument({ incidents: false }), missed: 0, gaps: [], marks: [], phases: [], peak: null, end: null, maps: [], map_count: 0,
    timeline: { times_ns: [], types: {} }, temporaries: none, growth: { ...none, first_ns: 0, last_ns: 0, samples: 0 },
    fragmentation: { times_ns: [], spaces: [] }, frames: [], stacks: [], complete: false, torn: 12,
  }));
  await visitor.has("all events; totals exact", "#completeness");
  await visitor.has("was not ended in order", ".notes");
  await visitor.has("12 bytes at the end", ".notes");
  assert.equal(await visitor.page.locator("main .empty").count(), 7);
});

test("a report of a recorded run opens, and has its figures", async ({ daemon, visit }) => {
  const file = join(daemon.folder, "real.ttrec");
  const page = join(daemon.folder, "real.html");
  const ttmem = join(process.env.TTMEM_BUILD, "src/cli/ttmem");
  const script = ["device 0 0xa1 wormhole_b0 n150 0 12884901888 100663296 12", "push load", "alloc 0 DRAM 0x20 3145728 weights",
    "mark loaded", "alloc 0 L1 0x20000 65536 %3c/script%3e"].join("\n");
  const run = (...words) => spawnSync(ttmem, words, { env: daemon.env, input: `${script}\n`, encoding: "utf8" });
  const recorded = run("run", "--record", file, "--", join(process.env.TTMEM_BUILD, "tests/programs/player"));
  assert.match(recorded.stderr + recorded.stdout, /recorded/);
  assert.equal(run("report", file, "-o", page).status, 0);
  const visitor = await visit();
  await visitor.goFile(page);
  await visitor.has("3.06 MiB", ".report-head .figures");
  await visitor.has("all events; totals exact", "#completeness");
  await visitor.has("loaded", ".flag");
  await visitor.page.locator('.phase-bar[title^="load, process"]').waitFor();
  await visitor.has("</script>", "#end .grid-body");
  await visitor.has("weights", "#peak .grid-body");
});

if (hasFirefox)
  test("a report opens in Firefox", async ({ daemon }) => {
    const path = write(daemon);
    await withFirefox(`file://${path}`, async (page) => {
      await page.goto(`file://${path}`);
      await page.waitForSelector(".phase-bar");
      await page.waitForSelector("#peak .flame [role=treeitem]");
      check(await page.evaluate(look));
      assert.deepEqual(await objections(page, "in Firefox"), []);
      mkdirSync(ARTEFACTS, { recursive: true });
      await page.screenshot({ path: join(ARTEFACTS, "report-firefox.png"), fullPage: true });
    });
  });
else console.log("no Firefox: reports are tested in Chromium only");
