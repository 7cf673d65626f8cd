// SPDX-License-Identifier: Apache-2.0
//
// Parses the stream, and decides when to retry: the part of live.ts that needs no network.

export interface Message {
  kind: string;
  data: string;
}

/** Limits the memory for a message that never ends. Totals of 10,000 processes take a tenth. */
export const MESSAGE_MAX = 256 << 20;

/** Splits the input, in pieces of any size, into messages. */
export class Reader {
  private parts: string[] = [];
  private length = 0;

  /** @throws a message is too long. */
  take(text: string): Message[] {
    const messages: Message[] = [];
    // The earlier input has no terminator, but its last character may be half of one.
    let begin = 0;
    const open = this.parts.length > 0 && this.parts[this.parts.length - 1]!.endsWith("\n");
    if (open && text.startsWith("\n")) {
      this.close(messages, "");
      begin = 1;
    }
    for (;;) {
      const end = text.indexOf("\n\n", begin);
      if (end < 0) break;
      this.close(messages, text.slice(begin, end));
      begin = end + 2;
    }
    if (begin < text.length) {
      this.length += text.length - begin;
      if (this.length > MESSAGE_MAX) throw new Error("a message without an end");
      this.parts.push(text.slice(begin));
    }
    return messages;
  }

  private close(messages: Message[], last: string): void {
    const message = parseMessage(this.parts.join("") + last);
    this.parts = [];
    this.length = 0;
    if (message) messages.push(message);
  }
}

/** null: a comment, sent only to keep the connection alive. */
export function parseMessage(text: string): Message | null {
  let kind = "";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return kind ? { kind, data: data.join("\n") } : null;
}

export const RETRY_MS: readonly number[] = [300, 600, 1000, 2000, 3000];

/** How long to wait before the next attempt: longer each time, until one has received something. */
export class Retry {
  private attempt = 0;

  next(): number {
    return RETRY_MS[Math.min(this.attempt++, RETRY_MS.length - 1)]!;
  }

  worked(): void {
    this.attempt = 0;
  }
}

const AFTER_S = 30;
const AFTER_MIN_S = 5;
const AFTER_MAX_S = 300;

/** After how many seconds to retry a full server: its Retry-After, within limits. */
export function retryAfter(said: string | null): number {
  const seconds = said !== null && /^\d{1,9}$/.test(said) ? Number(said) : AFTER_S;
  return Math.min(AFTER_MAX_S, Math.max(AFTER_MIN_S, seconds));
}
