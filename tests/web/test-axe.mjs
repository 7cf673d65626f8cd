// SPDX-License-Identifier: Apache-2.0
//
// axe-core finds nothing to object to in any view, light and dark, on a screen and on a phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { PHONE, WIDE } from "./browser.mjs";
import { machine } from "./machine.mjs";
import { test } from "./runner.mjs";

const AXE = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** What axe objects to, and whether there is one heading. */
async function objections(page) {
  await page.evaluate(`window.axe || (() => { ${AXE} })()`);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    const headings = document.querySelectorAll("h1").length;
    return [...(headings === 1 ? [] : [`${headings} h1`]), ...violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any.concat(node.all, node.none).map((reason) => reason.message).join("; ")}`).join(" | ")}`)];
  });
}

for (const [dark, size] of [[false, WIDE], [true, WIDE], [false, PHONE], [true, PHONE]])
  test(`axe has no objection to any view, ${dark ? "dark" : "light"}, ${size.width} wide`, async ({ daemon, visit }) => {
    const { serve } = await machine(daemon);
    const visitor = await visit({ dark, size });
    const { page } = visitor;
    const found = [];
    const check = async (what) => found.push(...(await objections(page)).map((text) => `${what}: ${text}`));
    await visitor.go();
    await visitor.has("Double free", ".events");
    await page.click(".behind summary");
    await check("overview");
    await visitor.go("#/device/0xa1?by=process");
    await visitor.has("Largest hole");
    for (const summary of await page.locator(".behind summary").all()) await summary.click();
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
    await visitor.go("#/device/99");
    await visitor.has("Nobody tells of a device");
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
