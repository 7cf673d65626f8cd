# SPDX-License-Identifier: Apache-2.0
"""A collector of OpenTelemetry: takes what is pushed to it."""

import http.server
import json
import threading

PORT = 4318
SIGNALS = {"/v1/metrics": "metrics", "/v1/logs": "logs"}


def attributes(row):
    return {one["key"]: next(iter(one["value"].values())) for one in row["attributes"]}


def metric_lines(document):
    """Each metric with its unit and kind, and its points as Prometheus writes them."""
    for metric in document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        (kind,) = {"gauge", "sum", "histogram"} & metric.keys()
        about = {key: value for key, value in metric[kind].items() if key != "dataPoints"}
        yield f"# {metric['name']}: {metric.get('unit')}, {kind} {about}: {metric.get('description')}"
        for row in metric[kind]["dataPoints"]:
            labels = ",".join(f'{key}="{value}"' for key, value in attributes(row).items())
            yield f"{metric['name']}{{{labels}}} {row.get('asInt', row.get('asDouble'))}"


class Collector:
    def __init__(self):
        self.changed = threading.Condition()
        self.given = 0  # records that were taken
        self.taken = {name: [] for name in SIGNALS.values()}
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with collector.changed:
                    collector.taken[SIGNALS[self.path]].append(document)
                    collector.changed.notify_all()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def take_metrics(self, timeout):
        """The second document from now: it was written after this call. None: too late."""
        with self.changed:
            count = len(self.taken["metrics"])
            enough = self.changed.wait_for(lambda: len(self.taken["metrics"]) > count + 1, timeout)
            return self.taken["metrics"][-1] if enough else None

    def take_records(self, count, timeout):
        """The next so many incidents, whatever documents they came in. None: too late."""

        def records():
            return [
                {**record, "body": json.loads(record["body"]["stringValue"])}
                for document in self.taken["logs"]
                for record in document["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
            ]

        with self.changed:
            if not self.changed.wait_for(lambda: len(records()) >= self.given + count, timeout):
                return None
            found = records()[self.given :]
            self.given += len(found)
            logs = self.taken["logs"][-1]["resourceLogs"][0]
            rest = {"resource": logs["resource"], "scope": logs["scopeLogs"][0].get("scope")}
            return {**rest, "records": sorted(found, key=lambda record: json.dumps(record["attributes"]))}
