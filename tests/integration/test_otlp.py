# SPDX-License-Identifier: Apache-2.0
"""Pushing to an OpenTelemetry collector: a stand-in that takes only what the published protocol allows."""

import http.client
import http.server
import json
import re
import socket
import subprocess
import threading

import jsonschema
import pytest

from conftest import LIMIT
from world import wait_for

NUMBER = {"type": "string", "pattern": "^[0-9]+$"}  # 64-bit numbers are strings in OTLP's JSON
ATTRIBUTES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["key", "value"],
        "additionalProperties": False,
        "properties": {
            "key": {"type": "string", "minLength": 1},
            "value": {
                "type": "object",
                "additionalProperties": False,
                "required": ["stringValue"],
                "properties": {"stringValue": {"type": "string"}},
            },
        },
    },
}
RESOURCE = {
    "type": "object",
    "required": ["attributes"],
    "additionalProperties": False,
    "properties": {"attributes": ATTRIBUTES},
}
SCOPE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "version": {"type": "string"}},
}
POINTS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["attributes", "timeUnixNano"],
        "additionalProperties": False,
        "properties": {
            "attributes": ATTRIBUTES,
            "startTimeUnixNano": NUMBER,
            "timeUnixNano": NUMBER,
            "asInt": NUMBER,
            "asDouble": {"type": "number"},
        },
        "oneOf": [{"required": ["asInt"]}, {"required": ["asDouble"]}],
    },
}


def list_of(name, inner, schema):
    """resourceX: [{resource, scopeX: [{scope, inner: [...]}]}]"""
    scoped = {
        "type": "object",
        "required": ["scope", inner],
        "additionalProperties": False,
        "properties": {"scope": SCOPE, inner: {"type": "array", "items": schema}},
    }
    resourced = {
        "type": "object",
        "required": ["resource", f"scope{name}"],
        "additionalProperties": False,
        "properties": {"resource": RESOURCE, f"scope{name}": {"type": "array", "items": scoped}},
    }
    return {
        "type": "object",
        "required": [f"resource{name}"],
        "additionalProperties": False,
        "properties": {f"resource{name}": {"type": "array", "minItems": 1, "items": resourced}},
    }


METRIC = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_./-]*$"},
        "description": {"type": "string"},
        "unit": {"enum": ["1", "By", "s"]},
        "gauge": {
            "type": "object",
            "required": ["dataPoints"],
            "additionalProperties": False,
            "properties": {"dataPoints": POINTS},
        },
        "sum": {
            "type": "object",
            "required": ["dataPoints", "aggregationTemporality", "isMonotonic"],
            "additionalProperties": False,
            "properties": {
                "dataPoints": POINTS,
                "aggregationTemporality": {"const": 2},
                "isMonotonic": {"const": True},
            },
        },
    },
    "oneOf": [{"required": ["gauge"]}, {"required": ["sum"]}],
}
RECORD = {
    "type": "object",
    "required": ["timeUnixNano", "body", "attributes"],
    "additionalProperties": False,
    "properties": {
        "timeUnixNano": NUMBER,
        "observedTimeUnixNano": NUMBER,
        "severityNumber": {"type": "integer", "minimum": 1, "maximum": 24},
        "severityText": {"type": "string"},
        "body": {"type": "object", "required": ["stringValue"]},
        "attributes": ATTRIBUTES,
    },
}
SCHEMAS = {
    "/v1/metrics": list_of("Metrics", "metrics", METRIC),
    "/v1/logs": list_of("Logs", "logRecords", RECORD),
}


class Collector:
    """Takes, or answers with what it is told to."""

    def __init__(self):
        self.taken = {"/v1/metrics": [], "/v1/logs": []}
        self.wrong = []
        self.asked = 0
        self.headers = {}
        self.status = 200
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.take(self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path, headers, body):
        self.asked += 1
        if self.status != 200:
            return self.status
        try:
            assert headers["Content-Type"] == "application/json"
            document = json.loads(body)
            jsonschema.Draft202012Validator(SCHEMAS[path]).validate(document)
        except Exception as problem:  # whatever it is, the test shall see it
            self.wrong.append(problem)
            return 400
        self.headers = dict(headers)
        self.taken[path].append(document)
        return 200

    def points(self, name):
        """{labels: value} of a metric, as last told."""
        if not self.taken["/v1/metrics"]:
            return {}
        metrics = self.taken["/v1/metrics"][-1]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        (metric,) = [m for m in metrics if m["name"] == name]
        rows = (metric.get("gauge") or metric["sum"])["dataPoints"]
        return {
            tuple(sorted((a["key"], a["value"]["stringValue"]) for a in row["attributes"])): row
            for row in rows
        }

    def incidents(self):
        return [
            record
            for document in self.taken["/v1/logs"]
            for record in document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
        ]


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    assert not collector.wrong


