// SPDX-License-Identifier: Apache-2.0
//
// Four views of the buffers of a process: as a list, as a flame graph, by phase, and compared with an earlier moment.

import { compare, poolOf, partNote, placeOf, sumUp, type Change, type Sum } from "../analysis/sites";
import { clear, h, More, say, type Child } from "../base/dom";
import { age, bytes, clock, count, duration, plural, signed } from "../base/format";
import { pick, remember, rememberSoon, type Route } from "../base/router";
import { tabStore } from "../base/storage";
import type { Buffer } from "../data/model";
import type { Rows } from "../data/rows";
import { siteLabel, siteWhere, tellApart } from "../data/stack";
import { siteLine } from "../data/site-line";
import { Flame } from "../flame/flame";
import { typeVariable } from "../parts/colours";
import { saveMenu } from "../parts/download";
import { Grid } from "../parts/grid";
import { SiteGrid } from "../parts/site-grid";
import { stackList } from "../parts/stack-list";
import { cutNote, empty, figure, nameTable } from "../parts/view";
import { findMark, keepMark, knowMark, knownMark, markAt, type Who } from "../time/marks";
import { moment } from "../time/moment";

const NAMES = { buffers: "Buffers", sites: "Call sites", flame: "Flame graph", phases: "Phases", compare: "Compare" };
type Tab = keyof typeof NAMES;

const PHASES = 500;

const called = ({ site }: Buffer): string => {
  const line = site && siteLine(site);
  return line ? [line.what, line.where].filter(Boolean).join(" · ") : "";
};

function describe(buffer: Buffer): Child {
  const fact = (name: string, value: string): Child => [h("dt", {}, name), h("dd", {}, value)];
  return [
    h("dl", { class: "facts" },
      fact("Name", buffer.name ?? "–"), fact("Size", `${bytes(buffer.size)} (${count(buffer.size)} bytes)`),
      fact("Where", `${buffer.type} of device ${buffer.device}, ${buffer.address}`),
      fact("Born", `${clock(buffer.born_ns)}, ${duration(buffer.age_ns)} ago, by thread ${buffer.thread}`),
      buffer.phase && fact("Phase", buffer.phase),
      buffer.refs > 1 && fact("References", String(buffer.refs)),
      buffer.flags.length > 0 && fact("Flags", buffer.flags.join(", ").replace(/_/g, " "))),
    stackList(buffer.stack),
  ];
}

class BufferList {
  readonly element: HTMLElement;
  private shown = h("span", { class: "muted" });
  private grid: Grid<Buffer>;
  private all: Buffer[] = [];
  private wanted: URLSearchParams | null;

  constructor(route: Route) {
    const filter = h("input", {
      type: "search", placeholder: "Filter: name, type, phase, address", "aria-label": "Filter buffers", id: "filter",
      value: route.options.get("q"),
    });
    this.wanted = route.options.has("address") ? route.options : null;
    this.grid = new Grid<Buffer>("Live buffers", [
      { id: "size", title: "Size", number: true, width: "6.5rem", narrow: "5.6rem", text: (b) => bytes(b.size), sort: (b) => b.size, hint: (b) => `${count(b.size)} bytes` },
      { id: "type", narrow: "1.8rem", dot: true, title: "Type", width: "10rem", text: (b) => b.type, swatch: (b) => typeVariable(b.type) },
      { id: "name", narrow: "minmax(5rem, 1fr)", title: "Name", width: "minmax(9rem, 2fr)", text: (b) => b.name ?? "–", sort: (b) => b.name ?? "", hint: (b) => b.name ?? "" },
      { id: "phase", narrow: false, title: "Phase", width: "minmax(6rem, 1.3fr)", text: (b) => b.phase ?? "", hint: (b) => b.phase ?? "" },
      { id: "site", narrow: false, title: "Called from", width: "minmax(6rem, 1.3fr)", text: called },
      { id: "device", narrow: false, title: "Device", number: true, width: "4.5rem", text: (b) => String(b.device), sort: (b) => b.device },
      { id: "address", narrow: false, title: "Address", width: "8rem", text: (b) => b.address, sort: (b) => Number(b.address) },
      { id: "age", title: "Age", number: true, width: "4.5rem", narrow: "4rem", text: (b) => age(b.age_ns), sort: (b) => b.age_ns },
    ], "size", {
      key: placeOf, detail: describe, place: { route, name: "" },
      chosen: (buffer) => remember({ address: buffer?.address ?? null, of: buffer && poolOf(buffer) }),
    });
    filter.addEventListener("input", () => {
      rememberSoon({ q: filter.value || null });
      this.choose(filter.value);
    });
    if (filter.value) this.choose(filter.value);
    this.element = h("div", {}, h("div", { class: "tools" }, filter, this.shown, saveMenu("buffers", () => this.grid.figures())), this.grid.element);
  }

