// SPDX-License-Identifier: Apache-2.0
//
// Incidents, grouped by the call site that caused them. The URL of a group depends on its content, not on when it
// was seen, so a link to it can be shared.

import { groupUp, joined, type Group, type Leak } from "../analysis/groups";
import { choice, clear, h, say } from "../base/dom";
import { bytes, clock, count, plural } from "../base/format";
import { link, parse, remember, type Route } from "../base/router";
import { mayAsk, pages, problem } from "../data/api";
import { live } from "../data/live";
import { KINDS, type Incident, type LeakedProcess } from "../data/model";
import { fromNs } from "../data/series";
import { siteKey, siteLabel, siteWhere, tellApart } from "../data/stack";
import { copyLink } from "../parts/copy-link";
import { DETAILS, howEnded, incidentDetail } from "../parts/incident-detail";
import { locked } from "../parts/locked";
import { stackList } from "../parts/stack-list";
import { cutNote, empty, figure, nameTable, panel, type View } from "../parts/view";

const RANGES = [
  { value: "3600", text: "1 h" },
  { value: "86400", text: "24 h" },
  { value: "604800", text: "7 days" },
  { value: "0", text: "All" },
] as const;
type Range = (typeof RANGES)[number]["value"];

const FILTERS = [{ value: "all", text: "All" }, ...Object.entries(KINDS).map(([value, text]) => ({ value, text }))];
const LIST_MAX = 5000;
const LEAK_ROWS = 200;
const LEAK_BUFFERS = 1000; // of a process, the largest; there may be many thousands

async function all<T extends { next: string | null }, I>(path: string, parameters: Record<string, string>, take: (page: T) => I[], signal: AbortSignal): Promise<I[]> {
  const list: I[] = [];
  for await (const page of pages<T>(path, parameters, signal)) {
    list.push(...take(page));
    if (list.length >= LIST_MAX) break;
  }
  return list;
}

function leakDetail({ process, site }: Leak): HTMLElement {
  const key = siteKey(site, true);
  const rows = process.buffers.filter((buffer) => siteKey(buffer, true) === key);
  return h("article", {},
    h("h3", {}, `${process.comm} (${process.pid}) · ${clock(process.ended_ns)}`),
    h("p", { class: "muted" },
      `${howEnded(process)} · left ${bytes(site.bytes)} in ${plural(site.buffers, "buffer")} here, `,
      `${bytes(process.bytes)} in ${plural(process.buffer_count, "buffer")} in all`,
      process.user ? ` · ${process.user}` : ""),
    nameTable(site.names, site.name_count ?? site.names.length),
    rows.length > 0 && h("div", { class: "scroll leak-buffers" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Address", "Device", "Type", "Size", "Name", "Phase", "Born"].map((text, i) =>
        h("th", { scope: "col", class: i === 3 || i === 1 ? "number" : "" }, text)))),
      h("tbody", {}, rows.slice(0, LEAK_ROWS).map((buffer) => h("tr", {},
        h("td", {}, h("code", {}, buffer.address)), h("td", { class: "number" }, String(buffer.device)), h("td", {}, buffer.type),
        h("td", { class: "number" }, bytes(buffer.size)), h("td", { class: "phase" }, buffer.name ?? ""), h("td", { class: "phase" }, buffer.phase ?? ""), h("td", {}, clock(buffer.born_ns)))))),
      cutNote(Math.min(rows.length, LEAK_ROWS), site.buffers)));
}

/** The daemon keeps one entry per call site, with the last process. */
const whose = (group: Group): string => {
  const last = group.incidents.reduce<Incident | null>((best, one) => (!best || one.last_ns > best.last_ns ? one : best), null);
  return last ? `${last.comm} (${last.pid})` : plural(group.pids.size, "process", "processes");
};

/** What is shown of a group in the list. */
const summary = (group: Group): string =>
  [group.id, group.times, group.bytes, group.firstNs, group.lastNs, group.leaks.length, whose(group)].join(" ");

export class Incidents implements View {
  readonly title = "Leaks and incidents";
  readonly element: HTMLElement;
  private list = h("div", { class: "groups" });
  private detail = h("section", { class: "panel beside", "aria-label": "What happened", "aria-live": "polite", tabindex: -1 });
  private note = h("p", { class: "muted pad" });
  private number = h("span", { class: "muted" }, "… call sites"); // as wide as what is going to be there
  private groups: Group[] = [];
  private chosen: string;
  private listed = ""; // what the list shows
  private opened = ""; // and what is beside it
  private linked: boolean; // selected by the URL: no other group replaces it
  private kind: string;
  private pid: number | null;
  private range: Range;
  private abort = new AbortController();
  private stop: () => void;

  constructor(route: Route) {
    this.chosen = route.id;
    this.linked = route.id !== "";
    this.kind = route.options.get("kind") ?? "all";
    this.pid = Number(route.options.get("pid")) || null;
    this.range = (RANGES.find((one) => one.value === route.options.get("range")) ?? RANGES[route.id ? 3 : 1]).value;
    const kinds = h("select", { "aria-label": "Kind" }, FILTERS.map(({ value, text }) =>
      h("option", { value, selected: value === this.kind }, text)));
    kinds.addEventListener("change", () => {
      this.kind = kinds.value;
      this.linked = false;
      remember({ kind: this.kind === "all" ? null : this.kind });
      this.show();
    });
    const only = this.pid !== null && h("button", { type: "button", title: "Show all processes" }, `Process ${this.pid} ✕`);
    if (only)
      only.addEventListener("click", () => {
        this.pid = null;
        only.remove();
        remember({ pid: null });
        this.show();
      });
    const tools = h("div", { class: "tools" }, only, kinds, choice("Time shown", RANGES, this.range, (value) => {
      this.range = value;
      remember({ range: value });
      void this.load();
    }));
    this.element = h("div", {}, h("div", { class: "crumbs" }, h("h1", {}, this.title), this.number, h("a", { href: link("ended") }, "Ended processes")),
      h("div", { class: "columns wide-right" }, panel("By call site", tools, this.note, this.list), this.detail));
    this.stop = live.onNews(() => void this.load());
    if (mayAsk()) void this.load();
    else {
      clear(this.list, locked("Leaks and incidents"));
      this.detail.hidden = true;
      this.detail.parentElement!.classList.add("single");
    }
  }

