// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Awaited, joinEnded, lastOf, mostOf, perBank } from "../src/analysis/ended";
import { joinWords } from "../src/data/commands";
import { howEnded, howEndedShort, whyLink } from "../src/parts/incident-detail";
import { incident } from "./make.mjs";

const end = (pid, start_ns, ended_ns, comm = `c${pid}`) => ({ pid, comm, start_ns, ended_ns, bytes: 1 });
const peak = (pid, start_ns, bytes, ended = true) => ({ pid, comm: `c${pid}`, start_ns, ended, bytes, time_ns: start_ns + 5e9, groups: [], type: "DRAM", device: 0 });

test("the end and the peaks of one process are joined, newest first", () => {
  const list = joinEnded([end(1, 100e9, 200e9), end(2, 100e9, 300e9)], [peak(1, 100e9 + 1e6, 7), peak(1, 100e9, 9), peak(3, 150e9, 4), peak(4, 1e9, 8, false)]);
  assert.deepEqual(list.map((one) => [one.pid, one.end !== null, one.peaks.length]), [[2, true, 0], [1, true, 2], [3, false, 1]]);
  assert.equal(mostOf(list[1]).bytes, 9);
  assert.equal(mostOf(list[0]), null);
  assert.equal(lastOf(list[2]), 155e9);
});

test("a process that became another program has ended under both names", () => {
  const list = joinEnded([end(1, 100e9, 110e9, "sh"), end(1, 100e9, 120e9, "train")], [{ ...peak(1, 100e9, 5), comm: "train" }]);
  assert.deepEqual(list.map((one) => [one.comm, one.peaks.length]), [["train", 1], ["sh", 0]]);
  assert.equal(new Set(list.map((one) => one.key)).size, 2);
});

test("who is not among the living any more is looked for until listed, but not for ever", () => {
  const awaited = new Awaited();
  assert.equal(awaited.see([{ pid: 1 }, { pid: 2 }]), false);
  assert.equal(awaited.see([{ pid: 2 }]), true);
  assert.equal(awaited.find([end(3, 1e9, 2e9)]), true);
  assert.equal(awaited.find([end(1, 1e9, 2e9)]), false);
  assert.equal(awaited.see([]), true);
  for (let i = 0; i < 5; i++) assert.equal(awaited.find([]), true);
  assert.equal(awaited.find([]), false);
});

test("two processes that had one pid are two", () => {
  const list = joinEnded([end(1, 100e9, 110e9), end(1, 200e9, 210e9)], [peak(1, 200e9, 5)]);
  assert.deepEqual(list.map((one) => [one.startNs, one.peaks.length]), [[200e9, 1], [100e9, 0]]);
});

test("a command line reads as one would type it", () => {
  assert.equal(joinWords(["python3", "a b.py", "--x=1", "", "it's"]), 'python3 "a b.py" --x=1 "" "it\'s"');
  assert.equal(joinWords(["a"], true), "a …");
  assert.equal(joinWords([]), "");
});

test("how a process ended", () => {
  const ended = (exit, how = "died") => howEnded({ exit, how });
  assert.equal(ended({ signal: 9, name: "SIGKILL", code: null }), "killed by signal 9 (SIGKILL)");
  assert.equal(ended({ signal: 40, name: null, code: null }), "killed by signal 40");
  assert.equal(ended({ signal: 0, name: null, code: 0 }), "exit code 0");
  const short = (exit, with_ = {}) => howEndedShort({ exit, how: "died", ...with_ });
  assert.equal(short({ signal: 9, name: "SIGKILL", code: null }), "SIGKILL");
  assert.equal(short({ signal: 40, name: null, code: null }), "signal 40");
  assert.equal(short({ signal: 0, name: null, code: 0 }), "exit code 0");
  assert.equal(short({ signal: 9, name: "SIGKILL", code: null }, { exec: true }), "became another program");
  assert.deepEqual([ended(null), ended(null, "closed"), ended({ signal: 0, name: null, code: null })], ["died", "ended in order", "died"]);
});

test("an allocation that failed is asked about at its instant, in its memory", () => {
  const query = (with_) => new URLSearchParams(whyLink(incident({ last_ns: 1794885078012690495, device_uid: "0xa1", size: 4096, ...with_ })).split("?")[1]);
  assert.deepEqual([...query({ type: "L1_SMALL" })].sort(), [["at", "1794885078012000000"], ["fit", "4096"], ["pool", "L1_SMALL"]]);
  assert.equal(query({ type: "CB" }).get("pool"), "L1");
  assert.equal(query({ type: "KERNEL" }).get("pool"), "DRAM");
  assert.match(whyLink(incident({ device_uid: "0xa1" })), /^#\/device\/0xa1\?/);
  const asked = (with_) => [query(with_).get("fit"), query(with_).get("each")];
  assert.deepEqual(asked({ type: "L1", size_per_bank: 1024, bank_size: 8192 }), ["4096", "1024"], "as the allocator rounded it");
  assert.deepEqual(asked({ type: "L1", size_per_bank: 1024 }), [null, null], "on single cores: the layout of all of them does not show it");
  assert.deepEqual(asked({ type: "CB", size_per_bank: 1024, bank_size: 8192 }), [null, null], "no buffer lies where they begin");
});

test("a peak says what each bank held, and what a region of that memory must have", () => {
  const of = (type, per_bank) => perBank({ ...peak(1, 0, 786432), type, per_bank });
  assert.equal(of("TRACE", { bytes: 73728, bound: "exact", banks: 12 }), ", 72.0 KiB in each of 12 banks, 864 KiB together");
  assert.equal(of("DRAM", { bytes: 73728, bound: "at_least", banks: null }), ", at least 72.0 KiB in each bank");
  assert.equal(of("L1_SMALL", { bytes: 1024, bound: "exact", banks: 64 }), ", 1.00 KiB in each bank");
  assert.deepEqual([of("DRAM", null), of("DRAM", undefined)], ["", ""], "not known, or an older daemon");
});
