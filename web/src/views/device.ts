// SPDX-License-Identifier: Apache-2.0
//
// One device: its use over time, by type or by process, and where in its memory what lies.

import { mayAsk, problem } from "../api";
import { Chart, type ChartData } from "../chart";
import { SERIES, seriesVariable, typeVariable } from "../colours";
import { choice, clear, h, Keyed, say, type Row } from "../dom";
import { bytes, clock, count, parseBytes, percent, plural } from "../format";
import { fit, fragmentation, layOut, type Layout } from "../holes";
import { live } from "../live";
import { AddressMap, AGE_NAMES, type Paint } from "../map";
import {
  buffersOf, deviceKey, held, partOf, poolCapacity, POOLS, poolUsed,
  type Buffer, type Device, type MemoryType, type Pool, type Process,
} from "../model";
import { link, remember, type Route } from "../router";
import { loadBuffers } from "../rows";
import { fromNs, History, later, lines } from "../series";
import { Bar, empty, figure, locked, panel, TYPE_TITLES, type View } from "../view";

const RANGES = [
  { value: "300", text: "5 min" },
  { value: "900", text: "15 min" },
  { value: "3600", text: "1 h" },
  { value: "21600", text: "6 h" },
  { value: "86400", text: "24 h" },
] as const;

type By = "type" | "process";
type Range = (typeof RANGES)[number]["value"];

const MAP_POOLS: { value: "DRAM" | "L1"; text: string }[] = [
  { value: "DRAM", text: "DRAM" },
  { value: "L1", text: "L1" },
];
// Where the buffers of a map lie. Kernels are kept in DRAM until they run, whatever they count as.
const MAP_TYPES: Record<"DRAM" | "L1", MemoryType[]> = {
  DRAM: ["DRAM", "TRACE", "KERNEL"],
  L1: ["L1", "L1_SMALL", "CB"],
};

const find = (key: string): Device | undefined =>
  live.totals?.devices.find((device) => deviceKey(device) === key || String(device.device) === key);

function holders(device: Device): Process[] {
  const processes = (live.totals?.processes ?? []).filter((process) => process.alive && partOf(process, device));
  return processes.sort((a, b) => held(partOf(b, device)!.memory) - held(partOf(a, device)!.memory));
}

/** Both charts of the device, and where their data comes from. */
class Timeline {
  readonly element: HTMLElement;
  private charts: Record<"DRAM" | "L1", Chart> = { DRAM: new Chart("DRAM over time"), L1: new Chart("L1 over time") };
  private past: Record<"DRAM" | "L1", History> = { DRAM: new History(), L1: new History() };
  private names = new Map<string, string>();
  private palette: string[] = [];
  private note = h("p", { class: "muted pad" });
  private abort = new AbortController();
  private last = 0;
  private loaded = false;

  constructor(
    private key: string,
    private by: By,
    private range: Range,
  ) {
    const tools = h(
      "div",
      { class: "tools" },
      choice("Stacked by", [{ value: "type", text: "By type" }, { value: "process", text: "By process" }] as const, by, (value) => {
        this.by = value;
        remember({ by: value });
        void this.load();
      }),
      choice("Time shown", RANGES, range, (value) => {
        this.range = value;
        remember({ range: value });
        void this.load();
      }),
    );
    this.element = panel("Use over time", tools,
      h("div", { class: "columns charts" },
        h("div", {}, h("h3", { class: "chart-title" }, "DRAM"), this.charts.DRAM.element),
        h("div", {}, h("h3", { class: "chart-title" }, "L1"), this.charts.L1.element)),
      this.note);
    void this.load();
  }

  destroy(): void {
    this.abort.abort();
    this.charts.DRAM.destroy();
    this.charts.L1.destroy();
  }

