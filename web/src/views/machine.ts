// SPDX-License-Identifier: Apache-2.0
//
// The time strip: the memory of the whole machine over time, on every view, to choose an instant. A button opens it;
// with an instant in the address it is open on views without charts of their own.

import { h } from "../base/dom";
import type { Route } from "../base/router";
import { recorded } from "../data/api";
import { rangeOf } from "../parts/view";
import { moment } from "../time/moment";
import { Past, type Subject } from "./past";

const SUBJECT: Subject = {
  title: "Time", label: "Memory of the whole machine over time", height: 110, parameters: {},
  start: () => 0,
  owns: (line) => line.pid === null,
  used: (type) => moment.totals?.devices.reduce((sum, device) => sum + device.memory[type].used, 0) ?? null,
};

export interface Strip {
  element: HTMLElement;
  button: HTMLElement;
  show(view: Route["view"]): void;
  update(): void;
}

export function machine(): Strip {
  const element = h("div", { class: "strip-time", hidden: true });
  const button = h("button", { type: "button", class: "plain", title: "Go to an earlier instant", "aria-expanded": "false" }, "Past");
  let past: Past | null = null;
  const open = (on: boolean): void => {
    if (on === (past !== null)) return;
    past?.destroy();
    past = on ? new Past(SUBJECT, rangeOf(null)) : null;
    element.replaceChildren(...(past ? [past.element] : []));
    element.hidden = !on;
    button.setAttribute("aria-expanded", String(on));
  };
  button.addEventListener("click", () => open(past === null));
  return {
    element, button,
    show: (view) => {
      if ((recorded() || moment.at !== null || moment.other !== null) && (view === "overview" || view === "incidents")) open(true);
    },
    update: () => past?.update(),
  };
}
