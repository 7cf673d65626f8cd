// SPDX-License-Identifier: Apache-2.0
//
// Signing in with a link of "ttmem open". Who may see what is tested with real users in integration/trust/test_open.py.
import assert from "node:assert/strict";
import { test } from "./runner.mjs";

const secretive = (daemon) => daemon.player({ comm: "secretive" }, "alloc 0 DRAM 0x1000 4096 secret_name");

test("a link of ttmem open signs the browser in, and its code stays nowhere", async ({ daemon, visit }) => {
  const player = await secretive(daemon);
  const visitor = await visit({ token: false });
  await visitor.go("#/incidents");
  const link = await daemon.link(player.pid);
  const code = /#\/open\/([0-9a-f]{64})\//.exec(link)[1];
  await visitor.page.goto("about:blank");
  const before = await visitor.page.evaluate(() => history.length);
  await visitor.page.goto(link);
  await visitor.has("secret_name", ".grid-body");
  await visitor.has("Signed in as", "header");
  assert.equal(await visitor.page.evaluate(() => location.hash), `#/process/${player.pid}`);
  assert.equal(await visitor.page.evaluate(() => history.length), before + 1);
  // No request but the one that exchanged it has it, and scripts can read neither it nor the cookie.
  for (const request of visitor.requests) {
    assert.ok(!request.url().split("#")[0].includes(code));
    const isExchange = request.url().endsWith("/api/v1/sign-in");
    assert.equal(Object.values(await request.allHeaders()).some((text) => text.includes(code)), isExchange, request.url());
  }
  assert.equal(await visitor.page.evaluate(() => document.cookie + JSON.stringify({ ...sessionStorage, ...localStorage })), "{}");
  const [cookie] = await visitor.context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path, cookie.expires], [true, "Strict", "/", -1]);
  // A reload and another tab of this browser are signed in, too.
  await visitor.page.reload();
  await visitor.has("secret_name", ".grid-body");
  await visitor.page.goBack();
  await visitor.page.goForward();
  assert.ok(!(await visitor.page.url()).includes(code));
  await visitor.has("secret_name", ".grid-body");
  await visitor.page.click("text=Sign out");
  await visitor.has("run ttmem open", "main");
  assert.ok(!(await visitor.text("main")).includes("secret_name"));
  await visitor.has("Unlock details", "header button");
  assert.deepEqual(await visitor.context.cookies(), []);
});

test("a link that was used says what to do", async ({ daemon, visit }) => {
  const player = await secretive(daemon);
  const link = await daemon.link(player.pid);
  const first = await visit({ token: false });
  await first.page.goto(link);
  await first.has("secret_name", ".grid-body");
  const second = await visit({ token: false });
  second.forgive(/401/);
  await second.page.goto(link);
  await second.has("You are not signed in: this link does not work any more", ".banner");
  await second.has("Run \"ttmem open\" again", ".banner");
  await second.has("run ttmem open", "main");
  // A new one in the same tab, of which only the part behind "#" is new.
  await second.page.goto(await daemon.link(player.pid));
  await second.has("secret_name", ".grid-body");
  await second.page.locator(".banner").waitFor({ state: "hidden" });
});

test("a session that has ended is noticed", async ({ daemon, visit }) => {
  const player = await secretive(daemon);
  const visitor = await visit({ token: false });
  visitor.forgive(/401/);
  await visitor.page.goto(await daemon.link(player.pid));
  await visitor.has("secret_name", ".grid-body");
  await visitor.context.clearCookies();
  await visitor.has("You are not signed in any more", ".banner");
  await visitor.has("run ttmem open", "main");
});

test("who is signed in is not shown what is not theirs", async ({ daemon, visit }) => {
  const player = await secretive(daemon);
  const visitor = await visit({ token: false });
  await visitor.page.route("**/healthz", async (route) => {
    const answer = await route.fetch();
    const session = { user: "someone\u202e", user_id: 12345, sees_all: false };
    await route.fulfill({ json: { ...(await answer.json()), session } });
  });
  await visitor.page.route("**/api/v1/incidents*", (route) => route.fulfill({ json: { incidents: [], next: null } }));
  await visitor.page.route("**/api/v1/growth*", (route) => route.fulfill({ json: { sites: [] } }));
  await visitor.go("#/");
  await visitor.has("Nothing went wrong in your processes.", "main");
  await visitor.has("Signed in as someone\\u202e", "header");
  for (const hash of [`#/process/${player.pid}`, "#/device/0"]) {
    await visitor.go(hash);
    await visitor.has("of other users are for them, root and members", "main");
  }
  assert.deepEqual(visitor.requests.filter((request) => /buffers|map|fit/.test(request.url())), []);
});
