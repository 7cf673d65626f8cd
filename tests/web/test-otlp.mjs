// SPDX-License-Identifier: Apache-2.0
//
// What ttmemd pushes to a collector, read by OpenTelemetry's own decoders and compared with its own list of names. No
// browser is needed, but the packages are npm's. tests/integration/daemon/test_otlp.py has the behaviour.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { test, until } from "./runner.mjs";

const require = createRequire(import.meta.url);
const { collector } = require("@opentelemetry/otlp-transformer/build/src/generated/root").opentelemetry.proto;
const conventions = new Set(Object.values(require("@opentelemetry/semantic-conventions/incubating")));

const TYPES = {
  "/v1/logs": collector.logs.v1.ExportLogsServiceRequest,
  "/v1/metrics": collector.metrics.v1.ExportMetricsServiceRequest,
};

/** Through protobuf's bytes and back. Members that the definitions do not have, or of another type, would be lost. */
function decoded(type, document) {
  const bytes = type.encode(type.fromObject(document)).finish();
  return type.toObject(type.decode(bytes), { longs: String, enums: Number });
}

/** Protobuf does not tell empty lists from missing ones. */
const filled = (document) =>
  JSON.parse(JSON.stringify(document), (_key, value) => (Array.isArray(value) && value.length === 0 ? undefined : value));

const valueOf = ({ value }) => ("intValue" in value ? Number(value.intValue) : value.stringValue);

test("pushed messages are what OpenTelemetry's definitions say", async ({ daemon }) => {
  const taken = { "/v1/logs": [], "/v1/metrics": [] };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    taken[request.url].push(JSON.parse(text));
    response.end("{}");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await daemon.stop();
    await daemon.start("--otlp", `http://127.0.0.1:${server.address().port}`, "--otlp-interval", "1s");
    const player = await daemon.player({ comm: "trainer", stacks: "auto" }, "alloc 3 L1 0x1000 64 weights");
    await until("metrics of the process", () => JSON.stringify(taken["/v1/metrics"].at(-1) ?? "").includes("trainer"));
    await player.kill();
    await until("the leak", () => taken["/v1/logs"].length > 0);
    for (const [path, documents] of Object.entries(taken))
      for (const document of documents) assert.deepEqual(decoded(TYPES[path], document), filled(document));
    const [record] = decoded(TYPES["/v1/logs"], taken["/v1/logs"][0]).resourceLogs[0].scopeLogs[0].logRecords;
    const said = Object.fromEntries(record.attributes.map((attribute) => [attribute.key, valueOf(attribute)]));
    assert.equal(said["process.pid"], player.pid);
    assert.equal(said["process.executable.name"], "trainer");
    assert.equal(said["ttmem.bytes"], 64);
    assert.equal(typeof said["code.function.name"], "string");
    for (const key of Object.keys(said)) assert.ok(key.startsWith("ttmem.") || conventions.has(key), key);
  } finally {
    server.close();
  }
});
