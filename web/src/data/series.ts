// SPDX-License-Identifier: Apache-2.0
//
// The history of devices and processes: time series of the daemon's database, aligned to one time axis and added up
// by whatever the chart stacks. Newer values are added from the stream.

import { pages, recorded, type Parameters } from "./api";
import type { Line } from "./model";

const PAGES_MAX = 12;
const LIMIT = 10000;
const FINEST_S = 0.01; // of a recording

/** A moment as a parameter: whole milliseconds, because a number of nanoseconds does not fit into a double. */
export const fromNs = (ns: number): string => `${Math.round(ns / 1e6)}000000`;

/** The later of two moments: values of an earlier process with the same pid do not belong to this one. */
export const later = (from: string, startNs: number): string => (startNs > Number(from) ? fromNs(startNs) : from);

export async function lines(parameters: Parameters, signal?: AbortSignal): Promise<Line[]> {
  const all = new Map<string, Line>();
  let count = 0;
  for await (const page of pages<{ series: Line[]; next: string | null }>(
    "/api/v1/series",
    { ...parameters, limit: LIMIT },
    signal,
  )) {
    for (const line of page.series) {
      const key = `${line.pid} ${line.uid} ${line.device} ${line.type} ${line.step_s}`;
      const before = all.get(key);
      if (before) before.points.push(...line.points);
      else all.set(key, line);
    }
    if (++count >= PAGES_MAX) break;
  }
  return [...all.values()];
}

/**
 * The parts of a sum, up to its last point. They are asked for after the sum, when the database may already have a newer
 * point of each; there the parts would stand alone, without what belongs to none of them.
 */
export function partsOf(sum: readonly Line[], parts: readonly Line[]): Line[] {
  const last = sum.reduce((latest, line) => Math.max(latest, line.points[line.points.length - 1]?.[0] ?? 0), 0);
  return parts.map((line) => ({ ...line, points: line.points.filter((point) => point[0] <= last) }));
}

const LATE_S = 5; // at most so long after the end of its step a point is in the database

/** Whether a series with its last point at @lastS may go on at @nowS: a holder of memory has a point in every step. */
const lasts = (lastS: number, nowS: number, stepS: number): boolean => nowS - lastS <= 2 * stepS + LATE_S;

/**
 * The history of a sparkline, up to what the stream has: times in ns, values. A series that has no more points has
 * ended.
 */
export function before(line: Line, firstNs: number): { times: number[]; values: number[] } {
  const times: number[] = [];
  const values: number[] = [];
  const end = (nextNs: number): void => {
    const last = times[times.length - 1];
    if (last === undefined || lasts(last / 1e9, nextNs / 1e9, line.step_s)) return;
    times.push(last + line.step_s * 1e9);
    values.push(0);
  };
  for (const [time, used] of line.points) {
    if (time >= firstNs) break;
    end(time);
    times.push(time);
    values.push(used);
  }
  end(firstNs);
  return { times, values };
}

/** Values by key over time; a key keeps its last value until it has another. */
export class History {
  times: number[] = []; // seconds
  /** Seconds between loaded points. */
  loadedStep = 0;
  private step = 0; // of the loaded points, until newer ones are known
  private columns = new Map<string, (number | null)[]>();

  keys(): string[] {
    return [...this.columns.keys()];
  }

  values(key: string): (number | null)[] {
    return this.columns.get(key) ?? new Array<number | null>(this.times.length).fill(null);
  }

  most(key: string): number {
    return this.values(key).reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
  }

  /** Adds series, each under the key that @keyOf returns; those with the same key are summed. */
  load(list: readonly Line[], keyOf: (line: Line) => string | null): void {
    const wanted = list.flatMap((line) => {
      const key = keyOf(line);
      return key === null ? [] : [{ key, line }];
    });
    const times = new Set<number>();
    this.step = this.loadedStep = Math.max(FINEST_S, ...wanted.map(({ line }) => line.step_s));
    // Steps of a recording may be shorter than a second; all its series have their points at the same times.
    const timeOf = (ns: number): number => (this.step < 1 ? ns / 1e9 : Math.round(ns / 1e9));
    for (const { line } of wanted) for (const point of line.points) times.add(timeOf(point[0]));
    this.times = gaps([...times].sort((a, b) => a - b), this.step);
    const index = new Map(this.times.map((time, i) => [time, i]));
    this.columns.clear();
    for (const { key, line } of wanted) {
      const own = new Array<number | null>(this.times.length).fill(null);
      for (const point of line.points) own[index.get(timeOf(point[0]))!] = point[1];
      bridge(own, this.times, line.step_s);
      const column = this.columns.get(key);
      if (!column) this.columns.set(key, own);
      else own.forEach((value, i) => value !== null && (column[i] = (column[i] ?? 0) + value));
    }
  }

