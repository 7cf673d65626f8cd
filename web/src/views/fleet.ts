// SPDX-License-Identifier: Apache-2.0
//
// The other machines that this daemon knows, those with trouble first. It asks them, and only while this view is open.

import { COLUMNS, summary, TROUBLES, type Fleet, type Host } from "../analysis/fleet";
import { h, Keyed, renew, say, type Row } from "../base/dom";
import { bytes, clock, count, plural } from "../base/format";
import { get, problem } from "../data/api";
import { empty, figure, panel, type View } from "../parts/view";

const PAUSE_MS = 5000;

function row(host: Host): Row<Host> {
  const trouble = h("td", {});
  const cells = COLUMNS.map(({ number }) => h("td", { class: number ? "number" : "" }));
  return {
    element: h("tr", {}, h("th", { scope: "row" }, h("a", { href: host.url, rel: "noreferrer" }, host.host)), trouble, cells),
    update({ trouble: all, problem: why, facts }) {
      renew(trouble, all.map((one) => h("span", { class: `badge ${one}` }, TROUBLES[one])),
        why ? h("span", { class: "muted" }, ` ${why}`) : all.length === 0 && h("span", { class: "muted" }, "None"));
      COLUMNS.forEach(({ text }, i) => say(cells[i]!, facts ? text(facts) : "–"));
    },
  };
}

export function fleet(): View {
  const body = h("tbody", {});
  const rows = new Keyed<Host>(body, ({ host }) => host, row);
  const figures = { hosts: h("span", {}), silent: h("span", {}), used: h("span", {}) };
  const notes = h("ul", { class: "notes" });
  const when = h("span", { class: "muted" }, "Asking …");
  const failed = h("div", {});
  const abort = new AbortController();
  let due = 0;

  async function load(): Promise<void> {
    due = Infinity; // not twice at a time
    try {
      const { time_ns, hosts, notes: said } = await get<Fleet>("/api/v1/fleet", {}, abort.signal);
      rows.show(hosts);
      const { silent, used } = summary(hosts);
      say(figures.hosts, count(hosts.length));
      say(figures.silent, count(silent));
      say(figures.used, bytes(used));
      say(when, `${plural(hosts.length, "host")} asked at ${clock(time_ns)}`);
      renew(notes, said.map((note) => h("li", {}, note)));
      renew(failed, hosts.length === 0 && empty("No host is known."));
    } catch (error) {
      if (!abort.signal.aborted) renew(failed, empty(problem(error)));
    }
    due = Date.now() + PAUSE_MS;
  }

  const update = (): void => {
    if (Date.now() >= due && !document.hidden) void load();
  };
  const heads = ["Host", "Trouble"].map((title) => h("th", { scope: "col" }, title));
  const element = h("div", {}, h("div", { class: "crumbs" }, h("h1", {}, "Fleet")),
    h("dl", { class: "figures" }, figure("Hosts", figures.hosts), figure("Not answering", figures.silent), figure("In use", figures.used)),
    notes,
    panel("Hosts", when, h("div", { class: "scroll" }, h("table", { class: "fleet" },
      h("thead", {}, h("tr", {}, heads, COLUMNS.map(({ title, number }) => h("th", { scope: "col", class: number ? "number" : "" }, title)))),
      body)), failed));
  update();
  return { element, title: "Fleet", update, destroy: () => abort.abort() };
}
