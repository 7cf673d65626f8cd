// SPDX-License-Identifier: Apache-2.0
//
// What tests of accessibility share: the stops of the Tab key, and the contrast of texts.
import assert from "node:assert/strict";

/** Every stop of the Tab key, from first to last: its name, and whether its focus is visible. */
export async function stops(visitor) {
  const list = [];
  // As on a fresh page: a blur alone would continue from the last position.
  await visitor.page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
  });
  for (let i = 0; i < 120; i++) {
    await visitor.page.keyboard.press("Tab");
    const stop = await visitor.page.evaluate(() => {
      const at = document.activeElement;
      if (!at || at === document.body) return null;
      const style = getComputedStyle(at);
      const label = at.labels?.[0]?.innerText ?? "";
      const box = at.getBoundingClientRect();
      return {
        name: (at.getAttribute("aria-label") || at.innerText || label).trim(), tag: at.tagName, box: box.width * box.height,
        seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
      };
    });
    if (!stop) break;
    list.push(stop);
  }
  for (const stop of list) {
    assert.ok(stop.name, `a stop without a name: ${JSON.stringify(stop)}`);
    assert.ok(stop.seen, `one does not see that one is there: ${JSON.stringify(stop)}`);
    assert.ok(stop.box > 0, `a stop that is not there: ${JSON.stringify(stop)}`);
  }
  return list.map((stop) => stop.name);
}

/** The colours of frames; web/src/flame/flame-paint.ts chooses from them. */
const LOOKS = ["highlight", "flame-same", ...[0, 1, 2, 3, 4, 5].map((i) => `flame-${i}`), ...[1, 2, 3].flatMap((i) => [`flame-more-${i}`, `flame-less-${i}`])];

/** Texts with less contrast than WCAG AA requires. */
function faint(looks) {
  const parse = (text) => {
    // color-mix() is reported as color(srgb r g b / a), with values from 0 to 1.
    const numbers = text.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return { rgb: numbers.slice(0, 3).map((n) => n * scale), alpha: numbers[3] ?? 1 };
  };
  const over = (top, under) => under.map((n, i) => top.rgb[i] * top.alpha + n * (1 - top.alpha));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((n) => (n / 255 <= 0.04045 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
    return layers.reverse().reduce((under, layer) => over(layer, under), canvas);
  };
  const opacity = (element) => (element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1);
  const bad = [];
  let looked = 0;
  for (const element of document.body.querySelectorAll("*")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || element.closest(":disabled") || !element.checkVisibility({ checkVisibilityCSS: true })) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const ink = parse(style.color);
    const [a, b] = [light(over({ ...ink, alpha: ink.alpha * opacity(element) }, ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    looked++;
    if (ratio < (large ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${element.className || element.tagName}: ${text.slice(0, 30)}`);
  }
  // Text that is drawn on a canvas: on every colour that a frame of a flame graph may have, also half of it.
  const ink = parse(getComputedStyle(document.body).color);
  const probe = document.body.appendChild(document.createElement("i"));
  for (const name of looks) {
    probe.style.color = `var(--${name})`;
    const { rgb } = parse(getComputedStyle(probe).color);
    probe.style.color = "var(--surface)";
    const surface = parse(getComputedStyle(probe).color).rgb;
    for (const alpha of [1, 0.5]) {
      const [a, b] = [light(ink.rgb), light(over({ rgb, alpha }, surface))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${((a + 0.05) / (b + 0.05)).toFixed(2)} ${name}, ${alpha}`);
    }
  }
  probe.remove();
  return { bad: [...new Set(bad)], looked };
}

/** All texts of the page have contrast, light and dark. */
export async function checkContrast(visitor, what) {
  for (const colorScheme of ["light", "dark"]) {
    await visitor.page.emulateMedia({ colorScheme });
    const { bad, looked } = await visitor.page.evaluate(faint, LOOKS);
    assert.ok(looked > 10, `${what}: only ${looked} texts were looked at`);
    assert.deepEqual(bad, [], `${what}, ${colorScheme}`);
  }
}
