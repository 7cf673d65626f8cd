// SPDX-License-Identifier: Apache-2.0
//
// A chart in figures: the table behind it, what happened, and the rows that are saved.

import { h } from "../base/dom";
import type { Figures } from "../base/figures";
import { bytes } from "../base/format";
import type { PastEvent } from "../data/model";
import { eventText } from "../time/annotations";
import { total, type ChartData } from "./chart-data";

const TABLE_ROWS = 60;

type Clock = (time: number) => string;

/** The points in a range, the newest first, so many that a table of them can be read. */
export function tablePoints(times: readonly number[], [from, to]: readonly [number, number], most = TABLE_ROWS): number[] {
  const first = times.filter((time) => time < from).length;
  const end = times.filter((time) => time <= to).length;
  const step = Math.max(1, Math.ceil((end - first) / most));
  const points = [];
  for (let i = end - 1; i >= first; i -= step) points.push(i);
  return points;
}

export function chartTable(label: string, data: ChartData, range: readonly [number, number], clock: Clock): HTMLElement {
  const { times, series } = data;
  const rows = tablePoints(times, range).map((i) => h("tr", {}, h("th", { scope: "row" }, clock(times[i]!)),
    series.map((one) => h("td", { class: "number" }, bytes(one.values[i] ?? 0))),
    h("td", { class: "number" }, bytes(total(data, i)))));
  return h("table", {},
    h("caption", { class: "hidden" }, label),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Time"),
      series.map((one) => h("th", { scope: "col", class: "number" }, one.label)),
      h("th", { scope: "col", class: "number" }, "Together"))),
    h("tbody", {}, rows));
}

export function eventList(events: readonly PastEvent[], [from, to]: readonly [number, number], clock: Clock): HTMLElement | false {
  const list = events.filter(({ time_ns }) => time_ns >= from * 1e9 && time_ns <= to * 1e9).slice(-TABLE_ROWS).reverse();
  return list.length > 0 && h("ul", { class: "event-list", "aria-label": "What happened" },
    list.map((event) => h("li", {}, `${clock(event.time_ns / 1e9)} ${eventText(event)}`)));
}

/** All points that are loaded, in bytes. @isDate: times count from 1970. */
export function chartFigures({ times, series }: ChartData, isDate: boolean): Figures {
  return {
    heads: ["Time", ...series.map((one) => one.label)],
    rows: times.map((time, i) => [isDate ? new Date(time * 1000).toISOString() : time, ...series.map((one) => one.values[i] ?? null)]),
  };
}
