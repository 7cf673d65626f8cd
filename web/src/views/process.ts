// SPDX-License-Identifier: Apache-2.0
//
// One process: its devices, its history, every live buffer, and their call sites.

import { clear, h, hint, Keyed, say, type Row } from "../base/dom";
import { bytes, clock, count, lifetime, plural } from "../base/format";
import { link, remember, type Route } from "../base/router";
import { mayAsk, problem, recorded } from "../data/api";
import { commandOf, learnCommands } from "../data/commands";
import { live } from "../data/live";
import { buffersOf, poolUsed, TYPES, type Part, type Process } from "../data/model";
import { loadBuffers, type Rows } from "../data/rows";
import { locked } from "../parts/locked";
import { panel, rangeOf, TYPE_TITLES, type View } from "../parts/view";
import type { Who } from "../time/marks";
import { moment } from "../time/moment";
import { Past, type Subject } from "./past";
import { Tabs } from "./process-tabs";

const AUTO_ROWS = 5000; // up to so many are refreshed automatically, more only on demand
const AUTO_MS = 3000;
const DOUBT_MS = 1000;

const find = (pid: number): Process | undefined => {
  const all = moment.totals?.processes.filter((process) => process.pid === pid) ?? [];
  return all.find((process) => process.alive) ?? all[0];
};

/** What charts show of it. */
const subject = (pid: number): Subject => ({
  title: "Timeline", label: "Memory of the process over time", parameters: { pid }, remembers: true,
  start: () => find(pid)?.start_ns ?? 0,
  owns: () => true,
  used: (type) => find(pid)?.devices.reduce((sum, part) => sum + part.memory[type].used, 0) ?? null,
});

function deviceRow(part: Part): Row<Part> {
  const cells = [0, 1, 2, 3].map(() => h("td", { class: "number" }));
  const element = h("tr", {},
    h("th", { scope: "row" }, h("a", { href: link("device", part.uid ?? String(part.device)) }, `Device ${part.device}`),
      part.closed && h("span", { class: "tag" }, "closed")),
    cells);
  return {
    element,
    update(now) {
      (["DRAM", "L1", "SYSTEM"] as const).forEach((pool, i) => say(cells[i]!, bytes(poolUsed(now.memory, pool))));
      say(cells[3]!, count(buffersOf(now.memory)));
      element.title = TYPES.filter((type) => now.memory[type].used > 0)
        .map((type) => `${TYPE_TITLES[type]} ${bytes(now.memory[type].used)}`).join(", ");
    },
  };
}

/** Everything that needs the rows. */
class Holdings {
  readonly element = h("section", { class: "panel" });
  private tabs: Tabs | null = null;
  private status = h("span", { class: "muted", role: "status" });
  private refresh = h("button", { type: "button", class: "small" }, "Refresh");
  private abort = new AbortController();
  private timer = 0;
  private read = false;
  private shown = 0; // rows
  private doubted = false;
  private ended = false;
  private start = 0; // start time of the process, as last known
  private key = ""; // of the instant that was read

  constructor(
    private pid: number,
    route: Route,
  ) {
    if (!mayAsk(find(pid)?.user_id)) {
      clear(this.element, locked("Buffers, names and stacks"));
      return;
    }
    this.tabs = new Tabs(() => this.who(), route, (tab) => remember({ tab }));
    this.refresh.addEventListener("click", () => void this.load());
    this.element.append(this.tabs.element);
    this.tabs.tools(this.status, this.refresh);
    void this.load();
  }

  destroy(): void {
    this.abort.abort();
    clearTimeout(this.timer);
    this.tabs?.destroy();
  }

  private who(): Who {
    this.start = find(this.pid)?.start_ns ?? this.start;
    return { pid: this.pid, startNs: this.start };
  }

  /** Whether the process has exited. Then the last rows stay, because the daemon no longer has any. */
  end(ended: boolean): void {
    if (ended === this.ended) return;
    this.ended = this.refresh.disabled = ended;
    if (!ended) void this.load();
    else if (this.read) {
      clearTimeout(this.timer);
      this.abort.abort();
    }
  }

  /** Another instant is shown. Now there is nothing of a process that has exited. */
  update(): void {
    if (this.tabs && !this.ended && this.key !== moment.key) void this.load();
  }

  /** A list that is suddenly empty may mean an exit that the stream has not reported yet, so it is requested twice. */
  private doubts(rows: Rows): boolean {
    this.doubted = moment.shown === null && !this.doubted && rows.buffers.length === 0 && this.shown > 0;
    if (this.doubted) this.timer = window.setTimeout(() => void this.load(), DOUBT_MS);
    return this.doubted;
  }

