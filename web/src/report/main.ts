// SPDX-License-Identifier: Apache-2.0
//
// The report of a recording: one page that needs nothing else, neither a server nor a network. Its data is a JSON
// document in the page itself; texts in it come from the recorded processes, and become text nodes only.

import "../style.css";
import "./report.css";
import { siteOf } from "../analysis/sites";
import { clear, h, svg, type Child } from "../base/dom";
import { bytes, clock, count, plural } from "../base/format";
import { visible } from "../base/text";
import { KINDS, type Incident } from "../data/model";
import { siteLabel, siteWhere } from "../data/stack";
import { startTheme } from "../parts/colours";
import { incidentDetail } from "../parts/incident-detail";
import { themeButton } from "../parts/theme-button";
import { cutNote, empty, figure, panel } from "../parts/view";
import { Book, type Owner, type Report } from "./document";
import { endPanel, growthPanel, peakPanel, temporariesPanel } from "./lists";
import { fragmentationPanel, mapPanel } from "./memory";
import { moment, recorded } from "./spans";
import { Timeline } from "./timeline";

const PROCESSES = 200;
const NOTES = 8;

function exit({ ended_ns, exit }: Owner): string {
  if (ended_ns === null) return "still running";
  if (exit?.signal) return `killed by signal ${exit.signal}`;
  return exit && exit.code !== null ? `exit code ${exit.code}` : "ended";
}

function processTable(report: Report): HTMLElement {
  const shown = report.processes.slice(0, PROCESSES);
  return h("div", {}, h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Process", "User", "Container", "Started", "End"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, shown.map((one) => h("tr", {},
        h("th", { scope: "row" }, `${one.comm} (${one.pid})`), h("td", {}, one.user ?? ""), h("td", {}, one.container ?? ""),
        h("td", {}, clock(one.start_ns)),
        h("td", {}, one.ended_ns === null ? exit(one) : `${exit(one)}, at ${moment((one.ended_ns - report.start_ns) / 1e9)}`)))))),
    cutNote(shown.length, report.process_count));
}

/** How much of the run is in the file. */
function completeness(report: Report): Child[] {
  const told = [`${recorded(report.events, report.missed)}; totals exact`];
  const notes = [...report.notes];
  if (!report.complete) notes.unshift("The recording was not ended in order: it ends where the file does.");
  if (report.torn > 0) notes.unshift(`${plural(report.torn, "byte")} at the end of the file could not be read.`);
  return [h("p", { class: report.missed ? "warn" : "muted", id: "completeness" }, told),
    notes.length > 0 && h("ul", { class: "notes" }, notes.slice(0, NOTES).map((note) => h("li", {}, note)),
      notes.length > NOTES && h("li", { class: "muted" }, `and ${plural(notes.length - NOTES, "more note")}`))];
}

function head(report: Report): HTMLElement {
  const length = (report.end_ns - report.start_ns) / 1e9;
  return h("header", { class: "report-head" },
    h("div", { class: "crumbs" }, h("h1", {}, report.command ?? report.file), h("span", { class: "muted" }, report.command ? report.file : "")),
    h("dl", { class: "figures" },
      figure("Peak", report.peak ? bytes(report.peak.bytes) : "–", report.peak ? `at ${moment((report.peak.time_ns - report.start_ns) / 1e9)}` : ""),
      figure("Left at the end", report.end ? bytes(report.end.bytes) : "–"),
      figure("Duration", moment(length)), figure("Started", clock(report.start_ns)),
      report.host && figure("Host", report.host), figure("Events", count(report.events + report.missed)),
      figure("Incidents", count(report.incident_count))),
    completeness(report));
}

/** A process that ended with something live; the call sites are in another list. */
const leakDetail = ({ comm, pid, count: buffers, size, time_ns }: Incident): HTMLElement => h("article", {},
  h("h3", {}, `${comm} (${pid}) · ${clock(time_ns)}`),
  h("p", {}, `It ended with ${plural(buffers, "buffer")} of ${bytes(size)} still allocated. `, h("a", { href: "#end" }, "By call site")));

class IncidentPanel {
  readonly element: HTMLElement;
  private list = h("div", { class: "groups" });
  private detail = h("div", { class: "detail", "aria-live": "polite" });

