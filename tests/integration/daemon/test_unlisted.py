# SPDX-License-Identifier: Apache-2.0
"""Programs that only test or measure ttmem raise no alarm in a daemon that runs meanwhile."""

import re

import pytest

from world import wait_for


def pids(daemon):
    return {p["pid"] for p in daemon.json("ps", env={"TTMEM_PROC_ROOT": str(daemon.blind)})["processes"]}


@pytest.fixture
def daemon(ttmemd):
    ttmemd.blind = ttmemd.folder / "blind"
    ttmemd.blind.mkdir()
    return ttmemd.start("--scan-interval", "1", "--http", "127.0.0.1:0")


def wait_for_scan(daemon):
    """Until the daemon has searched all processes that run now."""
    witness = daemon.player("alloc 0 DRAM 0x1000 7", TTMEM_SOCKET="none")
    wait_for(lambda: witness.pid in pids(daemon), "a search")
    witness.play("free 0 DRAM 0x1000")
    witness.end()
    wait_for(lambda: witness.pid not in pids(daemon), "its end")


def alarms(daemon):
    """All that a daemon counts and lists of leaks and incidents."""
    metrics = re.findall(r"^ttmem_\w*(?:leak|incident|double|unknown)\w*(?:{.*})? .*$", daemon.fetch("/metrics")[1], re.M)
    assert any("ttmem_processes_leaked_total" in line for line in metrics)
    status = daemon.json("status")
    return metrics, status["leaked"], daemon.json("leaks")["processes"], daemon.json("incidents")["incidents"]


def test_an_unlisted_process_is_not_searched_for_and_its_end_not_reported(daemon):
    unlisted = daemon.player("alloc 0 DRAM 0x1000 100", TTMEM_SOCKET="none", TTMEM_UNLISTED="1")
    before = alarms(daemon)
    wait_for_scan(daemon)
    assert unlisted.pid not in pids(daemon)
    unlisted.kill()
    wait_for_scan(daemon)
    assert alarms(daemon) == before


def test_an_unlisted_process_that_sends_its_book_is_listed(daemon):
    sent = daemon.player("alloc 0 DRAM 0x1000 100", TTMEM_UNLISTED="1")
    wait_for(lambda: sent.pid in pids(daemon), f"pid {sent.pid}")


def test_a_value_other_than_1_lists_the_process(daemon):
    listed = daemon.player("alloc 0 DRAM 0x1000 100", TTMEM_SOCKET="none", TTMEM_UNLISTED="0")
    wait_for(lambda: listed.pid in pids(daemon), f"pid {listed.pid}")


@pytest.mark.parametrize("words", [["selftest"], ["bench", "--quick"]])
def test_selftest_and_bench_change_nothing_in_a_running_daemon(daemon, words):
    before = alarms(daemon)
    ended = daemon.json("status")["ended"]
    done = daemon.run(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for_scan(daemon)
    assert alarms(daemon) == before
    assert daemon.json("status")["ended"] == ended + 1  # the witness of the search