def attributes(record):
    return {a["key"]: a["value"]["stringValue"] for a in record["attributes"]}


def counts(daemon):
    """The three figures of pushing, out of /metrics."""
    where = re.findall(r"http://([\d.:]+)/", daemon.text())[-1]
    connection = http.client.HTTPConnection(where, timeout=LIMIT)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {n: int(v) for n, v in re.findall(r"^ttmem_push_(\w+)_total (\d+)$", text, re.M)}


def test_metrics(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s")
    ttmemd.player("device 0 0xabc wormhole_b0 n150 0 1000 100", "alloc 0 DRAM 0x1000 64 weights")
    key = (("device", "0"), ("type", "DRAM"), ("uid", "0xabc"))
    row = wait_for(lambda: collector.points("ttmem_device_bytes").get(key), "the device")
    wait_for(lambda: collector.points("ttmem_device_bytes")[key]["asInt"] == "64", "the bytes")
    assert "startTimeUnixNano" not in row
    row = collector.points("ttmem_allocations")[key]
    assert row["asInt"] == "1" and int(row["startTimeUnixNano"]) < int(row["timeUnixNano"])
    resource = collector.taken["/v1/metrics"][-1]["resourceMetrics"][0]["resource"]
    assert attributes(resource)["service.name"] == "ttmemd"
    assert attributes(resource)["host.name"]


def test_incidents(ttmemd, collector):
    ttmemd.start("--otlp", collector.url + "/", "--otlp-interval", "1d")
    player = ttmemd.player("alloc 3 DRAM 0x1000 64 weights")
    player.kill()
    record = wait_for(collector.incidents, "the leak")[0]
    said = attributes(record)
    assert said["ttmem.kind"] == "leak" and said["process.pid"] == str(player.pid)
    body = json.loads(record["body"]["stringValue"])
    assert body["kind"] == "leak" and body["pid"] == player.pid


def test_nothing_is_lost_while_it_is_away(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s", "--http", "127.0.0.1:0")
    wait_for(lambda: collector.taken["/v1/metrics"], "a first push")
    collector.status = 503
    wait_for(lambda: counts(ttmemd)["failed"] >= 1, "a push that fails")
    pids = []
    for _ in range(5):
        player = ttmemd.player("alloc 0 DRAM 0x1000 64")
        player.kill()
        pids.append(str(player.pid))
    collector.status = 200
    wait_for(lambda: len(collector.incidents()) >= 5, "the incidents")
    assert sorted(attributes(r)["process.pid"] for r in collector.incidents()) == sorted(pids)
    assert counts(ttmemd)["dropped"] == 0


def test_it_is_not_asked_all_the_time_while_it_is_away(ttmemd, collector):
    collector.status = 503
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1s")
    wait_for(lambda: collector.asked >= 3, "three tries")
    # A second, then two: the fourth comes four seconds later, and incidents wait too.
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    ttmemd.wait_for_leak(ttmemd.players[-1].pid)
    assert collector.asked <= 4


def test_what_it_does_not_like_is_dropped(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, "--otlp-interval", "1d", "--http", "127.0.0.1:0")
    wait_for(lambda: collector.taken["/v1/metrics"], "a first push")
    collector.status = 400
    ttmemd.player("alloc 0 DRAM 0x1000 64").kill()
    wait_for(lambda: counts(ttmemd)["dropped"] == 1, "the drop")
    collector.status = 200
    player = ttmemd.player("alloc 0 DRAM 0x1000 64")
    player.kill()
    wait_for(collector.incidents, "the next one")
    assert [attributes(r)["process.pid"] for r in collector.incidents()] == [str(player.pid)]


def test_headers(ttmemd, collector):
    ttmemd.start("--otlp", collector.url, env={"OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret,x=y=z"})
    wait_for(lambda: collector.taken["/v1/metrics"], "a push")
    assert collector.headers["api-key"] == "s3cret" and collector.headers["x"] == "y=z"


def test_a_collector_that_hangs_does_not_hold_up_the_end(ttmemd):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        ttmemd.start("--otlp", f"http://127.0.0.1:{server.getsockname()[1]}")
        connection, _ = server.accept()
        with connection:
            assert connection.recv(4)
            ttmemd.player("alloc 0 DRAM 0x1000 64")
            assert ttmemd.json("ps")["processes"]
            assert ttmemd.stop() == 0


@pytest.mark.parametrize("url", ["collector", "ftp://a", "http://", "http:///x", "http://a b"])
def test_wrong_addresses(ttmemd, url):
    command = [*map(str, ttmemd.command("--otlp", url, "--check"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and "--otlp" in done.stderr
