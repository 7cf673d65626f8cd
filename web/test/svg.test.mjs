// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { escaped, SvgPen } from "../src/base/svg";
import { chartSvg, stepPaths } from "../src/chart/chart-svg";

test("names are text in a drawing, whatever they contain", () => {
  assert.equal(escaped(`<a b="c">&\0\x1b`), "&#60;a b=&#34;c&#34;&#62;&#38;\ufffd\ufffd");
  const pen = new SvgPen();
  pen.fillStyle = "red";
  pen.font = "12px a, b";
  pen.fillText("</svg><script>", 1, 2);
  const file = pen.file(10, 20, "white");
  assert.match(file, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="10" height="20" [^>]*font-size="12px" font-family="a, b">/);
  assert.match(file, /&#60;\/svg&#62;&#60;script&#62;<\/text><\/svg>$/);
  assert.equal(file.match(/<script/), null);
});

test("rectangles that the last one hides are left out", () => {
  const pen = new SvgPen();
  pen.fillStyle = "red";
  for (let i = 0; i < 1000; i++) pen.fillRect(10 + i / 10000, 0, 0.6, 5);
  pen.fillRect(12, 0, 1, 5);
  pen.fillStyle = "blue";
  pen.fillRect(12, 0, 1, 5);
  pen.strokeStyle = "green";
  pen.globalAlpha = 0.5;
  pen.strokeRect(12, 0, 1, 5);
  const file = pen.file(20, 5, "white");
  assert.equal(file.match(/fill="red"/g).length, 2);
  assert.equal(file.match(/fill="blue"/g).length, 1);
  assert.match(file, /<rect x="12" y="0" width="1" height="5" fill="none" stroke="green" stroke-width="1" opacity="0\.5"\/>/);
});

const box = { left: 60, top: 8, width: 100, height: 50 };
const scales = { times: [0, 1, 2, 3], x: (time) => time * 10, y: (value) => 50 - value, box };

test("areas are steps, with gaps where nothing is known", () => {
  assert.deepEqual(stepPaths(scales, [5, 10, null, 20]), {
    line: "M0 45L10 45L10 40L20 40M30 30L30 30", area: "M0 45L10 45L10 40L20 40V50H0ZM30 30L30 30V50H30Z",
  });
  assert.deepEqual(stepPaths(scales, [null, null, null, null]), { line: "", area: "" });
});

test("a chart has its areas, axes, flags and legend", () => {
  const file = chartSvg({
    ...scales, width: 180, height: 80, font: "11px sans-serif",
    areas: [{ label: "all & more", fill: "pink", stroke: "red", values: [9, 9, 9, 9] }, { label: "DRAM", fill: "cyan", stroke: "blue", values: [5, 5, 5, 5] }],
    across: [{ x: 10, text: "12:00" }], levels: [{ y: 25, text: "25 B" }], poles: [{ x: 15, colour: "orange", dashed: true }],
    colours: { background: "white", text: "black", muted: "gray", line: "silver" },
  });
  for (const part of ['height="102"', ">12:00</text>", ">25 B</text>", "all &#38; more", 'stroke="orange" stroke-dasharray="4 3"', '<svg x="60" y="8" width="100" height="50">'])
    assert.ok(file.includes(part), part);
  assert.ok(file.indexOf('fill="pink"') < file.indexOf('fill="cyan"'), "the highest is behind");
  assert.ok(file.lastIndexOf("DRAM") < file.lastIndexOf("all &#38; more"), "the legend is from the bottom up");
});
