// SPDX-License-Identifier: Apache-2.0
//
// The frame around the views: navigation, the connection state, who may see details, light or dark.

import "./style.css";
import { clear, h, say } from "./base/dom";
import { duration } from "./base/format";
import { codeIn, link, parse } from "./base/router";
import { restoreScroll, startScroll } from "./base/scroll";
import { tabStore } from "./base/storage";
import { visible } from "./base/text";
import {
  accessProblem, detailsAre, hasFleet, lock, mayAsk, onAccessLost, problem, recorded, signedIn, signIn, signOut, token, unlock,
} from "./data/api";
import { live, type State } from "./data/live";
import { onTheme, startTheme } from "./parts/colours";
import { themeButton } from "./parts/theme-button";
import type { View } from "./parts/view";
import { forgetMarks } from "./time/marks";
import { moment } from "./time/moment";
import { MomentBar } from "./time/moment-bar";
import { device } from "./views/device";
import { EndedView } from "./views/ended";
import { fleet } from "./views/fleet";
import { Incidents } from "./views/incidents";
import { machine } from "./views/machine";
import { overview } from "./views/overview";
import { processView } from "./views/process";

const state = h("span", { class: "state", role: "status" });
const banner = h("div", { class: "banner", role: "alert", hidden: true });
const main = h("main", { id: "main", tabindex: -1 }, h("p", { class: "empty" }, "Asking ttmemd …"));
const tabs = {
  overview: h("a", { href: link("overview") }, "Overview"),
  incidents: h("a", { href: link("incidents") }, "Leaks and incidents"),
  fleet: h("a", { href: link("fleet"), hidden: true }, "Fleet"),
};
const who = h("span", { class: "muted who" });
const key = h("button", { type: "button", class: "plain" });
const bar = new MomentBar();
const strip = machine();

let view: View | null = null;

/** @followed: the user has navigated there; false: the view is rebuilt in place. */
function open(followed = false): void {
  moment.follow(location.hash);
  const route = parse(location.hash);
  const inside = main.contains(document.activeElement);
  view?.destroy?.();
  view =
    route.view === "device" ? device(route)
    : route.view === "process" ? processView(route)
    : route.view === "incidents" ? new Incidents(route)
    : route.view === "fleet" ? fleet()
    : route.view === "ended" ? new EndedView(route)
    : overview(route);
  clear(main, view.element);
  strip.show(route.view);
  document.title = visible(`${view.title} · ttmem`);
  main.setAttribute("aria-label", visible(view.title));
  for (const [name, tab] of Object.entries(tabs)) {
    if (name === route.view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  restoreScroll(route.options.get("y"));
  // The focused element is gone: focus the new view, so that screen readers announce it.
  if (followed || inside) main.focus({ preventScroll: true });
}

/** Says how to sign in, or takes the token, and tries it before it is kept. */
function askToken(): void {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", "aria-label": "Token", required: true });
  const wrong = h("p", { class: "bad", role: "alert" });
  const cancel = h("button", { type: "button" }, "Cancel");
  const form = h("form", { method: "dialog" },
    h("h2", {}, "Unlock details"),
    h("p", {}, "Run ", h("code", {}, "ttmem open"), " in a terminal. It opens this page signed in as you, with the details of your own processes."),
    h("p", { class: "muted" }, "Or enter the daemon's token to see those of all processes. It is in the file ", h("code", {}, "http-token"),
      " in the daemon's state folder. This tab keeps it until you close it."),
    input, wrong,
    h("div", { class: "tools" }, cancel, h("button", { type: "submit", class: "primary" }, "Unlock")));
  const dialog = h("dialog", { "aria-label": "Unlock details" }, form);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    unlock(input.value.trim()).then(
      (right) => {
        if (!right) return say(wrong, "That is not the token.");
        dialog.close();
        changeAccess();
      },
      (error) => say(wrong, problem(error)),
    );
  });
  document.body.append(dialog);
  dialog.showModal();
}

