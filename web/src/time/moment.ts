// SPDX-License-Identifier: Apache-2.0
//
// The page's time cursor: the instant that every view shows (null: now), a second one to compare it with, and the part of
// the past that charts show. All of it is in the address, so that a reload or a link shows the same again.

import { clock, duration } from "../base/format";
import { parse, remember, rememberSoon, type Refinement } from "../base/router";
import { Failed, get, problem, recorded, type Parameters } from "../data/api";
import { live } from "../data/live";
import type { PastFacts, Totals } from "../data/model";
import { fromNs } from "../data/series";

const SETTLE_MS = 120; // after the cursor has stopped moving
const MS = 1e6; // cursors are whole milliseconds: more digits do not fit into a double

/** The millisecond of an instant. A double is up to 128 ns off, which must not make a whole one the one before. */
const wholeMs = (ns: number): number => Math.floor(ns / MS + 0.001) * MS;

/** A part of the past, in seconds. */
export interface Span {
  min: number;
  max: number;
}

/** An instant from the address; null: none, or not a valid one. */
export function instantOf(text: string | null): number | null {
  return text !== null && /^[1-9]\d{0,18}$/.test(text) ? wholeMs(Number(text)) : null;
}

export function spanOf(text: string | null): Span | null {
  const found = /^(\d{1,12}(?:\.\d{1,3})?)-(\d{1,12}(?:\.\d{1,3})?)$/.exec(text ?? "");
  const [min, max] = [Number(found?.[1]), Number(found?.[2])];
  return max > min ? { min, max } : null;
}

const spanText = ({ min, max }: Span): string => `${min.toFixed(3)}-${max.toFixed(3)}`;

/**
 * The seconds that a chart loads: the last @length, or as many around instants that are older.
 * `to` is null if it goes on until now.
 */
export function windowOf(length: number, now: number, wanted: readonly number[]): { from: number; to: number | null } {
  if (wanted.every((time) => time >= now - length)) return { from: now - length, to: null };
  const first = Math.min(...wanted);
  const last = Math.max(...wanted);
  const spare = Math.max(length - (last - first), length / 10) / 2;
  return { from: first - spare, to: last + spare >= now ? null : last + spare };
}

/** What the bar says of the instant that is shown. @recording: the instants of a file count from its start. @whole: nothing is missing. */
export function tellInstant(at: number, now: number, facts: PastFacts | null | undefined, recording = recorded(), whole = true): string {
  const when = `As it was at ${clock(at, now / MS)}, ${recording ? `${duration(at - recording.start_ns)} after the start` : `${duration(now - at)} ago`}`;
  if (!facts) return when;
  if (facts.kind === "exact") return `${when}; ${whole ? "exact" : "exact, but not all is known"}`;
  return `${when}; sums only: ${facts.exact_from_ns === null ? "the flight recorder has nothing"
    : `the flight recorder reaches back to ${clock(facts.exact_from_ns, now / MS)}`}`;
}

const nothing = (time_ns: number): Totals =>
  ({ time_ns, devices: [], processes: [], totals: { bytes: 0, buffers: 0 }, notes: [] });

