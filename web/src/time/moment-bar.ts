// SPDX-License-Identifier: Apache-2.0
//
// The bar that says which instant is shown, with the way back to now. It is hidden while the page is live.

import { h, renew, say } from "../base/dom";
import { clock, duration } from "../base/format";
import { recorded } from "../data/api";
import { live } from "../data/live";
import { nextFlag, flagsOf } from "./annotations";
import { Events } from "./events";
import { moment, tellInstant } from "./moment";

const STEP_NS = 1e9;
const REACH_S = 3600; // so far the next event is looked for

export class MomentBar {
  readonly element: HTMLElement;
  private text = h("span", { class: "moment-text", role: "status" });
  private versus = h("span", {});
  private notes = h("ul", { class: "notes" });
  private gaps = h("details", { class: "behind", hidden: true }, h("summary", {}, "Notes"), this.notes);
  private back = this.button("‹ 1 s", "One second back", () => this.step(-STEP_NS));
  private forth = this.button("1 s ›", "One second forward", () => this.step(STEP_NS));
  private previous = this.button("‹ event", "To the event before", () => void this.leap(-1));
  private next = this.button("event ›", "To the event after", () => void this.leap(1));
  private compare = this.button("Compare", "The next click on a chart sets the second instant", () => this.toggle());
  private now = this.button("Live", "Back to now", () => moment.live());
  private events = new Events(() => undefined);
  private note = "";

  constructor() {
    this.now.classList.add("primary");
    this.element = h("div", { class: "moment", hidden: true },
      this.text, this.versus, this.gaps, h("span", { class: "tools" }, this.previous, this.back, this.forth, this.next, this.compare, this.now));
    moment.onChange(() => {
      this.note = "";
      this.update();
    });
  }

  private button(text: string, title: string, press: () => void): HTMLButtonElement {
    const button = h("button", { type: "button", class: "small", title }, text);
    button.addEventListener("click", press);
    return button;
  }

  private step(ns: number): void {
    moment.set((moment.at ?? live.clockNs()) + ns);
  }

  private async leap(step: number): Promise<void> {
    const from = (moment.at ?? live.clockNs()) / 1e9;
    const [min, max] = step > 0 ? [from, from + REACH_S] : [from - REACH_S, from];
    await this.events.load(min, max, {});
    const found = nextFlag(flagsOf(this.events.list, { min, max }, Infinity), from, step);
    if (found) return moment.set(found.timeS * 1e9);
    this.note = `no event in the hour ${step > 0 ? "after" : "before"}`;
    this.update();
  }

  private toggle(): void {
    if (moment.other !== null) moment.compare(null);
    else moment.choose(!moment.choosing);
  }

  update(): void {
    const { at, other } = moment;
    say(this.now, recorded() ? "End" : "Live");
    if (recorded()) this.now.title = "To the end of the recording";
    this.element.hidden = at === null && other === null;
    if (this.element.hidden) return;
    const now = live.clockNs();
    const facts = moment.shown === at ? moment.totals?.moment : null;
    const what = at === null ? (recorded() ? "The end" : "Now") : tellInstant(at, now, facts, recorded(), moment.totals?.exact !== false);
    const notes = facts ? (moment.totals?.notes ?? []) : [];
    this.gaps.hidden = notes.length === 0;
    renew(this.notes, notes.map((note) => h("li", {}, note)));
    say(this.text, [what, moment.trouble || this.note || (moment.loading ? "reading …" : "")].filter(Boolean).join("; "));
    this.text.classList.toggle("bad", moment.trouble !== "");
    say(this.versus, moment.choosing ? "Click a chart, or Shift+Enter on one, to choose the other instant."
      : other === null ? "" : `compared with ${clock(other)}, ${duration(Math.abs((at ?? now) - other))} ${other < (at ?? now) ? "earlier" : "later"}`);
    say(this.compare, other !== null ? "Stop comparing" : moment.choosing ? "Cancel" : "Compare");
    for (const button of [this.forth, this.next]) button.disabled = at === null;
  }
}
