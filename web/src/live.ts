// SPDX-License-Identifier: Apache-2.0
//
// The stream of totals and incidents, while the page is visible. Read with fetch instead of EventSource, because the token
// goes in a header. A lost connection is shown, and retried for ever. A browser opens at most six connections to a
// server for all of its tabs, so tabs share one stream, and hidden tabs have none.

import { askHealth, checkToken, get, headers, signedIn, token } from "./api";
import { deviceKey, held, poolUsed, type Incident, type Totals } from "./model";
import { Share } from "./share";
import { Reader, Retry, retryAfter, type Message } from "./sse";

/** "polled": no stream is available, totals are requested now and then. */
export type State = "connecting" | "live" | "polled" | "lost";

const SILENCE_MS = 40000; // the daemon sends something every 15 s
const HIDDEN_MS = 5000; // a short visit to another tab keeps the stream
const POLL_MS = 5000;
const AWAY_MS = 5000; // after a longer pause the history is read again
const NEWS_MS = 150;
const NEWS_LATE_MS = 1500;
const NEWS_AGAIN_MS = 10000;
const SPARK_STEP_NS = 2e9;
const SPARK_POINTS = 300;

type Listener = () => void;

/** A short history of each device, for sparklines. */
export interface Spark {
  times: number[];
  dram: number[];
  l1: number[];
}

export class Live {
  state: State = "connecting";
  totals: Totals | null = null;
  lostAt = 0;
  /** How often the stream was interrupted for so long that something is missing. */
  pauses = 0;
  private receivedAt = 0; // performance.now() of the newest totals
  readonly sparks = new Map<string, Spark>();
  private listeners = new Set<Listener>();
  private newsAt = -Infinity; // performance.now() of the newest incident
  private newsListeners = new Set<Listener>();
  private incidentListeners = new Set<(incident: Incident) => void>();
  private retry = new Retry();
  private abort = new AbortController();
  private scheduled = false;
  private awayAt = Infinity; // performance.now() when the data stopped being current
  private share: Share | null = null; // while this tab reads the stream for others
  private wake: (() => void) | null = null; // while the page is hidden

  start(): void {
    const hiding = { timer: 0 };
    const look = (): void => {
      clearTimeout(hiding.timer);
      if (document.hidden) hiding.timer = window.setTimeout(() => this.abort.abort(), HIDDEN_MS);
      else this.wake?.();
    };
    document.addEventListener("visibilitychange", look);
    look(); // the tab may have been opened in the background
    void this.run();
  }

  /** Whether the page shows current data. */
  isCurrent(): boolean {
    return this.state === "live" || this.state === "polled";
  }

  /** The daemon's clock: totals come only on a change, and are valid until the next ones. */
  clockNs(): number {
    if (!this.totals) return Date.now() * 1e6;
    return this.totals.time_ns + (this.isCurrent() ? (performance.now() - this.receivedAt) * 1e6 : 0);
  }

  /** With another token, or none. */
  restart(): void {
    this.retry.worked();
    this.abort.abort();
  }

