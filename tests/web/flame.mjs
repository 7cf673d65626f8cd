// SPDX-License-Identifier: Apache-2.0
//
// What a flame graph shows: the elements inside its canvas say it (web/src/flame/flame-canvas.ts).

/** All frames: name, text, level, look, whether it is faded, and its place in the whole graph. */
export const frames = (page, scope = "") => page.locator(`${scope} .flame [role=treeitem]`).evaluateAll((items) => items.map((item) => {
  const [left, top, width, height] = item.dataset.box.split(" ").map(Number);
  const text = item.textContent;
  return {
    name: text.split(/ \(|: /)[0], text, level: Number(item.getAttribute("aria-level")), look: item.dataset.look,
    faded: item.hasAttribute("data-faded"), left, top, width, height,
  };
}));

export const frame = async (page, name, scope) => (await frames(page, scope)).find((one) => one.name === name) ?? null;

/** What a screen reader says about the focused graph, or "". */
export const current = (page) => page.evaluate(() => {
  const graph = document.activeElement;
  return graph?.matches(".flame canvas[role=tree]") ? document.getElementById(graph.getAttribute("aria-activedescendant")).textContent : "";
});

/** The middle of a frame, in the canvas. */
async function middle(page, name) {
  const { left, top, width, height } = await frame(page, name);
  const scrolled = await page.locator(".flame").evaluate((graph) => graph.scrollTop);
  return { position: { x: left + width / 2, y: top + height / 2 - scrolled } };
}
export const click = async (page, name) => page.locator(".flame canvas").click(await middle(page, name));
export const hover = async (page, name) => page.locator(".flame canvas").hover(await middle(page, name));

/** The colour of a point of a frame, as drawn: [red, green, blue, alpha]. It is near an end, where there is no text. */
export const pixel = async (page, name) => {
  const { left, top } = await frame(page, name);
  return page.locator(".flame canvas").evaluate((canvas, [x, y]) => {
    const scale = canvas.width / canvas.clientWidth;
    return [...canvas.getContext("2d").getImageData(Math.round((x + 2.5) * scale), Math.round((y - canvas.closest(".flame").scrollTop + 3) * scale), 1, 1).data];
  }, [left, top]);
};
