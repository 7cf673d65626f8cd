// SPDX-License-Identifier: Apache-2.0
//
// The layout of a device's memory. Each process has its own allocator, so each has a strip with the daemon's figures (the
// same as "ttmem map"), and its own answer to whether an allocation would fit ("ttmem fit").

import { changed, poolOf, sumUp } from "../analysis/sites";
import { choice, clear, h, Keyed, say, type Row } from "../base/dom";
import { bytes, clock, count, parseBytes, plural } from "../base/format";
import { link, remember, rememberSoon, type Route } from "../base/router";
import { get, mayAskAll, problem, type Parameters } from "../data/api";
import {
  deviceKey, SPACE_TYPES, TYPE_PLACES, TYPES, type Buffer, type Device, type Fit, type MemoryType, type Space, type SpaceType,
} from "../data/model";
import { loadBuffers } from "../data/rows";
import { layOut, memoryOf, type Layout, type Span } from "../map/holes";
import { AddressMap, AGE_NAMES, type Paint } from "../map/map";
import { spaceFigures } from "../map/space-figures";
import { seriesVariable, typeVariable, type Palette } from "../parts/colours";
import { heldFor } from "../parts/incident-detail";
import { locked } from "../parts/locked";
import { cutNote, empty, figure, panel, TYPE_TITLES } from "../parts/view";
import { moment } from "../time/moment";

const AUTO_ROWS = 5000; // up to so many are refreshed automatically, more only on demand
const AUTO_MS = 3000;
const ASK_MS = 250; // after the last key press
const STRIPS = 8; // of the processes that hold most

// Which types may be in a memory. Kernels are stored in DRAM or run in L1, whatever they count as.
const typesIn = (memory: SpaceType): MemoryType[] =>
  TYPES.filter((type) => TYPE_PLACES[type] === memory || (type === "KERNEL" && memory === "L1"));
const FIT_DEFAULT: Partial<Record<SpaceType, string>> = {
  DRAM: "1 GiB", TRACE: "16 MiB", L1_SMALL: "64 KiB", SYSTEM_MEMORY: "64 MiB",
};
const fitDefault = (memory: SpaceType): string => FIT_DEFAULT[memory] ?? "1 MiB";

const item = (variable: string, text: string): HTMLElement =>
  h("li", { "--dot": `var(--${variable})` }, h("span", {}, text));

/** Why, in words. */
export function verdict(fit: Fit): string {
  const { banks } = fit;
  const each = banks > 1 ? ` (${bytes(fit.need_per_bank)} in each of ${banks} banks)` : "";
  if (fit.fits && fit.hole) return `Yes${each}: at ${fit.hole.address}, in a free block of ${bytes(fit.hole.size * banks)}.`;
  if (fit.reason === "too_large") return `No${each}: all of it has ${bytes(fit.bank_size * banks)}.`;
  if (fit.reason === "depends_on_cores")
    return `Not known: only sharded buffers go there. It fits over all ${banks} cores, but not on one of them.`;
  const others = (fit.shared?.others ?? []).map(({ pid, comm, bytes: held }) => `${comm} (${pid}) holds ${bytes(held)}`).join(", ");
  if (fit.reason === "held_by_others")
    return `No${each}: its allocator has room, but other processes hold so much that the device has ${bytes((fit.shared?.free ?? 0) * banks)}: ${others}.`;
  if (fit.reason === "taken_by_others")
    return `No${each}: its allocator would place it where another process has buffers: ${others}.`;
  const free = bytes(fit.free * banks);
  if (fit.reason === "full") return `No${each}: only ${free} are free.`;
  const gone = fit.in_the_way.length;
  const way = gone > 0 ? ` It would fit without ${gone === 1 ? (fit.in_the_way[0]!.name ?? "one buffer") : plural(gone, "buffer")}.` : "";
  return `No${each}: ${free} are free, but fragmented: the largest free block has ${bytes(fit.largest * banks)}.${way}`;
}

interface Strip extends Row<Layout> {
  answer(fit: Fit | undefined): void;
  destroy(): void;
}

const ADDED = 1; // colours of the palette
const GONE = 0;

/** One instant of the memory. */
interface Picture {
  timeNs: number;
  layouts: Layout[];
  notes: string[];
  buffers: Buffer[];
}

const SITES = 20;
const WAY = 20;

/** What a buffer takes: in each bank, and over all banks of its memory. */
export const takes = (each: number, banks: number): [string, string] => [bytes(each), bytes(each * banks)];

