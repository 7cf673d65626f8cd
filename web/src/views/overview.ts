// SPDX-License-Identifier: Apache-2.0
//
// Overview of the machine: a card per device, who holds the memory, and recent incidents.

import { glance, happened, nameOf, unread, type Glance } from "../analysis/groups";
import { growth, growthOf, growthOn, growthSite, growthText, type Growing } from "../analysis/growth";
import { isTroubled, telemetry, telemetryInShort } from "../analysis/sensors";
import { siteOf } from "../analysis/sites";
import { h, hint, Keyed, More, renew, say, svg, type Row } from "../base/dom";
import type { Figures } from "../base/figures";
import { age, bytes, clock, count, duration, plural } from "../base/format";
import { link, remember, rememberSoon, type Route } from "../base/router";
import { sparkFacts, sparkline } from "../chart/chart-data";
import { get, mayAsk, mayAskAll, problem } from "../data/api";
import { commandOf, learnCommands } from "../data/commands";
import { live, type Spark } from "../data/live";
import {
  deviceKey, KINDS, POOLS, processBuffers, processBytes, type Device, type Incident, type Line, type Process,
} from "../data/model";
import { before, fromNs, lines } from "../data/series";
import { siteLabel } from "../data/stack";
import { saveMenu } from "../parts/download";
import { locked } from "../parts/locked";
import { Bar, empty, figure, panel, typeLegend, type View } from "../parts/view";
import { moment } from "../time/moment";
import { Difference } from "./difference";

const SPARK_NS = 600e9;
const SPARK_BACK_MIN = [2, 4, 6, 8, 10]; // columns of the table behind the sparklines
const HOUR_NS = 3600e9;
const CARDS = 128; // at a time; likewise the next two
const ROWS = matchMedia("(max-width: 600px)").matches ? 40 : 200;
const MANY = 12; // more devices are shown in small cards,
const DENSE = 24; // and even more in the smallest
const EVENTS = 12;

