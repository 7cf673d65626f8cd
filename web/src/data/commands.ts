// SPDX-License-Identifier: Apache-2.0
//
// Command lines of the living, which tell processes of one name apart. They are details; the daemon has masked what looks
// like a secret. A process that is not known yet causes the list to be read, at most every few seconds.

import { get, mayAsk } from "./api";
import type { Process } from "./model";

const AGAIN_MS = 5000;

interface Command {
  pid: number;
  start_ns: number;
  command: string[];
  cut: boolean;
}

const SAME_NS = 1e9; // start times are computed from clocks

/** As one would type it; words with blanks or nothing in them in quotes. */
export const joinWords = (words: readonly string[], cut = false): string =>
  words.map((word) => (/^[^\s"'\\]+$/.test(word) ? word : JSON.stringify(word))).join(" ") + (cut ? " …" : "");

let known = new Map<number, Command>();
let asked = -Infinity;

const find = (process: Process): Command | undefined => {
  const one = known.get(process.pid);
  return one && Math.abs(one.start_ns - process.start_ns) < SAME_NS ? one : undefined;
};

/** "" if it is not known, or not for this visitor. @first: the word to begin with. */
export function commandOf(process: Process, first = 0): string {
  const one = mayAsk(process.user_id) ? find(process) : undefined;
  return one ? joinWords(one.command.slice(first), one.cut) : "";
}

/** Reads the list if one of them is not in it; calls back if there is something new. */
export async function learnCommands(processes: readonly Process[], changed: () => void): Promise<void> {
  const missing = processes.some((process) => process.alive && process.source === "book" && mayAsk(process.user_id) && !find(process));
  if (!missing || performance.now() - asked < AGAIN_MS) return;
  asked = performance.now();
  const list = await get<{ processes: Command[] }>("/api/v1/commands").catch(() => null); // they are missed by nobody
  if (!list) return;
  known = new Map(list.processes.map((one) => [one.pid, one]));
  changed();
}
