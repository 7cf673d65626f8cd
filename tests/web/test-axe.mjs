// SPDX-License-Identifier: Apache-2.0
//
// axe-core finds nothing to object to in any view, in light on a screen and in dark on a phone. Of reports and of
// Firefox, test-report.mjs and test-matrix.mjs ask it.
import assert from "node:assert/strict";
import { objections } from "./axe.mjs";
import { PHONE, WIDE } from "./browser.mjs";
import { machine } from "./machine.mjs";
import { test } from "./runner.mjs";

const DOWN = "127.0.0.1:1";

for (const [dark, size] of [[false, WIDE], [true, PHONE]])
  test(`axe has no objection to any view, ${dark ? "dark" : "light"}, ${size.width} wide`, async ({ daemon, visit }) => {
    await daemon.stop();
    await daemon.start("--fleet", `${daemon.address},${DOWN}`);
    const { serve } = await machine(daemon);
    const visitor = await visit({ dark, size });
    const { page } = visitor;
    const found = [];
    const check = async (what) => found.push(...(await objections(page, what)));
    await visitor.go();
    await visitor.has("Double free", ".events");
    await page.click(".behind summary:visible");
    await check("overview");
    await visitor.go("#/device/0xa1?by=process");
    await visitor.has("Largest free block");
    for (const summary of await page.locator(".behind summary:visible").all()) await summary.click();
    await check("device");
    await visitor.go(`#/process/${serve.pid}`);
    await visitor.has("tok_embeddings", ".grid-body");
    await page.locator("#panel-buffers .grid-body .grid-row").first().click();
    await check("buffers");
    for (const tab of ["sites", "flame", "phases", "compare"]) {
      await page.click(`#tab-${tab}`);
      if (tab === "compare") await page.click("text=Mark now");
      await check(tab);
    }
    await visitor.go("#/incidents");
    for (const kind of ["Leak", "Double free", "Failed allocation"]) {
      await page.click(`.groups button:has-text('${kind}')`);
      await check(kind);
    }
    await visitor.go("#/ended");
    await page.locator(".grid-body .grid-row").first().click();
    await check("ended");
    await visitor.go("#/fleet");
    await visitor.has("connection refused", ".fleet");
    await check("fleet");
    await visitor.go("#/device/99");
    await visitor.has("There is no device");
    await check("no such device");
    await visitor.go("#/process/1");
    await visitor.has("is not there");
    await check("no such process");
    await page.click("text=Lock details");
    await visitor.go("#/incidents");
    await visitor.has("are for users who are signed in");
    await check("locked");
    await page.click("text=Enter the token");
    await check("the dialog");
    assert.deepEqual(found, []);
  });