/** How many running processes report each device. */
function countHolders(processes: readonly Process[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const process of processes)
    if (process.alive && !process.untracked)
      for (const key of new Set(process.devices.map(deviceKey))) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

let holders = new Map<string, number>();

/** A device's short history, up to the instant that is shown. */
function sparkOf(device: Device): Pick<Spark, "times" | "dram"> | undefined {
  const spark = live.sparks.get(deviceKey(device));
  if (!spark || moment.shown === null) return spark;
  const end = spark.times.filter((time) => time <= moment.shown!).length;
  return { times: spark.times.slice(0, end), dram: spark.dram.slice(0, end) };
}

/** Says it calmly, with the call site that grows. */
function showGrowth(element: HTMLElement, found: Growing | null, withSite: boolean): void {
  element.hidden = found === null;
  say(element, found ? growthText(found) + (withSite ? ` · ${growthSite(found)}` : "") : "");
  hint(element, found ? growthSite(found) : "");
}

function card(device: Device): Row<Device> {
  const dram = new Bar("DRAM");
  const l1 = new Bar("L1");
  const facts = h("span", { class: "muted" });
  const sensors = h("span", { class: "muted sensors" });
  const users = h("span", { class: "muted" });
  const grows = h("p", { class: "grows warn", hidden: true });
  const line = svg("path", { class: "spark-line" });
  const area = svg("path", { class: "spark-area" });
  const caption = svg("title", {});
  const drawing = svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img" }, caption, area, line);
  const element = h(
    "a",
    { class: "card", href: link("device", deviceKey(device)) },
    h("header", {}, h("h3", {}, h("span", { class: "word" }, "Device "), device.device), facts, sensors),
    dram.element,
    l1.element,
    grows,
    h("footer", {}, drawing, users),
  );
  return {
    element,
    update(now) {
      const kind = [now.card, now.arch, now.remote ? "remote" : ""].filter(Boolean).join(" · ");
      say(facts, kind);
      hint(facts, `${kind ? `${kind}; ` : ""}${now.uid ? `unique id ${now.uid}` : "no unique id is known: told apart by number"}`);
      say(sensors, telemetryInShort(now));
      hint(sensors, telemetry(now));
      sensors.className = isTroubled(now) ? "bad sensors" : "muted sensors";
      say(users, plural(holders.get(deviceKey(now)) ?? 0, "process", "processes") + (now.untracked ? `, ${now.untracked} not tracked` : ""));
      dram.set(now.memory);
      l1.set(now.memory);
      showGrowth(grows, growthOn(now, moment.totals?.processes ?? [], growth.sites), true);
      const spark = sparkOf(now);
      if (!spark) return;
      const drawn = sparkline(spark.times, spark.dram, moment.clockNs(), SPARK_NS);
      line.setAttribute("d", drawn.line);
      area.setAttribute("d", drawn.area);
      const { least, now: newest, most } = sparkFacts(spark.times, spark.dram, moment.clockNs(), drawn.span, []);
      say(caption, `DRAM in the last ${duration(drawn.span)}: at least ${bytes(least)}, now ${bytes(newest)}, at most ${bytes(most)}`);
      drawing.setAttribute("aria-label", caption.textContent ?? "");
    },
  };
}

/** The sparklines in figures: a row for each card. */
class SparkTable {
  readonly element: HTMLDetailsElement;
  private body = h("tbody", {});
  private rows = new Keyed<Device>(this.body, deviceKey, (device) => this.row(device));
  private shown: readonly Device[] = [];

  constructor() {
    const heads = ["Now", "Least", "Most", ...SPARK_BACK_MIN.map((minutes) => `${minutes} min ago`)];
    this.element = h("details", { class: "behind pad" }, h("summary", {}, "DRAM in the last 10 minutes as a table"),
      h("div", { class: "scroll" }, h("table", { class: "sparks" },
        h("caption", { class: "hidden" }, "DRAM of each device in the last 10 minutes"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Device"),
          heads.map((text) => h("th", { scope: "col", class: "number" }, text)))), this.body)));
    this.element.addEventListener("toggle", () => this.show(this.shown));
  }

  private row(device: Device): Row<Device> {
    const cells = Array.from({ length: SPARK_BACK_MIN.length + 3 }, () => h("td", { class: "number" }));
    const element = h("tr", {}, h("th", { scope: "row" }, `Device ${device.device}`), cells);
    return {
      element,
      update(now) {
        const spark = sparkOf(now);
        if (!spark) return;
        const back = SPARK_BACK_MIN.map((minutes) => minutes * 60e9);
        const facts = sparkFacts(spark.times, spark.dram, moment.clockNs(), SPARK_NS, back);
        [facts.now, facts.least, facts.most, ...facts.back].forEach((value, i) => say(cells[i]!, bytes(value)));
      },
    };
  }

  /** Not updated while it is closed. */
  show(devices: readonly Device[]): void {
    this.shown = devices;
    this.element.hidden = devices.length === 0;
    if (this.element.open) this.rows.show(devices);
  }
}

type Order = { key: string; down: boolean };

interface ProcessColumn {
  key: string;
  title: string;
  number?: boolean;
  text(process: Process): string;
  sort(process: Process): number | string;
  hint?(process: Process): string;
}

const now = (): number => moment.clockNs();

const COLUMNS: ProcessColumn[] = [
  { key: "pid", title: "PID", number: true, text: (p) => String(p.pid), sort: (p) => p.pid,
    hint: (p) => (p.ns_pid !== p.pid ? `sees itself as ${p.ns_pid}` : "") },
  { key: "comm", title: "Process", text: (p) => (p.comm || "?") + remark(p), sort: (p) => p.comm, hint: (p) => commandOf(p) },
  { key: "user", title: "User", text: (p) => p.user, sort: (p) => p.user },
  { key: "container", title: "Container", text: (p) => p.container?.slice(0, 12) ?? "", sort: (p) => p.container ?? "",
    hint: (p) => p.container ?? "" },
  { key: "devices", title: "Devices", text: (p) => ranges(p.devices.map((part) => part.device)),
    sort: (p) => p.devices.length },
  { key: "dram", title: "DRAM", number: true, text: (p) => known(p, bytes(processBytes(p, "DRAM"))),
    sort: (p) => processBytes(p, "DRAM") },
  { key: "l1", title: "L1", number: true, text: (p) => known(p, bytes(processBytes(p, "L1"))), sort: (p) => processBytes(p, "L1") },
  { key: "buffers", title: "Buffers", number: true, text: (p) => known(p, count(processBuffers(p))), sort: processBuffers },
  { key: "age", title: "Age", number: true, text: (p) => age(now() - p.start_ns), sort: (p) => -p.start_ns },
  { key: "idle", title: "Idle", number: true, text: (p) => (p.last_activity_ns ? age(now() - p.last_activity_ns) : "–"),
    sort: (p) => -p.last_activity_ns, hint: (p) => `last allocation or free: ${clock(p.last_activity_ns)}` },
];

