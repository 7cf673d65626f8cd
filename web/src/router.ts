// SPDX-License-Identifier: Apache-2.0
//
// The current view, kept in the URL after "#", so that every view can be shared as a link.

export interface Route {
  view: "overview" | "device" | "process" | "incidents" | "fleet";
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
  if (view === "incidents" || view === "fleet") return { view, id, options };
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

/** The same view with other options, so that a reload or a shared link shows the same. Adds no history entry. */
export function remember(options: Record<string, string | null>): void {
  const route = parse(location.hash);
  for (const [key, value] of Object.entries(options)) {
    if (value === null) route.options.delete(key);
    else route.options.set(key, value);
  }
  history.replaceState(null, "", link(route.view, route.id, Object.fromEntries(route.options)));
}
