// SPDX-License-Identifier: Apache-2.0
//
// Requests to the daemon. The token for details is kept in this tab's session only, and sent in a header, because a URL
// ends up in histories and on screens.

import { tabStore } from "./storage";

const STORED = "ttmem.token";

export class NeedsToken extends Error {}

/** The daemon cannot be reached, or the answer is incomplete. */
export class Silent extends Error {}

export class Failed extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

/** Who may request details: "open": everybody, "token": holders of the token, "none": nobody. */
export type Details = "open" | "token" | "none";
let details: Details = "token";

export const token = (): string => tabStore.getItem(STORED) ?? "";
export const mayAsk = (): boolean => details === "open" || (details === "token" && token() !== "");
export const detailsAre = (): Details => details;

export const headers = (sent = token()): HeadersInit => (sent ? { Authorization: `Bearer ${sent}` } : {});

/** A token that was valid once, but the daemon has a new one. */
let wrong = false;
const wrongListeners = new Set<() => void>();
export const tokenWentWrong = (): boolean => wrong;
export const onTokenWrong = (listener: () => void): void => void wrongListeners.add(listener);

/** Must be called with every answer: forgets a refused token, so that requests that need none go on without it. */
export function checkToken(answer: Response, sent: string): void {
  if ((answer.status !== 401 && answer.status !== 403) || !sent || token() !== sent) return;
  tabStore.removeItem(STORED);
  wrong = true;
  for (const listener of wrongListeners) listener();
}

/** Errors here are not the page's fault. */
async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch {
    throw new Silent();
  }
}

export type Parameters = Record<string, string | number | null | undefined>;

export async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    if (value !== null && value !== undefined) query.set(key, String(value));
  const text = query.toString();
  const sent = token();
  const answer = await reach(fetch(text ? `${path}?${text}` : path, { headers: headers(sent), signal }));
  checkToken(answer, sent);
  if (answer.status === 401) throw new NeedsToken();
  if (!answer.ok) {
    const said = (await answer.json().catch(() => null)) as { error?: string } | null;
    throw new Failed(said?.error ?? `the daemon answered ${answer.status}`, answer.status);
  }
  return (await reach(answer.json())) as T;
}

/** Page after page, until the last one or until the caller stops. */
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

/** Whether the daemon knows of other machines. */
let fleet = false;
export const hasFleet = (): boolean => fleet;

export async function askHealth(): Promise<void> {
  ({ details, fleet } = await get<{ details: Details; fleet: boolean }>("/healthz"));
}

/** Tries a token; keeps it if it is right. */
export async function unlock(candidate: string): Promise<boolean> {
  const answer = await reach(fetch("/api/v1/incidents?limit=1", { headers: headers(candidate) }));
  if (answer.status === 401) return false;
  if (!answer.ok) throw new Failed(`the daemon answered ${answer.status}`, answer.status);
  tabStore.setItem(STORED, candidate);
  wrong = false;
  return true;
}

export function lock(): void {
  tabStore.removeItem(STORED);
  wrong = false;
}

/** The message for the user. Bugs of the page are not blamed on the daemon. */
export function problem(error: unknown): string {
  if (error instanceof NeedsToken) return "The token is not right any more.";
  if (error instanceof Failed) return error.message;
  if (error instanceof Silent) return "The daemon does not answer.";
  console.error(error);
  return `This page has made a mistake: ${error instanceof Error ? error.message : String(error)}`;
}
