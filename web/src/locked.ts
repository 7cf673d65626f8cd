// SPDX-License-Identifier: Apache-2.0
//
// What is shown to users without the token.

import { detailsAre } from "./api";
import { h } from "./dom";

/** Shown in place of content that needs the token. */
export function locked(what: string): HTMLElement {
  if (detailsAre() === "none")
    return h("p", { class: "empty" }, `${what} are not given over HTTP: the daemon runs without a token file.`);
  const button = h("button", { type: "button", class: "primary" }, "Enter the token");
  button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("ttmem-unlock")));
  return h(
    "div",
    { class: "empty locked" },
    h("p", {}, `${what} need the daemon's token.`),
    button,
  );
}
