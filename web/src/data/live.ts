// SPDX-License-Identifier: Apache-2.0
//
// The stream of totals and incidents, while the page is visible. Read with fetch instead of EventSource, because the token
// goes in a header. A lost connection is shown, and retried for ever; a silent one is lost, because the daemon says
// something every 2 s. A browser opens at most six connections to a server for all of its tabs, so tabs share one stream,
// and hidden tabs have none.

import { askHealth, checkToken, get, recorded, refused, send, signedIn, token } from "./api";
import { applyChange, type Json } from "./changes";
import { deviceKey, held, poolUsed, type Incident, type Totals } from "./model";
import { Share } from "./share";
import { Reader, Retry, retryAfter, type Message } from "./sse";

/** "polled": no stream is available, totals are requested now and then. */
export type State = "connecting" | "live" | "polled" | "lost";

const SILENCE_MS = 4000; // the daemon sends something every 2 s
const HIDDEN_MS = 5000; // a short visit to another tab keeps the stream
const POLL_MS = 5000;
const AWAY_MS = 5000; // after a longer pause the history is read again
const NEWS_MS = 150;
const NEWS_AGAIN_MS = 3000; // lists are not read more often, whatever happens
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
  /** Date.now() of the last sign of life: what is shown was true then. */
  heardAt = 0;
  /** How often the stream was interrupted for so long that something is missing. */
  pauses = 0;
  private receivedAt = 0; // performance.now() of the newest totals
  readonly sparks = new Map<string, Spark>();
  private listeners = new Set<Listener>();
  private newsListeners = new Set<Listener>();
  private incidentListeners = new Set<(incident: Incident) => void>();
  private retry = new Retry();
  private abort = new AbortController();
  private silence = 0; // the timer that ends an attempt
  private silent = false; // it has
  private based = false; // this attempt has brought totals: changes refer to them
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
    return this.totals.time_ns + (this.isCurrent() && !recorded() ? (performance.now() - this.receivedAt) * 1e6 : 0);
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

  /** Calls when the stored lists of incidents and leaks have changed, and when they may have: after a pause. */
  onNews(listener: Listener): () => void {
    const next = { timer: 0, not: 0 };
    const take = (): void => {
      next.timer ||= window.setTimeout(() => {
        next.timer = 0;
        next.not = performance.now() + NEWS_AGAIN_MS;
        listener();
      }, Math.max(NEWS_MS, next.not - performance.now()));
    };
    this.newsListeners.add(take);
    return () => {
      this.newsListeners.delete(take);
      clearTimeout(next.timer);
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
      this.silent = this.based = false;
      const { signal } = this.abort;
      try {
        this.expect();
        await askHealth(signal);
        await this.attend(signal);
      } catch {
        // Reported below: whatever the reason, there is no stream.
      }
      clearTimeout(this.silence);
      const asked = signal.aborted && !this.silent;
      this.set(asked ? "connecting" : "lost");
      if (document.hidden) await new Promise<void>((resolve) => (this.wake = resolve));
      else if (!asked) await new Promise((resolve) => setTimeout(resolve, this.retry.next()));
      this.wake = null;
    }
  }

  /** The connection is lost if nothing comes within this time. */
  private expect(ms = SILENCE_MS): void {
    const { abort } = this;
    clearTimeout(this.silence);
    this.silence = window.setTimeout(() => {
      this.silent = true;
      abort.abort();
    }, ms);
  }

  /** Reads the stream, or listens to the tab that does. Tabs that see more share a separate stream. */
  private async attend(signal: AbortSignal): Promise<void> {
    if (!Share.possible()) return this.listen(signal);
    await Share.join(token() ? "token" : `open${signedIn()?.user_id ?? ""}`, signal, {
      lead: async (share) => {
        this.share = share;
        this.expect();
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
    const answer = await send("/api/v1/stream?changes=1", sent, { signal });
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
    if (!answer.ok || !answer.body) {
      await refused(answer);
      throw new Error(String(answer.status));
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const messages = new Reader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.pass({ kind: "alive", data: "" });
      for (const message of messages.take(value)) this.pass(message);
    }
  }

  private pass(message: Message): void {
    this.share?.say(message);
    this.take(message);
  }

  /** The daemon limits the number of streams. Returns when it is time to try again. */
  private async poll(times: number, signal: AbortSignal): Promise<void> {
    for (let i = 0; i < times && !signal.aborted; i++) {
      this.pass({ kind: "polled", data: JSON.stringify(await get<Totals>("/api/v1/smi", {}, signal)) });
      if (i % 2) this.pass({ kind: "stored", data: "" });
      await new Promise<void>((resolve) => {
        setTimeout(resolve, POLL_MS);
        signal.addEventListener("abort", () => resolve());
      });
    }
  }

  private take({ kind, data }: Message): void {
    this.heardAt = Date.now();
    this.expect(kind === "polled" || this.state === "polled" ? POLL_MS + SILENCE_MS : SILENCE_MS);
    if (kind === "totals" || kind === "polled") {
      this.based = true;
      this.show(JSON.parse(data) as Totals, kind === "totals" ? "live" : "polled");
    } else if (kind === "changes" && this.based) {
      const { after_ns, change } = JSON.parse(data) as { after_ns: number; change: Json };
      // Of another tab's stream, which has ended: begin again.
      if (after_ns !== this.totals!.time_ns) this.abort.abort();
      else this.show(applyChange(this.totals as unknown as Json, change) as unknown as Totals, "live");
    } else if (kind === "stored") this.news();
    else if (kind === "incident") {
      const incident = JSON.parse(data) as Incident;
      for (const listener of this.incidentListeners) listener(incident);
    }
  }

  private show(totals: Totals, state: State): void {
    this.totals = totals;
    this.receivedAt = performance.now();
    this.retry.worked();
    this.remember(totals);
    if (this.state !== state) {
      this.set(state);
      this.news();
    } else this.tell();
  }

  private news(): void {
    for (const listener of this.newsListeners) listener();
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
