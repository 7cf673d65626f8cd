// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { isTroubled, telemetry, telemetryInShort } from "../src/analysis/sensors";

const card = (with_ = {}) => ({
  state: "present", telemetry: { temperature_c: 85.5, power_w: 31, voltage_v: 0.8, aiclk_mhz: 1000 },
  limits: { temperature_c: 95, power_w: 300, voltage_v: 1 }, ...with_,
});

test("a card within its limits shows its sensors", () => {
  assert.equal(telemetry(card()), "86 °C · 31 W · 1000 MHz");
  assert.equal(isTroubled(card()), false);
  assert.equal(isTroubled(card({ limits: null })), false);
  assert.equal(isTroubled(card({ limits: { temperature_c: 85.5 } })), false);
});

test("a card over a limit shows the limit", () => {
  const hot = card({ limits: { temperature_c: 75, power_w: null } });
  assert.equal(telemetry(hot), "86 °C (limit 75) · 31 W · 1000 MHz");
  assert.equal(isTroubled(hot), true);
  assert.equal(isTroubled(card({ limits: { voltage_v: 0.7 } })), true);
});

test("a card that does not work shows its state, and the sensors that can be read", () => {
  assert.equal(telemetry(card({ state: "not_answering" })), "not answering · 86 °C · 31 W · 1000 MHz");
  assert.equal(telemetryInShort(card({ state: "not_answering" })), "not answering · 86 °C");
  assert.equal(telemetryInShort(card()), telemetry(card()));
  for (const state of ["in_reset", "not_answering", "gone"]) {
    assert.equal(telemetry(card({ state, telemetry: null })), state.replace("_", " "));
    assert.equal(isTroubled(card({ state })), true);
  }
  assert.equal(isTroubled(card({ state: null })), false);
});
