// SPDX-License-Identifier: Apache-2.0
//
// Processes that have ended: when and how, what they left behind, and their highest moments.

import { get, mayAsk, pages, problem } from "../api";
import { clear, h, say, type Child } from "../dom";
import { saveMenu } from "../download";
import { joinEnded, lastOf, mostOf, type Ended } from "../ended";
import { bytes, clock, count, duration, plural } from "../format";
import { Grid } from "../grid";
import { joined } from "../groups";
import { howEnded } from "../incident-detail";
import { live } from "../live";
import { locked } from "../locked";
import type { LeakedProcess, Peak } from "../model";
import { link, rememberSoon, type Route } from "../router";
import { panel, TYPE_TITLES, type View } from "../view";

const LEAKS_MAX = 2000;
const SITES = 5; // of a peak

const how = ({ leak }: Ended): string => (leak ? howEnded(leak) : "left nothing, or that is not kept any more");
const owner = ({ leak }: Ended): string => leak?.user ?? "";

function peakDetail(peak: Peak): Child {
  return [
    h("h3", {}, `${TYPE_TITLES[peak.type]} of device ${peak.device}: ${bytes(peak.bytes)}`),
    h("p", { class: "muted" }, `at ${clock(peak.time_ns)}, in ${plural(peak.buffers, "buffer")}`),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Call site", "Bytes", "Buffers"].map((text, i) => h("th", { scope: "col", class: i ? "number" : "" }, text)))),
      h("tbody", {}, peak.groups.slice(0, SITES).map((group) => h("tr", {},
        h("th", { scope: "row", class: "wrap" }, group.name ?? group.site?.function ?? group.key ?? "without a name"),
        h("td", { class: "number" }, bytes(group.bytes)), h("td", { class: "number" }, count(group.buffers))))))),
  ];
}

function describe(one: Ended): Child {
  const { leak } = one;
  const fact = (name: string, value: Child): Child => value && [h("dt", {}, name), h("dd", {}, value)];
  return [
    h("h2", {}, `${one.comm} (${one.pid})`),
    h("dl", { class: "facts" },
      fact("Started", clock(one.startNs)), leak && fact("Ended", `${clock(leak.ended_ns)}, after ${duration(leak.ended_ns - one.startNs)}`),
      fact("How", how(one)), fact("User", owner(one)), fact("Container", leak?.container),
      leak && fact("Left", h("a", { href: link("incidents", "", { kind: "leak", pid: String(one.pid), range: "0" }) },
        `${bytes(leak.bytes)} in ${plural(leak.buffer_count, "buffer")}`))),
    one.peaks.length > 0 ? [h("h3", {}, "Its highest moments"), one.peaks.map(peakDetail)]
      : h("p", { class: "muted" }, "Its peaks are not kept any more."),
  ];
}

export class EndedView implements View {
  readonly title = "Ended processes";
  readonly element: HTMLElement;
  private note = h("p", { class: "muted pad" });
  private grid: Grid<Ended>;
  private abort = new AbortController();
  private stop: () => void = () => undefined;

  constructor(route: Route) {
    const filter = h("input", {
      type: "search", id: "filter", placeholder: "Filter: name, user, pid", "aria-label": "Filter ended processes", value: route.options.get("q"),
    });
    this.grid = new Grid<Ended>("Ended processes", [
      { id: "ended", title: "Ended", number: true, width: "10rem", narrow: "6rem", text: (one) => (one.leak ? clock(one.leak.ended_ns) : `after ${clock(lastOf(one))}`), sort: lastOf },
      { id: "pid", title: "PID", number: true, width: "6rem", narrow: false, text: (one) => String(one.pid), sort: (one) => one.pid },
      { id: "comm", title: "Process", width: "minmax(8rem, 1fr)", narrow: "minmax(5rem, 1fr)", text: (one) => one.comm },
      { id: "user", title: "User", width: "8rem", narrow: false, text: owner },
      { id: "how", title: "How", width: "minmax(8rem, 1.4fr)", narrow: false, text: how, hint: how },
      { id: "left", title: "Left behind", number: true, width: "8rem", narrow: "5.6rem", text: (one) => (one.leak ? bytes(one.leak.bytes) : "–"), sort: (one) => one.leak?.bytes ?? -1 },
      { id: "most", title: "Highest peak", number: true, width: "8rem", narrow: "5.6rem", text: (one) => (mostOf(one) ? bytes(mostOf(one)!.bytes) : "–"), sort: (one) => mostOf(one)?.bytes ?? -1 },
    ], "ended", { key: (one) => one.key, detail: describe, place: { route, name: "" } });
    const choose = (): void => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.grid.where((one) => words.every((word) => `${one.pid} ${one.comm} ${owner(one)}`.toLowerCase().includes(word)));
    };
    filter.addEventListener("input", () => {
      rememberSoon({ q: filter.value || null });
      choose();
    });
    if (filter.value) choose();
    const body = h("div", {}, this.note, this.grid.element);
    this.element = h("div", {}, h("div", { class: "crumbs" }, h("a", { href: link("overview") }, "Overview"), h("h1", {}, this.title)),
      panel("What is known of them", mayAsk() && [filter, saveMenu("ended processes", () => this.grid.figures())], body));
    if (!mayAsk()) clear(body, locked("Ended processes"));
    else {
      this.stop = live.onNews(() => void this.load());
      void this.load();
    }
  }

  destroy(): void {
    this.stop();
    this.abort.abort();
  }

  private async load(): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    try {
      const leaks: LeakedProcess[] = [];
      const { peaks } = await get<{ peaks: Peak[] }>("/api/v1/peak", {}, signal);
      for await (const page of pages<{ processes: LeakedProcess[]; next: string | null }>("/api/v1/leaks", { limit: 500, buffers: 0 }, signal)) {
        leaks.push(...page.processes);
        if (leaks.length >= LEAKS_MAX) break;
      }
      const all = joinEnded(joined(leaks), peaks);
      this.grid.set(all);
      say(this.note, "Those that left something behind, and those whose peaks are still kept. One that freed everything is forgotten sooner.");
    } catch (error) {
      if (!signal.aborted) say(this.note, problem(error));
    }
  }
}
