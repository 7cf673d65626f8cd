// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Share } from "../src/data/share";
import { mockTimeouts } from "./make.mjs";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Channels that deliver at once, to all others of the name. */
class Channel extends EventTarget {
  static all = new Set();
  constructor(name) {
    super();
    this.name = name;
    Channel.all.add(this);
  }
  postMessage(data) {
    for (const other of Channel.all)
      if (other !== this && other.name === this.name) other.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
  close() {
    Channel.all.delete(this);
  }
}

/** One lock at a time, in the order of requests. */
function locks() {
  let last = Promise.resolve();
  return {
    request(_name, { signal }, run) {
      const aborted = new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
      let started = false;
      const turnOfMine = last.then(() => {
        started = true;
        if (!signal.aborted) return run();
      });
      last = turnOfMine.catch(() => undefined);
      return Promise.race([turnOfMine, aborted.catch((error) => (started ? turnOfMine : Promise.reject(error)))]);
    },
  };
}

/** A tab; end() ends its reading. */
function tab() {
  const one = { heard: [], share: undefined, end: null };
  one.member = {
    lead: (share) => {
      one.share = share;
      return new Promise((resolve) => (one.end = resolve));
    },
    hear: ({ kind, data }) => one.heard.push(`${kind} ${data}`.trim()),
    known: () => [{ kind: "totals", data: "kept" }],
  };
  one.signal = new AbortController();
  one.joined = Share.join("stream", one.signal.signal, one.member);
  one.joined.catch(() => undefined);
  return one;
}

beforeEach(() => {
  Channel.all.clear();
  globalThis.window = globalThis;
  globalThis.BroadcastChannel = Channel;
  Object.defineProperty(globalThis, "navigator", { value: { locks: locks() }, configurable: true });
});

test("the first tab reads, the others hear what it has and what comes", async () => {
  const first = tab();
  await turn();
  first.share.say({ kind: "totals", data: "unheard" }); // nobody is there
  const second = tab();
  await turn();
  first.share.say({ kind: "totals", data: "new" });
  assert.equal(second.share, undefined);
  assert.deepEqual(second.heard, ["alive", "totals kept", "totals new"]);
  assert.deepEqual(first.heard, []);
  first.end();
  await first.joined;
  await turn();
  assert.ok(second.share, "the next one reads");
  second.end();
  await second.joined;
  assert.equal(Channel.all.size, 0);
});

test("a tab whose reader is stuck reads for itself, alone", async () => {
  const first = tab();
  await turn();
  for (const channel of Channel.all) channel.dispatchEvent = () => true; // it hears nothing any more
  const time = mockTimeouts();
  try {
    const second = tab();
    time.tick(3000);
    await turn();
    assert.equal(second.share, null);
    second.end();
    await second.joined;
  } finally {
    time.reset();
  }
  first.end();
  await first.joined;
});

test("a tab that is aborted while it waits does not begin to read", async () => {
  const first = tab();
  await turn();
  const second = tab();
  await turn();
  second.signal.abort();
  await assert.rejects(second.joined);
  assert.equal(second.share, undefined);
  first.end();
  await first.joined;
});
