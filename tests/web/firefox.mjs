// SPDX-License-Identifier: Apache-2.0
//
// Debian's Firefox, driven by puppeteer-core over WebDriver BiDi, with a profile of its own.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { WAIT_MS } from "./runner.mjs";

const PROGRAM = process.env.TTMEM_FIREFOX ?? "/usr/bin/firefox-esr";

export const hasFirefox = existsSync(PROGRAM);

/** Runs @visit with a page, which may not say an error nor send a request elsewhere than to @allowed. */
export async function withFirefox(allowed, visit, { dark = false } = {}) {
  const home = mkdtempSync(join(tmpdir(), "ttmem-firefox-"));
  const browser = await puppeteer.launch({
    browser: "firefox", executablePath: PROGRAM, headless: true, timeout: WAIT_MS, protocolTimeout: WAIT_MS,
    env: { ...process.env, HOME: home }, defaultViewport: { width: 1280, height: 900 },
    // It must not send requests of its own either.
    extraPrefsFirefox: {
      "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false,
      "layout.css.prefers-color-scheme.content-override": dark ? 0 : 1,
    },
  });
  try {
    const page = await browser.newPage();
    const problems = [];
    page.setDefaultTimeout(WAIT_MS);
    page.on("console", (message) => ["error", "warn"].includes(message.type()) && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(error.stack ?? String(error)));
    // The browser's own list markers are a font in a "data:" URL.
    page.on("request", (request) => request.url().startsWith(allowed) || request.url().startsWith("data:") ||
      problems.push(`a request went to ${request.url()}`));
    await visit(page);
    if (problems.length) throw new Error(`the page said: ${problems.join("\n")}`);
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
}
