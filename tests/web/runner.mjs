// SPDX-License-Identifier: Apache-2.0
//
// Runs tests one after the other, each with a time limit, and appends a line of counts to the file that ./dev names,
// as the other suites do. --part I/N runs every N-th test only: parts can run in parallel, each in its own namespaces.
import { appendFileSync } from "node:fs";

// Only for hangs; no test takes a tenth of it. With --all, some visit sixty views in each browser.
const LIMIT_MS = process.env.TTMEM_WEB_ALL === "1" ? 1800000 : 240000;
export const WAIT_MS = 120000;
const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

function limited(run) {
  let timer;
  const limit = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("it does not come to an end")), LIMIT_MS);
  });
  return Promise.race([run(), limit]).finally(() => clearTimeout(timer));
}

/** The tests that the command line selects: [--part I/N] [PART-OF-A-NAME] */
function chosen(words) {
  const [part, parts] = words[0] === "--part" ? words[1].split("/").map(Number) : [0, 1];
  const wanted = words[0] === "--part" ? words[2] : words[0];
  return tests.filter(({ name }) => !wanted || name.includes(wanted)).filter((_test, i) => i % parts === part);
}

/** For the results file that ./dev names. */
function record(line) {
  if (process.env.TTMEM_RESULTS) appendFileSync(process.env.TTMEM_RESULTS, `${line}\n`);
}

/** Each test gets the result of @setUp; @tearDown is told whether it failed. */
export async function runAll(setUp, tearDown) {
  let passed = 0;
  let failed = 0;
  for (const { name, run } of chosen(process.argv.slice(2))) {
    const start = Date.now();
    let made;
    let problem = null;
    try {
      made = await setUp();
      await limited(() => run(made));
    } catch (error) {
      problem = error;
    }
    try {
      if (made) await tearDown(made, name, problem !== null);
    } catch (error) {
      problem ??= error;
    }
    if (problem) failed++;
    else passed++;
    console.log(`${problem ? "FAIL" : "ok  "} ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    if (problem) {
      console.log(problem.stack ?? String(problem));
      record(`# FAIL ${name}: ${String(problem).split("\n")[0].slice(0, 300)}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  record(`web ${passed} ${failed} 0`);
  return failed === 0 && passed > 0;
}

/** Polls until the condition holds. */
export async function until(what, condition, limitMs = WAIT_MS) {
  const end = Date.now() + limitMs;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
