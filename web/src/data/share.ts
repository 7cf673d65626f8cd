// SPDX-License-Identifier: Apache-2.0
//
// One stream for all tabs of a browser: the tab that holds the lock reads it and forwards it to the others, which wait for
// the lock. A tab that is closed or discarded loses the lock, and the next one reads. Without locks (they need a secure
// context: loopback or https), each tab reads for itself.

import type { Message } from "./sse";

const ANSWER_MS = 3000; // the reading tab answers at once, unless it is stuck

export interface Member {
  /** Reads until the stream ends; @share is null if other tabs have to read for themselves. */
  lead(share: Share | null): Promise<void>;
  /** What the reading tab has received; "alive" is only a sign of life. If these stop, @signal has to be aborted. */
  hear(message: Message): void;
  /** What a tab that joins later has missed. */
  known(): Message[];
}

export class Share {
  static readonly possible = (): boolean => "locks" in navigator && typeof BroadcastChannel === "function";

  private channel: BroadcastChannel;
  private leading = false;
  private asked = false; // there may be no other tab
  private timer = 0;
  private wait = new AbortController();

  private constructor(
    private name: string,
    private member: Member,
  ) {
    this.channel = new BroadcastChannel(name);
    this.channel.addEventListener("message", (event) => this.take(event.data as Message));
  }

  /** Reads or listens under @name, until reading fails or @signal aborts it. */
  static async join(name: string, signal: AbortSignal, member: Member): Promise<void> {
    const share = new Share(`ttmem.${name}`, member);
    const stop = (): void => share.wait.abort();
    signal.addEventListener("abort", stop);
    try {
      await share.attend();
    } catch (error) {
      if (signal.aborted || share.leading) throw error;
      await member.lead(null); // the reading tab is stuck
    } finally {
      signal.removeEventListener("abort", stop);
      clearTimeout(share.timer);
      share.channel.close();
    }
  }

  say(message: Message): void {
    if (this.asked) this.channel.postMessage(message);
  }

  private async attend(): Promise<void> {
    this.ask();
    await navigator.locks.request(this.name, { signal: this.wait.signal }, async () => {
      this.leading = true;
      clearTimeout(this.timer);
      this.channel.postMessage({ kind: "lead", data: "" });
      await this.member.lead(this);
    });
  }

  private ask(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.wait.abort(), ANSWER_MS);
    this.channel.postMessage({ kind: "ask", data: "" });
  }

  private take(message: Message): void {
    if (this.leading) {
      if (message.kind !== "ask") return;
      this.asked = true;
      this.say({ kind: "alive", data: "" });
      for (const one of this.member.known()) this.say(one);
    } else if (message.kind === "lead") this.ask();
    else if (message.kind !== "ask") {
      clearTimeout(this.timer);
      this.member.hear(message);
    }
  }
}
