// SPDX-License-Identifier: Apache-2.0
//
// The dashboard in a real browser, against a real ttmemd: run.mjs [--part I/N] [PART-OF-A-NAME]. ./dev test web runs it.
import { launch, Visitor } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { runAll } from "./runner.mjs";
import "./test-views.mjs";
import "./test-numbers.mjs";
import "./test-map.mjs";
import "./test-charts.mjs";
import "./test-time.mjs";
import "./test-growth.mjs";
import "./test-incidents.mjs";
import "./test-access.mjs";
import "./test-flame.mjs";
import "./test-focus.mjs";
import "./test-live.mjs";
import "./test-open.mjs";
import "./test-rows.mjs";
import "./test-tabs.mjs";
import "./test-storage.mjs";
import "./test-stream.mjs";
import "./test-plain.mjs";
import "./test-hostile.mjs";
import "./test-crowd.mjs";
import "./test-recording.mjs";
import "./test-report.mjs";
import "./test-otlp.mjs";
import "./test-fleet.mjs";
import "./test-layout.mjs";
import "./test-address.mjs";
import "./test-axe.mjs";
import "./test-ended.mjs";
import "./test-download.mjs";
import "./test-matrix.mjs";

const browser = await launch();

/** The argument of each test: a daemon of its own, and visitors to it. */
async function setUp() {
  const daemon = await new Daemon().start();
  const visitors = [];
  const visit = async (options) => {
    const visitor = await new Visitor(daemon).open(browser, options);
    visitors.push(visitor);
    return visitor;
  };
  return { daemon, visit, visitors };
}

async function tearDown({ daemon, visitors }, name, failed) {
  try {
    if (failed) for (const [i, visitor] of visitors.entries()) await visitor.shoot(`failed-${name.replace(/\W+/g, "-")}-${i}`);
    else for (const visitor of visitors) visitor.check();
  } finally {
    for (const visitor of visitors) await visitor.close();
    await daemon.close();
  }
}

const good = await runAll(setUp, tearDown);
await browser.close();
process.exit(good ? 0 : 1);