function changeAccess(): void {
  live.restart();
  moment.again();
  showState();
  showKey();
  could = mayAsk(); // so that the next totals do not open the view again, under the user's hands
  open();
}

function showKey(): void {
  const session = token() ? null : signedIn();
  key.hidden = detailsAre() === "open" || (detailsAre() === "none" && !session);
  say(key, token() ? "Lock details" : session ? "Sign out" : "Unlock details");
  key.title = session && !key.hidden ? visible(`Signed in as ${session.user}`) : "";
  say(who, key.title);
}

/** Takes the code out of the address at once: no history entry has it. */
async function enter(): Promise<void> {
  const found = codeIn(location.hash);
  if (!found) return;
  history.replaceState(null, "", found.to);
  await signIn(found.code);
}

async function leave(): Promise<void> {
  if (token()) lock();
  else await signOut();
  forgetMarks(tabStore);
  changeAccess();
}

const STATES: Record<State, string> = { live: "Live", polled: "Every 5 s", connecting: "Connecting", lost: "Not connected" };

/** The current problem, or "". */
function trouble(): string {
  if (live.state === "lost" && !live.totals && accessProblem()) return accessProblem();
  if (live.state === "lost") {
    const since = live.totals ? ` What you see is as it was ${duration((Date.now() - live.heardAt) * 1e6)} ago.` : "";
    return recorded() ? "\u201cttmem report --serve\u201d has ended: run it again." : `The connection to ttmemd is lost; trying again.${since}`;
  }
  if (accessProblem()) return accessProblem();
  return live.state === "polled" ? "Too many listen to ttmemd already: what you see is read every 5 seconds instead." : "";
}

function showState(): void {
  const text = trouble();
  state.className = `state ${live.state}`;
  const file = recorded()?.file;
  say(state, live.state !== "live" ? STATES[live.state] : file !== undefined ? visible(file) : moment.at !== null ? "Connected" : STATES.live);
  banner.hidden = text === "";
  say(banner, text);
}

/** The view can depend on who may see details only once the daemon has said it. */
let could: boolean | null = null;

function changed(): void {
  showKey();
  tabs.fleet.hidden = !hasFleet();
  const can = mayAsk();
  if (live.totals && can !== could) {
    could = can;
    open();
    moment.again();
  }
  update();
}

function update(): void {
  showState();
  bar.update();
  strip.update();
  view?.update?.();
}

function start(): void {
  startTheme();
  showKey();
  key.addEventListener("click", () => {
    if (!token() && !signedIn()) return askToken();
    leave().catch((error) => {
      banner.hidden = false;
      say(banner, problem(error));
    });
  });
  document.addEventListener("ttmem-unlock", askToken);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
    const filter = document.getElementById("filter");
    if (!filter) return;
    event.preventDefault();
    filter.focus();
  });
  document.body.append(
    h("a", { class: "skip", href: "#main" }, "Skip to the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: link("overview") }, h("img", { src: "/icon.svg", alt: "" }), "ttmem"),
      h("nav", { "aria-label": "Views" }, tabs.overview, tabs.incidents, tabs.fleet),
      h("div", { class: "right" }, state, strip.button, who, key, themeButton()), bar.element),
    banner, strip.element, main,
    h("footer", { class: "foot" }, "Totals are of living processes. ", h("a", { href: "/licences.txt" }, "Licences of what is built in")));
  document.querySelector(".skip")!.addEventListener("click", (event) => {
    event.preventDefault(); // the part after "#" is the route
    main.focus();
  });
  window.addEventListener("hashchange", (event) => {
    if (codeIn(location.hash)) void enter().then(changeAccess);
    else open(event.isTrusted); // views also trigger their own reload
  });
  setInterval(update, 1000);
  live.onChange(changed);
  moment.onChange(update);
  onAccessLost(changeAccess);
  onTheme(update);
  startScroll();
  void enter().then(() => live.start());
}

start();
