// SPDX-License-Identifier: Apache-2.0
//
// One device: its use over time, by type or by process, and the layout of its memory.

import { telemetry } from "../analysis/sensors";
import { choice, h, Keyed, More, renew, say, type Row } from "../base/dom";
import { bytes, count } from "../base/format";
import { link, remember, type Route } from "../base/router";
import { short } from "../base/text";
import { Chart } from "../chart/chart";
import { remainder, type ChartData } from "../chart/chart-data";
import { Feed, manner, type Fed } from "../chart/feed";
import type { Parameters } from "../data/api";
import {
  buffersOf, deviceKey, held, memoryOf, poolCapacity, POOLS, poolUsed, type Device, type Line, type PastEvent, type Pool, type Process,
} from "../data/model";
import { Closer, History, later, lines, partsOf } from "../data/series";
import { Palette, SERIES, seriesVariable, typeVariable } from "../parts/colours";
import { Bar, empty, panel, rangeOf, ranges, TYPE_TITLES, type View } from "../parts/view";
import { moment } from "../time/moment";
import { Places } from "./places";

type By = "type" | "process";
const HOLDERS = 50; // rows at a time
const ALL = "all"; // key of the whole device, beside those of processes

const find = (key: string): Device | undefined =>
  moment.totals?.devices.find((device) => deviceKey(device) === key) ??
  moment.totals?.devices.find((device) => String(device.device) === key);

function holders(device: Device): Process[] {
  return (moment.totals?.processes ?? [])
    .flatMap((process) => {
      const memory = process.alive && memoryOf(process, device);
      return memory ? [{ process, held: held(memory) }] : [];
    })
    .sort((a, b) => b.held - a.held)
    .map(({ process }) => process);
}

const CHARTED = ["DRAM", "L1"] as const;
type Charted = (typeof CHARTED)[number];

const valuesOf = (keys: readonly string[], values: Map<string, number> | null): number[] | null =>
  values && keys.map((key) => values.get(key) ?? 0);

/** Both charts of the device, and where their data comes from. */
class Timeline implements Fed {
  readonly element: HTMLElement;
  private charts: Record<Charted, Chart> = { DRAM: this.chart("DRAM"), L1: this.chart("L1") };
  private past: Record<Charted, History> = { DRAM: new History(), L1: new History() };
  private closer: Record<Charted, Closer> = { DRAM: this.closerOf("DRAM"), L1: this.closerOf("L1") };
  private feed = new Feed(this);
  private names = new Map<string, string>();

  constructor(
    private key: string,
    private by: By,
    private range: string,
    private palette: Palette,
  ) {
    const tools = h(
      "div",
      { class: "tools" },
      choice("Stacked by", [{ value: "type", text: "By type" }, { value: "process", text: "By process" }] as const, by, (value) => {
        this.by = value;
        remember({ by: value });
        this.again();
      }),
      choice("Time shown", ranges(), range, (value) => {
        this.range = value;
        remember({ range: value });
        this.again();
      }),
    );
    this.element = panel("Use over time", tools,
      h("div", { class: "columns charts" },
        h("div", {}, h("h3", { class: "chart-title" }, "DRAM"), this.charts.DRAM.element),
        h("div", {}, h("h3", { class: "chart-title" }, "L1"), this.charts.L1.element)),
      this.feed.note);
    void this.load();
  }

  destroy(): void {
    this.feed.destroy();
    for (const pool of CHARTED) {
      this.closer[pool].stop();
      this.charts[pool].destroy();
    }
  }

  private chart(pool: Charted): Chart {
    return new Chart(`${pool} over time`, (range) => this.closer[pool].look(range, this.past[pool].loadedStep), manner());
  }

  private closerOf(pool: Charted): Closer {
    return new Closer(async (from, to, into, signal) => {
      const device = find(this.key);
      if (device) into.load(await this.ask(device, from, to, signal), this.keyIn(device, pool));
    }, () => this.draw(pool));
  }

  /** The key of a series: a type, a process or the whole device; null: anything else. */
  private keyIn(device: Device, pool: Charted): (line: Line) => string | null {
    return (line) =>
      (line.uid ?? String(line.device)) === deviceKey(device) && line.type && POOLS[pool].types.includes(line.type)
        ? this.by === "type" ? line.type : line.pid === null ? ALL : String(line.pid)
        : null;
  }

