# SPDX-License-Identifier: Apache-2.0
"""ttmem report --serve: a recording on a port that all users of the machine can reach, but only one may read."""

import json
import subprocess
import sys

import pytest

from common import become
from conftest import LIMIT
from nativesocket import OTHER
from playback import Playback

pytestmark = pytest.mark.other_user

# One request, as whoever runs it.
BROWSER = """
import http.client, json, sys
where, method, path, headers = json.loads(sys.argv[1])
client = http.client.HTTPConnection(where, timeout=100)
client.request(method, path, headers=headers)
answer = client.getresponse()
print(json.dumps([answer.status, answer.headers.items(), answer.read().decode()]))
"""


def browse(playback, user, method, path, **headers):
    words = [*become(user), sys.executable, "-c", BROWSER, json.dumps([playback.address, method, path, headers])]
    return json.loads(subprocess.check_output(words, text=True, timeout=LIMIT))


def test_neither_link_nor_cookie_is_of_use_to_another_user(world, tmp_path):
    path = tmp_path / "run.ttrec"
    player = world.build / "tests" / "programs" / "player"
    subprocess.run([world.program, "run", "--record", path, "--", player], env=world.env, timeout=LIMIT, text=True,
                   input="alloc 0 DRAM 0x1000 10 secret\n", stdout=subprocess.DEVNULL)  # fmt: skip
    playback = Playback(world, path)
    status, _, body = browse(playback, OTHER, "POST", "/api/v1/sign-in", Authorization=f"Code {playback.code}")
    assert status == 403 and "another user" in body
    playback.sign_in()  # trying has not ended it
    for path in ("/api/v1/smi", "/api/v1/buffers", "/api/v1/leaks", "/api/v1/series", "/metrics"):
        assert playback.ask(path)[0] == 200
        for headers in ({}, {"Cookie": playback.jar}):
            status, _, body = browse(playback, OTHER, "GET", path, **headers)
            assert status == 401 and "secret" not in body and "player" not in body
    assert playback.end() == (0, "")