  /** The past from the database: one question by type, one for each large process else. */
  async load(): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const device = find(this.key);
    if (!device) return;
    const from = fromNs(live.clockNs() - Number(this.range) * 1e9);
    const parameters = { device: deviceKey(device), from };
    try {
      let list;
      if (this.by === "type") list = await lines(parameters, signal);
      else {
        const large = holders(device).slice(0, SERIES);
        list = (await Promise.all(large.map((process) =>
          lines({ ...parameters, pid: process.pid, from: later(from, process.start_ns) }, signal)))).flat();
      }
      for (const pool of ["DRAM", "L1"] as const)
        this.past[pool].load(list, (line) =>
          (line.uid ?? String(line.device)) === deviceKey(device) && line.type && POOLS[pool].types.includes(line.type)
            ? this.by === "type" ? line.type : String(line.pid)
            : null);
      say(this.note, "");
    } catch (error) {
      if (signal.aborted) return;
      this.past = { DRAM: new History(), L1: new History() };
      say(this.note, `The past cannot be shown: ${problem(error)}`);
    }
    this.last = 0;
    this.loaded = true;
    this.update();
  }

  update(): void {
    const device = find(this.key);
    const now = live.clockNs();
    if (!device || !this.loaded || live.state !== "live" || now - this.last < 1e9) return;
    this.last = now;
    for (const pool of ["DRAM", "L1"] as const) {
      this.past[pool].push(now, this.current(device, pool));
      this.past[pool].trim(now / 1e9 - Number(this.range));
      this.charts[pool].set(this.data(pool), poolCapacity(device.memory, pool));
    }
  }

  private current(device: Device, pool: Pool): Map<string, number> {
    const values = new Map<string, number>();
    if (this.by === "type") for (const type of POOLS[pool].types) values.set(type, device.memory[type].used);
    else
      for (const process of holders(device)) {
        this.names.set(String(process.pid), `${process.comm} (${process.pid})`);
        values.set(String(process.pid), poolUsed(partOf(process, device)!.memory, pool));
      }
    return values;
  }

  private data(pool: "DRAM" | "L1"): ChartData {
    const past = this.past[pool];
    if (this.by === "type")
      return {
        times: [...past.times],
        series: POOLS[pool].types
          .filter((type) => past.most(type) > 0)
          .map((type) => ({ label: TYPE_TITLES[type], variable: typeVariable(type), values: past.values(type) })),
      };
    // A process keeps its colour, also in the other chart.
    for (const key of past.keys()) if (!this.palette.includes(key) && past.most(key) > 0) this.palette.push(key);
    const own = this.palette.slice(0, SERIES).filter((key) => past.most(key) > 0);
    const rest = past.keys().filter((key) => !this.palette.slice(0, SERIES).includes(key));
    const series = own.map((key) => ({
      label: this.names.get(key) ?? key, variable: seriesVariable(this.palette.indexOf(key)), values: past.values(key),
    }));
    if (rest.some((key) => past.most(key) > 0))
      series.push({
        label: plural(rest.length, "other"), variable: seriesVariable(SERIES),
        values: past.times.map((_time, i) => rest.reduce((sum, key) => sum + (past.values(key)[i] ?? 0), 0)),
      });
    return { times: [...past.times], series };
  }
}

/** The address map with its figures and the question whether something would fit. */
class Places {
  readonly element: HTMLElement;
  private map: AddressMap;
  private body = h("div", {});
  private figures = h("dl", { class: "figures small pad" });
  private legend = h("ul", { class: "legend" });
  private note = h("p", { class: "muted pad" });
  private size = h("input", { type: "text", value: "1 GiB", "aria-label": "Size", id: "fit-size" });
  private answer = h("output", { for: "fit-size" });
  private layout: Layout | null = null;
  private buffers: Buffer[] = [];
  private timeNs = 0;
  private abort = new AbortController();
  private timer = 0;

