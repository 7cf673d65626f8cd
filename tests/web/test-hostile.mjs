// SPDX-License-Identifier: Apache-2.0
//
// Names come from processes, which may be hostile: they always stay text, in every view.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const EVIL = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>";
const COMM = "<img src=x>";
const escaped = (text) => [...text].map((c) => `%${c.codePointAt(0).toString(16).padStart(2, "0")}`).join("");

/** Checks that none of it has become markup. */
async function checkText(visitor) {
  const found = await visitor.page.evaluate(() => ({
    hacked: window.hacked,
    elements: document.querySelectorAll("main script, main img, main iframe, main object, dialog img").length,
  }));
  assert.deepEqual(found, { hacked: undefined, elements: 0 });
}

test("hostile names stay text", async ({ daemon, visit }) => {
  const name = escaped(EVIL);
  const player = await daemon.player({ comm: COMM }, `push ${name}`, "device 0 0xa1 wormhole_b0 n150 0 1073741824 1048576 1",
    `alloc 0 DRAM 0x1000 536870912 ${name}`);
  const dead = await daemon.player({ comm: COMM }, `push ${name}`, `alloc 0 DRAM 0x1000 1048576 ${name}`,
    "free 0 DRAM 0x1000", "free 0 DRAM 0x1000", `alloc 0 DRAM 0x9000 4096 ${name}`);
  await dead.kill();
  const visitor = await visit();
  await visitor.go();
  await visitor.has(COMM, "table.processes");
  await visitor.has(COMM, ".events");
  await checkText(visitor);
  await visitor.go("#/device/0xa1?paint=process&by=process");
  await visitor.has(COMM, ".chart .legend");
  await visitor.page.locator(".map-canvas").hover({ position: { x: 100, y: 20 } });
  await visitor.has(EVIL, ".tip");
  await checkText(visitor);
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has(EVIL, ".grid-body");
  await visitor.page.click(".grid-body .grid-row");
  await visitor.has(EVIL, ".buffer .facts");
  for (const tab of ["sites", "flame", "phases"]) {
    await visitor.page.click(`#tab-${tab}`);
    await visitor.has("<img", `#panel-${tab}`);
    await checkText(visitor);
  }
  await visitor.page.click("#tab-compare");
  await visitor.page.click("text=Mark now");
  await player.play(`alloc 0 DRAM 0x30000000 4096 ${name}`);
  await visitor.page.click("text=Refresh");
  await visitor.has(EVIL, "#panel-compare tbody");
  await checkText(visitor);
  await visitor.go("#/incidents");
  await until("both groups", async () => (await visitor.page.locator(".groups button").count()) === 2);
  for (const button of await visitor.page.locator(".groups button").all()) {
    await button.click();
    await visitor.has(EVIL, ".detail, .panel header");
    await checkText(visitor);
  }
});

test("a hostile URL is shown as text", async ({ daemon, visit }) => {
  await daemon.player({}, "alloc 0 DRAM 0x1000 1");
  const visitor = await visit();
  for (const hash of ["#/device/%3Cimg%20src%3Dx%3E", "#/process/<script>", "#/incidents/<img src=x>?kind=<b>&range=x", "#/nothing/at/all", "#/device/__proto__", "#/device/%E0%A4%A"]) {
    await visitor.go(hash);
    await checkText(visitor);
  }
});

test("the content security policy refuses other origins and injected markup", async ({ daemon, visit }) => {
  const visitor = await visit();
  await visitor.go();
  visitor.forgive(/Content Security Policy|TrustedHTML|violates|blocked/i);
  const outcome = await visitor.page.evaluate(async () => {
    const tries = {};
    tries.fetch = await fetch("http://127.0.0.2:1/").then(() => "went", () => "refused");
    try {
      document.body.innerHTML += "<b>markup</b>";
      tries.markup = "went";
    } catch {
      tries.markup = "refused";
    }
    try {
      const script = document.createElement("script");
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
