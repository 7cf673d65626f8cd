// SPDX-License-Identifier: Apache-2.0
//
// A daemon that was built without Node: its page is plain, but works, and says how to get the dashboard.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

test("a build without node serves a page that says how to get the full one", async ({ daemon, visit }) => {
  await daemon.stop();
  daemon.program = "tests/programs/ttmemd-plain";
  await daemon.start();
  const player = await daemon.player({ comm: "plainly" }, "device 0 0xa1 wormhole_b0 n150 0 12884901888 100663296 12",
    "alloc 0 DRAM 0x1000 3145728 a");
  const visitor = await visit({ token: false });
  await visitor.page.goto(daemon.base);
  assert.equal(await visitor.page.title(), "ttmem");
  await visitor.has("This is the plain page", "body");
  await visitor.has("Node 18 and npm", "body");
  const told = await visitor.page.locator("code").allInnerTexts();
  assert.ok(told.includes("apt-get install nodejs npm") && told.includes("meson configure -Ddashboard=enabled"), told.join());
  // It is updated, and shows what smi shows.
  await visitor.has("3.0 MiB", "#devices");
  await visitor.has("12.0 GiB", "#devices");
  await visitor.has("plainly", "#processes");
  // It can be signed in, too: then its links show details.
  await visitor.page.goto("about:blank");
  await visitor.page.goto(await daemon.link());
  await visitor.has("Signed in as", "#session");
  assert.equal(visitor.page.url(), `${daemon.base}/`);
  await visitor.page.click("text=buffers >> nth=-1");
  await visitor.has('"name":"a"', "body");
  await visitor.page.goBack();
  await visitor.has("plainly", "#processes");
  await player.play("alloc 0 L1 0x2000 1536 b");
  await visitor.has("1.5 KiB", "#processes");
  await player.kill();
  await until("its end", async () => !/plainly(?! \(ended\))/.test(await visitor.text("#processes")));
});