  /** Adds the current value; at most one point a second. */
  push(timeNs: number, values: Map<string, number>): void {
    const time = Math.round(timeNs / 1e9);
    this.close(time);
    const last = this.times.length - 1;
    const at = last >= 0 && time <= this.times[last]! ? last : last + 1;
    if (at > last) this.times.push(time);
    for (const key of values.keys())
      if (!this.columns.has(key)) this.columns.set(key, new Array<number | null>(at).fill(null));
    for (const [key, column] of this.columns) column[at] = values.get(key) ?? 0;
  }

  /** The database's last point is valid for its step, not until now. */
  private close(now: number): void {
    const last = this.times[this.times.length - 1];
    if (this.step > 0 && last !== undefined && !lasts(last, now, this.step)) {
      this.times.push(last + this.step);
      for (const column of this.columns.values()) column.push(null);
    }
    this.step = 0;
  }

  /** The same history, with points in finer steps where they are known. */
  with(finer: History): History {
    const first = finer.times[0];
    const last = finer.times[finer.times.length - 1];
    if (first === undefined || last === undefined) return this;
    const head = this.times.filter((time) => time < first).length;
    const tail = this.times.filter((time) => time <= last).length;
    const join = <T>(own: readonly T[], its: readonly T[]): T[] => [...own.slice(0, head), ...its, ...own.slice(tail)];
    const all = new History();
    all.times = join(this.times, finer.times);
    for (const key of new Set([...this.keys(), ...finer.keys()])) all.columns.set(key, join(this.values(key), finer.values(key)));
    return all;
  }

  trim(firstS: number): void {
    let drop = 0;
    while (drop < this.times.length - 2 && this.times[drop]! < firstS) drop++;
    if (!drop) return;
    this.times.splice(0, drop);
    for (const column of this.columns.values()) column.splice(0, drop);
  }
}

const CLOSER_MS = 250; // after the user has stopped zooming

/** Loads a time range into a history, in the finest steps available. */
export type LoadPart = (from: string, to: string, into: History, signal: AbortSignal) => Promise<void>;

/** The zoomed range of a chart: a long history has coarse steps, but a part of it can have finer ones. */
export class Closer {
  private finer: History | null = null;
  private range = { min: 0, max: 0 }; // with finer steps
  private timer = 0;
  private abort = new AbortController();

  constructor(
    private load: LoadPart,
    private changed: () => void,
  ) {}

  /** @range: in seconds; null: all of it. @step: of the data already loaded. */
  look(range: { min: number; max: number } | null, step: number): void {
    this.stop();
    if (!range) {
      const had = this.finer !== null;
      this.finer = null;
      if (had) this.changed();
      return;
    }
    const covered = this.finer && this.range.min <= range.min && this.range.max >= range.max;
    if ((covered ? this.finer!.loadedStep : step) <= (recorded() ? FINEST_S : 1)) return;
    this.timer = window.setTimeout(() => void this.ask(range), CLOSER_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private async ask(range: { min: number; max: number }): Promise<void> {
    this.abort = new AbortController();
    const { signal } = this.abort;
    const finer = new History();
    try {
      await this.load(fromNs(Math.floor(range.min) * 1e9), fromNs(Math.ceil(range.max) * 1e9), finer, signal);
    } catch {
      return; // the chart stays coarse, but correct
    }
    if (signal.aborted) return;
    this.finer = finer;
    this.range = range;
    this.changed();
  }

  apply(past: History): History {
    return this.finer ? past.with(this.finer) : past;
  }
}

/** Marks a gap in the recording by a time without values, so that the chart shows nothing there. */
function gaps(times: readonly number[], step: number): number[] {
  const all: number[] = [];
  for (const time of times) {
    const last = all[all.length - 1];
    if (last !== undefined && time - last > 5 * step) all.push(last + step);
    all.push(time);
  }
  return all;
}

/** A step without a point between two close ones: other series have points there, this one has not changed. */
function bridge(values: (number | null)[], times: readonly number[], step: number): void {
  let last = -1;
  for (let i = 0; i < values.length; i++) {
    if (values[i] === null) continue;
    if (last >= 0 && times[i]! - times[last]! <= 3 * step + 2)
      for (let between = last + 1; between < i; between++) values[between] = values[last]!;
    last = i;
  }
}
