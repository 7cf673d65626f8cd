// SPDX-License-Identifier: Apache-2.0
//
// Requests to the daemon. The token for details is kept in this tab's session only, and sent in a header, because a URL
// ends up in histories and on screens. A browser that is signed in (ttmem open) has a cookie, which scripts cannot read.

import { tabStore } from "../base/storage";

const STORED = "ttmem.token";
const RESTORE_TRIES = 5;
const RESTORE_MS = 1000; // the daemon asks for no more
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

/** Who is signed in, as the daemon says. */
export interface Session {
  user: string;
  user_id: number;
  sees_all: boolean;
}
let session: Session | null = null;
export const signedIn = (): Session | null => session;

export const token = (): string => tabStore.getItem(STORED) ?? "";
export const mayAskAll = (): boolean =>
  details === "open" || (details === "token" && token() !== "") || session?.sees_all === true;
/** @userId: of whose process. */
export const mayAsk = (userId = session?.user_id): boolean => mayAskAll() || (session !== null && userId === session.user_id);
export const detailsAre = (): Details => details;

/**
 * Past the browser's cache: no answer may be kept there, and in Firefox a request that a reload cancels can leave an entry
 * for which all later requests to the same address wait without end.
 */
export const send = (path: string, sent = token(), options: RequestInit = {}): Promise<Response> =>
  fetch(path, { cache: "no-store", headers: sent ? { Authorization: `Bearer ${sent}` } : {}, ...options });

/** What the user has to do to see details again, or "". */
let wrong = "";
const wrongListeners = new Set<() => void>();
export const accessProblem = (): string => wrong;
export const onAccessLost = (listener: () => void): void => void wrongListeners.add(listener);

function lose(why: string): void {
  wrong = why;
  for (const listener of wrongListeners) listener();
}

/** Must be called with every answer: forgets a refused token, so that requests that need none go on without it. */
export function checkToken(answer: Response, sent: string): void {
  if ((answer.status !== 401 && answer.status !== 403) || !sent || token() !== sent) return;
  tabStore.removeItem(STORED);
  lose("The token is not right any more: enter it again.");
}

/** Errors here are not the page's fault. */
async function reach<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch {
    throw new Silent();
  }
}

async function check(answer: Response): Promise<void> {
  if (answer.ok) return;
  const said = (await answer.json().catch(() => null)) as { error?: string } | null;
  throw new Failed(said?.error ?? `the daemon answered ${answer.status}`, answer.status);
}

export type Parameters = Record<string, string | number | null | undefined>;

export async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    if (value !== null && value !== undefined) query.set(key, String(value));
  const text = query.toString();
  const sent = token();
  let answer = await reach(send(text ? `${path}?${text}` : path, sent, { signal }));
  // Instants of the past are restored one at a time.
  for (let tries = 0; answer.status === 503 && parameters.at && tries < RESTORE_TRIES; tries++) {
    await new Promise((resolve) => setTimeout(resolve, RESTORE_MS));
    answer = await reach(send(`${path}?${text}`, sent, { signal }));
  }
  checkToken(answer, sent);
  if (answer.status === 401) {
    if (session && !sent) {
      session = null;
      lose("You are not signed in any more: run \u201cttmem open\u201d again.");
    }
    throw new NeedsToken();
  }
  await check(answer);
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

/** The file that is shown instead of a machine (ttmem report --serve): its end is the page's "now". */
export interface Recording {
  file: string;
  start_ns: number;
  end_ns: number;
}
let recording: Recording | null = null;
export const recorded = (): Recording | null => recording;

interface Health {
  details: Details;
  session: Session | null;
  fleet: boolean;
  recording?: Recording | null;
}

export async function askHealth(signal: AbortSignal): Promise<void> {
  const health = await get<Health>("/healthz", {}, signal);
  ({ details, session, fleet, recording = null } = health);
}

/** Says why a server that tells nothing to strangers has refused its stream. */
export async function refused(answer: Response): Promise<void> {
  if (answer.status === 401) wrong ||= problem(await check(answer).catch((error: unknown) => error));
}

/** With the code of a link. accessProblem() then says why not. */
export async function signIn(code: string): Promise<void> {
  try {
    const answer = await reach(send("/api/v1/sign-in", "", { method: "POST", headers: { Authorization: `Code ${code}` } }));
    await check(answer);
    ({ session } = (await reach(answer.json())) as { session: Session });
    wrong = "";
  } catch (error) {
    wrong = `You are not signed in: ${problem(error)}`;
  }
}

export async function signOut(): Promise<void> {
  await check(await reach(send("/api/v1/sign-out", "", { method: "POST" })));
  session = null;
  wrong = "";
}

/** Tries a token; keeps it if it is right. */
export async function unlock(candidate: string): Promise<boolean> {
  const answer = await reach(send("/api/v1/incidents?limit=1", candidate));
  if (answer.status === 401) return false;
  await check(answer);
  tabStore.setItem(STORED, candidate);
  wrong = "";
  return true;
}

export function lock(): void {
  tabStore.removeItem(STORED);
  wrong = "";
}

/** The message for the user. Bugs of the page are not blamed on the daemon. */
export function problem(error: unknown): string {
  if (error instanceof NeedsToken) return "Details are locked.";
  if (error instanceof Failed) return error.message;
  if (error instanceof Silent) return "The daemon does not answer.";
  console.error(error);
  return `This page has made a mistake: ${error instanceof Error ? error.message : String(error)}`;
}
