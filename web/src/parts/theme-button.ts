// SPDX-License-Identifier: Apache-2.0
//
// The button that changes the colours: as the system has them, light, dark.

import { h, say } from "../base/dom";
import { setTheme, theme, type Theme } from "./colours";

const THEMES: Record<Theme, { next: Theme; text: string }> = {
  auto: { next: "light", text: "Auto" },
  light: { next: "dark", text: "Light" },
  dark: { next: "auto", text: "Dark" },
};

export function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "plain" });
  const show = (): void => {
    say(button, `◐ ${THEMES[theme()].text}`);
    button.setAttribute("aria-label", `Colours: ${THEMES[theme()].text.toLowerCase()}. Change.`);
  };
  button.addEventListener("click", () => {
    setTheme(THEMES[theme()].next);
    show();
  });
  show();
  return button;
}
