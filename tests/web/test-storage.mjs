// SPDX-License-Identifier: Apache-2.0
//
// What the page stores in the browser: when storage is denied, when it contains foreign data, and when it must be erased.
import assert from "node:assert/strict";
import { test } from "./runner.mjs";

const stored = (visitor) => visitor.page.evaluate(() => JSON.stringify({ ...sessionStorage }));

/** A visitor who has marked a moment of a process. */
async function marked({ daemon, visit }) {
  const player = await daemon.player({ stacks: "fp" }, "alloc 0 DRAM 0x1000 8192 of_interest");
  const visitor = await visit({ token: false });
  await visitor.go(`#/process/${player.pid}?tab=compare`);
  await unlock(visitor, daemon);
  await visitor.page.click("text=Mark now");
  await visitor.has("Nothing has changed", "#panel-compare");
  return visitor;
}

async function unlock(visitor, daemon) {
  await visitor.page.click("text=Unlock details");
  await visitor.page.fill("dialog input", daemon.token);
  await visitor.page.click("dialog button.primary");
  await visitor.has("Lock details", "header");
}

test("the page works in a browser that denies storage", async ({ daemon, visit }) => {
  const player = await daemon.player({}, "alloc 0 DRAM 0x1000 8192 of_interest");
  const visitor = await visit({ token: false });
  await visitor.page.addInitScript(() => {
    for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });
  });
  await visitor.go(`#/process/${player.pid}`);
  await unlock(visitor, daemon);
  await visitor.has("of_interest", "#panel-buffers");
  await visitor.page.click("text=◐ Auto");
  await visitor.page.click("text=◐ Light");
  assert.equal(await visitor.page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await visitor.page.click("#tab-compare");
  await visitor.page.click("text=Mark now");
  await visitor.has("It will not outlive a reload of the page", "#panel-compare");
  await visitor.has("Nothing has changed", "#panel-compare");
});

test("locking the details leaves no names in the browser", async (given) => {
  const visitor = await marked(given);
  assert.match(await stored(visitor), /of_interest/);
  await visitor.page.click("text=Lock details");
  await visitor.has("run ttmem open");
  assert.equal(await stored(visitor), "{}");
  await unlock(visitor, given.daemon);
  await visitor.has("a moment that was marked elsewhere", "#panel-compare"); // its time is in the URL
});

test("a damaged mark is ignored and a partial one is labelled", async (given) => {
  const visitor = await marked(given);
  const spoil = async (from, to) => {
    const found = await visitor.page.evaluate(([before, after]) => {
      const name = Object.keys(sessionStorage).find((one) => one.startsWith("ttmem.mark/"));
      const text = sessionStorage.getItem(name);
      sessionStorage.setItem(name, text.replace(before, after));
      return text.includes(before);
    }, [from, to]);
    assert.ok(found, from);
    await visitor.page.reload();
  };
  await spoil('"complete":true', '"complete":false');
  await visitor.has("only the first ones are compared", "#panel-compare");
  await spoil('"stack":[', '"stack":[null,');
  await visitor.has("a moment that was marked elsewhere", "#panel-compare");
});