  /** The history from the database: of the device, and of each process with a colour of its own. */
  private async ask(device: Device, from: string, to: string | null, signal: AbortSignal): Promise<Line[]> {
    const parameters = { device: deviceKey(device), from, to };
    const list = await lines(parameters, signal);
    if (this.by === "type" || list.length === 0) return list;
    // All in the same steps, so that parts and sum are of the same moments.
    const step = Math.max(...list.map((line) => line.step_s));
    const own = holders(device).filter((process) => this.palette.place(process.pid) < SERIES);
    const parts = await Promise.all(own.map((process) =>
      lines({ ...parameters, step, pid: process.pid, from: later(from, process.start_ns) }, signal)));
    return [...list, ...partsOf(list, parts.flat())];
  }

  /** Something else is shown: its zoom would be meaningless. */
  private again(): void {
    this.charts.DRAM.showAll();
    void this.load();
  }

  load(): Promise<void> {
    return this.feed.load();
  }

  parameters(): Parameters | null {
    const device = find(this.key);
    return device ? { device: deviceKey(device) } : null;
  }

  isHere(): boolean {
    return find(this.key) !== undefined;
  }

  seconds(): number {
    return Number(this.range);
  }

  start(): number {
    return 0;
  }

  async read(from: string, to: string | null, signal: AbortSignal): Promise<void> {
    const device = find(this.key)!; // the feed has asked
    const list = await this.ask(device, from, to, signal);
    for (const pool of CHARTED) this.past[pool].load(list, this.keyIn(device, pool));
  }

  forget(): void {
    this.past = { DRAM: new History(), L1: new History() };
  }

  show(): void {
    for (const pool of CHARTED) {
      this.closer[pool].look(moment.zoom, this.past[pool].loadedStep);
      this.draw(pool);
    }
  }

  push(now: number, firstS: number): void {
    const device = find(this.key)!; // as above
    for (const pool of CHARTED) {
      this.past[pool].push(now, this.current(device, pool));
      this.past[pool].trim(firstS);
      this.draw(pool);
    }
  }

  annotate(events: readonly PastEvent[]): void {
    for (const chart of Object.values(this.charts)) chart.annotate(events);
  }

  update(): void {
    this.feed.update();
    for (const chart of Object.values(this.charts)) chart.tell();
  }

  private draw(pool: Charted): void {
    const device = find(this.key);
    if (device) this.charts[pool].set(this.data(pool), poolCapacity(device.memory, pool));
  }

  private current(device: Device, pool: Pool): Map<string, number> {
    const values = new Map<string, number>();
    if (this.by === "type") for (const type of POOLS[pool].types) values.set(type, device.memory[type].used);
    else {
      values.set(ALL, poolUsed(device.memory, pool));
      for (const process of holders(device)) {
        this.names.set(String(process.pid), `${process.comm} (${process.pid})`);
        values.set(String(process.pid), poolUsed(memoryOf(process, device)!, pool));
      }
    }
    return values;
  }

  private data(pool: Charted): ChartData {
    const past = this.closer[pool].apply(this.past[pool]);
    const now = (): Map<string, number> | null => {
      const device = find(this.key);
      return device ? this.current(device, pool) : null;
    };
    if (this.by === "type") {
      const types = POOLS[pool].types.filter((type) => past.most(type) > 0);
      return {
        times: [...past.times],
        series: types.map((type) => ({ label: TYPE_TITLES[type], variable: typeVariable(type), values: past.values(type) })),
        now: () => valuesOf(types, now()),
      };
    }
    const place = (key: string): number => this.palette.place(Number(key));
    const own = past.keys().filter((key) => key !== ALL && place(key) < SERIES && past.most(key) > 0);
    const series = own.sort((a, b) => place(a) - place(b)).map((key) => ({
      label: this.names.get(key) ?? key, variable: seriesVariable(place(key)), values: past.values(key),
    }));
    // Both stacks are equally high: exited processes, and those too small for a colour, held memory too.
    const rest = remainder(past.values(ALL), series.map((one) => one.values));
    if (rest.some((value) => value)) series.push({ label: "Others and ended", variable: seriesVariable(SERIES), values: rest });
    return {
      times: [...past.times], series,
      now: () => {
        const values = now();
        const parts = valuesOf(own, values);
        return parts && [...parts, remainder([values!.get(ALL)!], parts.map((part) => [part]))[0]!];
      },
    };
  }
}