/** What would have to go for an allocation to fit. */
function inTheWay(fits: readonly Fit[]): HTMLElement | false {
  const list = fits.flatMap((fit) => fit.in_the_way.map((one) => ({ ...one, fit })));
  return list.length > 0 && h("div", {}, h("h3", {}, "What would have to go"), h("div", { class: "scroll" }, h("table", { class: "in-the-way" },
    h("thead", {}, h("tr", {}, ["Name", "Process", "Address", "In each bank", "Over all banks"].map((text, i) => h("th", { scope: "col", class: i > 2 ? "number" : "" }, text)))),
    h("tbody", {}, list.slice(0, WAY).map(({ fit, pid, comm, name, address, size_per_bank: each }) => h("tr", {},
      h("th", { scope: "row" }, h("a", { href: link("process", String(pid), { address }) }, name ?? "without a name")),
      h("td", {}, `${comm} (${pid})`), h("td", {}, h("code", {}, address)),
      takes(each, fit.banks).map((text) => h("td", { class: "number" }, text)))))),
    cutNote(Math.min(list.length, WAY), list.length)));
}

/** A layout for each process that has, or could have, buffers there; the largest first. */
export function arrange(spaces: readonly Space[], buffers: readonly Buffer[]): Layout[] {
  const of = new Map<number, Buffer[]>();
  for (const buffer of buffers) {
    const list = of.get(buffer.pid);
    if (list) list.push(buffer);
    else of.set(buffer.pid, [buffer]);
  }
  const known = new Set(spaces.map((space) => space.pid));
  const layouts = spaces.map((space) => layOut(space.pid, space.comm, of.get(space.pid) ?? [], space));
  for (const [pid, list] of of) if (!known.has(pid)) layouts.push(layOut(pid, list[0]!.comm, list, null));
  const used = (layout: Layout): number => layout.space?.used ?? layout.spans.reduce((sum, span) => sum + span.to - span.from, 0);
  return layouts.sort((a, b) => used(b) - used(a) || a.pid - b.pid);
}

export class Places {
  readonly element: HTMLElement;
  private body = h("div", {});
  private strips = h("div", { class: "strips" });
  private rows: Keyed<Layout>;
  private made = new Map<number, Strip>();
  private legend = h("ul", { class: "legend" });
  private notes = h("ul", { class: "muted pad" });
  private nothing = empty("");
  private each: string | null; // bytes in each bank, as the allocator rounded the size that was asked for
  private size = h("input", { type: "text", "aria-label": "Size", id: "fit-size" });
  private answer = h("output", { for: "fit-size" });
  private refresh = h("button", { type: "button" }, "Refresh");
  private layouts: Layout[] = [];
  private buffers: Buffer[] = [];
  private why: HTMLElement | null; // asked by a link from a failed allocation
  private there: Picture | null = null; // of the second time cursor
  private key = ""; // of the instant that was read
  private fits: Fit[] = [];
  private told: string[] = [];
  private timeNs = 0;
  private memory: SpaceType;
  private paint: Paint;
  private abort = new AbortController();
  private asking = new AbortController();
  private timer = 0;
  private askTimer = 0;

  constructor(
    private find: () => Device | undefined,
    private palette: Palette,
    private route: Route,
  ) {
    const paint = route.options.get("paint");
    this.memory = SPACE_TYPES.find((type) => type === route.options.get("pool")) ?? "DRAM";
    this.paint = paint === "process" || paint === "age" ? paint : "type";
    const asked = route.options.get("fit");
    this.each = route.options.get("each");
    this.why = asked !== null && moment.at !== null ? h("div", { class: "detail why" }) : null;
    this.size.value = asked ?? fitDefault(this.memory);
    this.size.addEventListener("input", () => {
      this.each = null;
      rememberSoon({ fit: this.size.value || null, each: null });
      this.ask(ASK_MS);
    });
    this.rows = new Keyed(this.strips, (layout) => String(layout.pid), (layout) => this.strip(layout));
    this.refresh.addEventListener("click", () => void this.load());
    const may = mayAskAll();
    this.element = panel("Address map", may && h("div", { class: "tools" }, this.choices(), this.refresh), this.body);
    this.nothing.hidden = true;
    if (!may) clear(this.body, locked("Buffers"));
    else {
      clear(this.body, this.strips, this.nothing, h("div", { class: "pad" }, this.legend), this.notes,
        h("div", { class: "fit" }, h("label", { for: "fit-size" }, "Would"), this.size, h("span", {}, "fit?"), this.answer), this.why);
      say(this.answer, "Reading …");
      void this.load();
    }
  }

  private choices(): HTMLElement[] {
    return [
      choice<SpaceType>("Memory", SPACE_TYPES.map((value) => ({ value, text: value === "SYSTEM_MEMORY" ? "System" : TYPE_TITLES[value] })), this.memory, (value) => {
        this.memory = value;
        this.each = null;
        remember({ pool: value, fit: null, each: null });
        this.size.value = fitDefault(value);
        void this.load();
      }),
      choice<Paint>("Coloured by", [
        { value: "type", text: "Type" }, { value: "process", text: "Process" }, { value: "age", text: "Age" },
      ], this.paint, (value) => {
        this.paint = value;
        remember({ paint: value });
        this.show();
      }),
    ];
  }

