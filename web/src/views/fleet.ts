// SPDX-License-Identifier: Apache-2.0
//
// The other machines that this daemon knows, those with trouble first. It asks them, and only while this view is open.

import { get, problem } from "../api";
import { h, Keyed, renew, say, type Row } from "../dom";
import { bytes, clock, count, duration, plural, share, signed } from "../format";
import { empty, figure, panel, type View } from "../view";

interface Amount {
  used: number;
  capacity: number | null;
}

interface Host {
  host: string;
  url: string;
  problem: string | null;
  trouble: (keyof typeof TROUBLES)[];
  facts: {
    devices: number;
    processes: number;
    bytes: number;
    memory: Record<"DRAM" | "L1", Amount>;
    fullest: (Amount & { device: number; type: string }) | null;
    hour: { over_ns: number; bytes: number; incidents: number };
  } | null;
}

interface Fleet {
  time_ns: number;
  hosts: Host[];
  notes: string[];
}

const PAUSE_MS = 5000;
const TROUBLES = { silent: "Not answering", full: "Nearly full", incidents: "Incidents", grows: "Growing", degraded: "Degraded" };

const amount = ({ used, capacity }: Amount): string => bytes(used) + (capacity ? ` · ${share(used, capacity)}` : "");

type Facts = NonNullable<Host["facts"]>;
const COLUMNS: { title: string; number?: true; text(facts: Facts): string }[] = [
  { title: "Fullest", text: ({ fullest }) => (fullest ? `Device ${fullest.device} ${fullest.type}: ${share(fullest.used, fullest.capacity ?? 1)}` : "–") },
  { title: "DRAM", number: true, text: ({ memory }) => amount(memory.DRAM) },
  { title: "L1", number: true, text: ({ memory }) => amount(memory.L1) },
  { title: "Devices", number: true, text: ({ devices }) => count(devices) },
  { title: "Processes", number: true, text: ({ processes }) => count(processes) },
  { title: "Incidents, 1 h", number: true, text: ({ hour }) => count(hour.incidents) },
  { title: "Growth, 1 h", number: true, text: ({ hour }) =>
    hour.over_ns ? signed(hour.bytes) + (hour.over_ns < 3.5e12 ? ` in ${duration(hour.over_ns)}` : "") : "–" },
];

function row(host: Host): Row<Host> {
  const trouble = h("td", {});
  const cells = COLUMNS.map(({ number }) => h("td", { class: number ? "number" : "" }));
  return {
    element: h("tr", {}, h("th", { scope: "row" }, h("a", { href: host.url, rel: "noreferrer" }, host.host)), trouble, cells),
    update({ trouble: all, problem: why, facts }) {
      renew(trouble, all.map((one) => h("span", { class: `badge ${one}` }, TROUBLES[one])),
        why ? h("span", { class: "muted" }, ` ${why}`) : all.length === 0 && h("span", { class: "muted" }, "None"));
      COLUMNS.forEach(({ text }, i) => say(cells[i]!, facts ? text(facts) : "–"));
    },
  };
}

export function fleet(): View {
  const body = h("tbody", {});
  const rows = new Keyed<Host>(body, ({ host }) => host, row);
  const figures = { hosts: h("span", {}), silent: h("span", {}), used: h("span", {}) };
  const notes = h("ul", { class: "notes" });
  const when = h("span", { class: "muted" }, "Asking …");
  const failed = h("div", {});
  const abort = new AbortController();
  let due = 0;

  async function load(): Promise<void> {
    due = Infinity; // not twice at a time
    try {
      const { time_ns, hosts, notes: said } = await get<Fleet>("/api/v1/fleet", {}, abort.signal);
      rows.show(hosts);
      say(figures.hosts, count(hosts.length));
      say(figures.silent, count(hosts.filter(({ facts }) => !facts).length));
      say(figures.used, bytes(hosts.reduce((sum, { facts }) => sum + (facts?.bytes ?? 0), 0)));
      say(when, `${plural(hosts.length, "host")} asked at ${clock(time_ns)}`);
      renew(notes, said.map((note) => h("li", {}, note)));
      renew(failed, hosts.length === 0 && empty("No host is known."));
    } catch (error) {
      if (!abort.signal.aborted) renew(failed, empty(problem(error)));
    }
    due = Date.now() + PAUSE_MS;
  }

  const update = (): void => {
    if (Date.now() >= due && !document.hidden) void load();
  };
  const heads = ["Host", "Trouble"].map((title) => h("th", { scope: "col" }, title));
  const element = h("div", {},
    h("dl", { class: "figures" }, figure("Hosts", figures.hosts), figure("Not answering", figures.silent), figure("In use", figures.used)),
    notes,
    panel("Fleet", when, h("div", { class: "scroll" }, h("table", { class: "fleet" },
      h("thead", {}, h("tr", {}, heads, COLUMNS.map(({ title, number }) => h("th", { scope: "col", class: number ? "number" : "" }, title)))),
      body)), failed));
  update();
  return { element, title: "Fleet", update, destroy: () => abort.abort() };
}