  constructor(
    private key: string,
    private pool: "DRAM" | "L1",
    private paint: Paint,
  ) {
    this.map = new AddressMap((span) =>
      (location.hash = link("process", String(span.buffer.pid), { address: span.buffer.address })));
    const refresh = h("button", { type: "button" }, "Refresh");
    refresh.addEventListener("click", () => void this.load());
    const tools = h("div", { class: "tools" },
      choice("Memory", MAP_POOLS, pool, (value) => {
        this.pool = value;
        remember({ pool: value });
        this.size.value = value === "DRAM" ? "1 GiB" : "1 MiB";
        void this.load();
      }),
      choice("Coloured by", [
        { value: "type", text: "Type" }, { value: "process", text: "Process" }, { value: "age", text: "Age" },
      ] as const, paint, (value) => {
        this.paint = value;
        remember({ paint: value });
        this.show();
      }),
      refresh);
    this.element = panel("Address map", tools, this.body);
    if (pool === "L1") this.size.value = "1 MiB";
    this.size.addEventListener("input", () => this.judge());
    if (mayAsk()) {
      clear(this.body, this.figures, this.map.element, h("div", { class: "pad" }, this.legend), this.note,
        h("div", { class: "fit" }, h("label", { for: "fit-size" }, "Would"), this.size,
          h("span", {}, "fit?"), this.answer));
      void this.load();
    } else clear(this.body, locked("Buffers"));
  }

  destroy(): void {
    this.abort.abort();
    clearTimeout(this.timer);
    this.map.destroy();
  }

  async load(): Promise<void> {
    this.abort.abort();
    clearTimeout(this.timer);
    this.abort = new AbortController();
    const { signal } = this.abort;
    const device = find(this.key);
    if (!device || !mayAsk()) return;
    try {
      const rows = await Promise.all(
        MAP_TYPES[this.pool].map((type) => loadBuffers({ device: deviceKey(device), type }, signal)));
      // A number also names devices of that number which have a unique id: those are others.
      this.buffers = rows.flatMap((one) => one.buffers).filter((buffer) => buffer.device_uid === device.uid);
      this.timeNs = Math.max(...rows.map((one) => one.timeNs));
      this.show();
      if (!rows.every((one) => one.complete))
        say(this.note, `There are too many buffers to show: these are the first ${count(this.buffers.length)}.`);
      // Small ones follow by themselves.
      if (this.buffers.length <= 5000) this.timer = window.setTimeout(() => void this.load(), 3000);
    } catch (error) {
      if (!signal.aborted) say(this.note, problem(error));
    }
  }

  private show(): void {
    const device = find(this.key);
    if (!device) return;
    const upper = device.memory[this.pool === "DRAM" ? "TRACE" : "L1_SMALL"].bank ?? null;
    const layout = layOut(this.buffers, device.memory[this.pool].bank ?? null, upper);
    const order = new Map(holders(device).map((process, i) => [process.pid, i]));
    this.layout = layout;
    this.map.set(layout, this.paint, order);
    const banks = layout.bank.banks;
    clear(this.figures,
      figure("Taken", bytes(layout.used * banks)), figure("Free", bytes(layout.free * banks)),
      figure("Largest hole", bytes(layout.largest * banks), `${bytes(layout.largest)} in each of ${banks} banks`),
      figure("Holes", count(layout.holes.length)),
      figure("Fragmentation", percent(fragmentation(layout), 1), "free memory that is not in the largest hole"),
      figure("As of", clock(this.timeNs)));
    this.explain(device);
    const notes = [];
    if (!layout.known) notes.push("No process has declared how large the banks are: only holes between buffers are known.");
    if (layout.kept) notes.push(`The hatched end is handed out as ${this.pool === "DRAM" ? "trace" : "small L1"} memory only.`);
    if (layout.overlaps)
      notes.push(`Buffers lie over each other (${count(layout.overlaps)}): processes that share a device hand its memory out each for itself.`);
    say(this.note, notes.join(" "));
    this.judge();
  }

  private explain(device: Device): void {
    const item = (variable: string, text: string): HTMLElement =>
      h("li", { "--dot": `var(--${variable})` }, h("span", {}, text));
    if (this.paint === "age") return clear(this.legend, AGE_NAMES.map((name, i) => item(`age-${i}`, name)), item("hole", "hole"));
    if (this.paint === "type")
      return clear(this.legend, MAP_TYPES[this.pool].map((type) => item(typeVariable(type), TYPE_TITLES[type])), item("hole", "hole"));
    const there = new Set(this.buffers.map((buffer) => buffer.pid));
    clear(this.legend,
      holders(device).flatMap((process, i) =>
        there.has(process.pid) && i < SERIES ? [item(seriesVariable(i), `${process.comm} (${process.pid})`)] : []),
      item("hole", "hole"));
  }