  destroy(): void {
    this.abort.abort();
    this.asking.abort();
    clearTimeout(this.timer);
    clearTimeout(this.askTimer);
    for (const strip of this.made.values()) strip.destroy();
  }

  async load(): Promise<void> {
    this.abort.abort();
    clearTimeout(this.timer);
    this.abort = new AbortController();
    const { signal } = this.abort;
    const device = this.find();
    if (!device || !mayAskAll()) return;
    const { memory } = this;
    this.key = moment.key;
    this.refresh.hidden = moment.shown !== null;
    let again = moment.shown === null;
    try {
      const now = await this.picture(device, memory, moment.parameters(), signal);
      this.there = moment.other === null ? null : await this.picture(device, memory, moment.otherParameters(), signal);
      ({ timeNs: this.timeNs, layouts: this.layouts, notes: this.told, buffers: this.buffers } = now);
      this.show();
      this.ask(0);
      again &&= now.buffers.length <= AUTO_ROWS;
    } catch (error) {
      if (signal.aborted) return;
      this.told = [problem(error)];
      if (this.key !== "null null") this.forget(); // what was read before is of another instant
      this.showNotes();
    }
    if (again) this.timer = window.setTimeout(() => void this.load(), AUTO_MS);
  }

  /** Another instant is shown. */
  update(): void {
    if (mayAskAll() && this.key !== moment.key) void this.load();
  }

  private forget(): void {
    this.layouts = [];
    this.buffers = [];
    this.there = null;
    this.fits = [];
    this.show();
    say(this.nothing, "The layout of that instant is not known.");
    this.judge("");
  }

  private async picture(device: Device, memory: SpaceType, when: Parameters, signal: AbortSignal): Promise<Picture> {
    const asked = { device: deviceKey(device), ...when };
    const [map, ...rows] = await Promise.all([
      get<{ time_ns: number; maps: Space[]; notes: string[] }>("/api/v1/map", { ...asked, type: memory }, signal),
      ...typesIn(memory).map((type) => loadBuffers({ ...asked, type }, signal)),
    ]);
    // The number also matches devices with a unique id, which are different ones.
    const buffers = rows.flatMap((one) => one.buffers)
      .filter((buffer) => buffer.device_uid === device.uid && memoryOf(buffer, device) === memory);
    const notes = rows.every((one) => one.complete) ? map.notes
      : [...map.notes, `There are too many buffers to show: these are the first ${count(buffers.length)}.`];
    return { timeNs: map.time_ns, layouts: arrange(map.maps.filter((space) => space.uid === device.uid), buffers), notes, buffers };
  }

  private show(): void {
    const shown = this.layouts.slice(0, STRIPS);
    // Who was there at the other instant only has a strip, too.
    for (const layout of this.there?.layouts ?? [])
      if (shown.length < STRIPS && !this.layouts.some(({ pid }) => pid === layout.pid))
        shown.push({ ...layout, spans: [], holes: [], space: null });
    this.strips.classList.toggle("several", shown.length > 1);
    this.rows.show(shown);
    for (const [pid, strip] of this.made)
      if (!strip.element.isConnected) {
        strip.destroy();
        this.made.delete(pid);
      }
    this.nothing.hidden = shown.length > 0;
    say(this.nothing, `Nobody has ${TYPE_TITLES[this.memory]} of this device.`);
    this.explain(shown);
    this.showNotes();
  }

  private strip(first: Layout): Strip {
    const figures = h("dl", { class: "figures small" });
    const answer = h("output", { for: "fit-size", class: "strip-answer" });
    const open = (span: Span): void =>
      void (location.hash = link("process", String(span.buffer.pid), { address: span.buffer.address, of: poolOf(span.buffer) }));
    const map = new AddressMap(open, { route: this.route, name: `map-${first.pid}` });
    const above = h("div", {});
    let other: AddressMap | null = null; // of another instant, while two are compared
    const element = h("section", { class: "strip", "aria-label": `Memory of ${first.comm} (${first.pid})` },
      h("h3", {}, h("a", { href: link("process", String(first.pid)) }, `${first.comm} (${first.pid})`)),
      figures, above, map.element, answer);
    const strip: Strip = {
      element,
      update: (layout) => {
        const there = this.there?.layouts.find(({ pid }) => pid === layout.pid);
        clear(figures, spaceFigures(layout), figure("As of", clock(this.timeNs)));
        if (!this.there) {
          other?.destroy();
          other = null;
          above.replaceChildren();
          return map.set(layout, this.paint, this.palette.place(layout.pid));
        }
        other ??= new AddressMap(open);
        if (!other.element.isConnected) above.append(other.element);
        this.contrast(layout, there ?? { ...layout, spans: [], holes: [], space: null }, map, other);
      },
      answer: (fit) => {
        answer.className = `strip-answer ${fit ? (fit.fits ? "yes" : "no") : ""}`;
        say(answer, fit ? verdict(fit) : "");
      },
      destroy: () => [map, other].forEach((one) => one?.destroy()),
    };
    this.made.set(first.pid, strip);
    return strip;
  }

