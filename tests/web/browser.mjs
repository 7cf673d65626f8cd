// SPDX-License-Identifier: Apache-2.0
//
// Debian's Chromium, driven by playwright-core. Every page records its console messages and requests.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { WAIT_MS } from "./runner.mjs";

export const WIDE = { width: 1280, height: 720 };
export const PHONE = { width: 390, height: 844 };
const ARTEFACTS = process.env.TTMEM_ARTEFACTS ?? "build/artefacts";

// The browser must not send requests of its own either. Its sandbox does not work as root.
const QUIET = [
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
  "--no-first-run", "--no-proxy-server",
  ...(process.getuid() === 0 ? ["--no-sandbox"] : []),
];

export const launch = () =>
  chromium.launch({ executablePath: process.env.TTMEM_CHROMIUM ?? "/usr/bin/chromium", args: QUIET });

/** A new visitor, without any state of earlier ones. */
export class Visitor {
  constructor(daemon) {
    this.daemon = daemon;
    this.errors = [];
    this.requests = [];
    this.forgiven = [];
  }

  async open(browser, { size = WIDE, dark = false, token = true, scale = 1 } = {}) {
    this.context = await browser.newContext({ viewport: size, deviceScaleFactor: scale, colorScheme: dark ? "dark" : "light" });
    if (token)
      await this.context.addInitScript((text) => sessionStorage.setItem("ttmem.token", text), this.daemon.token);
    this.context.setDefaultTimeout(WAIT_MS);
    this.page = await this.context.newPage();
    this.page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.errors.push(message.text());
    });
    this.page.on("pageerror", (error) => this.errors.push(error.stack));
    this.page.on("request", (request) => this.requests.push(request));
    return this;
  }

  async go(hash = "#/") {
    await this.page.goto(`${this.daemon.base}/${hash}`);
    await this.page.waitForSelector("main h1, main h2");
  }

  /** Opens a page that is a file. */
  async goFile(path) {
    this.file = `file://${path}`;
    await this.page.goto(this.file);
    await this.page.waitForSelector("main h1");
  }

  /** Ignores errors that a test causes on purpose. */
  forgive(pattern) {
    this.forgiven.push(pattern);
  }

  async shoot(name, fullPage = false) {
    mkdirSync(ARTEFACTS, { recursive: true });
    await this.page.screenshot({ path: join(ARTEFACTS, `${name}.png`), fullPage });
  }

  text(selector) {
    return this.page.locator(selector).first().innerText();
  }

  has(text, selector = "main") {
    return this.page.locator(selector, { hasText: text }).first().waitFor();
  }

  /** Checks what holds for every visit: no errors, and no requests to other servers. */
  check() {
    const errors = this.errors.filter((text) => !this.forgiven.some((pattern) => pattern.test(text)));
    if (errors.length) throw new Error(`the page said: ${errors.join("\n")}`);
    for (const request of this.requests) {
      const url = request.url();
      if (!url.startsWith(`${this.daemon.base}/`) && url.split("#")[0] !== this.file) throw new Error(`a request went to ${url}`);
      if (url.includes(this.daemon.token)) throw new Error(`the token is in the address ${url}`);
    }
  }

  async close() {
    await this.context.close();
  }
}
