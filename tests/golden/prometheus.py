# SPDX-License-Identifier: Apache-2.0
"""A Prometheus that has scraped some machines. It answers each query with all series that "ttmem smi --prometheus" reads."""

import http.client
import http.server
import json
import re
import threading
import urllib.parse

PORT = 9090
READ = re.compile(r"(ttmem_device_(?:bytes|buffers|capacity_bytes))\{(.*)\} (\S+)")


def series(name, value, target, **labels):
    cluster, _, instance = target.rpartition("/")
    labels |= {"__name__": name, "instance": instance, "job": "ttmem"} | ({"cluster": cluster} if cluster else {})
    return {"metric": labels, "value": [0, value]}


def scrape(target):
    connection = http.client.HTTPConnection(target.rpartition("/")[2], timeout=60)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    except OSError:
        return [series("up", "0", target)]
    found = filter(None, map(READ.fullmatch, lines))
    return [series(one[1], one[3], target, **dict(re.findall(r'(\w+)="(.*?)"', one[2]))) for one in found]


class Prometheus:
    def __init__(self, targets):
        self.asked = []
        prometheus = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                prometheus.asked += [urllib.parse.unquote(self.path), f"token: {self.headers['Authorization']}"]
                result = [one for target in targets for one in scrape(target)]
                body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def take_asked(self):
        asked, self.asked = self.asked, []
        return asked