/** A row of the table of holders. */
function holder(process: Process, key: string): Row<Process> {
  const cells = [0, 1, 2, 3].map(() => h("td", { class: "number" }));
  const element = h("tr", {},
    h("th", { scope: "row" }, h("a", { href: link("process", String(process.pid)) }, process.comm)),
    h("td", { class: "number" }, String(process.pid)), h("td", {}, process.user), cells);
  return {
    element,
    update(now) {
      const device = find(key);
      const memory = device && memoryOf(now, device);
      if (!memory) return;
      (["DRAM", "L1", "SYSTEM"] as const).forEach((pool, i) => say(cells[i]!, bytes(poolUsed(memory, pool))));
      say(cells[3]!, count(buffersOf(memory)));
    },
  };
}

/** There is no such device: lists those that exist. */
function unknown(id: string): { element: HTMLElement; update(): void } {
  const others = h("p", {});
  const element = h("div", { class: "panel" }, h("div", { class: "empty" },
    h("p", {}, `There is no device ${short(id, 40)} at present: neither a process nor the driver reports one.`), others));
  return {
    element,
    update() {
      const list = moment.totals?.devices ?? [];
      renew(others, list.length === 0 ? "There is no device at all: no process is tracked, and no card was found."
        : ["There are: ", list.slice(0, 32).map((one, i) => [i ? ", " : "", h("a", { href: link("device", deviceKey(one)) }, `device ${one.device}`)]),
          list.length > 32 && ` and ${list.length - 32} more`]);
    },
  };
}

export function device(route: Route): View {
  const bars = { DRAM: new Bar("DRAM"), L1: new Bar("L1"), SYSTEM: new Bar("SYSTEM") };
  const body = h("tbody", {});
  const heading = h("h1", {}, `Device ${short(route.id, 40)}`);
  const facts = h("span", { class: "muted" });
  const gone = unknown(route.id);
  const palette = new Palette();
  const timeline = new Timeline(route.id, route.options.get("by") === "process" ? "process" : "type",
    rangeOf(route.options.get("range")), palette);
  const places = new Places(() => find(route.id), palette, route);
  const nobody = empty("Nobody holds memory of it.");
  const more = new More(HOLDERS, "processes", () => update());
  const users = panel("Held by", null, h("div", { class: "scroll bounded" }, h("table", { class: "holders" },
    h("thead", {}, h("tr", {}, ["Process", "PID", "User", "DRAM", "L1", "System", "Buffers"].map((text, i) =>
      h("th", { scope: "col", class: i > 2 || i === 1 ? "number" : "" }, text)))), body)), more.element, nobody);
  const use = panel("Now", null, h("div", { class: "pad" }, bars.DRAM.element, bars.L1.element, bars.SYSTEM.element));
  const content = h("div", {},
    h("div", { class: "columns wide-right" }, use, users),
    timeline.element, places.element);
  const element = h("div", {},
    h("div", { class: "crumbs" }, h("a", { href: link("overview") }, "Overview"), heading, facts),
    gone.element, content);
  const rows = new Keyed<Process>(body, (process) => `${process.pid} ${process.start_ns}`, (process) =>
    holder(process, route.id));
  let known = false;
  const update = (): void => {
    const now = find(route.id);
    gone.element.hidden = now !== undefined || !moment.totals;
    if (now === undefined && moment.totals) gone.update();
    // The history of a device that has disappeared stays visible, unless an instant is shown when it was not there.
    content.hidden = !now && (!known || moment.at !== null);
    if (!now) return;
    if (!known) {
      known = true;
      void timeline.load();
      void places.load();
    }
    say(heading, `Device ${now.device}`);
    say(facts, [now.card, now.arch, now.remote ? "remote" : "", now.uid, telemetry(now)].filter(Boolean).join(" · "));
    for (const bar of Object.values(bars)) bar.set(now.memory);
    const list = holders(now);
    nobody.hidden = list.length > 0;
    for (const process of list) palette.place(process.pid);
    rows.show(more.cut(list));
    say(use.querySelector("h2")!, moment.at === null ? "Now" : "Then");
    timeline.update();
    places.update();
  };
  update();
  return { element, title: `Device ${short(route.id, 40)}`, update, destroy: () => { timeline.destroy(); places.destroy(); } };
}
