// SPDX-License-Identifier: Apache-2.0
//
// Who holds how much, by stack: outermost call at the bottom, as wide as its share of the bytes. Or how that changed
// between two moments: then a frame's colour says how much of it is new or has gone.

import { clear, h, say } from "../base/dom";
import { bytes, clock, percent, plural, signed } from "../base/format";
import { rememberSoon, type Place, type Refinement } from "../base/router";
import { TYPES } from "../data/model";
import { saveMenu } from "../parts/download";
import { cutNote, TYPE_TITLES } from "../parts/view";
import { FlameCanvas } from "./flame-canvas";
import { same, tips, tree, type Node, type Weighed } from "./tree";
import { diffTrees } from "./tree-diff";

const TABLE_ROWS = 200;

/** What was live at a moment. */
export interface Moment {
  buffers: readonly Weighed[];
  timeNs: number;
}

interface Shown extends Moment {
  before: Moment | null; // to compare with
}

const deviceOf = ({ device_uid, device }: Weighed): string => device_uid ?? String(device ?? "");

/** A choice of what is in the data; hidden if there is nothing to choose. */
class Filter {
  readonly element: HTMLSelectElement;
  private all: HTMLOptionElement;

  /** @chosen: before anything is offered. */
  constructor(label: string, chosen: string | null, changed: () => void) {
    this.all = h("option", { value: "" }, label);
    this.element = h("select", { "aria-label": label, hidden: true }, this.all, chosen && h("option", { value: chosen }, chosen));
    this.element.value = chosen ?? "";
    this.element.addEventListener("change", changed);
  }

  get chosen(): string {
    return this.element.value;
  }

  /** What was chosen stays, even if there is none of it now. */
  offer(options: ReadonlyMap<string, string>): void {
    const { value, selectedOptions } = this.element;
    const list = new Map(options);
    if (value && !list.has(value)) list.set(value, selectedOptions[0]!.text);
    this.element.hidden = list.size < 2 && !value;
    const known = [...this.element.options].slice(1).map((one) => [one.value, one.text]);
    if (known.join("\n") === [...list].join("\n")) return; // one may have it open
    this.element.replaceChildren(this.all, ...[...list].map(([key, text]) => h("option", { value: key }, text)));
    this.element.value = value;
  }
}

export class Flame {
  readonly element: HTMLElement;
  private graph = new FlameCanvas({
    figures: (node) => this.figures(node),
    current: (node) => this.tell(node),
    zoomed: () => {
      this.keep({ frame: this.graph.zoomName });
      this.catchUp();
    },
  });
  private search = h("input", { type: "search", placeholder: "Highlight frames", "aria-label": "Highlight frames" });
  private matched = h("span", { class: "flame-matched", role: "status" });
  private type: Filter;
  private device: Filter;
  private zoomTo: string | null; // once there is something to show
  private status = h("p", { class: "muted flame-status", role: "status" });
  private asOf = h("span", { class: "muted flame-as-of" }); // shown if there is newer data
  private legend = h("ul", { class: "legend", hidden: true },
    [["flame-more-3", "grown"], ["flame-same", "unchanged"], ["flame-less-3", "shrunk or gone"]].map(([name, text]) =>
      h("li", { "--dot": `var(--${name})` }, h("span", {}, text!))));
  private list = h("div", { class: "scroll" });
  private table = h("details", { class: "behind" }, h("summary", {}, "As a table"), this.list);
  private data: Node | null = null;
  private shown: Shown | null = null;
  private newer: Shown | null = null; // to show once the user has zoomed out

  /** @place: where zoom, text and filters are kept. */
  constructor(private place?: Place) {
    const kept = (name: string): string | null => place?.route.options.get(place.name + name) ?? null;
    this.zoomTo = kept("frame");
    this.type = new Filter("All types", kept("type"), () => this.rebuild());
    this.device = new Filter("All devices", kept("device"), () => this.rebuild());
    this.search.value = kept("find") ?? "";
    this.search.addEventListener("input", () => {
      this.keep({ find: this.search.value || null });
      this.find();
    });
    const reset = h("button", { type: "button" }, "Show all");
    reset.addEventListener("click", () => this.graph.zoom(null));
    this.table.addEventListener("toggle", () => this.fillTable());
    this.element = h("div", {},
      h("div", { class: "tools" }, this.search, this.type.element, this.device.element, reset, this.matched, this.asOf, this.legend),
      this.graph.element, this.status, h("div", { class: "map-foot" }, this.table, saveMenu("flame graph", null, this.graph)));
  }

  destroy(): void {
    this.graph.destroy();
  }

