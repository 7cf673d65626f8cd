// SPDX-License-Identifier: Apache-2.0
//
// A button that copies a link. Browsers give the clipboard to secure pages only (loopback or https), and may refuse it
// there too: then the link is shown, selected, to be copied by hand.

import { h, say } from "../base/dom";

export function copyLink(hash: string): HTMLElement {
  const button = h("button", { type: "button", class: "small" }, "Copy link");
  const told = h("span", { class: "hidden", role: "status" });
  const field = h("input", { type: "text", readonly: true, "aria-label": "The link, to be copied" });
  const byHand = h("span", { class: "by-hand", hidden: true }, field, h("span", { class: "muted" }, "Copy it with Ctrl+C (⌘C)."));
  button.addEventListener("click", async () => {
    const address = `${location.origin}${location.pathname}${hash}`;
    try {
      await navigator.clipboard.writeText(address);
      say(button, "Copied");
      say(told, "The link was copied.");
    } catch {
      field.value = address;
      byHand.hidden = false;
      field.focus();
      field.select();
    }
  });
  return h("span", { class: "tools" }, button, told, byHand);
}
