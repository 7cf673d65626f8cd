# SPDX-License-Identifier: Apache-2.0
"""ttmem report --serve: a recording that is shown to browsers, and requests as one of them sends them."""

import http.client
import json
import os
import re
import signal
import subprocess

from common import LIMIT

LINK = re.compile(r"^http://(127\.0\.0\.1:\d+)/#/open/([0-9a-f]{64})/\?at=(\d+)$")


class Playback:
    def __init__(self, world, *words, before=(), **settings):
        env = {**world.env, "SUDO_UID": str(os.geteuid()), **settings}
        self.process = subprocess.Popen(
            [*before, world.program, "report", "--serve", *words], env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        found = LINK.match(self.process.stdout.readline().rstrip("\n"))
        assert found, self.process.communicate(timeout=LIMIT)
        self.address, self.code, self.at = found.groups()
        self.jar = None

    def ask(self, path, method="GET", **headers):
        """(status, headers, body)."""
        client = http.client.HTTPConnection(self.address, timeout=LIMIT)
        if self.jar:
            headers["Cookie"] = self.jar
        client.request(method, path, headers=headers)
        answer = client.getresponse()
        return answer.status, dict(answer.headers.items()), answer.read().decode()

    def sign_in(self):
        status, headers, body = self.ask("/api/v1/sign-in", "POST", Authorization=f"Code {self.code}")
        assert status == 200, body
        self.jar = headers["Set-Cookie"].split(";")[0]

    def json(self, path):
        status, _, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def end(self):
        """Its exit code, and what it had to say."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, errors