  private keep(options: Refinement): void {
    const { place } = this;
    if (place) rememberSoon(Object.fromEntries(Object.entries(options).map(([name, value]) => [place.name + name, value])));
  }

  set({ buffers, timeNs }: Moment): void {
    this.newer = { buffers, timeNs, before: null };
    this.catchUp();
  }

  /** Shows how the second moment differs from the first. */
  setDiff(before: Moment, after: Moment): void {
    this.newer = { buffers: after.buffers, timeNs: after.timeNs, before };
    this.catchUp();
  }

  private build({ buffers, before }: Shown): Node {
    const [type, device] = [this.type.chosen, this.device.chosen];
    const wanted = (list: readonly Weighed[]): readonly Weighed[] =>
      type || device ? list.filter((one) => (!type || one.type === type) && (!device || deviceOf(one) === device)) : list;
    const now = tree(wanted(buffers));
    return before ? diffTrees(tree(wanted(before.buffers)), now) : now;
  }

  /** Shows the newest data, unless the user has zoomed in: then it shows the time of the data. */
  private catchUp(): void {
    const next = this.newer;
    if (next) {
      const data = this.build(next);
      const equal = this.data !== null && same(this.data, data);
      if (equal || !this.graph.isZoomed) {
        this.shown = next;
        this.newer = null;
        this.offer(next);
        if (!equal) this.show(data);
      }
    }
    say(this.asOf, this.newer && this.shown ? `as of ${clock(this.shown.timeNs)}` : "");
  }

  /** Another choice of the same moment. */
  private rebuild(): void {
    this.keep({ type: this.type.chosen || null, device: this.device.chosen || null });
    if (this.shown) this.show(this.build(this.shown));
    this.catchUp();
  }

  private show(data: Node): void {
    this.data = data;
    this.legend.hidden = !data.before;
    const what = data.before ? `the change from ${bytes(data.before.value)} to ${bytes(data.value)}` : `${bytes(data.value)} of live memory`;
    this.graph.show(data, `Flame graph of ${what}. Arrow keys go from frame to frame, Enter looks closer, Escape shows all. ` +
      "A table follows.");
    if (this.zoomTo && data.children.length > 0) {
      this.graph.zoomTo(this.zoomTo);
      this.zoomTo = null;
    }
    this.find();
    this.fillTable();
  }

  private offer({ buffers, before }: Shown): void {
    const [types, devices] = [new Set<string>(), new Map<string, string>()];
    for (const one of before ? [...before.buffers, ...buffers] : buffers) {
      types.add(one.type);
      if (one.device !== undefined) devices.set(deviceOf(one), `Device ${one.device}`);
    }
    this.type.offer(new Map(TYPES.filter((type) => types.has(type)).map((type) => [type, TYPE_TITLES[type]])));
    this.device.offer(new Map([...devices].sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }))));
  }

  private find(): void {
    const { frames, bytes: sum } = this.graph.find(this.search.value);
    const part = this.data && this.data.value > 0 ? `, ${percent(sum, this.data.value)}` : "";
    say(this.matched, this.search.value.trim() ? `${plural(frames.size, "frame")}: ${bytes(sum)}${part}` : "");
  }

  private figures({ value, buffers, before }: Node): string {
    const all = this.data!;
    const held = `${bytes(value)} in ${plural(buffers, "buffer")}`;
    if (before) return `${held}, ${value === before.value ? "unchanged" : `${signed(value - before.value)} from ${bytes(before.value)}`}`;
    return held + (all.value > 0 ? `, ${percent(value, all.value)}` : "");
  }

  private tell(node: Node | null): void {
    const { name, where } = node ?? this.data!;
    say(this.status, `${name}${where ? ` (${where})` : ""}: ${this.figures(node ?? this.data!)}`);
  }

  private fillTable(): void {
    if (!this.table.open || !this.data) return;
    const rows = tips(this.data);
    const differs = this.data.before !== undefined;
    const number = (text: string): HTMLElement => h("td", { class: "number" }, text);
    clear(this.list,
      h("table", {},
        h("caption", { class: "hidden" }, "Live bytes by stack"),
        h("thead", {}, h("tr", {}, ["Stack", "Bytes", ...(differs ? ["Change"] : []), "Buffers"].map((text, i) =>
          h("th", { scope: "col", class: i ? "number" : "" }, text)))),
        h("tbody", {}, rows.slice(0, TABLE_ROWS).map(({ path, node }) =>
          h("tr", {}, h("td", {}, path.join(" › ")), number(bytes(node.value)),
            node.before && number(signed(node.value - node.before.value)), number(String(node.buffers)))))),
      cutNote(Math.min(rows.length, TABLE_ROWS), rows.length));
  }
}
