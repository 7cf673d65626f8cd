// SPDX-License-Identifier: Apache-2.0
//
// Makes text of other processes safe to show: characters that are invisible or change the text direction are
// written out, as the command line does.

// Control characters (except line feed and tab), zero-width characters, and those that change the direction.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

export function visible(text: string): string {
  return text.replace(UNSEEN, (mark) => {
    const code = mark.codePointAt(0)!;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** At most @length characters, without splitting a surrogate pair. */
export function short(text: string, length: number): string {
  const letters = [...text.slice(0, 2 * length + 2)];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : text;
}