/** Notes on the figures. */
function remark(process: Process): string {
  if (process.untracked) return " (not tracked)";
  if (process.claim) return " (claim)";
  if (process.stale) return " (stale)";
  if (!process.alive) return " (ended)";
  if (process.devices.some((part) => part.stale_after_reset)) return " (stale after reset)";
  return process.differs ? " (sources differ)" : "";
}

/** Nothing is known about an untracked process. */
const known = (process: Process, text: string): string => (process.untracked ? "?" : text);

/** 0, 1, 2, 5 as "0–2, 5". */
function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end === i ? `${sorted[i]}` : end === i + 1 ? `${sorted[i]}, ${sorted[end]}` : `${sorted[i]}–${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(", ");
}

class Processes {
  readonly element: HTMLElement;
  private order: Order;
  private body = h("tbody", {});
  private heads: HTMLElement[];
  private filter = h("input", {
    type: "search", placeholder: "Filter: name, user, container, pid", "aria-label": "Filter processes", id: "filter",
  });
  private none = h("p", { class: "empty", hidden: true });
  private rows: Keyed<Process>;
  private more: More;
  private list: readonly Process[] = [];

  constructor(route: Route) {
    const { options } = route;
    const sort = options.get("sort") ?? "";
    const known = COLUMNS.find((column) => column.key === sort.replace(/^-/, ""));
    this.order = known ? { key: known.key, down: sort.startsWith("-") } : { key: "dram", down: true };
    this.filter.value = options.get("q") ?? "";
    this.more = new More(ROWS, "processes", (shown) => {
      remember({ rows: String(shown) });
      this.update();
    }, Number(options.get("rows")));
    this.heads = COLUMNS.map((column) => {
      const button = h("button", { type: "button" }, column.title);
      button.addEventListener("click", () => {
        const same = this.order.key === column.key;
        this.order = { key: column.key, down: same ? !this.order.down : column.number === true };
        remember({ sort: `${this.order.down ? "-" : ""}${column.key}` });
        this.update();
      });
      return h("th", { scope: "col", class: `${column.number ? "number" : ""} c-${column.key}` }, button);
    });
    this.rows = new Keyed(this.body, (process) => `${process.pid} ${process.start_ns}`, (process) => this.row(process));
    this.filter.addEventListener("input", () => {
      rememberSoon({ q: this.filter.value || null });
      this.update();
    });
    const table = h("table", { class: "processes" }, h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.element = panel("Processes", [h("a", { href: link("ended") }, "Ended ones"), this.filter, saveMenu("processes", () => this.figures())], h("div", { class: "scroll" }, table), this.more.element, this.none);
  }

  /** All that match, not only those on the page; numbers as such, but for times. */
  private figures(): Figures {
    const isPlain = (column: ProcessColumn): boolean => column.number === true && column.key !== "age" && column.key !== "idle";
    return {
      heads: [...COLUMNS.map((column) => column.title), "Command"],
      rows: this.list.map((p) => [...COLUMNS.map((column) => (isPlain(column) && !p.untracked ? column.sort(p) : column.text(p))), commandOf(p)]),
    };
  }

  private row(process: Process): Row<Process> {
    const cells = COLUMNS.map((column) =>
      h(column.key === "comm" ? "th" : "td", {
        class: `${column.number ? "number" : ""} c-${column.key}`, scope: column.key === "comm" ? "row" : null,
      }),
    );
    const open = h("a", { href: link("process", String(process.pid)) });
    const words = h("span", { class: "muted" });
    const grows = h("span", { class: "grows warn", hidden: true });
    cells[1]!.append(open, words, grows);
    const element = h("tr", { class: "link" }, cells);
    element.addEventListener("click", () => (location.hash = open.hash));
    return {
      element,
      update(item) {
        element.classList.toggle("ended", !item.alive);
        const command = commandOf(item, 1);
        say(words, command && ` ${command}`);
        showGrowth(grows, growthOf(item, moment.totals?.devices ?? [], moment.totals?.processes ?? [], growth.sites), false);
        COLUMNS.forEach((column, i) => {
          say(column.key === "comm" ? open : cells[i]!, column.text(item));
          if (column.number) cells[i]!.dataset.value = String(column.sort(item));
          hint(cells[i]!, column.hint?.(item) ?? "");
        });
      },
    };
  }

  update(): void {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const column = COLUMNS.find((one) => one.key === this.order.key)!;
    const sign = this.order.down ? -1 : 1;
    const chosen = (moment.totals?.processes ?? []).filter((process) => {
      const text = `${process.pid} ${process.comm} ${process.user} ${process.container ?? ""} ${commandOf(process)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    // Sort keys are computed once per process: there may be ten thousand.
    const keyed = chosen.map((process) => ({ process, key: column.sort(process) }));
    keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.process.pid - b.process.pid));
    const list = (this.list = keyed.map(({ process }) => process));
    COLUMNS.forEach((one, i) =>
      this.heads[i]!.setAttribute("aria-sort", one !== column ? "none" : this.order.down ? "descending" : "ascending"),
    );
    this.rows.show(this.more.cut(list));
    this.element.classList.toggle("no-container", !list.some((process) => process.container));
    this.none.hidden = list.length > 0;
    say(this.none, words.length ? "No process matches." : "No process is tracked. Start one with TTMEM=1, or try ttmem demo.");
  }
}

