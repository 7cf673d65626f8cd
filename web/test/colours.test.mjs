// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { extent, look, rowTop, ROW_PX } from "../src/flame/flame-paint";
import { blend, onTheme, Palette, SERIES, seriesVariable, setTheme, theme, typeVariable } from "../src/parts/colours";

test("each process keeps its colour, and those beyond the palette are grey", () => {
  const palette = new Palette();
  assert.deepEqual([7, 9, 7, 11, 9].map((pid) => palette.place(pid)), [0, 1, 0, 2, 1]);
  assert.equal(seriesVariable(SERIES - 1), `series-${SERIES - 1}`);
  assert.equal(seriesVariable(SERIES), "series-other");
});

test("a type has one variable", () => {
  assert.deepEqual(["DRAM", "L1_SMALL", "SYSTEM_MEMORY"].map(typeVariable), ["type-dram", "type-l1-small", "type-system-memory"]);
});

test("a blend lies between its colours", () => {
  assert.equal(blend("rgb(200, 100, 0)", "rgb(0, 0, 100)", 0.5), "rgb(100, 50, 50)");
  assert.equal(blend("rgba(10, 20, 30, 0.5)", "rgb(0, 0, 0)", 1), "rgb(10, 20, 30)");
  assert.equal(blend("", "", 0.5), "rgb(0, 0, 0)");
});

test("a theme is kept until it is the system's again, and drawings hear of it", () => {
  globalThis.document = { documentElement: { dataset: {} } };
  let heard = 0;
  const forget = onTheme(() => heard++);
  for (const one of ["dark", "light", "auto"]) {
    setTheme(one);
    assert.equal(theme(), one);
    assert.equal(document.documentElement.dataset.theme, one === "auto" ? undefined : one);
  }
  forget();
  setTheme("dark");
  assert.equal(heard, 3);
  setTheme("auto");
});

const frame = (with_ = {}, x0 = 0, x1 = 1) => ({ node: { name: "f", value: 100, before: undefined, ...with_ }, x0, x1, depth: 0, children: [], parent: null });

test("a frame's colour says what was found, what grew, and else only which function it is", () => {
  assert.equal(look(frame(), true), "highlight");
  assert.match(look(frame(), false), /^flame-[0-5]$/);
  assert.equal(look(frame(), false), look(frame({ value: 7 }), false));
  const changed = (value, before) => look(frame({ value, before: { value: before, buffers: 1 } }), false);
  assert.deepEqual([changed(100, 100), changed(100, 90), changed(100, 0), changed(60, 100), changed(0, 100)],
    ["flame-same", "flame-more-1", "flame-more-3", "flame-less-2", "flame-less-3"]);
});

test("a frame is drawn as far as it is in sight, the outermost call at the bottom", () => {
  assert.deepEqual(extent(frame({}, 0.25, 0.75), [0, 1], 400), [100, 300]);
  assert.deepEqual(extent(frame({}, 0.25, 0.75), [0.5, 1], 400), [0, 200]);
  assert.deepEqual(extent(frame({}, 0, 0.25), [0.5, 1], 400), [0, 0]);
  const rows = [[], [], []];
  assert.deepEqual([0, 1, 2].map((depth) => rowTop(rows, depth)), [2 * ROW_PX, ROW_PX, 0]);
});
