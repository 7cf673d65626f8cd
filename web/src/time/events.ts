// SPDX-License-Identifier: Apache-2.0
//
// Reads what happened, for the flags of charts.

import { get, type Parameters } from "../data/api";
import type { PastEvent } from "../data/model";
import { fromNs } from "../data/series";

const LIMIT = 2000;

/** The events of a part of the past, for the charts of one view. */
export class Events {
  list: PastEvent[] = [];
  private abort = new AbortController();

  constructor(private changed: (events: readonly PastEvent[]) => void) {}

  stop(): void {
    this.abort.abort();
  }

  /** @filter: pid or device. A daemon without a past has none. */
  async load(sinceS: number, toS: number | null, filter: Parameters): Promise<void> {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    try {
      const { moments } = await get<{ moments: PastEvent[] }>("/api/v1/moments",
        { ...filter, from: fromNs(sinceS * 1e9), to: toS === null ? null : fromNs(toS * 1e9), limit: LIMIT }, signal);
      if (signal.aborted) return;
      this.list = moments;
      this.changed(this.list);
    } catch {
      // The chart is as useful without them as it was before.
    }
  }
}
