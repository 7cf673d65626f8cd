// SPDX-License-Identifier: Apache-2.0
//
// The stream of totals and incidents, for as long as the page is open. Read with fetch instead of EventSource,
// because the token goes in a header. A lost connection is said, and tried again for ever.

import { askHealth, checkToken, headers, token } from "./api";
import { deviceKey, held, poolUsed, type Incident, type Totals } from "./model";
import { Reader, Retry, type Message } from "./sse";

export type State = "connecting" | "live" | "lost";

const SILENCE_MS = 40000; // the daemon says something every 15 s
const NEWS_MS = 150;
const NEWS_LATE_MS = 1500;
const NEWS_AGAIN_MS = 10000;
const SPARK_STEP_NS = 2e9;
const SPARK_POINTS = 300;

type Listener = () => void;

/** A short past of each device, for sparklines. */
export interface Spark {
  times: number[];
  dram: number[];
  l1: number[];
}

export class Live {
  state: State = "connecting";
  totals: Totals | null = null;
  lostAt = 0;
  private receivedAt = 0; // performance.now() of the newest totals
  readonly sparks = new Map<string, Spark>();
  private listeners = new Set<Listener>();
  private newsAt = -Infinity; // performance.now() of the newest incident
  private newsListeners = new Set<Listener>();
  private incidentListeners = new Set<(incident: Incident) => void>();
  private retry = new Retry();
  private abort = new AbortController();
  private scheduled = false;

  start(): void {
    void this.run();
  }

  /** The daemon's clock: totals come only when something has changed, and are true until the next ones. */
  clockNs(): number {
    if (!this.totals) return Date.now() * 1e6;
    return this.totals.time_ns + (this.state === "live" ? (performance.now() - this.receivedAt) * 1e6 : 0);
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

  /** Each incident as the stream tells it; without the token that is kind, pid and device only. */
  onIncident(listener: (incident: Incident) => void): () => void {
    this.incidentListeners.add(listener);
    return () => this.incidentListeners.delete(listener);
  }

  /**
   * Calls when lists of incidents may have grown. The stream tells of one before the database has it, and of
   * none that came before the connection: so they are read soon, a moment later, and now and then.
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
    const interval = window.setInterval(() => this.state === "live" && listener(), NEWS_AGAIN_MS);
    this.newsListeners.add(take);
    // Who comes right after one may be too early for it as well.
    if (performance.now() - this.newsAt < NEWS_LATE_MS) take();
    return () => {
      this.newsListeners.delete(take);
      clearInterval(interval);
      clearTimeout(soon.timer);
      clearTimeout(late.timer);
    };
  }

  /** Ten documents a second are more than eyes want: what is shown changes at most five times, and long lists less. */
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
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  private async run(): Promise<void> {
    for (;;) {
      this.abort = new AbortController();
      try {
        await askHealth();
        await this.listen(this.abort.signal);
      } catch {
        // Said below: whatever the reason, there is no stream.
      }
      const asked = this.abort.signal.aborted;
      this.set(asked ? "connecting" : "lost");
      const pause = asked ? 0 : this.retry.next();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  private async listen(signal: AbortSignal): Promise<void> {
    const sent = token();
    const answer = await fetch("/api/v1/stream", { headers: headers(sent), signal });
    checkToken(answer, sent);
    if (!answer.ok || !answer.body) throw new Error(String(answer.status));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const messages = new Reader();
    const watch = { timer: 0 };
    for (;;) {
      watch.timer = window.setTimeout(() => void reader.cancel().catch(() => undefined), SILENCE_MS);
      const { done, value } = await reader.read();
      clearTimeout(watch.timer);
      if (done) return;
      for (const message of messages.take(value)) this.take(message);
    }
  }

  private take({ kind, data }: Message): void {
    if (kind === "totals") {
      this.totals = JSON.parse(data) as Totals;
      this.receivedAt = performance.now();
      this.retry.worked();
      this.remember(this.totals);
      if (this.state !== "live") {
        this.set("live");
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
