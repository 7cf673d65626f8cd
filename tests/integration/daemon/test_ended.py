# SPDX-License-Identifier: Apache-2.0
"""What is remembered of processes and daemons that have ended: /api/v1/ended and /api/v1/moments."""

import json
import time

from world import check_schema, wait_for


def ask(daemon, path, token=True):
    status, text = daemon.fetch(f"/api/v1/{path}", token=token)
    assert status in (200, 503), text
    return check_schema(json.loads(text)) if status == 200 else None


def ended(daemon, count):
    def all_of_them():
        document = ask(daemon, "ended")
        return document and len(document["processes"]) >= count and document

    return wait_for(all_of_them, "the ends")


def runs(daemon, since, count):
    def all_of_them():
        document = ask(daemon, f"moments?from={since}")
        listed = [m for m in document["moments"] if m["kind"] in ("restart", "stop", "lost")] if document else []
        return len(listed) >= count and listed

    return wait_for(all_of_them, "the runs")


def test_all_that_have_ended_are_listed_with_their_exit(ttmemd):
    daemon = ttmemd.start("--http", "127.0.0.1:0")
    clean = daemon.player("alloc 0 DRAM 0x1000 64 a", "free 0 DRAM 0x1000")
    leaky = daemon.player("alloc 0 DRAM 0x2000 128 b")
    wait_for(lambda: len(ask(daemon, "smi")["processes"]) == 2, "both")
    clean.end()
    ended(daemon, 1)
    leaky.kill()
    first, second = ended(daemon, 2)["processes"]
    assert (first["pid"], second["pid"]) == (leaky.pid, clean.pid)
    assert (first["bytes"], first["buffer_count"], second["bytes"]) == (128, 1, 0)
    assert first["how"] == "died" and first["exit"] == {"code": None, "signal": 9, "name": "SIGKILL"}
    assert second["exit"] == {"code": 0, "signal": None, "name": None}
    assert all(p["start_ns"] <= p["ended_ns"] for p in (first, second))
    one = ask(daemon, f"ended?pid={clean.pid}")
    assert [p["pid"] for p in one["processes"]] == [clean.pid] and one["hidden"] == 0
    page = ask(daemon, "ended?limit=1")
    assert [p["pid"] for p in ask(daemon, f"ended?limit=1&cursor={page['next']}")["processes"]] == [clean.pid]
    assert daemon.fetch("/api/v1/ended", token=False)[0] in (401, 403)
    assert daemon.fetch("/api/v1/ended?kind=leak", token=True)[0] == 400
    # The next daemon knows them too, and when they began and ended.
    daemon.stop()
    daemon.start("--http", "127.0.0.1:0")
    assert [p["pid"] for p in ended(daemon, 2)["processes"]] == [leaky.pid, clean.pid]
    listed = wait_for(lambda: ask(daemon, f"moments?pid={clean.pid}"), "what happened")["moments"]
    assert [m["kind"] for m in listed if m["pid"]] == ["start", "end"]


def test_starts_and_ends_of_the_daemon_are_listed(ttmemd):
    since = time.time_ns()
    daemon = ttmemd.start("--http", "127.0.0.1:0")
    player = daemon.player("alloc 0 DRAM 0x1000 64 a")
    assert [m["kind"] for m in runs(daemon, since, 1)] == ["restart"]
    daemon.stop()
    daemon.start("--http", "127.0.0.1:0")

    listed = runs(daemon, since, 3)
    assert [m["kind"] for m in listed] == ["restart", "stop", "restart"]

    def has_point():
        lines = ask(daemon, f"series?pid={player.pid}&from={listed[-1]['time_ns']}")["series"]
        return [p for line in lines for p in line["points"] if p[0] > listed[-1]["time_ns"]]

    wait_for(has_point, "a sign of life")
    daemon.kill()
    daemon.start("--http", "127.0.0.1:0")
    listed = runs(daemon, since, 5)
    assert [m["kind"] for m in listed] == ["restart", "stop", "restart", "lost", "restart"]
    assert [m["time_ns"] for m in listed] == sorted(m["time_ns"] for m in listed)
    assert all(m["pid"] is None and m["name"] is None for m in listed)


TESTS = """
@pytest.mark.parametrize("shape", ["2/2"])
def test_b(shape):
    with ttmem.phase("load"):
        ttmem.alloc(0, "DRAM", 0x1000, 64, "a")
    ttmem.free(0, 0x1000)

def test_without_memory():
    pass

class TestMore:
    def test_c(self):
        ttmem.alloc(0, "DRAM", 0x1000, 64, "b")
        ttmem.free(0, 0x1000)
"""


def test_tests_of_pytest_are_listed_by_their_names(ttmemd, run_pytest):
    daemon = ttmemd.start("--http", "127.0.0.1:0")
    done = run_pytest(TESTS, TTMEM_SOCKET=str(daemon.socket))
    assert not done.failed, done.text

    def named():
        document = ask(daemon, "moments")
        listed = [(m["kind"], m["name"]) for m in document["moments"] if m["name"]] if document else []
        return len(listed) >= 3 and listed

    listed = wait_for(named, "the tests")
    assert [(kind, name.rpartition("/tests/")[2].partition("::")[2] or name) for kind, name in listed] == [
        ("test", "test_b[2/2]"), ("phase", "load"), ("test", "TestMore::test_c"),
    ]  # fmt: skip
    assert not [m for m in ask(daemon, "moments", token=False)["moments"] if m["name"] or m["kind"] == "test"]