export class Cursor {
  at: number | null = null; // ns; where the cursor is
  shown: number | null = null; // ns; the instant of the totals: the cursor may have moved on
  other: number | null = null; // ns; the instant to compare with
  zoom: Span | null = null;
  trouble = ""; // why there is nothing of that instant
  choosing = false; // the next click on a chart sets the second cursor
  private past: Totals | null = null;
  private before: Totals | null = null; // of the other instant
  private listeners = new Set<() => void>();
  private timer = 0;
  private abort = new AbortController();

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }

  /** What views show; null: not read yet. */
  get totals(): Totals | null {
    return this.at === null ? live.totals : this.past;
  }

  /** The totals of the instant to compare with; null: there is none, or it is not read yet. */
  get otherTotals(): Totals | null {
    return this.other === null ? null : this.before;
  }

  /** The time of what is shown. */
  clockNs(): number {
    return this.shown ?? live.clockNs();
  }

  /** To be added to requests for rows of the instant that is shown. */
  parameters(): Parameters {
    return this.shown === null ? {} : { at: fromNs(this.shown) };
  }

  otherParameters(): Parameters {
    return this.other === null ? {} : { at: fromNs(this.other) };
  }

  /** Changes when rows have to be read again. */
  get key(): string {
    return `${this.shown} ${this.other}`;
  }

  get loading(): boolean {
    return this.at !== this.shown || (this.other !== null && !this.before);
  }

  /** Whether the totals are of the cursor's instant. */
  get known(): boolean {
    return this.at === this.shown && this.trouble === "" && this.totals !== null;
  }

  /** The instants and the zoom that a chart should contain, in seconds. */
  wanted(): number[] {
    const times = [this.at, this.other].flatMap((ns) => (ns === null ? [] : [ns / 1e9]));
    return this.zoom ? [...times, this.zoom.min, this.zoom.max] : times;
  }

  /** Takes over what the address has. The cursor is the whole page's: a link without one leads to the same instant. */
  follow(hash: string): void {
    const { options } = parse(hash);
    const [at, other] = [instantOf(options.get("at")), instantOf(options.get("vs"))];
    this.zoom = spanOf(options.get("zoom"));
    if (at !== null || other !== null) this.place(at, other);
    else if (this.at !== null || this.other !== null) remember(this.address());
  }

  private address(): Refinement {
    const text = (ns: number | null): string | null => (ns === null ? null : fromNs(ns));
    return { at: text(this.at), vs: text(this.other) };
  }

  /** @ns: null brings back now. */
  set(ns: number | null): void {
    this.place(ns, this.other);
    rememberSoon(this.address()); // it may be dragged
  }

  compare(ns: number | null): void {
    this.place(this.at, ns);
    rememberSoon(this.address()); // it may be dragged
  }

  live(): void {
    this.place(null, null);
    remember(this.address());
  }

  /** A click on a chart. @second: with Shift, it sets the other cursor. */
  pick(ns: number, second: boolean): void {
    if (second || this.choosing) this.compare(ns);
    else this.set(ns);
  }

  choose(on: boolean): void {
    this.choosing = on;
    this.tell();
  }

  look(zoom: Span | null): void {
    this.zoom = zoom;
    rememberSoon({ zoom: zoom && spanText(zoom) });
    this.tell();
  }

  private place(at: number | null, other: number | null): void {
    const valid = (ns: number | null): number | null =>
      ns === null ? null : wholeMs(Math.min(ns, live.totals ? live.clockNs() : ns));
    const [next, with_] = [valid(at), valid(other)];
    this.choosing = false;
    if (next === this.at && with_ === this.other) return this.tell();
    if (this.at === null) this.past = live.totals; // until that instant is read nothing newer is shown
    if (with_ !== this.other) this.before = null;
    this.at = next;
    this.other = with_;
    if (next === null) {
      this.shown = null;
      this.trouble = "";
    }
    clearTimeout(this.timer);
    this.abort.abort();
    if (this.loading) this.timer = window.setTimeout(() => void this.load(), SETTLE_MS);
    this.tell();
  }

  private async load(): Promise<void> {
    this.abort = new AbortController();
    const { signal } = this.abort;
    const { at, other } = this;
    try {
      const read = async (ns: number, known: Totals | null): Promise<Totals> => {
        const totals = known ?? (await get<Totals>("/api/v1/smi", { at: fromNs(ns) }, signal));
        if (!totals.moment) throw new Failed("this daemon cannot show earlier instants", 404); // it has told of now
        return totals;
      };
      const past = at === null ? null : await read(at, at === this.shown ? this.past : null);
      if (other !== null) this.before = await read(other, this.before);
      this.past = past;
      this.trouble = "";
    } catch (error) {
      if (signal.aborted) return;
      this.trouble = problem(error);
      this.past = at === null ? null : nothing(at); // what was shown is of another instant
      if (other !== null) this.before ??= nothing(other);
    }
    if (signal.aborted) return;
    this.shown = at;
    this.tell();
  }

  /** With another token, or when the daemon is there again. */
  again(): void {
    if (this.at === null || (this.trouble === "" && this.past?.moment)) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), SETTLE_MS);
  }
}

export const moment = new Cursor();
