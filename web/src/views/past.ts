// SPDX-License-Identifier: Apache-2.0
//
// The use of memory over time by type, of a process or of the whole machine.

import { choice, h } from "../base/dom";
import { pick, remember } from "../base/router";
import { Chart } from "../chart/chart";
import { Feed, manner, type Fed } from "../chart/feed";
import type { Parameters } from "../data/api";
import { POOLS, type Line, type MemoryType, type PastEvent, type Pool } from "../data/model";
import { Closer, History, later, lines } from "../data/series";
import { typeVariable } from "../parts/colours";
import { panel, ranges, TYPE_TITLES } from "../parts/view";
import { moment } from "../time/moment";

/** Whose memory it is. */
export interface Subject {
  title: string;
  label: string;
  height?: number;
  remembers?: boolean; // what was chosen is in the address
  parameters: Parameters; // of its series and events
  start(): number; // ns; nothing before it belongs to it
  owns(line: Line): boolean;
  /** What it has at the instant that the page shows; null: it is not there. */
  used(type: MemoryType): number | null;
}

const CHARTED = ["DRAM", "L1", "SYSTEM"] as const;

export class Past implements Fed {
  readonly element: HTMLElement;
  private chart: Chart;
  private history: Record<Pool, History> = { DRAM: new History(), L1: new History(), SYSTEM: new History() };
  private closer = new Closer(async (from, to, into, signal) => {
    const start = later(from, this.subject.start());
    into.load(await lines({ ...this.subject.parameters, from: start, to }, signal), this.keyIn(this.pool));
  }, () => this.draw());
  private feed = new Feed(this);
  private pool: Pool;

  constructor(
    private subject: Subject,
    private range: string,
    pool: string | null = null,
  ) {
    this.pool = pick(POOLS, pool, "DRAM");
    this.chart = new Chart(subject.label, (part) => this.closer.look(part, this.history[this.pool].loadedStep),
      { ...manner(), ...(subject.height && { height: subject.height }) });
    const pools = CHARTED.map((value) => ({ value, text: value === "SYSTEM" ? "System" : value }));
    this.element = panel(subject.title,
      h("div", { class: "tools" },
        choice<Pool>("Memory", pools, this.pool, (value) => {
          this.pool = value;
          if (subject.remembers) remember({ pool: value });
          this.chart.showAll();
          this.draw();
        }),
        choice("Time shown", ranges(), range, (value) => {
          this.range = value;
          if (subject.remembers) remember({ range: value });
          this.chart.showAll();
          void this.feed.load();
        })),
      this.chart.element, this.feed.note);
    void this.feed.load();
  }

  destroy(): void {
    this.feed.destroy();
    this.closer.stop();
    this.chart.destroy();
  }

  /** Series of a pool are split by type. */
  private keyIn(pool: Pool): (line: Line) => string | null {
    return (line) => (this.subject.owns(line) && line.type && POOLS[pool].types.includes(line.type) ? line.type : null);
  }

  parameters(): Parameters {
    return this.subject.parameters;
  }

  isHere(): boolean {
    return this.subject.used("DRAM") !== null;
  }

  seconds(): number {
    return Number(this.range);
  }

  start(): number {
    return this.subject.start();
  }

  async read(from: string, to: string | null, signal: AbortSignal): Promise<void> {
    const list = await lines({ ...this.subject.parameters, from, to }, signal);
    for (const pool of CHARTED) this.history[pool].load(list, this.keyIn(pool));
  }

  forget(): void {
    for (const pool of CHARTED) this.history[pool] = new History();
  }

  show(): void {
    this.closer.look(moment.zoom, this.history[this.pool].loadedStep);
    this.draw();
  }

  push(now: number, firstS: number): void {
    for (const pool of CHARTED) {
      this.history[pool].push(now, new Map(POOLS[pool].types.map((type) => [type, this.subject.used(type) ?? 0])));
      this.history[pool].trim(firstS);
    }
    this.draw();
  }

  annotate(events: readonly PastEvent[]): void {
    this.chart.annotate(events);
  }

  update(): void {
    this.feed.update();
    this.chart.tell();
  }

  private draw(): void {
    const past = this.closer.apply(this.history[this.pool]);
    const types = POOLS[this.pool].types.filter((type) => past.most(type) > 0);
    this.chart.set({
      times: [...past.times],
      series: types.map((type) => ({ label: TYPE_TITLES[type], variable: typeVariable(type), values: past.values(type) })),
      // The last that is known of what is not there any more is in the history.
      now: () => (this.isHere() || moment.at !== null ? types.map((type) => this.subject.used(type)) : null),
    });
  }
}