class Recent {
  readonly element: HTMLElement;
  private body = h("div", {});
  private list: Incident[] = [];
  private known: Incident[] = [];
  private more = false;
  private heard: Incident[] = [];
  private stop: () => void;
  private shown: number | null = moment.shown;

  constructor() {
    const all = h("a", { href: link("incidents") }, "All incidents");
    this.element = panel("Incidents of the last hour", all, this.body);
    const stops = [live.onNews(() => void this.load()), live.onIncident((incident) => this.hear(incident))];
    this.stop = () => stops.forEach((stop) => stop());
    void this.load();
  }

  destroy(): void {
    this.stop();
  }

  /** Another instant is shown. */
  update(): void {
    if (this.shown === moment.shown) return;
    this.shown = moment.shown;
    void this.load();
  }

  /** How many there were, as text. */
  get number(): string {
    return mayAsk() ? count(happened(glance(this.list))) + (this.more ? "+" : "") : "–";
  }

  /** Shown at once, because the database has it only a moment later. */
  private hear(incident: Incident): void {
    if (!mayAsk() || !incident.time_ns) return;
    this.heard = [incident, ...this.heard.filter((other) => nameOf(other) !== nameOf(incident))].slice(0, 50);
    this.merge();
  }

  private merge(): void {
    this.heard = unread(this.heard, this.known);
    // Now, nothing is left out: the clock of the page may be behind that of an incident.
    const until = moment.shown ?? Infinity;
    this.list = [...this.heard, ...this.known].filter(({ time_ns }) => time_ns <= until).sort((a, b) => b.last_ns - a.last_ns);
    this.show();
  }

  async load(): Promise<void> {
    if (!mayAsk()) return renew(this.body, locked("Incidents"));
    try {
      const since = fromNs(moment.clockNs() - HOUR_NS);
      const answer = await get<{ incidents: Incident[]; next: string | null }>("/api/v1/incidents", { since, limit: 1000 });
      this.more = answer.next !== null;
      this.known = answer.incidents;
      this.merge();
    } catch (error) {
      renew(this.body, empty(problem(error)));
    }
  }

  private show(): void {
    if (this.list.length === 0) return renew(this.body, empty(`Nothing went wrong${mayAskAll() ? "" : " in your processes"}.`));
    const rows = glance(this.list);
    renew(this.body, h("ul", { class: "events" }, rows.slice(0, EVENTS).map((row) => this.row(row))),
      rows.length > EVENTS && h("p", { class: "pad more" },
        h("a", { href: link("incidents") }, `${count(rows.length - EVENTS)} more`)));
  }

