# SPDX-License-Identifier: Apache-2.0
"""The dashboard on a large machine: what its users cost the daemon, and how soon they see something."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from load_daemon import LIMIT, Daemon, Unable

LISTENERS = 50
VICTIMS = 5

# Of the daemon's threads, those that work for dashboards. The others do as much without, but not all the time: their
# share would hide what is measured.
WEB_THREADS = ("web ", "MHD-")

# name, what, goal: as in daemon_load.py
GOALS = {
    "web_document_kib": ("32 devices, 500 processes, 1M buffers: /api/v1/smi, KiB", None),
    "web_alone_percent": ("the daemon while nobody looks, % of a core", None),
    "web_stream_percent": ("50 dashboards: the threads of the stream, % of a core", 3),
    "web_wire_kb_s": ("what each of them is sent, compressed, KB/s", 40),
    "web_plain_kb_s": ("one that does not accept that, for each process, KB/s", 2),
    "web_reload_kb": ("/api/v1/smi, compressed, KB", 150),
    "web_smi_median_ms": ("/api/v1/smi beside 50 overviews, median, ms", None),
    "web_smi_p99_ms": ("p99, ms", 20),
    "web_process_smi_median_ms": ("/api/v1/smi beside 50 pages of processes, median, ms", None),
    "web_process_smi_p99_ms": ("p99, ms", None),
    "web_process_percent": ("the daemon then, % of a core", None),
    "paint_first_ms": ("50 dashboards, one more is opened: first paint, median, ms", 1000),
    "paint_first_worst_ms": ("the slowest one, ms", None),
    "paint_card_ms": ("until a device has its number, median, ms", None),
    "paint_card_worst_ms": ("the slowest one, ms", None),
    "paint_leak_ms": ("from kill -9 until the leak is on the page, median, ms", 1000),
    "paint_leak_worst_ms": ("the slowest one, ms", None),
}


@contextlib.contextmanager
def crowd(build, quick):
    """A busy daemon, and a function that starts the dashboards and returns the process that controls them."""
    processes = 50 if quick else 500
    daemon = Daemon(build)
    daemon.start()
    visitors = []

    def look():
        host, port = daemon.http()[len("http://") :].rstrip("/").split(":")
        script = Path(__file__).with_name("visitors.py")
        command = [sys.executable, "-B", str(script), host, port, str(LISTENERS)]
        pipe = subprocess.PIPE
        visitors.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        assert visitors[0].stdout.readline() == "ok\n"
        return visitors[0]

    try:
        # A free and an allocation in each of its 20 batches a second: with less, load.c does nothing at all.
        daemon.load(processes, 40, 2000, devices=32)
        daemon.wait_for_books(processes)
        time.sleep(2)
        yield daemon, look
    finally:
        for one in visitors:
            one.kill()
            one.wait()
            one.stdin.close()
            one.stdout.close()
        daemon.close()


def say(visitors, line):
    print(line, file=visitors.stdin, flush=True)
    return visitors.stdout.readline().strip()


def questions(daemon, count):
    """The sorted response times of /api/v1/smi, and its size."""
    times, size = [], 0
    for _ in range(count):
        begin = time.monotonic()
        with urllib.request.urlopen(f"{daemon.http()}api/v1/smi", timeout=LIMIT) as answer:
            size = len(answer.read())
        times.append((time.monotonic() - begin) * 1000)
        time.sleep(0.02)
    return sorted(times), size


def packed_size(daemon):
    """Bytes of /api/v1/smi as a browser gets it."""
    request = urllib.request.Request(f"{daemon.http()}api/v1/smi", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        return len(answer.read())


def dashboards(build, args):
    """What the stream costs, and how long a request takes while the dashboards send theirs."""
    seconds, count = (5, 50) if args.quick else (20, 300)
    with crowd(build, args.quick) as (daemon, look):
        processes = len(daemon.clients)
        alone = daemon.cpu_percent(seconds)
        visitors = look()
        time.sleep(2)
        say(visitors, "bytes")
        begin = time.monotonic()
        watched = daemon.cpu_percent(seconds, WEB_THREADS)
        packed, plain = (float(word) / (time.monotonic() - begin) for word in say(visitors, "bytes").split())
        reload = packed_size(daemon)
        assert say(visitors, "overview") == "ok"
        overview, size = questions(daemon, count)
        assert say(visitors, "process " + " ".join(str(c.pid) for c in daemon.clients)) == "ok"
        time.sleep(3)
        busy = daemon.cpu_percent(seconds)
        process, _ = questions(daemon, count)
        answers = int(say(visitors, "end"))
        # Otherwise they sent no requests, and the figures are meaningless.
        assert answers >= LISTENERS, answers
    return {
        "web_processes": processes,
        "web_document_kib": size / 1024,
        "web_alone_percent": alone,
        "web_stream_percent": watched,
        "web_wire_kb_s": packed / 1000,
        "web_plain_kb_s": plain / 1000 / processes,
        "web_reload_kb": reload / 1000,
        "web_smi_median_ms": statistics.median(overview),
        "web_smi_p99_ms": overview[int(count * 0.99)],
        "web_process_percent": busy,
        "web_process_smi_median_ms": statistics.median(process),
        "web_process_smi_p99_ms": process[int(count * 0.99)],
        "web_answers": answers,
    }


def paint(build, args):
    """One more dashboard, in a real browser: how soon it shows something, and how soon it shows a leak."""
    folder = os.environ.get("TTMEM_BROWSER_TESTS")
    if not folder:
        raise Unable(os.environ.get("TTMEM_NO_BROWSER", "TTMEM_BROWSER_TESTS is not set"))
    with crowd(build, args.quick) as (daemon, look):
        assert say(look(), "overview") == "ok"
        victims = [str(client.pid) for client in daemon.clients[:VICTIMS]]
        command = ["node", f"{folder}/paint.mjs", daemon.http(), "5" if args.quick else "20", *victims]
        seen = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=LIMIT).stdout)
    result = {}
    for name in ("first", "card", "leak"):
        result[f"paint_{name}_ms"] = statistics.median(seen[name])
        result[f"paint_{name}_worst_ms"] = max(seen[name])
    return result
