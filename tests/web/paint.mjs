// SPDX-License-Identifier: Apache-2.0
//
// A measurement for ./dev load paint, not a test: paint.mjs URL COUNT [PID...] opens the overview COUNT times, each
// time as a new visitor, then kills the processes one by one while the page is open. Prints milliseconds as JSON.
import { launch, WIDE } from "./browser.mjs";

const [url, count, ...victims] = process.argv.slice(2);
const LIMIT = { timeout: 60000 };
const figures = { first: [], card: [], leak: [] };

/** Runs in the page from its start: records when the first device showed a visible number. */
function watch() {
  const look = () => {
    const text = document.querySelector(".card .bar-figure")?.textContent ?? "";
    if (/\d/.test(text)) window.cardAt = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function open(browser) {
  const context = await browser.newContext({ viewport: WIDE });
  await context.addInitScript(watch);
  const page = await context.newPage();
  await page.goto(url, { waitUntil: "commit" });
  // Both are counted from the moment of the navigation.
  const seen = await page.waitForFunction(() => {
    const first = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
    return first && window.cardAt ? { first, card: window.cardAt } : null;
  }, null, LIMIT);
  return { context, page, seen: await seen.jsonValue() };
}

const browser = await launch();
// The first page of a browser is slower than all others, whatever it shows.
await (await open(browser)).context.close();
for (let i = 0; i < Number(count); i++) {
  const { context, seen } = await open(browser);
  figures.first.push(seen.first);
  figures.card.push(seen.card);
  await context.close();
}
const { page } = await open(browser);
for (const pid of victims) {
  const start = Date.now();
  process.kill(Number(pid), "SIGKILL");
  const at = await page.waitForFunction(
    (text) => (document.querySelector(".events")?.textContent.includes(text) ? Date.now() : null), `(${pid})`, LIMIT);
  figures.leak.push((await at.jsonValue()) - start);
}
await browser.close();
console.log(JSON.stringify(figures));
