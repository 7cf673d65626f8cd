// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { readings, remainder, sparkFacts, sparkline, splits, stacked, topOf, total } from "../src/chart/chart-data";
import { nextPoint, widened, zoomedAround } from "../src/chart/chart-keys";
import { chartFigures, tablePoints } from "../src/chart/chart-table";
import { before, fromNs, History, later, partsOf } from "../src/data/series";

const series = (...values) => ({ label: "", variable: "", values });

test("series are stacked from the bottom, and drawn from the top", () => {
  const data = { times: [1, 2, 3, 4], series: [series(1, 2, null, null), series(10, null, 30, null)] };
  assert.deepEqual(stacked(data), [[11, 2, 30, null], [1, 2, 0, null]]);
  assert.deepEqual([0, 1, 2, 3].map((i) => total(data, i)), [11, 2, 30, 0]);
});

test("what is in no part is the remainder, and never less than nothing", () => {
  assert.deepEqual(remainder([10, 10, 10, null, 0], [[1, 2, 12, 1, null], [3, null, 0, 1, null]]), [6, 8, 0, null, 0]);
  assert.deepEqual(remainder([5, null], []), [5, null]);
});

test("parts that are newer than their sum are left out", () => {
  const line = (pid, ...points) => ({ pid, uid: null, device: 0, type: "DRAM", step_s: 1, points: points.map(([time, used]) => [time * 1e9, used, 1, used]) });
  const sum = [line(null, [1, 60], [2, 55])];
  const list = [...sum, ...partsOf(sum, [line(7, [1, 50], [2, 50], [3, 50]), line(8, [2, 2]), line(9, [3, 1])])];
  const past = new History();
  past.load(list, (one) => String(one.pid));
  assert.deepEqual(past.times, [1, 2]);
  assert.deepEqual(past.values("7"), [50, 50]);
  assert.deepEqual(past.values("8"), [null, 2]);
  assert.deepEqual(partsOf([], [line(7, [1, 5])])[0].points, []);
});

test("figures at the axis are round, few, and end with the capacity", () => {
  for (const high of [1, 1000, 1024, 5000, 3 * 2 ** 30, 12 * 2 ** 30, 1e15]) {
    const list = splits(high, null);
    assert.ok(list.length >= 2 && list.length <= 6, `${high}: ${list}`);
    assert.ok(list.every((value) => value <= high));
  }
  const gib = 2 ** 30;
  assert.deepEqual(splits(12 * gib, 12 * gib), [0, 4 * gib, 8 * gib, 12 * gib]);
  assert.equal(splits(12.9 * gib, 12 * gib).at(-1) <= 12.9 * gib, true);
});

test("a sparkline fills its width, and never leaves it", () => {
  const s = 1e9;
  const { line, area, span } = sparkline([0, 60 * s], [0, 5], 120 * s, 600 * s);
  assert.equal(span, 120 * s);
  assert.match(line, /^M0\.0 23\.0H50\.0V2\.0H100V2\.0$/);
  assert.match(area, /V24H0\.0Z$/);
  assert.equal(sparkline([], [], 1, 1).line, "");
  const long = sparkline(Array.from({ length: 900 }, (_, i) => i * s), Array.from({ length: 900 }, (_, i) => i), 900 * s, 600 * s);
  for (const [, x] of long.line.matchAll(/[MH]([\d.]+)/g)) assert.ok(Number(x) >= 0 && Number(x) <= 100);
  assert.equal(long.span, 600 * s);
});

const line = (type, points, step = 1) => ({ pid: null, device: 0, uid: null, type, step_s: step, points: points.map(([t, v]) => [t * 1e9, v, v, v]) });

test("lines of one key are added up, on one axis of time", () => {
  const past = new History();
  past.load([line("DRAM", [[1, 10], [2, 20]]), line("DRAM", [[2, 5], [3, 7]]), line("L1", [[1, 1]])], (one) => one.type);
  assert.deepEqual(past.times, [1, 2, 3]);
  assert.deepEqual(past.values("DRAM"), [10, 25, 7]);
  assert.deepEqual(past.values("nobody"), [null, null, null]);
  assert.equal(past.most("DRAM"), 25);
});

test("where nobody looked there is nothing", () => {
  const past = new History();
  past.load([line("DRAM", [[1, 10], [100, 20]])], (one) => one.type);
  assert.deepEqual(past.times, [1, 2, 100]);
  assert.deepEqual(past.values("DRAM"), [10, null, 20]);
});

