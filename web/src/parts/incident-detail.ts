// SPDX-License-Identifier: Apache-2.0
//
// One incident: both parties of it side by side, and who held the memory then.

import { h, type Child } from "../base/dom";
import { bytes, clock, count } from "../base/format";
import { link } from "../base/router";
import { deviceKey, SPACE_TYPES, type EndedProcess, type Incident, type Named, type Party, type Site } from "../data/model";
import { fromNs } from "../data/series";
import { siteLabel, siteWhere, tellApart, type SiteKey } from "../data/stack";
import { stackList } from "./stack-list";
import { cutNote, nameTable } from "./view";

export const DETAILS = 20; // of a group

/** How a process ended, in words. */
export const howEnded = (process: EndedProcess): string => {
  const { exit } = process;
  if (process.exec) return "became another program";
  if (exit?.signal) return `killed by signal ${exit.signal}${exit.name ? ` (${exit.name})` : ""}`;
  if (exit && exit.code !== null) return `exit code ${exit.code}`;
  return process.how === "closed" ? "ended in order" : "died";
};

/** The same where there is little room: "SIGKILL". */
export const howEndedShort = (process: EndedProcess): string => {
  const { exit } = process;
  return !process.exec && exit?.signal ? exit.name ?? `signal ${exit.signal}` : howEnded(process);
};

function party(title: string, one: Party | null, none: string): HTMLElement {
  if (!one) return h("div", { class: "party" }, h("h4", {}, title), h("p", { class: "muted" }, none));
  const fact = (name: string, value: string | null): Child => value && [h("dt", {}, name), h("dd", {}, value)];
  return h("div", { class: "party" }, h("h4", {}, title),
    h("dl", { class: "facts" },
      fact("When", clock(one.time_ns)), fact("Thread", one.thread ? String(one.thread) : null), fact("Name", one.name),
      fact("Phase", one.phase), fact("Size", one.size ? bytes(one.size) : null)),
    stackList(one.stack));
}

const PARTIES: Record<string, [string, string]> = {
  double_free: ["Freed first by", "Freed again by"],
  size_change: ["Allocated first by", "Allocated again by"],
  unknown_free: ["Freed before by", "Freed by"],
  alloc_failed: ["", "Asked for by"],
  clash: ["In the way: allocated by", "Refused"],
  trace_overlap: ["Captured by", "Allocated over it by"],
  overlap: ["Held first by", "Allocated over it by"],
  held_at_close: ["Allocated by", "Closed by"],
};

export function incidentDetail(incident: Incident): HTMLElement {
  const [first, second] = PARTIES[incident.kind] ?? ["First", "Second"];
  const where = [incident.type, `device ${incident.device}`, incident.address].filter(Boolean).join(" · ");
  return h("article", {},
    h("h3", {}, `${incident.comm} (${incident.pid}) · ${clock(incident.last_ns)}`,
      incident.count > 1 && h("span", { class: "muted" }, ` · ${count(incident.count)} times${
        (incident.devices?.length ?? 0) > 1 ? ` on devices ${incident.devices!.join(", ")}` : ""} since ${clock(incident.time_ns)}`)),
    h("p", { class: "muted" }, `${where} · ${bytes(incident.size)}`,
      incident.largest_free !== null && ` · largest free block: ${bytes(incident.largest_free)}${incident.size_per_bank ? " in each bank" : ""}`),
    incident.explanation && h("p", {}, incident.explanation),
    incident.kind === "alloc_failed" && h("p", {}, h("a", { href: whyLink(incident) }, "Why did it fail?"),
      h("span", { class: "muted" }, " The memory at that instant, who held it, and what was in the way.")),
    h("div", { class: "parties" },
      first && (incident.first || incident.kind !== "unknown_free") && party(first, incident.first, "Not known any more."),
      party(second, incident.second, "Not known.")),
    incident.holders && incident.holders.length > 0 && holders(incident),
    incident.sites && incident.sites.length > 0 && heldFor(incident.sites));
}

/**
 * Whether the layout of the memory can show why. Where an allocator has refused a size in each bank and did not say what
 * was free, each core has its own addresses, and the buffers may lie on other cores. Circular buffers begin where no
 * buffer can.
 */
const canAsk = ({ type, size_per_bank: each, bank_size: bank }: Incident): boolean => type !== "CB" && (!each || !!bank);

/** The device as it was when an allocation failed, asked whether it would have fitted: in each bank, as the allocator rounded it. */
export function whyLink(incident: Incident): string {
  const pool = SPACE_TYPES.find((type) => type === incident.type) ?? (incident.type === "CB" ? "L1" : "DRAM");
  return link("device", deviceKey({ device: incident.device, uid: incident.device_uid }),
    { at: fromNs(Math.floor(incident.last_ns / 1e6) * 1e6), pool,
      ...canAsk(incident) && { fit: String(incident.size) },
      ...canAsk(incident) && incident.size_per_bank && { each: String(incident.size_per_bank) } });
}

function holders(incident: Incident): HTMLElement {
  return h("div", {}, h("h3", {}, "Who held the memory then"), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Process", "Type", "Used", "Buffers"].map((text, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
    h("tbody", {}, incident.holders!.map((one) => h("tr", {},
      h("th", { scope: "row" }, `${one.comm} (${one.pid})`), h("td", {}, one.type ?? ""),
      h("td", { class: "number" }, bytes(one.used)), h("td", { class: "number" }, count(one.buffers))))))));
}

type Held = SiteKey & Pick<Site, "bytes" | "buffers"> & { names?: readonly Named[] };

/** Its names, where there are several, to be unfolded. */
function namesBehind({ names = [], name_count }: Held): Child {
  const table = nameTable(names, name_count ?? names.length);
  return names.length > 0 && table && h("details", { class: "behind" }, h("summary", {}, "By name"), table);
}

/** What held the memory when an allocation failed. */
export function heldFor(sites: readonly Held[]): HTMLElement {
  return h("div", {}, h("h3", {}, "What it was held for"), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Call site", "Type", "Bytes", "Buffers"].map((text, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, text)))),
    h("tbody", {}, tellApart(sites.slice(0, DETAILS)).map((site) => h("tr", {},
      h("th", { scope: "row", class: "phase" }, siteLabel(site), " ", h("span", { class: "muted" }, siteWhere(site)), namesBehind(site)), h("td", {}, site.type ?? ""),
      h("td", { class: "number" }, bytes(site.bytes)), h("td", { class: "number" }, count(site.buffers)))))),
    cutNote(Math.min(sites.length, DETAILS), sites.length)));
}
