// SPDX-License-Identifier: Apache-2.0
//
// A stack as a list, innermost call first.

import { h } from "../base/dom";
import type { Frame } from "../data/model";
import { folded, frameName, frameWhere } from "../data/stack";

export function stackList(stack: readonly Frame[]): HTMLElement {
  if (stack.length === 0) return h("p", { class: "muted" }, "No stack was recorded; ttmem doctor says why.");
  return h(
    "ol",
    { class: "stack", "aria-label": "Stack, innermost call first" },
    folded(stack).map((frame) =>
      h(
        "li",
        { class: frame.python ? "python" : "" },
        h("code", {}, frameName(frame)),
        h("span", { class: "muted", title: frame.file ?? frame.module ?? "" }, frameWhere(frame)),
        frame.python && h("span", { class: "tag" }, "Python"),
      ),
    ),
  );
}