  onChange(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Each incident as the stream reports it; without the token only kind, pid and device. */
  onIncident(listener: (incident: Incident) => void): () => void {
    this.incidentListeners.add(listener);
    return () => this.incidentListeners.delete(listener);
  }

  /**
   * Calls when lists of incidents may have grown. The stream reports an incident before the database has it, and none from
   * before the connection, so the lists are read soon, again a moment later, and then at intervals.
   */
  onNews(listener: Listener): () => void {
    const soon = { timer: 0 };
    const late = { timer: 0 };
    const take = (): void => {
      if (!soon.timer)
        soon.timer = window.setTimeout(() => {
          soon.timer = 0;
          listener();
        }, NEWS_MS);
      clearTimeout(late.timer);
      late.timer = window.setTimeout(listener, NEWS_LATE_MS);
    };
    const interval = window.setInterval(() => this.isCurrent() && listener(), NEWS_AGAIN_MS);
    this.newsListeners.add(take);
    // A listener added right after an incident may also be too early for the database.
    if (performance.now() - this.newsAt < NEWS_LATE_MS) take();
    return () => {
      this.newsListeners.delete(take);
      clearInterval(interval);
      clearTimeout(soon.timer);
      clearTimeout(late.timer);
    };
  }

  /** Ten documents a second are too many to read: the page is updated at most five times, long lists less often. */
  private tell(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      for (const listener of this.listeners) listener();
    }, 200 + Math.min(1000, 3 * (this.totals?.processes.length ?? 0)));
  }

  private set(state: State): void {
    if (state === "lost" && this.state !== "lost") this.lostAt = Date.now();
    const was = this.isCurrent();
    this.state = state;
    if (was && !this.isCurrent()) this.awayAt = performance.now();
    if (this.isCurrent()) {
      if (performance.now() - this.awayAt > AWAY_MS) this.missed();
      this.awayAt = Infinity;
    }
    for (const listener of this.listeners) listener();
  }

  private missed(): void {
    this.pauses++;
    this.sparks.clear();
    if (this.totals) this.remember(this.totals);
  }

  private async run(): Promise<void> {
    for (;;) {
      this.abort = new AbortController();
      const { signal } = this.abort;
      try {
        await askHealth();
        await this.attend(signal);
      } catch {
        // Reported below: whatever the reason, there is no stream.
      }
      this.set(signal.aborted ? "connecting" : "lost");
      if (document.hidden) await new Promise<void>((resolve) => (this.wake = resolve));
      else if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, this.retry.next()));
      this.wake = null;
    }
  }

  /** Reads the stream, or listens to the tab that does. Tabs that see more share a separate stream. */
  private async attend(signal: AbortSignal): Promise<void> {
    if (!Share.possible()) return this.listen(signal);
    await Share.join(token() ? "token" : `open${signedIn()?.user_id ?? ""}`, signal, SILENCE_MS, {
      lead: async (share) => {
        this.share = share;
        try {
          await this.listen(signal);
        } finally {
          this.share = null;
        }
      },
      hear: (message) => this.take(message),
      known: () =>
        this.totals && this.isCurrent()
          ? [{ kind: this.state === "live" ? "totals" : "polled", data: JSON.stringify(this.totals) }] : [],
    });
  }

  private async open(signal: AbortSignal): Promise<Response> {
    const sent = token();
    const answer = await fetch("/api/v1/stream", { headers: headers(sent), signal });
    checkToken(answer, sent);
    return answer;
  }

  private async listen(signal: AbortSignal): Promise<void> {
    let answer = await this.open(signal);
    while (answer.status === 503) {
      await answer.body?.cancel();
      await this.poll(Math.ceil((1000 * retryAfter(answer.headers.get("Retry-After"))) / POLL_MS), signal);
      answer = await this.open(signal);
    }
    if (!answer.ok || !answer.body) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const messages = new Reader();
    const watch = { timer: 0 };
    for (;;) {
      watch.timer = window.setTimeout(() => void reader.cancel().catch(() => undefined), SILENCE_MS);
      const { done, value } = await reader.read();
      clearTimeout(watch.timer);
      if (done) return;
      this.share?.say({ kind: "alive", data: "" });
      for (const message of messages.take(value)) {
        this.share?.say(message);
        this.take(message);
      }
    }
  }

  /** The daemon limits the number of streams. Returns when it is time to try again. */
  private async poll(times: number, signal: AbortSignal): Promise<void> {
    for (let i = 0; i < times && !signal.aborted; i++) {
      const message = { kind: "polled", data: JSON.stringify(await get<Totals>("/api/v1/smi", {}, signal)) };
      this.share?.say(message);
      this.take(message);
      await new Promise<void>((resolve) => {
        setTimeout(resolve, POLL_MS);
        signal.addEventListener("abort", () => resolve());
      });
    }
  }

  private take({ kind, data }: Message): void {
    if (kind === "totals" || kind === "polled") {
      const state = kind === "totals" ? "live" : "polled";
      this.totals = JSON.parse(data) as Totals;
      this.receivedAt = performance.now();
      this.retry.worked();
      this.remember(this.totals);
      if (this.state !== state) {
        this.set(state);
        for (const listener of this.newsListeners) listener();
      } else this.tell();
    } else if (kind === "incident") {
      const incident = JSON.parse(data) as Incident;
      this.newsAt = performance.now();
      for (const listener of this.incidentListeners) listener(incident);
      for (const listener of this.newsListeners) listener();
    }
  }

  private remember(totals: Totals): void {
    for (const device of totals.devices) {
      const key = deviceKey(device);
      const spark = this.sparks.get(key) ?? { times: [], dram: [], l1: [] };
      const last = spark.times.length - 1;
      this.sparks.set(key, spark);
      const at = last > 0 && totals.time_ns - (spark.times[last - 1] ?? 0) < SPARK_STEP_NS ? last : last + 1;
      spark.times[at] = totals.time_ns;
      spark.dram[at] = poolUsed(device.memory, "DRAM");
      spark.l1[at] = held(device.memory) - spark.dram[at]! - poolUsed(device.memory, "SYSTEM");
      if (spark.times.length > SPARK_POINTS) {
        spark.times.shift();
        spark.dram.shift();
        spark.l1.shift();
      }
    }
  }
}

export const live = new Live();