  destroy(): void {
    this.stop();
    this.abort.abort();
  }

  async load(): Promise<void> {
    if (!mayAsk()) return;
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const since: Record<string, string> = this.range === "0" ? {} : { since: fromNs(live.clockNs() - Number(this.range) * 1e9) };
    try {
      const [incidents, processes] = await Promise.all([
        all("/api/v1/incidents", { ...since, limit: "1000" }, (page: { incidents: Incident[]; next: string | null }) => page.incidents, signal),
        all("/api/v1/leaks", { ...since, limit: "100", buffers: String(LEAK_BUFFERS) }, (page: { processes: LeakedProcess[]; next: string | null }) => page.processes, signal),
      ]);
      this.groups = groupUp(incidents, joined(processes));
      this.show();
    } catch (error) {
      if (!signal.aborted) say(this.note, problem(error));
    }
  }

  private show(): void {
    const list = this.groups.filter((group) =>
      (this.kind === "all" || group.kind === this.kind) && (this.pid === null || group.pids.has(this.pid)));
    say(this.note, "");
    say(this.number, list.length ? plural(list.length, "call site") : "");
    if (list.length === 0) {
      this.listed = this.opened = "";
      clear(this.list, empty(this.groups.length ? "Nothing of this kind." : "Nothing went wrong in this time."));
      this.detail.hidden = true;
      this.detail.parentElement!.classList.add("single");
      return;
    }
    const listed = list.map(summary).join("\n");
    if (listed !== this.listed) {
      const focused = document.activeElement?.getAttribute("data-id");
      this.listed = listed;
      tellApart(list.map((group) => group.site));
      clear(this.list, list.map((group) => this.entry(group)));
      if (focused) this.list.querySelector<HTMLElement>(`[data-id="${focused}"]`)?.focus();
    }
    this.detail.hidden = false;
    this.detail.parentElement!.classList.remove("single");
    const wanted = list.find((group) => group.id === this.chosen);
    if (wanted || !this.linked) this.open(wanted ?? list[0]!, false);
    else {
      this.opened = "";
      clear(this.detail, empty("What the link means is not here: it lies outside of what is shown, or the daemon has forgotten it."));
    }
  }

  private entry(group: Group): HTMLElement {
    const times = group.kind === "leak" ? plural(group.times, "buffer") : `${count(group.times)}×`;
    const button = h("button", { type: "button", "data-id": group.id },
      h("span", { class: "name" }, siteLabel(group.site)),
      h("span", { class: `badge ${group.kind}` }, KINDS[group.kind] ?? group.kind),
      h("span", { class: "muted" }, [group.site.type, siteWhere(group.site)].filter(Boolean).join(" · ")),
      h("span", { class: "muted" }, `${times} · ${bytes(group.bytes)}`),
      h("span", { class: "muted" }, whose(group)),
      h("span", { class: "muted" }, clock(group.lastNs)));
    button.addEventListener("click", () => {
      this.open(group, true);
      const below = this.detail.offsetLeft === this.list.parentElement!.offsetLeft;
      if (below) this.detail.focus({ preventScroll: true });
      this.detail.scrollTop = 0;
      if (below) this.detail.scrollIntoView(); // the list is as long as the screen there
    });
    return button;
  }

  private open(group: Group, asked: boolean): void {
    this.chosen = group.id;
    if (asked) {
      this.linked = false;
      const { options } = parse(location.hash);
      history.replaceState(null, "", link("incidents", group.id, Object.fromEntries(options)));
    }
    for (const button of this.list.querySelectorAll("button"))
      button.setAttribute("aria-current", String(button.getAttribute("data-id") === group.id));
    // Unchanged: leave it alone, the user may be reading or copying it.
    const opened = `${summary(group)} ${JSON.stringify(group.incidents)}`;
    if (opened === this.opened) return;
    this.opened = opened;
    const leak = group.kind === "leak";
    const many = leak ? group.leaks.length : group.incidents.length;
    clear(this.detail,
      h("header", {}, h("h2", { class: "wrap" }, siteLabel(group.site)),
        h("span", { class: `badge ${group.kind}` }, KINDS[group.kind] ?? group.kind), copyLink(link("incidents", group.id))),
      h("div", { class: "detail" },
        h("dl", { class: "figures small" },
          figure(leak ? "Buffers" : "Times", count(group.times)), figure("Bytes", bytes(group.bytes)),
          leak ? figure("Processes", count(group.pids.size)) : figure("Last by", whose(group)), figure("First seen", clock(group.firstNs)), figure("Last seen", clock(group.lastNs))),
        leak && [h("h3", {}, "Allocated by"), stackList(group.site.stack)],
        leak
          ? group.leaks.slice(0, DETAILS).map(leakDetail)
          : [...group.incidents].sort((a, b) => b.last_ns - a.last_ns).slice(0, DETAILS).map(incidentDetail),
        cutNote(Math.min(many, DETAILS), many)));
  }
}