  async load(): Promise<void> {
    clearTimeout(this.timer);
    this.abort.abort();
    this.abort = new AbortController();
    // Not the rows of now while the instant is being read.
    if (moment.at !== null && moment.shown === null) return say(this.status, "Reading …");
    const { signal } = this.abort;
    const past = moment.shown;
    if (!this.read || this.key !== moment.key) say(this.status, "Reading …");
    this.key = moment.key;
    this.refresh.hidden = past !== null;
    try {
      const rows = await loadBuffers({ pid: this.pid, ...moment.parameters() }, signal, (loaded) => {
        if (loaded > AUTO_ROWS) say(this.status, `${count(loaded)} read …`);
      });
      const there = moment.other === null ? null : await loadBuffers({ pid: this.pid, ...moment.otherParameters() }, signal);
      if (this.doubts(rows)) return;
      this.show(rows, there);
      if (past === null && rows.buffers.length <= AUTO_ROWS && find(this.pid)?.alive)
        this.timer = window.setTimeout(() => void this.load(), AUTO_MS);
    } catch (error) {
      if (signal.aborted) return;
      // What was read before is of another instant.
      if (past !== null || moment.other !== null) this.show({ buffers: [], timeNs: past ?? live.clockNs(), complete: true }, null);
      else this.timer = window.setTimeout(() => void this.load(), AUTO_MS);
      say(this.status, problem(error));
    }
  }

  private show(rows: Rows, there: Rows | null): void {
    this.read = true;
    this.shown = rows.buffers.length;
    this.tabs?.set(rows, there);
    say(this.status, this.text(rows));
  }

  private text(rows: Rows): string {
    const number = rows.complete ? plural(rows.buffers.length, "buffer") : `the first ${count(rows.buffers.length)} buffers`;
    return `${number}, ${clock(rows.timeNs)}`;
  }
}

export function processView(route: Route): View {
  const pid = Number(route.id);
  const heading = h("h1", {}, `Process ${pid}`);
  const facts = h("span", { class: "muted" });
  const command = h("code", { class: "command" });
  const why = h("p", {});
  const gone = h("div", { class: "panel", hidden: true },
    h("div", { class: "empty" }, why,
      h("a", { href: link("incidents", "", { pid: String(pid) }) }, "What it left behind"), " · ",
      h("a", { href: link("ended", "", { q: String(pid) }) }, "Ended processes")));
  const body = h("tbody", {});
  const devices = new Keyed<Part>(body, (part) => `${part.device} ${part.uid}`, deviceRow);
  const past = new Past(subject(pid), rangeOf(route.options.get("range")), route.options.get("pool"));
  const holdings = new Holdings(pid, route);
  const table = panel("Devices", null, h("div", { class: "scroll bounded" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Device", "DRAM", "L1", "System", "Buffers"].map((text, i) =>
      h("th", { scope: "col", class: i ? "number" : "" }, text)))), body)));
  const content = h("div", { class: "columns wide-right" }, table, past.element);
  const element = h("div", {},
    h("div", { class: "crumbs" }, h("a", { href: link("overview") }, "Overview"), heading, facts, mayAsk() && command),
    gone, content, holdings.element);
  let known = false;
  let start: number | null = null; // of the process that was seen running
  let last: Process | undefined; // as last seen running
  let ended = false;
  const tell = (now: Process): void => say(facts, [
    `user ${now.user}`, now.container && `container ${now.container.slice(0, 12)}`,
    lifetime(now, moment.clockNs(), moment.at !== null || recorded() !== null),
    now.source === "book" ? "" : `source: ${now.source}`, now.exact ? "" : "figures are bounds",
  ].filter(Boolean).join(" · "));
  const update = (): void => {
    const now = find(pid);
    const then = moment.at !== null;
    gone.hidden = (now !== undefined && now.alive) || !moment.totals;
    // A process never seen has nothing to show; an exited one shows what was seen last.
    known ||= now !== undefined;
    say(why, then ? `Process ${pid} ${now ? "had ended by then. Below is what was seen of it last." : "was not there then, or not tracked."}`
      : known ? `Process ${pid} has ended. Below is what was seen of it last.`
      : `Process ${pid} is not there: it has ended, or was never tracked.`);
    content.hidden = holdings.element.hidden = !known && moment.totals !== null;
    // Another process with its pid starts from scratch.
    if (now?.alive && start !== null && now.start_ns !== start && ended) return void dispatchEvent(new Event("hashchange"));
    ended = !then && start !== null && live.totals !== null && !now?.alive;
    holdings.end(ended);
    holdings.update();
    past.update();
    if (now?.alive) start = now.start_ns;
    if (now?.alive) last = now;
    if (ended && last) tell({ ...last, alive: false });
    if (!now || ended) return;
    say(heading, `${now.comm} (${pid})`);
    void learnCommands([now], update);
    say(command, commandOf(now));
    hint(command, commandOf(now));
    tell(now);
    devices.show(now.devices);
  };
  update();
  return {
    element, title: `Process ${pid}`, update,
    destroy: () => { past.destroy(); holdings.destroy(); },
  };
}

