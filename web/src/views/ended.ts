// SPDX-License-Identifier: Apache-2.0
//
// Processes that have ended: when and how, what they left behind, and their highest moments. Nothing tells that one has
// ended and left nothing but that it is not among the living any more.

import { Awaited, joinEnded, lastOf, mostOf, perBank, type Ended } from "../analysis/ended";
import { clear, h, say, type Child } from "../base/dom";
import { bytes, clock, count, duration, plural } from "../base/format";
import { link, rememberSoon, type Route } from "../base/router";
import { get, mayAsk, pages, problem } from "../data/api";
import { live } from "../data/live";
import type { EndedProcess, Peak } from "../data/model";
import { saveMenu } from "../parts/download";
import { Grid } from "../parts/grid";
import { howEnded, howEndedShort } from "../parts/incident-detail";
import { locked } from "../parts/locked";
import { panel, TYPE_TITLES, type View } from "../parts/view";

const ENDS_MAX = 10_000; // as many as the daemon keeps
const SITES = 5; // of a peak
const AGAIN_MS = 1500; // the daemon writes the end of a process about a second later

const how = ({ end }: Ended): string => (end ? howEnded(end) : "not known any more");
const howShort = ({ end }: Ended): string => (end ? howEndedShort(end) : "not known any more");
const owner = ({ end }: Ended): string => end?.user ?? "";

function peakDetail(peak: Peak): Child {
  return [
    h("h3", {}, `${TYPE_TITLES[peak.type]} of device ${peak.device}: ${bytes(peak.bytes)}`),
    h("p", { class: "muted" }, `at ${clock(peak.time_ns)}, in ${plural(peak.buffers, "buffer")}${perBank(peak)}`),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Call site", "Bytes", "Buffers"].map((text, i) => h("th", { scope: "col", class: i ? "number" : "" }, text)))),
      h("tbody", {}, peak.groups.slice(0, SITES).map((group) => h("tr", {},
        h("th", { scope: "row", class: "wrap" }, group.name ?? group.site?.function ?? group.key ?? "without a name"),
        h("td", { class: "number" }, bytes(group.bytes)), h("td", { class: "number" }, count(group.buffers))))))),
  ];
}

function describe(one: Ended): Child {
  const { end } = one;
  const fact = (name: string, value: Child): Child => value && [h("dt", {}, name), h("dd", {}, value)];
  return [
    h("h2", {}, `${one.comm} (${one.pid})`),
    h("dl", { class: "facts" },
      fact("Started", clock(one.startNs)), end && fact("Ended", `${clock(end.ended_ns)}, after ${duration(end.ended_ns - one.startNs)}`),
      fact("How", how(one)), fact("User", owner(one)), fact("Container", end?.container),
      end && fact("Left", end.bytes === 0 ? "nothing, or that is not kept any more"
        : h("a", { href: link("incidents", "", { kind: "leak", pid: String(one.pid), range: "0" }) },
          `${bytes(end.bytes)} in ${plural(end.buffer_count, "buffer")}`))),
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
  private awaited = new Awaited();
  private timer = 0;

  constructor(route: Route) {
    const filter = h("input", {
      type: "search", id: "filter", placeholder: "Filter: name, user, pid", "aria-label": "Filter ended processes", value: route.options.get("q"),
    });
    this.grid = new Grid<Ended>("Ended processes", [
      { id: "ended", title: "Ended", number: true, width: "10rem", narrow: "6rem", text: (one) => (one.end ? clock(one.end.ended_ns) : `after ${clock(lastOf(one))}`), sort: lastOf },
      { id: "pid", title: "PID", number: true, width: "6rem", narrow: false, text: (one) => String(one.pid), sort: (one) => one.pid },
      { id: "comm", title: "Process", width: "minmax(8rem, 1fr)", narrow: "minmax(5rem, 1fr)", text: (one) => one.comm },
      { id: "user", title: "User", width: "8rem", narrow: false, text: owner },
      { id: "how", title: "How", width: "minmax(8rem, 1.4fr)", narrow: false, text: howShort, hint: how },
      { id: "left", title: "Left behind", number: true, width: "8rem", narrow: "5.6rem", text: (one) => (one.end?.bytes ? bytes(one.end.bytes) : "–"), sort: (one) => one.end?.bytes ?? -1 },
      { id: "most", title: "Highest peak", number: true, width: "8rem", narrow: "6.6rem", text: (one) => (mostOf(one) ? bytes(mostOf(one)!.bytes) : "–"), sort: (one) => mostOf(one)?.bytes ?? -1 },
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
      const look = (): boolean => this.awaited.see(live.totals?.processes ?? []);
      const stops = [live.onNews(() => void this.load()), live.onChange(() => look() && this.again())];
      look();
      this.stop = () => stops.forEach((stop) => stop());
      void this.load();
    }
  }

  destroy(): void {
    this.stop();
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private again(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      void this.load();
    }, AGAIN_MS);
  }

  private async load(): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    try {
      const ends: EndedProcess[] = [];
      let next: string | null = null;
      const { peaks } = await get<{ peaks: Peak[] }>("/api/v1/peak", {}, signal);
      for await (const page of pages<{ processes: EndedProcess[]; next: string | null }>("/api/v1/ended", { limit: 2000 }, signal)) {
        ends.push(...page.processes);
        next = page.next;
        if (ends.length >= ENDS_MAX) break;
      }
      if (this.awaited.find(ends)) this.again();
      this.grid.set(joinEnded(ends, peaks));
      say(this.note, `${next ? `The newest ${count(ends.length)}; there are more. ` : ""}Peaks are kept for a while only.`);
    } catch (error) {
      if (!signal.aborted) say(this.note, problem(error));
    }
  }
}
