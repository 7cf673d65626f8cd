// SPDX-License-Identifier: Apache-2.0
//
// What is shown to users who may not see details.

import { h } from "../base/dom";
import { detailsAre, signedIn } from "../data/api";

/** Shown in place of details. */
export function locked(what: string): HTMLElement {
  if (signedIn())
    return h("p", { class: "empty" }, `${what} of other users are for them, root and members of the daemon's group.`);
  const button = h("button", { type: "button", class: "primary" }, "Enter the token");
  button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("ttmem-unlock")));
  return h(
    "div",
    { class: "empty locked" },
    h("p", {}, `${what} are for users who are signed in: run `, h("code", {}, "ttmem open"), " in a terminal."),
    detailsAre() === "token" && button,
  );
}