  private judge(): void {
    const wanted = parseBytes(this.size.value);
    this.answer.className = "";
    if (!this.layout) return say(this.answer, "");
    if (wanted === null) return say(this.answer, "A size looks like 512 MiB, 1.5 GiB or 4096.");
    const verdict = fit(this.layout, wanted);
    const { banks } = this.layout.bank;
    const each = banks > 1 ? ` (${bytes(verdict.need)} in each of ${banks} banks)` : "";
    this.answer.className = verdict.fits ? "yes" : "no";
    if (verdict.fits)
      say(this.answer, `Yes${each}: at 0x${verdict.hole.from.toString(16)}, in a hole of ${bytes((verdict.hole.to - verdict.hole.from) * banks)}.`);
    else if (verdict.reason === "full")
      say(this.answer, `No${each}: only ${bytes(this.layout.free * banks)} are free.`);
    else
      say(this.answer, `No${each}: ${bytes(this.layout.free * banks)} are free, but cut up: the largest hole has ${bytes(this.layout.largest * banks)}.`);
  }
}

/** A line of the table of who holds it. */
function holder(process: Process, key: string): Row<Process> {
  const cells = [0, 1, 2, 3].map(() => h("td", { class: "number" }));
  const element = h("tr", {},
    h("th", { scope: "row" }, h("a", { href: link("process", String(process.pid)) }, process.comm)),
    h("td", { class: "number" }, String(process.pid)), h("td", {}, process.user), cells);
  return {
    element,
    update(now) {
      const device = find(key);
      const memory = device && partOf(now, device)?.memory;
      if (!memory) return;
      (["DRAM", "L1", "SYSTEM"] as const).forEach((pool, i) => say(cells[i]!, bytes(poolUsed(memory, pool))));
      say(cells[3]!, count(buffersOf(memory)));
    },
  };
}

export function device(route: Route): View {
  const bars = { DRAM: new Bar("DRAM"), L1: new Bar("L1"), SYSTEM: new Bar("SYSTEM") };
  const body = h("tbody", {});
  const heading = h("h1", {}, `Device ${route.id}`);
  const facts = h("span", { class: "muted" });
  const gone = h("p", { class: "empty", hidden: true }, "No process tells of this device at present.");
  const timeline = new Timeline(route.id, route.options.get("by") === "process" ? "process" : "type",
    (RANGES.find((one) => one.value === route.options.get("range")) ?? RANGES[1]).value);
  const paint = route.options.get("paint");
  const places = new Places(route.id, route.options.get("pool") === "L1" ? "L1" : "DRAM",
    paint === "process" || paint === "age" ? paint : "type");
  const nobody = empty("Nobody holds memory of it.");
  const users = panel("Held by", null, h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Process", "PID", "User", "DRAM", "L1", "System", "Buffers"].map((text, i) =>
      h("th", { scope: "col", class: i > 2 || i === 1 ? "number" : "" }, text)))), body)), nobody);
  const element = h("div", {},
    h("div", { class: "crumbs" }, h("a", { href: link("overview") }, "Overview"), heading, facts),
    gone,
    h("div", { class: "columns wide-right" },
      panel("Now", null, h("div", { class: "pad" }, bars.DRAM.element, bars.L1.element, bars.SYSTEM.element)), users),
    timeline.element, places.element);
  const rows = new Keyed<Process>(body, (process) => `${process.pid} ${process.start_ns}`, (process) =>
    holder(process, route.id));
  let known = false;
  const update = (): void => {
    const now = find(route.id);
    gone.hidden = now !== undefined || !live.totals;
    if (!now) return;
    if (!known) {
      known = true;
      void timeline.load();
      void places.load();
    }
    say(heading, `Device ${now.device}`);
    say(facts, [now.card, now.arch, now.remote ? "remote" : "", now.uid].filter(Boolean).join(" · "));
    for (const bar of Object.values(bars)) bar.set(now.memory);
    const list = holders(now);
    nobody.hidden = list.length > 0;
    rows.show(list);
    timeline.update();
  };
  update();
  return { element, title: `Device ${route.id}`, update, destroy: () => { timeline.destroy(); places.destroy(); } };
}