  /** The strips of two instants, the earlier one above. */
  private contrast(layout: Layout, there: Layout, map: AddressMap, other: AddressMap): void {
    const later = this.there!.timeNs > this.timeNs;
    const [before, after] = later ? [layout, there] : [there, layout];
    const { added, gone } = changed(before.spans.map(({ buffer }) => buffer), after.spans.map(({ buffer }) => buffer));
    other.set(before, "change", GONE, new Set(gone));
    map.set(after, "change", ADDED, new Set(added));
  }

  private showNotes(): void {
    const notes = this.told.map((text) => text.replace(/^pid \d+, device \d+: where its .* declared \(ttmem_device\)$/,
      "No process has declared how large the banks are: only free blocks between buffers are known."));
    const guessed = this.layouts.reduce((sum, layout) => sum + (layout.space?.guessed ?? 0), 0);
    const outside = this.layouts.reduce((sum, layout) => sum + (layout.space?.unplaced ?? 0), 0);
    if (guessed) notes.push(`${plural(guessed, "buffer")} did not tell the share of a bank: taken as spread evenly.`);
    if (outside) notes.push(`${plural(outside, "buffer")} lie${outside === 1 ? "s" : ""} outside of it.`);
    if (this.layouts.length > STRIPS)
      notes.push(`${plural(this.layouts.length - STRIPS, "more process", "more processes")}: these hold most.`);
    clear(this.notes, [...new Set(notes)].map((text) => h("li", {}, text)));
  }

  private explain(shown: readonly Layout[]): void {
    const other = this.there?.timeNs;
    const names = other !== undefined
      ? [item(seriesVariable(GONE), `above, ${clock(Math.min(other, this.timeNs))}: gone since`),
        item(seriesVariable(ADDED), `below, ${clock(Math.max(other, this.timeNs))}: added`), item("strong-line", "at both")]
      :
      this.paint === "age" ? AGE_NAMES.map((name, i) => item(`age-${i}`, name))
      : this.paint === "type" ? typesIn(this.memory).map((type) => item(typeVariable(type), TYPE_TITLES[type]))
      : shown.map((layout) => item(seriesVariable(this.palette.place(layout.pid)), `${layout.comm} (${layout.pid})`));
    clear(this.legend, names, item("hole-line", "free block"));
  }

  /** Sends the request when the user has stopped typing. */
  private ask(delay: number): void {
    clearTimeout(this.askTimer);
    this.asking.abort();
    const wanted = parseBytes(this.size.value);
    if (!wanted) {
      this.fits = [];
      return this.judge("A size looks like 512 MiB, 1.5 GiB or 4096.");
    }
    this.askTimer = window.setTimeout(() => void this.fit(wanted), delay);
  }

  private async fit(size: number): Promise<void> {
    const device = this.find();
    if (!device) return;
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      const parameters = { device: deviceKey(device), type: this.memory, size, ...this.each && { per_bank: this.each }, ...moment.parameters() };
      const { answers } = await get<{ answers: Fit[] }>("/api/v1/fit", parameters, signal);
      this.fits = answers.filter((fit) => fit.uid === device.uid);
      this.judge(this.fits.length ? null : "Not known: no process has declared where this memory lies.");
    } catch (error) {
      if (!signal.aborted) this.judge(problem(error));
    }
  }

  /** @text: shown instead of an answer; for one process next to the input, for several at each strip. */
  private judge(text: string | null): void {
    if (this.why) {
      const sites = [...sumUp(this.buffers).values()].sort((a, b) => b.bytes - a.bytes).slice(0, SITES);
      clear(this.why, inTheWay(this.fits), sites.length > 0 && heldFor(sites));
    }
    const alone = this.layouts.length === 1 ? this.fits[0] : undefined;
    const yes = this.fits.filter((fit) => fit.fits).length;
    for (const [pid, strip] of this.made)
      strip.answer(alone || text !== null ? undefined : this.fits.find((fit) => fit.pid === pid));
    this.answer.className = text !== null || (!alone && yes && yes < this.fits.length) ? "" : yes ? "yes" : "no";
    say(this.answer, text ?? (alone ? verdict(alone)
      : yes === this.fits.length ? "Yes, for each of them."
      : yes === 0 ? "No, for none of them."
      : `For ${yes} of ${plural(this.fits.length, "process", "processes")}.`));
  }
}
