# SPDX-License-Identifier: Apache-2.0
"""ttmem report --serve: a recording on a port that all users of the machine can reach, but only one may read."""

import subprocess

import pytest

from conftest import LIMIT
from nativesocket import AS_OTHER
from playback import Playback
from web import request_as

pytestmark = pytest.mark.other_user


def test_neither_link_nor_cookie_is_of_use_to_another_user(world, tmp_path):
    path = tmp_path / "run.ttrec"
    player = world.build / "tests" / "programs" / "player"
    subprocess.run([world.program, "run", "--record", path, "--", player], env=world.env, timeout=LIMIT, text=True,
                   input="alloc 0 DRAM 0x1000 10 secret\n", stdout=subprocess.DEVNULL)  # fmt: skip
    playback = Playback(world, path)
    status, _, body = request_as(AS_OTHER, playback.address, "POST", "/api/v1/sign-in", Authorization=f"Code {playback.code}")
    assert status == 403 and "another user" in body
    playback.sign_in()  # trying has not ended it
    for path in ("/api/v1/smi", "/api/v1/buffers", "/api/v1/leaks", "/api/v1/series", "/metrics"):
        assert playback.ask(path)[0] == 200
        for headers in ({}, {"Cookie": playback.jar}):
            status, _, body = request_as(AS_OTHER, playback.address, "GET", path, **headers)
            assert status == 401 and "secret" not in body and "player" not in body
    assert playback.end() == (0, "")
