// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { asCsv, asJson, fileName } from "../src/base/figures";

test("cells of a CSV file are quoted where they must be, and are no formulas", () => {
  const heads = ["Name", "Size"];
  const rows = [["plain", 5], ['a "b", c', -7], ["two\nlines", null], ["=1+1", 1], ["+1", 1], ["-1", 1], ["@x", 1], ["\t=1", 1], ['=a,"b', 1]];
  assert.equal(asCsv({ heads, rows }), ["Name,Size", "plain,5", '"a ""b"", c",-7', '"two\nlines",', "'=1+1,1", "'+1,1", "'-1,1", "'@x,1", "'\t=1,1", '"\'=a,""b",1', ""].join("\r\n"));
});

test("rows become objects in JSON", () => {
  assert.deepEqual(JSON.parse(asJson({ heads: ["Name", "Size"], rows: [["=a", 5], ["b", null]] })), [{ Name: "=a", Size: 5 }, { Name: "b", Size: null }]);
  assert.deepEqual(JSON.parse(asJson({ heads: ["a"], rows: [] })), []);
});

test("file names have no separators and an end", () => {
  assert.equal(fileName("buffers of ../../etc/passwd\u202e", "csv"), "ttmem-buffers-of-..-..-etc-passwd.csv");
  assert.ok(fileName("x".repeat(500), "csv").length < 90);
});