  private row(row: Glance): HTMLElement {
    const leak = row.kind === "leak";
    const bound = row.least ? "≥ " : "";
    const what = leak ? bound + plural(row.times, "buffer")
      : row.places > 1 ? plural(row.places, "place")
      : siteLabel(siteOf(row.one));
    const often = !leak && row.times > 1 ? ` · ${count(row.times)}×` : "";
    return h("li", {}, h("a", { href: link("incidents", "", { kind: row.kind, pid: String(row.pid) }) },
      h("span", { class: `badge ${row.kind}` }, KINDS[row.kind] ?? row.kind),
      h("span", { class: "what" }, what),
      h("span", { class: "muted" }, `${row.comm} (${row.pid}) · ${bound}${bytes(row.bytes)}${often}`),
      h("time", { class: "muted" }, clock(row.lastNs))));
  }
}

async function loadSparks(): Promise<void> {
  const from = fromNs(live.clockNs() - SPARK_NS);
  const list: Line[] = await lines({ from, step: 10, type: "DRAM" });
  for (const line of list) {
    const spark = live.sparks.get(deviceKey(line));
    const first = spark?.times[0];
    if (!spark || first === undefined || line.pid !== null) continue;
    const past = before(line, first);
    spark.times.unshift(...past.times);
    spark.dram.unshift(...past.values);
    spark.l1.unshift(...past.times.map(() => 0));
  }
}

let sparksLoaded = -1; // after which pause of the stream

export function overview(route: Route): View {
  const grid = h("div", { class: "cards" });
  const none = h("div", { class: "empty", hidden: true },
    h("p", {}, "No device is known yet."),
    h("p", {}, "One is shown as soon as a process that runs with ", h("code", {}, "TTMEM=1"),
      " uses it, or the driver has found a card. ", h("code", {}, "ttmem demo"), " shows simulated ones."));
  const more = new More(CARDS, "devices", () => update());
  const cards = new Keyed<Device>(grid, deviceKey, card);
  const sparks = new SparkTable();
  const processes = new Processes(route);
  const recent = new Recent();
  const difference = new Difference();
  const figures = {
    used: h("span", {}), buffers: h("span", {}), devices: h("span", {}), processes: h("span", {}), incidents: h("span", {}),
  };
  const notes = h("ul", { class: "notes" });
  const element = h(
    "div",
    { class: "overview" },
    h("h1", { class: "hidden" }, "Overview"),
    h("dl", { class: "figures" },
      figure("In use", figures.used), figure("Buffers", figures.buffers), figure("Devices", figures.devices),
      figure("Processes", figures.processes), figure("Incidents, 1 h", figures.incidents, "How often something went wrong within the last hour; a process that leaked counts once")),
    notes,
    difference.element,
    panel("Devices", typeLegend([...POOLS.DRAM.types, ...POOLS.L1.types]), grid, none, more.element, sparks.element),
    h("div", { class: "columns wide-left" }, processes.element, recent.element),
  );
  const update = (): void => {
    const { totals } = moment;
    if (!totals) return;
    recent.update();
    difference.update();
    if (live.totals && sparksLoaded !== live.pauses) {
      sparksLoaded = live.pauses;
      void loadSparks().then(update, () => undefined); // without the history, sparklines begin now
    }
    say(figures.used, bytes(totals.totals.bytes));
    figures.used.dataset.bytes = String(totals.totals.bytes);
    say(figures.buffers, count(totals.totals.buffers));
    say(figures.devices, count(totals.devices.length));
    say(figures.processes, count(totals.processes.filter((process) => process.alive).length));
    say(figures.incidents, recent.number);
    renew(notes, totals.notes.map((note) => h("li", {}, note)));
    grid.classList.toggle("many", totals.devices.length > MANY);
    grid.classList.toggle("dense", totals.devices.length > DENSE);
    holders = countHolders(totals.processes);
    const shown = more.cut(totals.devices);
    cards.show(shown);
    sparks.show(shown);
    none.hidden = totals.devices.length > 0;
    processes.update();
    void learnCommands(totals.processes, () => processes.update());
    void growth.learn(update);
  };
  update();
  return { element, title: "Overview", update, destroy: () => recent.destroy() };
}
