// SPDX-License-Identifier: Apache-2.0
//
// The current view, kept in the URL after "#", so that every view can be shared as a link.

export interface Route {
  view: "overview" | "device" | "process" | "incidents" | "ended" | "fleet";
  id: string;
  options: URLSearchParams;
}

/** A URL may contain anything: what cannot be decoded is used unchanged. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, id = ""] = path.split("/", 2).map(decode);
  const options = new URLSearchParams(query);
  if (view === "device" && id) return { view, id, options };
  if (view === "process" && /^[1-9]\d*$/.test(id)) return { view, id, options };
  if (view === "incidents" || view === "ended" || view === "fleet") return { view, id, options };
  return { view: "overview", id: "", options };
}

/** A link of "ttmem open": its code, and where it leads. The code must not stay in the address. */
export function codeIn(hash: string): { code: string; to: string } | null {
  const found = /^#\/open\/([0-9a-f]+)\/?(.*)$/.exec(hash);
  return found && { code: found[1]!, to: `#/${found[2]!}` };
}

/** One of several names, if the URL has one; inherited properties ("toString") do not count. */
export const pick = <T extends object>(names: T, wanted: string | null, otherwise: keyof T): keyof T =>
  wanted !== null && Object.hasOwn(names, wanted) ? (wanted as keyof T) : otherwise;

export function link(view: Route["view"], id = "", options: Record<string, string> = {}): string {
  const query = new URLSearchParams(options).toString();
  const path = view === "overview" ? "" : id ? `${view}/${encodeURIComponent(id)}` : view;
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Where a part of a view keeps what was chosen: in options of the address whose names begin with @name. */
export interface Place {
  route: Route;
  name: string;
}

export type Refinement = Record<string, string | null>; // null: not in the address

const SOON_MS = 250; // browsers allow some hundred changes of the address in half a minute
let waiting: { path: string; options: Refinement } | null = null;
let timer = 0;

const path = (): string => location.hash.split("?", 1)[0]!;

/** The same view with other options, so that a reload, Back or a shared link shows the same. Adds no history entry. */
export function remember(options: Refinement): void {
  const route = parse(location.hash);
  for (const [key, value] of Object.entries({ ...settle(), ...options })) {
    if (value === null) route.options.delete(key);
    else route.options.set(key, value);
  }
  history.replaceState(null, "", link(route.view, route.id, Object.fromEntries(route.options)));
}

/** What is still to be written, unless it belongs to a view that was left. */
function settle(): Refinement {
  const options = waiting?.path === path() ? waiting.options : {};
  waiting = null;
  clearTimeout(timer);
  return options;
}

/** For what changes many times a second, like a filter while it is typed. */
export function rememberSoon(options: Refinement): void {
  if (!waiting) addEventListener("click", rememberNow, { capture: true, once: true }); // it may lead elsewhere
  waiting = { path: path(), options: { ...(waiting?.path === path() ? waiting.options : {}), ...options } };
  clearTimeout(timer);
  timer = window.setTimeout(rememberNow, SOON_MS);
}

function rememberNow(): void {
  if (waiting) remember({});
}
