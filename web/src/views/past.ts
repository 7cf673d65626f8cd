// SPDX-License-Identifier: Apache-2.0
//
// The use of memory over time by type, of a process or of the whole machine.

import { problem, type Parameters } from "../api";
import { Chart } from "../chart";
import { typeVariable } from "../colours";
import { choice, h, say } from "../dom";
import { Events } from "../events";
import { live } from "../live";
import { POOLS, type Line, type MemoryType, type Pool } from "../model";
import { moment, windowOf } from "../moment";
import { pick, remember } from "../router";
import { Closer, fromNs, History, later, lines } from "../series";
import { panel, RANGES, TYPE_TITLES, type Range } from "../view";

const EVENTS_NS = 5e9; // between two looks for new events

/** Whose memory it is. */
export interface Subject {
  title: string;
  label: string;
  height?: number;
  remembers?: boolean; // what was chosen is in the address
  parameters: Parameters; // of its series and events
  start(): number; // ns; nothing before it belongs to it
  owns(line: Line): boolean;
  /** What it has now; null: it is not there. */
  used(type: MemoryType): number | null;
}

const CHARTED = ["DRAM", "L1", "SYSTEM"] as const;

export class Past {
  readonly element: HTMLElement;
  private chart: Chart;
  private history: Record<Pool, History> = { DRAM: new History(), L1: new History(), SYSTEM: new History() };
  private closer = new Closer(async (from, to, into, signal) => {
    const start = later(from, this.subject.start());
    into.load(await lines({ ...this.subject.parameters, from: start, to }, signal), this.keyIn(this.pool));
  }, () => this.draw());
  private events = new Events((list) => this.chart.annotate(list));
  private pool: Pool;
  private note = h("p", { class: "muted pad" });
  private abort = new AbortController();
  private last = 0;
  private looked = 0; // for events
  private loaded = false;
  private stopped = false; // by the page's time cursor
  private pauses = live.pauses;
  private from = 0; // seconds; what is loaded begins there

  constructor(
    private subject: Subject,
    private range: Range,
    pool: string | null = null,
  ) {
    this.pool = pick(POOLS, pool, "DRAM");
    this.chart = new Chart(subject.label, (part) => this.closer.look(part, this.history[this.pool].loadedStep),
      { shared: moment, ...(subject.height && { height: subject.height }) });
    const pools = CHARTED.map((value) => ({ value, text: value === "SYSTEM" ? "System" : value }));
    this.element = panel(subject.title,
      h("div", { class: "tools" },
        choice<Pool>("Memory", pools, this.pool, (value) => {
          this.pool = value;
          if (subject.remembers) remember({ pool: value });
          this.chart.showAll();
          this.draw();
        }),
        choice<Range>("Time shown", RANGES, range, (value) => {
          this.range = value;
          if (subject.remembers) remember({ range: value });
          this.chart.showAll();
          void this.load();
        })),
      this.chart.element, this.note);
    void this.load();
  }

  destroy(): void {
    this.abort.abort();
    this.events.stop();
    this.closer.stop();
    this.chart.destroy();
  }

  /** Series of a pool are split by type. */
  private keyIn(pool: Pool): (line: Line) => string | null {
    return (line) => (this.subject.owns(line) && line.type && POOLS[pool].types.includes(line.type) ? line.type : null);
  }

  private async load(): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.pauses = live.pauses;
    const part = windowOf(Number(this.range), live.clockNs() / 1e9, moment.wanted());
    const from = later(fromNs(part.from * 1e9), this.subject.start());
    this.from = part.from;
    void this.events.load(Number(from) / 1e9, part.to, this.subject.parameters);
    try {
      const list = await lines({ ...this.subject.parameters, from, to: part.to && fromNs(part.to * 1e9) }, signal);
      for (const pool of CHARTED) this.history[pool].load(list, this.keyIn(pool));
      say(this.note, "");
    } catch (error) {
      if (signal.aborted) return;
      say(this.note, `The past cannot be shown: ${problem(error)}`);
    }
    this.last = 0;
    this.looked = live.clockNs();
    this.loaded = true;
    this.closer.look(moment.zoom, this.history[this.pool].loadedStep);
    this.update();
    this.draw();
  }

  /** While an earlier instant is shown the chart stands still. */
  update(): void {
    if (moment.at !== null) {
      this.stopped = true;
      if (this.loaded && moment.at / 1e9 < this.from) void this.load();
      return;
    }
    const now = live.clockNs();
    if (!this.loaded || !live.isCurrent() || now - this.last < 1e9 || this.subject.used("DRAM") === null) return;
    if (this.stopped || this.pauses !== live.pauses) {
      this.stopped = false;
      return void this.load();
    }
    this.last = now;
    for (const pool of CHARTED) {
      this.history[pool].push(now, new Map(POOLS[pool].types.map((type) => [type, this.subject.used(type) ?? 0])));
      this.history[pool].trim(now / 1e9 - Number(this.range));
    }
    this.draw();
    if (now - this.looked < EVENTS_NS) return;
    this.looked = now;
    void this.events.load(now / 1e9 - Number(this.range), null, this.subject.parameters);
  }

  private draw(): void {
    const past = this.closer.apply(this.history[this.pool]);
    this.chart.set({
      times: [...past.times],
      series: POOLS[this.pool].types
        .filter((type) => past.most(type) > 0)
        .map((type) => ({ label: TYPE_TITLES[type], variable: typeVariable(type), values: past.values(type) })),
    });
  }
}