  private choose(text: string): void {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.grid.where((b) => {
      const text = `${b.name ?? ""} ${b.type} ${b.phase ?? ""} ${b.address} ${called(b)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.tell();
  }

  set(rows: Rows): void {
    this.all = rows.buffers;
    this.grid.set(this.all);
    this.tell();
    const wanted = this.wanted;
    this.wanted = null;
    if (wanted) this.grid.open((buffer) => buffer.address === wanted.get("address") &&
      (!wanted.has("of") || wanted.get("of") === poolOf(buffer)));
  }

  private tell(): void {
    const part = this.grid.length < this.all.length ? `${count(this.grid.length)} of ${count(this.all.length)}` : "";
    say(this.shown, part);
  }
}

class SiteList {
  readonly element: HTMLElement;
  private now = 0;
  private sites: SiteGrid<Sum>;

  constructor(route: Route) {
    this.sites = new SiteGrid<Sum>("Call sites", [
      { id: "bytes", title: "Bytes", number: true, width: "7rem", narrow: "5.6rem", text: (s) => bytes(s.bytes), sort: (s) => s.bytes },
      { id: "buffers", title: "Buffers", number: true, width: "6rem", narrow: "4.5rem", text: (s) => count(s.buffers), sort: (s) => s.buffers },
    ], [
      { id: "oldest", narrow: false, title: "Oldest", width: "6rem", number: true, text: (s) => age(this.now - s.oldestNs), sort: (s) => -s.oldestNs },
    ], (site) => this.names(site), { route, name: "site-" });
    this.element = h("div", {}, h("div", { class: "tools" }, saveMenu("call sites", () => this.sites.figures())), this.sites.element);
  }

  private names(site: Sum): HTMLElement | null {
    const list = [...site.called].map(([name, sum]) => ({ name, ...sum }));
    return nameTable(list.sort((a, b) => b.bytes - a.bytes), list.length);
  }

  set(rows: Rows): void {
    this.now = rows.timeNs;
    this.sites.set([...sumUp(rows.buffers).values()]);
  }
}

class PhaseList {
  readonly element = h("div", { class: "scroll" });

  set(rows: Rows): void {
    const sums = new Map<string, { bytes: number; buffers: number; oldest: number }>();
    let most = 1;
    for (const buffer of rows.buffers) {
      const sum = sums.get(buffer.phase ?? "") ?? { bytes: 0, buffers: 0, oldest: Infinity };
      sum.bytes += buffer.size;
      sum.buffers++;
      sum.oldest = Math.min(sum.oldest, buffer.born_ns);
      sums.set(buffer.phase ?? "", sum);
      most = Math.max(most, sum.bytes);
    }
    const list = [...sums].sort((a, b) => b[1].bytes - a[1].bytes).slice(0, PHASES);
    if (list.length === 0) return clear(this.element, empty("No live buffers."));
    clear(this.element, h("table", {},
      h("thead", {}, h("tr", {}, ["Phase", "Share", "Bytes", "Buffers", "Oldest"].map((text, i) =>
        h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
      h("tbody", {}, list.map(([phase, sum]) => h("tr", {},
        h("th", { scope: "row", class: "wrap" }, phase || "no phase"),
        h("td", { class: "meter" }, h("i", { "--part": `${(100 * sum.bytes) / most}%` })),
        h("td", { class: "number" }, bytes(sum.bytes)), h("td", { class: "number" }, count(sum.buffers)),
        h("td", { class: "number" }, age(rows.timeNs - sum.oldest)))))), cutNote(list.length, sums.size));
  }
}

class Comparison {
  readonly element: HTMLElement;
  private summary = h("div", {});
  private graph = h("div", { class: "flame-diff", hidden: true });
  private result = h("div", {});
  private flame: Flame | null = null; // once there is something to compare
  private rows: Rows | null = null;
  private there: Rows | null = null;
  private since = h("span", { class: "muted" });
  private more = new More(50, "call sites", () => this.show());
  private mark = h("button", { type: "button", class: "primary", disabled: true }, "Mark now");
  private elsewhere: number; // ns; the moment given in the link
  private note = "";

  constructor(private who: () => Who, private route: Route) {
    this.elsewhere = Number(route.options.get("since") ?? NaN);
    this.mark.addEventListener("click", () => {
      if (!this.rows) return;
      this.note = this.keep(this.rows);
      this.set(this.rows);
    });
    this.element = h("div", {}, h("div", { class: "tools" }, this.mark, this.since), this.summary, this.graph, this.result);
  }

  /** @there: the rows of the page's second time cursor. */
  set(rows: Rows, there: Rows | null = null): void {
    this.rows = rows;
    this.there = there;
    this.mark.disabled = false;
    this.show();
  }

  /** Returns the note to show. */
  private keep(rows: Rows): string {
    const who = this.who();
    knowMark(who, rows);
    remember({ since: String(rows.timeNs) });
    return keepMark(tabStore, who, rows) ? "" : " It will not outlive a reload of the page: it is too large, or the browser keeps nothing.";
  }

  private before(presentNs: number): Rows | null {
    const who = this.who();
    const known = knownMark(who) ?? findMark(tabStore, who, presentNs);
    if (known) knowMark(who, known);
    return known && known.timeNs <= presentNs ? known : null; // an earlier instant than the mark may be shown
  }

  private show(): void {
    if (!this.rows) return;
    this.mark.hidden = this.there !== null || moment.at !== null;
    const [early, after] = this.there && this.there.timeNs > this.rows.timeNs ? [this.rows, this.there] : [this.there, this.rows];
    const own = early ?? this.before(after.timeNs);
    const before = own ?? markAt(this.elsewhere, after, this.who());
    if (!before) {
      say(this.since, "");
      this.graph.hidden = true;
      clear(this.summary);
      return clear(this.result, empty("Mark this moment, let the process work, and come back: what was added since, and what went, by call site."));
    }
    if (early) say(this.since, `From ${clock(early.timeNs)} to ${clock(after.timeNs)} (${duration(after.timeNs - early.timeNs)})`);
    else say(this.since, `Since ${clock(before.timeNs)} (${duration(after.timeNs - before.timeNs)})` +
      (own ? this.note && `.${this.note}` : ", a moment that was marked elsewhere: what went since is not known here."));
    const changes = compare(before.buffers, after.buffers);
    const sum = (of: "added" | "gone" | "addedBuffers" | "goneBuffers"): number => changes.reduce((all, one) => all + one[of], 0);
    const figures = h("dl", { class: "figures small compare" },
      figure("Added", `${bytes(sum("added"))} in ${plural(sum("addedBuffers"), "buffer")}`),
      figure("Gone", own ? `${bytes(sum("gone"))} in ${plural(sum("goneBuffers"), "buffer")}` : "not known"),
      own && figure("Difference", signed(sum("added") - sum("gone"))));
    const part = partNote(own ?? after, after); // for a moment from a link, the note above says it
    const note = part && h("p", { class: "muted pad" }, part);
    clear(this.summary, figures, note);
    this.graph.hidden = changes.length === 0;
    if (changes.length === 0)
      return clear(this.result, empty(early ? "Nothing has changed between the two." : own ? "Nothing has changed since then." : "Nothing was added since then."));
    if (!this.flame) this.graph.append((this.flame = new Flame({ route: this.route, name: "diff-" })).element);
    this.flame.setDiff(before, after);
    clear(this.result, this.table(this.more.cut(changes), own !== null), this.more.element);
  }

  destroy(): void {
    this.flame?.destroy();
  }

  private table(changes: readonly Change[], gone: boolean): HTMLElement {
    const heads = ["Call site", "Called from", "Type", "Added", ...(gone ? ["Gone", "Difference"] : [])];
    return h("div", { class: "scroll" }, h("table", { class: "changes" },
      h("thead", {}, h("tr", {}, heads.map((text, i) => h("th", { scope: "col", class: i > 2 ? "number" : "" }, text)))),
      h("tbody", {}, tellApart(changes).map((change) => h("tr", {},
        h("th", { scope: "row", class: "wrap" }, siteLabel(change)), h("td", { class: "wrap muted" }, siteWhere(change)),
        h("td", {}, change.type ?? ""),
        h("td", { class: "number" }, change.addedBuffers ? `${bytes(change.added)} (${count(change.addedBuffers)})` : ""),
        gone && h("td", { class: "number" }, change.goneBuffers ? `${bytes(change.gone)} (${count(change.goneBuffers)})` : ""),
        gone && h("td", { class: `number ${change.added > change.gone ? "bad" : ""}` }, signed(change.added - change.gone)))))));
  }
}

export class Tabs {
  readonly element: HTMLElement;
  private bar: HTMLElement;
  private parts: Record<Tab, { element: HTMLElement; set(rows: Rows, there?: Rows | null): void }>;
  private flame: Flame;
  private comparison: Comparison;
  private panels = new Map<Tab, HTMLElement>();
  private buttons = new Map<Tab, HTMLButtonElement>();
  private stale = new Set<Tab>();
  private rows: Rows | null = null;
  private there: Rows | null = null;
  private now: Tab = "buffers";

  constructor(who: () => Who, route: Route, private chosen: (tab: Tab) => void) {
    this.flame = new Flame({ route, name: "flame-" });
    this.comparison = new Comparison(who, route);
    this.parts = {
      buffers: new BufferList(route), sites: new SiteList(route),
      flame: this.flame,
      phases: new PhaseList(), compare: this.comparison,
    };
    this.bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the buffers" });
    this.element = h("div", {}, h("div", { class: "tab-bar" }, this.bar));
    for (const tab of Object.keys(NAMES) as Tab[]) this.add(tab);
    this.bar.addEventListener("keydown", (event) => this.key(event));
    this.open(pick(NAMES, route.options.get("tab"), "buffers"));
  }

  destroy(): void {
    this.flame.destroy();
    this.comparison.destroy();
  }

  /** At the right end of the bar. */
  tools(...elements: HTMLElement[]): void {
    this.bar.after(h("div", { class: "tools" }, elements));
  }

  private add(tab: Tab): void {
    const button = h("button", { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": `panel-${tab}` }, NAMES[tab]);
    button.addEventListener("click", () => {
      this.open(tab);
      this.chosen(tab);
    });
    const content = h("div", { class: "tab", role: "tabpanel", id: `panel-${tab}`, "aria-labelledby": `tab-${tab}` }, this.parts[tab].element);
    this.bar.append(button);
    this.element.append(content);
    this.buttons.set(tab, button);
    this.panels.set(tab, content);
  }

  private key(event: KeyboardEvent): void {
    const tabs = Object.keys(NAMES) as Tab[];
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = tabs[(tabs.indexOf(this.now) + step + tabs.length) % tabs.length]!;
    this.buttons.get(next)!.click();
    this.buttons.get(next)!.focus();
  }

  private open(tab: Tab): void {
    this.now = tab;
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-selected", String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      this.panels.get(name)!.hidden = name !== tab;
    }
    this.fill();
  }

  /** @there: of the second time cursor. Once there is one its comparison is opened. */
  set(rows: Rows, there: Rows | null = null): void {
    const open = there !== null && this.there === null && this.now !== "compare";
    this.rows = rows;
    this.there = there;
    this.stale = new Set(Object.keys(NAMES) as Tab[]);
    if (open) this.buttons.get("compare")!.click();
    else this.fill();
  }

  /** Computes only what is visible. */
  private fill(): void {
    if (!this.rows || !this.stale.delete(this.now)) return;
    this.parts[this.now].set(this.rows, this.there);
  }
}
