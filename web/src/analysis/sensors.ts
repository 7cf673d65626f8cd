// SPDX-License-Identifier: Apache-2.0
//
// What the driver tells about a card, in a few words.
import type { Device } from "../data/model";

const SENSORS = { temperature_c: "°C", power_w: "W", aiclk_mhz: "MHz" };

const isOver = (device: Device, name: string): boolean => {
  const value = device.telemetry?.[name];
  const limit = device.limits?.[name];
  return typeof value === "number" && typeof limit === "number" && value > limit;
};

const isAway = (device: Device): boolean => Boolean(device.state) && device.state !== "present";

/** What is wrong with the card, and the readings of the sensors that exist. */
function readings(device: Device): string[] {
  const parts = isAway(device) ? [device.state!.replace("_", " ")] : [];
  for (const [name, unit] of Object.entries(SENSORS)) {
    const value = device.telemetry?.[name];
    if (typeof value !== "number") continue;
    const limit = isOver(device, name) ? ` (limit ${Math.round(device.limits![name]!)})` : "";
    parts.push(`${Math.round(value)} ${unit}${limit}`);
  }
  return parts;
}

export const telemetry = (device: Device): string => readings(device).join(" · ");

/** For the narrow space of a card in the overview: beside its state there is room for the temperature. */
export const telemetryInShort = (device: Device): string =>
  readings(device).slice(0, isAway(device) ? 2 : undefined).join(" · ");

/** Whether the card does not work, or is beyond a limit. */
export const isTroubled = (device: Device): boolean =>
  isAway(device) || Object.keys(device.limits ?? {}).some((name) => isOver(device, name));
