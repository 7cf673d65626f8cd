// SPDX-License-Identifier: Apache-2.0
//
// Text of other processes, so that it says on the page what it is: what one cannot see, or what turns the text
// around it about, is written out, as the command line does it.

// Control characters (a line feed and a tab are none here), marks without width, and those that change the direction.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function visible(text: string): string {
  return text.replace(UNSEEN, (mark) => {
    const code = mark.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** At most @length characters, none of them cut in half. */
export function short(text: string, length: number): string {
  const letters = [...text.slice(0, 2 * length + 2)];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : text;
}
