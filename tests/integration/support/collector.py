# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an OpenTelemetry collector that accepts only what the published protocol allows."""

import http.server
import json
import re
import threading
import time

import jsonschema
import pytest

from conftest import LIMIT

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
                "minProperties": 1,
                "maxProperties": 1,
                "properties": {"stringValue": {"type": "string"}, "intValue": NUMBER},
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
        "unit": {"enum": ["1", "By", "s", "Cel", "W", "V", "A", "Hz"]},
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
    """Accepts, or answers as configured: a status with headers and a body, or arbitrary bytes."""

    def __init__(self, tls=None):
        self.taken = {"/v1/metrics": [], "/v1/logs": []}
        self.wrong = []
        self.times = {"/v1/metrics": [], "/v1/logs": []}  # of every request
        self.headers = {}
        self.status = 200
        self.statuses = {}  # path: another one for it
        self.more_headers = {}
        self.body = b"{}"
        self.raw = {}  # path: what to answer instead, bytes; then it hangs up
        self.gate = threading.Event()  # while it is clear, log records wait for their answer
        self.gate.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.take(self.path, self.headers, body)
                if self.path == "/v1/logs":
                    collector.gate.wait(LIMIT)
                if self.path in collector.raw:
                    self.close_connection = True
                    self.wfile.write(collector.raw[self.path])
                    return
                self.send_response(status)
                for name, value in collector.more_headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(collector.body)))
                self.end_headers()
                self.wfile.write(collector.body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # a client that hangs up, or rejects our certificate, is part of the test

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        assert not self.wrong

    @property
    def asked(self):
        return sum(map(len, self.times.values()))

    def take(self, path, headers, body):
        self.times[path].append(time.monotonic())
        status = self.statuses.get(path, self.status)
        if status != 200:
            return status
        try:
            assert headers["Content-Type"] == "application/json"
            document = json.loads(body)
            jsonschema.Draft202012Validator(SCHEMAS[path]).validate(document)
        except Exception as problem:  # whatever it is, the test must see it
            self.wrong.append(problem)
            return 400
        self.headers = dict(headers)
        self.taken[path].append(document)
        return 200

    def points(self, name):
        """{labels: value} of a metric, as last received."""
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
    collector.close()


def attributes(record):
    values = {a["key"]: a["value"] for a in record["attributes"]}
    assert len(values) == len(record["attributes"])  # no key twice
    return {key: int(value["intValue"]) if "intValue" in value else value["stringValue"] for key, value in values.items()}


def counts(daemon):
    """The figures about pushing, from /metrics."""
    _, text = daemon.fetch("/metrics")
    return {n: int(v) for n, v in re.findall(r"^ttmem_push_(\w+?)(?:_total)? (\d+)$", text, re.M)}