  constructor(report: Report, private incidents: readonly Incident[]) {
    clear(this.list, incidents.map((incident, i) => this.entry(incident, i, report.start_ns)));
    this.element = panel("Incidents", incidents.length > 0 && h("span", { class: "muted" }, plural(report.incident_count, "incident")),
      incidents.length === 0 ? empty("Nothing went wrong.") :
      h("div", { class: "columns wide-right incidents-columns" }, h("div", {}, this.list, cutNote(incidents.length, report.incident_count)), this.detail));
    if (incidents[0]) this.open(incidents[0], false);
  }

  private entry(incident: Incident, i: number, start: number): HTMLElement {
    const site = siteOf(incident);
    const button = h("button", { type: "button", "data-id": i },
      h("span", { class: "name" }, incident.kind === "leak" ? `${plural(incident.count, "buffer")} left` : siteLabel(site)),
      h("span", { class: `badge ${incident.kind}` }, KINDS[incident.kind] ?? incident.kind),
      h("span", { class: "muted" }, [incident.type, siteWhere(site)].filter(Boolean).join(" · ")),
      h("span", { class: "muted" }, `${count(incident.count)}× · ${bytes(incident.size)}`),
      h("span", { class: "muted" }, `${incident.comm} (${incident.pid})`),
      h("span", { class: "muted" }, `at ${moment((incident.time_ns - start) / 1e9)}`));
    button.addEventListener("click", () => this.open(incident, false));
    return button;
  }

  open(incident: Incident, jump: boolean): void {
    const at = String(this.incidents.indexOf(incident));
    for (const button of this.list.querySelectorAll("button")) {
      const own = button.getAttribute("data-id") === at;
      button.setAttribute("aria-current", String(own));
      if (own && jump) button.focus({ preventScroll: true });
    }
    clear(this.detail, incident.kind === "leak" ? leakDetail(incident) : incidentDetail(incident));
    if (jump) this.element.scrollIntoView();
  }
}

/** As public/icon.svg, which is a file of its own. */
const icon = (): SVGElement => svg("svg", { viewBox: "0 0 16 16", width: 20, height: 20, "aria-hidden": "true" },
  svg("rect", { width: 16, height: 16, rx: 3.5, fill: "#2f62d0" }),
  svg("path", { fill: "#fff", d: "M3.5 4h9v2h-9zM3.5 7h5v2h-5zM9.5 7h3v2h-3zM3.5 10h2.5v2h-2.5z" }),
  svg("path", { fill: "#fff", "fill-opacity": 0.45, d: "M7 10h5.5v2h-5.5z" }));

/** The licences that the code of others in this page asks for. */
const licences = (): HTMLElement => h("details", { class: "behind" }, h("summary", {}, "Licences of what is built in"),
  h("pre", { tabindex: 0, role: "group", "aria-label": "Licences" }, document.getElementById("licences")?.textContent ?? ""));

function build(report: Report): void {
  const book = new Book(report);
  const incidents = book.incidents();
  const trouble = new IncidentPanel(report, incidents);
  const timeline = new Timeline(report, incidents, (incident) => trouble.open(incident, true));
  const sections: [id: string, title: string, element: () => HTMLElement][] = [
    ["timeline", "Timeline", () => timeline.element],
    ["peak", "Peak", () => peakPanel(book)],
    ["end", "Leaks", () => endPanel(book)],
    ["temporaries", "Temporaries", () => temporariesPanel(book)],
    ["growth", "Growth", () => growthPanel(book)],
    ["fragmentation", "Fragmentation", () => fragmentationPanel(book)],
    ["map", "Map", () => mapPanel(book)],
    ["incidents", "Incidents", () => trouble.element],
  ];
  document.title = visible(`${report.command ?? report.file} · ttmem report`);
  const main = h("main", { id: "main", tabindex: -1 }, head(report), sections.map(([id, , element]) => {
    const made = element();
    made.id = id;
    return made;
  }), panel("Processes", h("span", { class: "muted" }, plural(report.process_count, "process", "processes")), processTable(report)));
  document.body.append(
    h("a", { class: "skip", href: "#main" }, "Skip to the content"),
    h("header", { class: "top" }, h("span", { class: "brand" }, icon(), "ttmem report"),
      h("nav", { "aria-label": "Sections" }, sections.map(([id, title]) => h("a", { href: `#${id}` }, title))),
      h("div", { class: "right" }, themeButton())),
    main,
    h("footer", { class: "foot" }, `Made by ttmem report from ${report.file}. `, licences()));
}

startTheme();
build(JSON.parse(document.getElementById("data")!.textContent!) as Report);