test("a key keeps its value where another one has a point", () => {
  const past = new History();
  past.load([line("DRAM", [[1, 10], [3, 20]]), line("L1", [[1, 1], [2, 2], [3, 3]])], (one) => one.type);
  assert.deepEqual(past.values("DRAM"), [10, 10, 20]);
});

test("what happens now is one point a second, and the old goes", () => {
  const past = new History();
  past.push(1.0e9, new Map([["a", 1]]));
  past.push(1.2e9, new Map([["a", 2]]));
  past.push(2.0e9, new Map([["a", 3], ["b", 9]]));
  assert.deepEqual(past.times, [1, 2]);
  assert.deepEqual(past.values("a"), [2, 3]);
  assert.deepEqual(past.values("b"), [null, 9]);
  past.push(3e9, new Map([["a", 4]]));
  assert.deepEqual(past.values("b"), [null, 9, 0], "who is not there any more has nothing");
  past.trim(2.5);
  assert.deepEqual(past.times, [2, 3]);
  assert.equal(past.values("a").length, 2);
});

test("what the database knew last is not true until now", () => {
  const past = new History();
  past.load([line("DRAM", [[10, 5], [20, 7]], 10)], (one) => one.type);
  past.push(300e9, new Map([["DRAM", 1]]));
  past.push(400e9, new Map([["DRAM", 1]])); // between two live ones nothing was missed
  assert.deepEqual(past.times, [10, 20, 30, 300, 400]);
  assert.deepEqual(past.values("DRAM"), [5, 7, null, 1, 1]);
  // A point is written when its step is over, and a moment later.
  past.load([line("DRAM", [[10, 5], [20, 7]], 10)], (one) => one.type);
  past.push(44e9, new Map([["DRAM", 1]]));
  assert.deepEqual(past.times, [10, 20, 44]);
});

test("a sparkline falls to nothing where nothing was told", () => {
  const seconds = ({ times, values }) => times.map((time, i) => [time / 1e9, values[i]]);
  assert.deepEqual(seconds(before(line("DRAM", [[10, 5], [20, 7]], 10), 300e9)), [[10, 5], [20, 7], [30, 0]]);
  assert.deepEqual(seconds(before(line("DRAM", [[10, 5], [100, 7], [110, 8]], 10), 110e9)), [[10, 5], [20, 0], [100, 7]]);
  assert.deepEqual(seconds(before(line("DRAM", [[10, 5], [20, 7]], 10), 40e9)), [[10, 5], [20, 7]]);
  assert.deepEqual(seconds(before(line("DRAM", [], 10), 40e9)), []);
});

test("moments as parameters have all of their digits", () => {
  assert.equal(fromNs(1700000000123456789), "1700000000123000000");
  assert.equal(later("5", 3), "5");
  assert.equal(later("5", 9e15), "9000000000000000");
});

test("a sparkline in figures: least, now, most, and some moments before", () => {
  const [times, values] = [[0, 100, 400, 900], [7, 3, 9, 5]];
  assert.deepEqual(sparkFacts(times, values, 1000, 1000, [1000, 950, 700, 100, 0]), { least: 3, now: 5, most: 9, back: [7, 7, 3, 5, 5] });
  // What was over before the window began does not count; what lasted into it does.
  assert.deepEqual(sparkFacts(times, values, 1000, 550, []), { least: 5, now: 5, most: 9, back: [] });
  assert.deepEqual(sparkFacts(times, values, 1000, 700, []), { least: 3, now: 5, most: 9, back: [] });
  assert.deepEqual(sparkFacts([500], [4], 1000, 1000, [600, 400]), { least: 4, now: 4, most: 4, back: [null, 4] });
  assert.deepEqual(sparkFacts([], [], 1000, 1000, [5]), { least: 0, now: 0, most: 0, back: [null] });
});

const past = (step, from, values, key = "DRAM") => {
  const history = new History();
  history.load([{ pid: null, device: 0, uid: null, type: key, step_s: step, points: values.map((value, i) => [(from + i * step) * 1e9, value, 1, value]) }],
    (line) => line.type);
  return history;
};

