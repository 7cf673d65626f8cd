// SPDX-License-Identifier: Apache-2.0
//
// Shows the totals as they change. Text of other processes goes into text nodes only.
"use strict";

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

function size(bytes) {
  if (bytes === null) return "-";
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return (unit ? bytes.toFixed(1) : bytes) + " " + units[unit];
}

function row(cells) {
  const line = document.createElement("tr");
  for (const cell of cells) {
    const field = document.createElement("td");
    field.textContent = cell.text === undefined ? cell : cell.text;
    if (cell.text !== undefined) field.className = "number";
    line.append(field);
  }
  return line;
}

const number = (text) => ({ text: String(text) });

function show(totals) {
  const devices = [];
  const processes = [];
  for (const device of totals.devices)
    for (const [type, memory] of Object.entries(device.memory))
      if (memory.used || memory.buffers || memory.peak || memory.capacity)
        devices.push(row([
          device.device + (device.uid ? " (" + device.uid + ")" : ""), type,
          number((memory.bound === "exact" ? "" : memory.bound === "at_least" ? "≥ " : "≤ ") + size(memory.used)),
          number(memory.buffers), number(size(memory.peak)), number(size(memory.capacity)),
        ]));
  for (const process of totals.processes)
    for (const device of process.devices)
      for (const [type, memory] of Object.entries(device.memory))
        if (memory.used || memory.buffers)
          processes.push(row([
            number(process.pid), process.comm + (process.alive ? "" : " (ended)"), process.user,
            number(device.device), type, number(size(memory.used)), number(memory.buffers),
          ]));
  document.getElementById("devices").replaceChildren(...devices);
  document.getElementById("processes").replaceChildren(...processes);
  document.getElementById("notes").replaceChildren(...totals.notes.map((note) => {
    const line = document.createElement("li");
    line.textContent = note;
    return line;
  }));
  state(new Date(totals.time_ns / 1e6).toLocaleTimeString() + ", " + size(totals.totals.bytes) +
    " in " + totals.totals.buffers + " buffers");
}

function state(text) {
  document.getElementById("state").textContent = text;
}

function listen() {
  const stream = new EventSource("/api/v1/stream");
  stream.addEventListener("totals", (event) => show(JSON.parse(event.data)));
  stream.addEventListener("error", () => state("not connected; trying again"));
}

// A link of "ttmem open": its code must not stay in the address.
async function signIn(code) {
  history.replaceState(null, "", "/");
  const answer = await fetch("/api/v1/sign-in", { method: "POST", headers: { Authorization: "Code " + code } });
  const told = await answer.json();
  document.getElementById("session").textContent =
    answer.ok ? "Signed in as " + told.session.user + "." : "You are not signed in: " + told.error + ".";
}

const link = /^#\/open\/([0-9a-f]+)/.exec(location.hash);
(link ? signIn(link[1]) : Promise.resolve()).catch(() => undefined).then(listen);
