// SPDX-License-Identifier: Apache-2.0
//
// A list of 100,000 rows: the number of elements in the page and the cost of each scroll step do not depend on its
// length, and every row is in its place. Times are printed, not judged.
import assert from "node:assert/strict";
import { test, until } from "./runner.mjs";

const COUNT = 100000;
const FIRST = 0x1000;
const SIZE = 64;
const ROW = 26; // pixels
const ROWS_MAX = 64; // in the page at a time: the visible ones, and some above and below
const COLUMNS = 8;

/**
 * In the page: scrolls through the list, first screen by screen, then in leaps to its end, and counts the created elements.
 * Each row must have the address and the position that its number implies.
 */
async function walk(view, { count, first, size, row }) {
  const body = view.querySelector(".grid-body");
  const head = view.querySelector(".grid-top").offsetHeight; // stays at the top, above the rows
  const room = view.clientHeight - head;
  const told = { rows: 0, wrong: [], elements: 0, most: 0, missing: [], longTasks: 0 };
  const observer = new MutationObserver(() => undefined);
  observer.observe(body, { childList: true, subtree: true, attributes: true, characterData: true });
  const tasks = new PerformanceObserver((list) => (told.longTasks += list.getEntries().filter((one) => one.duration > 200).length));
  tasks.observe({ entryTypes: ["longtask"] });
  const look = (asked) => {
    const numbers = new Set();
    const records = observer.takeRecords();
    told.most = Math.max(told.most, records.length);
    for (const { addedNodes } of records) told.elements += [...addedNodes].filter((node) => node.nodeType === Node.ELEMENT_NODE).length;
    const shown = [...body.children].filter((one) => !one.hidden);
    told.rows = Math.max(told.rows, body.children.length);
    const top = view.getBoundingClientRect().top + head - view.scrollTop;
    for (const one of shown) {
      const number = Number(one.getAttribute("aria-rowindex")) - 2;
      const address = `0x${(first + number * size).toString(16)}`;
      if (one.children[6].textContent !== address || Math.abs(one.getBoundingClientRect().top - top - number * row) > 1) told.wrong.push(`${number}: ${one.textContent}`);
      numbers.add(number);
    }
    // All rows visible from there, up to the end of the list.
    const end = Math.min(count, asked + Math.floor(room / row));
    for (let i = asked; i < end; i++) if (!numbers.has(i)) told.missing.push(i);
  };
  const screen = Math.floor(room / row);
  const stops = [];
  for (let i = 0; i < 50; i++) stops.push(i * screen);
  for (let i = 1; i <= 150; i++) stops.push(Math.min(count - screen, Math.floor((count * i) / 150)));
  for (const [turn, stop] of stops.entries()) {
    if (turn === 3) told.elements = 0; // until then rows above the visible ones are created
    view.scrollTop = stop * row;
    view.dispatchEvent(new Event("scroll")); // the browser sends this event only once per frame
    look(stop);
    if (turn % 10 === 0) await new Promise(requestAnimationFrame); // as it draws them
  }
  observer.disconnect();
  tasks.disconnect();
  return { ...told, wrong: told.wrong.slice(0, 5), missing: told.missing.slice(0, 5) };
}

