// SPDX-License-Identifier: Apache-2.0
//
// Applies what the stream says has changed; docs/http.md has the format, under "Changes".

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** @was stays as it is; what has not changed is shared with the result. */
export function applyChange(was: Json, change: Json): Json {
  if (Array.isArray(change)) return applySteps(was as Json[], change);
  if (change === null || typeof change !== "object") return change;
  if ("=" in change) return change["="]!;
  const now = { ...(was as Record<string, Json>) };
  for (const key in change) now[key] = applyChange(now[key]!, change[key]!);
  return now;
}

function applySteps(was: Json[], steps: Json[]): Json[] {
  const now: Json[] = [];
  let at = 0;
  for (const step of steps as (number | Record<string, Json>)[]) {
    if (typeof step !== "number") now.push("+" in step ? step["+"]! : applyChange(was[at++]!, step));
    else {
      for (let i = 0; i < step; i++) now.push(was[at + i]!);
      at += Math.abs(step);
    }
  }
  return now.concat(was.slice(at));
}
