// SPDX-License-Identifier: Apache-2.0
//
// axe-core, in a page of either browser.
import { readFileSync } from "node:fs";

const AXE = readFileSync(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

/** What axe objects to in a page, and whether it has one heading. @what: how the page is called. */
export async function objections(page, what) {
  await page.evaluate(`window.axe || (() => { ${AXE} })()`);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    const headings = document.querySelectorAll("h1").length;
    return [...(headings === 1 ? [] : [`${headings} h1`]), ...violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.any.concat(node.all, node.none).map((reason) => reason.message).join("; ")}`).join(" | ")}`)];
  });
  return found.map((text) => `${what}: ${text}`);
}