test("a part of the past in finer steps takes the place of that part only", () => {
  const coarse = past(60, 600, [1, 2, 3, 4]);
  const both = coarse.with(past(10, 660, [20, 21, 22, 23, 24, 25]));
  assert.deepEqual(both.times, [600, 660, 670, 680, 690, 700, 710, 720, 780]);
  assert.deepEqual(both.values("DRAM"), [1, 20, 21, 22, 23, 24, 25, 3, 4]);
  assert.deepEqual(coarse.values("DRAM"), [1, 2, 3, 4], "what it was made of is as before");
  // Somebody who is in one of them only.
  const other = coarse.with(past(10, 660, [7, 8], "TRACE"));
  assert.deepEqual(other.times, [600, 660, 670, 720, 780]);
  assert.deepEqual(other.values("DRAM"), [1, null, null, 3, 4]);
  assert.deepEqual(other.values("TRACE"), [null, 7, 8, null, null]);
  // What came by the stream since is newer than all of it.
  coarse.push(785e9, new Map([["DRAM", 5]]));
  assert.deepEqual(coarse.with(past(1, 779, [9, 9])).times, [600, 660, 720, 779, 780, 785]);
  assert.equal(coarse.with(new History()), coarse, "nothing is known closer");
});

test("the scale ends at the capacity once the data comes near it", () => {
  assert.equal(topOf(5000, 10000), 10000);
  assert.equal(topOf(12000, 10000), 12000);
  assert.equal(topOf(3000, 10000), 3000 * 1.12);
  assert.equal(topOf(null, null), 1024 * 1.12);
});

test("arrow keys go some pixels, but at least to the next point, and stay in the data", () => {
  const times = [0, 10, 11, 12, 13, 14, 100];
  assert.equal(nextPoint(times, null, -1, 100), 6);
  assert.equal(nextPoint(times, 1, 1, 40), 3); // two seconds
  assert.equal(nextPoint(times, 1, 1, 1), 2);
  assert.equal(nextPoint(times, 5, 1, 100), 6);
  assert.equal(nextPoint(times, 6, 1, 100), 6);
  assert.equal(nextPoint(times, 5, -1, 40), 3);
  assert.equal(nextPoint(times, 0, -1, 100), 0);
});

test("keys zoom around a point, not closer than sense, and back to everything", () => {
  const all = { min: 0, max: 100 };
  assert.deepEqual(zoomedAround(all, 100, 0.5, all, 2), { min: 50, max: 100 });
  assert.deepEqual(zoomedAround({ min: 40, max: 60 }, 50, 0.5, all, 2), { min: 45, max: 55 });
  assert.deepEqual(zoomedAround({ min: 49, max: 51 }, 50, 0.5, all, 2), { min: 49, max: 51 });
  assert.equal(zoomedAround({ min: 40, max: 100 }, 100, 2, all, 2), null);
  assert.deepEqual(widened({ min: 5, max: 5 }, 4), { min: 3, max: 7 });
});

test("a table has the points in sight, the newest first, and not too many", () => {
  const times = [1, 2, 3, 4, 5, 6];
  assert.deepEqual(tablePoints(times, [2, 5]), [4, 3, 2, 1]);
  assert.deepEqual(tablePoints(times, [0, 9], 3), [5, 3, 1]);
  assert.deepEqual(tablePoints(times, [7, 9]), []);
});

test("what is saved of a chart is all that is loaded", () => {
  const data = { times: [0, 1.5], series: [{ label: "DRAM", variable: "", values: [7, null] }] };
  assert.deepEqual(chartFigures(data, true), { heads: ["Time", "DRAM"], rows: [["1970-01-01T00:00:00.000Z", 7], ["1970-01-01T00:00:01.500Z", null]] });
  assert.deepEqual(chartFigures(data, false).rows[1], [1.5, null]);
});

test("where nothing is known the legend does not say 0", () => {
  const series = [{ label: "DRAM", variable: "a", values: [null, 2 ** 30] }, { label: "L1", variable: "b", values: [null, null] }];
  const data = { times: [0, 1], series };
  assert.deepEqual(readings(data, 0), ["not known", "not known"]);
  assert.deepEqual(readings(data, 1), ["1.00 GiB", "0 B"]);
});

test("at the page's instant the legend has the page's figures, not those of the step before", () => {
  const data = { times: [0, 1], series: [series(2 ** 30, 2 ** 30), series(0, 0)], now: () => [3 * 2 ** 30, 1024] };
  assert.deepEqual(readings(data, null), ["3.00 GiB", "1.00 KiB"]);
  assert.deepEqual(readings(data, 1), ["1.00 GiB", "0 B"], "a point of the history has its own");
  assert.deepEqual(readings({ ...data, now: () => null }, null), ["1.00 GiB", "0 B"], "what is not there any more has its last");
  assert.deepEqual(readings({ ...data, now: () => [null, null] }, null), ["not known", "not known"]);
});