test("100,000 buffers scroll", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `many 0 DRAM ${FIRST} ${SIZE} ${COUNT}`, "alloc 1 L1 0x10 1 the_smallest");
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("100,001 buffers", ".tab-bar");
  const view = page.locator("#panel-buffers .grid-view");
  const rows = () => page.locator(".grid-body .grid-row:visible").count();
  assert.ok((await rows()) < ROWS_MAX, "only rows that can be seen are there");
  await view.evaluate((one) => (one.scrollTop = one.scrollHeight));
  await visitor.has("the_smallest", ".grid-body");
  await page.fill("#panel-buffers input", "dram");
  await visitor.has("100,000 of 100,001", "#panel-buffers");
  await page.click("#panel-buffers .grid-head button:text-is('Address')");
  const start = Date.now();
  const told = await view.evaluate(walk, { count: COUNT, first: FIRST, size: SIZE, row: ROW });
  console.log(`     ${Date.now() - start} ms for all of it, ${told.longTasks} pauses of more than 200 ms`);
  assert.deepEqual(told.wrong, [], "each row at its place");
  assert.deepEqual(told.missing, [], "each row that is asked for is there");
  assert.ok(told.rows < ROWS_MAX, `${told.rows} rows in the page`);
  assert.equal(told.elements, 0, "rows that are there are used again");
  // Text and tooltip of each cell, the number of each row: nothing that grows with the list.
  assert.ok(told.most <= ROWS_MAX * (2 * COLUMNS + 4) + 2, `${told.most} changes for one step`);
});

test("100,000 rows scroll by wheel and by keys", async ({ daemon, visit }) => {
  const player = await daemon.player({}, `many 0 DRAM ${FIRST} ${SIZE} ${COUNT}`);
  const visitor = await visit();
  const { page } = visitor;
  await visitor.go(`#/process/${player.pid}`);
  await visitor.has("100,000 buffers", ".tab-bar");
  await page.click("#panel-buffers .grid-head button:text-is('Address')");
  const view = page.locator("#panel-buffers .grid-view");
  /** The addresses of the visible rows from the top, and the scroll position at that moment. */
  const look = () => view.evaluate((one) => {
    const frame = one.getBoundingClientRect();
    const box = { top: frame.top + one.querySelector(".grid-top").offsetHeight, bottom: frame.bottom };
    const list = [...one.querySelectorAll(".grid-body .grid-row:not([hidden])")].filter((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return bottom > box.top + 1 && top < box.bottom - 1;
    }).map((row) => Number(row.children[6].textContent));
    return { list, top: one.scrollTop };
  });
  const seen = async () => (await look()).list;
  /** Checks that the visible rows have no gap and match the scroll position. */
  const check = async (what) => {
    const { list, top } = await look();
    list.forEach((address, i) => assert.equal(address, FIRST + (Math.floor(top / ROW + 0.01) + i) * SIZE, `${what}, row ${i}`));
    assert.ok(list.length > 10 && list.length < 30, `${what}: ${list.length} rows`);
    return list;
  };
  const settled = async (what, reached) => {
    await until(what, async () => reached(await view.evaluate((one) => one.scrollTop)));
    let before = -1; // it may still be scrolling
    await until("rest", async () => {
      const now = await view.evaluate((one) => one.scrollTop);
      const rests = now === before;
      before = now;
      return rests;
    });
  };
  await view.hover();
  for (const [delta, least] of [[300, 200], [130000, 100000], [1300000, 1000000]]) {
    await page.mouse.wheel(0, delta);
    await settled(`${delta} pixels`, (top) => top > least);
    await check(`wheel ${delta}`);
  }
  await view.focus();
  const last = FIRST + (COUNT - 1) * SIZE;
  await page.keyboard.press("End");
  await settled("the end", (top) => top > COUNT * ROW - 1000);
  assert.equal((await check("End")).at(-1), last);
  await page.keyboard.press("PageUp");
  await settled("a page before", (top) => top < COUNT * ROW - 600);
  await check("PageUp");
  await page.keyboard.press("Home");
  await settled("the beginning", (top) => top === 0);
  assert.equal((await check("Home"))[0], FIRST);
  // From row to row, past the last visible one.
  for (let i = 0; i < 40; i++) await page.keyboard.press("ArrowDown");
  assert.equal(Number(await page.locator(".grid-row.chosen > :nth-child(7)").innerText()), FIRST + 39 * SIZE);
  assert.ok((await seen()).includes(FIRST + 39 * SIZE), "it can be seen");
  await page.fill("#panel-buffers input", `0x${last.toString(16)}`);
  await visitor.has("1 of 100,000", "#panel-buffers");
  assert.deepEqual(await seen(), [last]);
});
