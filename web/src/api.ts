// SPDX-License-Identifier: Apache-2.0
//
// Questions to the daemon. The token for details lives in this tab's session only, and travels in a header:
// what is in an address ends up in histories and on screens.

const STORED = "ttmem.token";

export class NeedsToken extends Error {}

export class Failed extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Whether details may be asked for: "open" to everybody, "token" is needed, "none" are given. */
export type Details = "open" | "token" | "none";
let details: Details = "token";

export const token = (): string => sessionStorage.getItem(STORED) ?? "";
export const mayAsk = (): boolean => details === "open" || (details === "token" && token() !== "");
export const detailsAre = (): Details => details;

export const headers = (): HeadersInit => (token() ? { Authorization: `Bearer ${token()}` } : {});

export type Parameters = Record<string, string | number | null | undefined>;

export async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    if (value !== null && value !== undefined) query.set(key, String(value));
  const text = query.toString();
  const answer = await fetch(text ? `${path}?${text}` : path, { headers: headers(), signal });
  if (answer.status === 401) throw new NeedsToken();
  if (!answer.ok) {
    const said = (await answer.json().catch(() => null)) as { error?: string } | null;
    throw new Failed(said?.error ?? `the daemon answered ${answer.status}`, answer.status);
  }
  return (await answer.json()) as T;
}

/** Page after page, until there are none or nobody wants more. */
export async function* pages<T extends { next: string | null }>(
  path: string,
  parameters: Parameters,
  signal?: AbortSignal,
): AsyncGenerator<T> {
  let cursor: string | null = null;
  do {
    const page: T = await get<T>(path, { ...parameters, cursor }, signal);
    yield page;
    cursor = page.next;
  } while (cursor);
}

export async function askHealth(): Promise<void> {
  details = (await get<{ details: Details }>("/healthz")).details;
}

/** Tries a token; keeps it if it is right. */
export async function unlock(candidate: string): Promise<boolean> {
  const before = token();
  sessionStorage.setItem(STORED, candidate);
  try {
    await get("/api/v1/incidents", { limit: 1 });
    return true;
  } catch (error) {
    if (before) sessionStorage.setItem(STORED, before);
    else sessionStorage.removeItem(STORED);
    if (error instanceof NeedsToken) return false;
    throw error;
  }
}

export function lock(): void {
  sessionStorage.removeItem(STORED);
}

export const problem = (error: unknown): string =>
  error instanceof NeedsToken
    ? "The token is not right any more."
    : error instanceof Failed
      ? error.message
      : "The daemon does not answer.";
