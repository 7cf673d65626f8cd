// SPDX-License-Identifier: Apache-2.0
//
// Keeps the charts of a view current: reads the past, adds a point of the stream each second, and stands still while the
// page's time cursor is at an earlier instant, and where there is nothing
// newer: in a recording.

import { h, say } from "../base/dom";
import { clock } from "../base/format";
import { problem, recorded, type Parameters } from "../data/api";
import { live } from "../data/live";
import type { PastEvent } from "../data/model";
import { fromNs, later } from "../data/series";
import { Events } from "../time/events";
import { moment, windowOf } from "../time/moment";
import { STEPS } from "./chart-data";
import { short, type Manner } from "./chart-manner";

const parts = (time: number): string => (time % 1).toFixed(3).slice(1).replace(/\.?0+$/, "");

/** How charts of a recording differ from live ones: it may have lasted for a few milliseconds. */
export const manner = (): Partial<Manner> => recorded() ? {
  shared: moment, shortest: 0, closest: 0.02, end: "at the end", steps: STEPS,
  tick: (time) => short(time) + (time % 1 && new Date(time * 1000).getSeconds() === 0 ? ":00" : "") + parts(time),
  clock: (time) => clock(time * 1e9) + parts(time),
} : { shared: moment };

const EVENTS_NS = 5e9; // between two looks for new events
const POINT_NS = 1e9;

/** The charts that are fed. */
export interface Fed {
  /** How many seconds they show. */
  seconds(): number;
  /** Of their events; null: it is not known whose past to read. */
  parameters(): Parameters | null;
  /** Whether what they show is there at present. */
  isHere(): boolean;
  /** ns; nothing before it belongs to them. */
  start(): number;
  read(from: string, to: string | null, signal: AbortSignal): Promise<void>;
  /** What was read before is of another part of the past. */
  forget(): void;
  /** Something new was read. */
  show(): void;
  /** A point of now; older ones than @firstS are not shown any more. */
  push(now: number, firstS: number): void;
  annotate(events: readonly PastEvent[]): void;
}

export class Feed {
  /** Why nothing is shown, or empty. */
  readonly note = h("p", { class: "muted pad" });
  private events: Events;
  private abort = new AbortController();
  private last = 0; // ns; of the newest point
  private looked = 0; // ns; for events
  private loaded = false;
  private stopped = false; // by the page's time cursor
  private pauses = live.pauses;
  private from = 0; // seconds; what is loaded begins there

  constructor(private fed: Fed) {
    this.events = new Events((list) => fed.annotate(list));
  }

  destroy(): void {
    this.abort.abort();
    this.events.stop();
  }

  async load(): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const parameters = this.fed.parameters();
    if (!parameters) return;
    this.pauses = live.pauses;
    const { from, to } = windowOf(this.fed.seconds(), live.clockNs() / 1e9, moment.wanted());
    const start = later(fromNs(from * 1e9), this.fed.start());
    this.from = from;
    this.looked = live.clockNs();
    void this.events.load(Number(start) / 1e9, to, parameters);
    try {
      await this.fed.read(start, to === null ? null : fromNs(to * 1e9), signal);
      say(this.note, "");
    } catch (error) {
      if (signal.aborted) return;
      this.fed.forget();
      say(this.note, `The past cannot be shown: ${problem(error)}`);
    }
    this.last = 0;
    this.loaded = true;
    this.fed.show();
    this.update();
  }

  /** There is something newer, or another instant is shown. */
  update(): void {
    if (moment.at !== null || recorded()) {
      this.stopped = true;
      if (this.loaded && moment.at !== null && moment.at / 1e9 < this.from) void this.load();
      return;
    }
    const now = live.clockNs();
    const parameters = this.fed.parameters();
    if (!parameters || !this.fed.isHere() || !this.loaded || !live.isCurrent() || now - this.last < POINT_NS) return;
    if (this.stopped || this.pauses !== live.pauses) {
      this.stopped = false;
      return void this.load();
    }
    this.last = now;
    const first = now / 1e9 - this.fed.seconds();
    this.fed.push(now, first);
    if (now - this.looked < EVENTS_NS) return;
    this.looked = now;
    void this.events.load(first, null, parameters);
  }
}
