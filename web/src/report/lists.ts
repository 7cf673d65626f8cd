// SPDX-License-Identifier: Apache-2.0
//
// What the peak is made of, what was left, what grew and what lived only for a moment, by call site.

import { h, type Child } from "../base/dom";
import { bytes, count, duration, percent, plural, signed } from "../base/format";
import { Flame } from "../flame/flame";
import { SiteGrid } from "../parts/site-grid";
import { cutNote, empty, nameTable, panel } from "../parts/view";
import { leaves, type Book, type Grown, type Held, type HeldPacked, type Passing } from "./document";
import { medianLife, moment, shortLives } from "./spans";

const at = (book: Book, ns: number): string => moment((ns - book.report.start_ns) / 1e9);

function heldGrid(label: string, all: number): SiteGrid<Held> {
  return new SiteGrid<Held>(label, [
    { id: "bytes", title: "Bytes", number: true, width: "7rem", narrow: "5.6rem", text: (s) => bytes(s.bytes), sort: (s) => s.bytes },
    { id: "share", title: "Share", number: true, width: "5rem", narrow: false, text: (s) => percent(s.bytes, Math.max(1, all)), sort: (s) => s.bytes },
    { id: "buffers", title: "Buffers", number: true, width: "6rem", narrow: "4.5rem", text: (s) => count(s.buffers), sort: (s) => s.buffers },
  ], [], (site) => nameTable(site.names ?? [], site.name_count ?? 0));
}

/** The call sites of a moment, after what is told about it. */
function held(book: Book, label: string, moment_: HeldPacked): Child[] {
  const grid = heldGrid(label, moment_.bytes);
  grid.set(book.sites(moment_.sites));
  return [
    moment_.unexplained > 0 && h("p", { class: "warn pad" }, `${bytes(moment_.unexplained)} of it belong to buffers that are not known, because their events were missed or could not be read.`),
    grid.element, cutNote(moment_.sites.length, moment_.site_count),
  ];
}

export function peakPanel(book: Book): HTMLElement {
  const { peak } = book.report;
  if (!peak || peak.sites.length === 0) return panel("At the peak", null, empty("Nothing was in use."));
  const flame = new Flame();
  flame.set({ timeNs: peak.time_ns, buffers: book.sites(peak.sites).flatMap(leaves) });
  const told = `${bytes(peak.bytes)} in ${plural(peak.buffers, "buffer")}, at ${at(book, peak.time_ns)}`;
  return panel("At the peak, by call site", h("span", { class: "muted" }, told),
    h("div", { class: "pad" }, flame.element), held(book, "Call sites at the peak", peak));
}

export function endPanel(book: Book): HTMLElement {
  const { end, processes } = book.report;
  const over = processes.every((one) => one.ended_ns !== null);
  const title = over ? "Leaks: still held when the processes ended" : "Live at the end of the recording";
  if (!end || end.sites.length === 0) return panel(title, null, empty("Nothing: everything was freed."));
  return panel(title, h("span", { class: "muted" }, `${bytes(end.bytes)} in ${plural(end.buffers, "buffer")}`),
    held(book, title, end));
}

export function growthPanel(book: Book): HTMLElement {
  const { growth } = book.report;
  const title = "Growth";
  if (growth.sites.length === 0)
    return panel(title, null, empty(growth.samples > 1 ? `Nothing kept growing, looked at ${growth.samples} times.` : "The recording is too short to tell."));
  const grid = new SiteGrid<Grown>("Call sites that kept growing", [
    { id: "grown", title: "Grown", number: true, width: "7rem", narrow: "5.6rem", text: (s) => signed(s.last_bytes - s.first_bytes), sort: (s) => s.last_bytes - s.first_bytes },
    { id: "last", title: "At the end", number: true, width: "7rem", narrow: false, text: (s) => bytes(s.last_bytes), sort: (s) => s.last_bytes },
    { id: "buffers", title: "Buffers", number: true, width: "8rem", narrow: "5rem", text: (s) => `${count(s.first_buffers)} → ${count(s.last_buffers)}`, sort: (s) => s.last_buffers },
  ], [
    { id: "process", title: "Process", width: "12rem", narrow: false, text: (s) => `${s.comm} (${s.pid})` },
  ], (site) => h("p", { class: "muted" }, `Its oldest live buffer is from ${at(book, site.oldest_ns)}.`));
  grid.set(book.sites(growth.sites));
  return panel(title, h("span", { class: "muted" }, `looked at ${growth.samples} times, from ${at(book, growth.first_ns)} to ${at(book, growth.last_ns)}`),
    grid.element, cutNote(growth.sites.length, growth.site_count));
}

const LIFE_COLUMNS = [
  { until: 4, text: "< 16 µs" }, { until: 10, text: "< 1 ms" }, { until: 17, text: "< 0.13 s" }, { until: 20, text: "< 1 s" },
  { until: 32, text: "longer" },
];

/** How many lived how long. */
function lifeTable({ lives, frees }: Passing): HTMLElement {
  let from = 0;
  const rows = LIFE_COLUMNS.map(({ until, text }) => {
    const sum = lives.slice(from, until + 1).reduce((all, one) => all + one, 0);
    from = until + 1;
    return { text, sum };
  });
  return h("table", { class: "lives" },
    h("thead", {}, h("tr", {}, ["Lived", "Share", "Buffers"].map((text, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
    h("tbody", {}, rows.map(({ text, sum }) => h("tr", {}, h("th", { scope: "row" }, text),
      h("td", { class: "meter" }, h("i", { "--part": `${(100 * sum) / Math.max(1, frees)}%` })),
      h("td", { class: "number" }, count(sum))))));
}

export function temporariesPanel(book: Book): HTMLElement {
  const { temporaries } = book.report;
  const title = "Temporaries: buffers with short lives";
  if (temporaries.sites.length === 0) return panel(title, null, empty("No call site has buffers that live for less than a millisecond."));
  const grid = new SiteGrid<Passing>(title, [
    { id: "short", title: "Short lives", number: true, width: "7rem", narrow: "5rem", text: (s) => count(shortLives(s.lives)), sort: (s) => shortLives(s.lives) },
    { id: "allocs", title: "Allocations", number: true, width: "7rem", narrow: false, text: (s) => count(s.allocs), sort: (s) => s.allocs },
    { id: "bytes", title: "Bytes in all", number: true, width: "7rem", narrow: "5.6rem", text: (s) => bytes(s.bytes), sort: (s) => s.bytes },
    { id: "median", title: "Half lived", number: true, width: "6.5rem", narrow: false, text: (s) => life(medianLife(s.lives)), sort: (s) => medianLife(s.lives) ?? 0 },
  ], [
    { id: "process", title: "Process", width: "12rem", narrow: false, text: (s) => `${s.comm} (${s.pid})` },
  ], (site) => h("div", {}, h("p", { class: "muted" }, `At most ${bytes(site.high)} at once on a device.`), lifeTable(site)));
  grid.set(book.sites(temporaries.sites));
  return panel(title, h("span", { class: "muted" }, "freed within a millisecond"), grid.element,
    cutNote(temporaries.sites.length, temporaries.site_count));
}

const life = (ns: number | null): string =>
  ns === null ? "–" : ns < 1e6 ? `< ${Math.max(1, Math.round(ns / 1e3))} µs` : `< ${duration(ns)}`;
