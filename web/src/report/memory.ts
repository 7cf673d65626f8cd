// SPDX-License-Identifier: Apache-2.0
//
// How free memory is divided, over time and at the peak.

import { clear, h, say } from "../base/dom";
import { bytes, count, duration, percent, plural } from "../base/format";
import { Chart } from "../chart/chart";
import { STEPS } from "../chart/chart-data";
import { TYPES, type Buffer, type MemoryType } from "../data/model";
import type { Layout, Span } from "../map/holes";
import { AddressMap } from "../map/map";
import { spaceFigures } from "../map/space-figures";
import { typeVariable } from "../parts/colours";
import { stackList } from "../parts/stack-list";
import { empty, figure, panel, TYPE_TITLES } from "../parts/view";
import type { Block, Book, Fragments, MapPacked } from "./document";
import { moment } from "./spans";

const nameOf = ({ comm, pid, device, type }: { comm: string; pid: number; device: number; type: string }): string =>
  `${TYPE_TITLES[type as MemoryType]} of device ${device}, ${comm} (${pid})`;

/** Chooses one of several memories. */
function select(label: string, list: readonly { comm: string; pid: number; device: number; type: string }[], choose: (i: number) => void): HTMLElement {
  const box = h("select", { "aria-label": label }, list.map((one, i) => h("option", { value: i }, nameOf(one))));
  box.addEventListener("change", () => choose(Number(box.value)));
  return box;
}

/** The worst moment: the largest share of the free memory outside of its largest block. */
function worst(space: Fragments): { at: number; share: number } | null {
  let found: { at: number; share: number } | null = null;
  space.free.forEach((free, at) => {
    if (!free) return;
    const share = 1 - (space.largest[at] ?? 0) / free;
    if (!found || share > found.share) found = { at, share };
  });
  return found;
}

export function fragmentationPanel(book: Book): HTMLElement {
  const { times_ns, spaces } = book.report.fragmentation;
  const title = "Fragmentation over time";
  const { start_ns, end_ns } = book.report;
  if (spaces.length === 0)
    return panel(title, null, empty("Not known: no process has declared where its memory lies (ttmem_device())."));
  const seconds = times_ns.map((ns) => (ns - start_ns) / 1e9);
  const chart = new Chart(title, () => undefined, {
    height: 190, shortest: 0, closest: Math.max(1, end_ns - start_ns) / 1e9 / 1e3, end: "at the end", steps: STEPS, tick: moment, clock: moment,
    rest: () => ({ at: least, text: `when most was used, ${moment(seconds[least] ?? 0)}` }),
  });
  let least = 0; // the look with least free memory
  const figures = h("dl", { class: "figures small pad" });
  const show = (i: number): void => {
    const space = spaces[i]!;
    const most = worst(space);
    least = space.used.reduce<number>((best, used, k) => ((used ?? -1) > (space.used[best] ?? -1) ? k : best), 0);
    const cut = space.free.map((free, k) => (free === null ? null : free - (space.largest[k] ?? 0)));
    clear(figures,
      figure("At most", most ? percent(most.share, 1) : "–", "free memory that is not in the largest free block"),
      most && most.share > 0 && figure("When", moment(seconds[most.at] ?? 0)),
      most && most.share > 0 && figure("Largest free block then", bytes(space.largest[most.at])),
      figure("Largest free block, at least", bytes(Math.min(...space.largest.flatMap((one) => one ?? [])))));
    chart.set({ times: seconds, series: [
      { label: "Used", variable: typeVariable(space.type), values: space.used },
      { label: "Free, in smaller blocks", variable: "type-cb", values: cut },
      { label: "Free, in the largest free block", variable: "type-l1-small", values: space.largest },
    ] }, space.size);
  };
  const looked = h("span", { class: "muted" }, `looked at ${times_ns.length} times`);
  const element = panel(title, h("div", { class: "tools" }, looked, spaces.length > 1 && select("Memory", spaces, show)), figures,
    spaces.length === 1 && h("p", { class: "muted pad" }, nameOf(spaces[0]!)), chart.element);
  show(0);
  return element;
}

/** A block as the buffer that the map shows. */
function asSpan(block: Block, space: MapPacked, peakNs: number): Span {
  const from = Number(block.address);
  const buffer: Buffer = {
    pid: space.pid, comm: space.comm, device: space.device, device_uid: null, type: block.type, address: block.address,
    size: block.size, size_per_bank: block.length, refs: 1, born_ns: block.born_ns, age_ns: Math.max(0, peakNs - block.born_ns),
    name: block.name, phase: block.phase, thread: 0, flags: [], stack: [], site: null,
  };
  return { from, to: from + block.length, buffer };
}

export function mapPanel(book: Book): HTMLElement {
  const { maps, peak, start_ns } = book.report;
  const title = "Memory map at the peak";
  if (maps.length === 0 || !peak)
    return panel(title, null, empty("Not known: no process has declared where its memory lies (ttmem_device())."));
  const figures = h("dl", { class: "figures small" });
  const detail = h("div", { class: "buffer", hidden: true });
  const name = h("p", { class: "muted" });
  const legend = h("ul", { class: "legend" });
  const cut = h("div", {});
  let blocks = new Map<Buffer, Block>();
  const map = new AddressMap(({ buffer }) => {
    const block = blocks.get(buffer);
    detail.hidden = false;
    clear(detail,
      h("dl", { class: "facts" },
        h("dt", {}, "Name"), h("dd", {}, buffer.name ?? "–"),
        h("dt", {}, "Size"), h("dd", {}, `${bytes(buffer.size)} (${count(buffer.size)} bytes)`),
        h("dt", {}, "Where"), h("dd", {}, `${buffer.type} of device ${buffer.device}, ${buffer.address}`),
        h("dt", {}, "Allocated"), h("dd", {}, `at ${moment((buffer.born_ns - start_ns) / 1e9)}, ${duration(buffer.age_ns)} before the peak`),
        buffer.phase && [h("dt", {}, "Phase"), h("dd", {}, buffer.phase)]),
      stackList(book.frames(block?.stack ?? null).stack));
  });
  const show = (i: number): void => {
    const space = maps[i]!;
    const spans = space.buffers.map((block) => asSpan(block, space, peak.time_ns));
    blocks = new Map(spans.map((span, k) => [span.buffer, space.buffers[k]!]));
    const layout: Layout = {
      pid: space.pid, comm: space.comm, space, spans, holes: space.holes.map((hole) => ({ from: Number(hole.address), to: Number(hole.address) + hole.size })),
      bank: { base: Number(space.base), size: space.bank_size, banks: space.banks, alignment: space.alignment },
    };
    detail.hidden = true;
    say(name, maps.length > 1 ? "" : nameOf(space));
    clear(figures, spaceFigures(layout));
    const types = TYPES.filter((type) => space.buffers.some((block) => block.type === type));
    clear(legend, types.map((type) => h("li", { "--dot": `var(--${typeVariable(type)})` }, h("span", {}, TYPE_TITLES[type]))),
      h("li", { "--dot": "var(--hole-line)" }, h("span", {}, "free block")));
    clear(cut, spans.length < space.blocks && h("p", { class: "muted" }, `The largest ${count(spans.length)} of ${plural(space.blocks, "buffer")}.`),
      space.guessed > 0 && h("p", { class: "muted" }, `${plural(space.guessed, "buffer")} did not tell the share of a bank: taken as spread evenly.`));
    map.set(layout, "type", 0);
  };
  const element = panel(title, maps.length > 1 && select("Memory", maps, show),
    h("div", { class: "strip" }, name, figures, map.element, cut, legend), detail);
  show(0);
  return element;
}
