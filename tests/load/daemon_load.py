#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the daemon costs under load, and how fast it is: a table, and JSON with --json FILE.

Runs the programs of a build folder (TTMEM_BUILD) with private sockets and state; ./dev load builds for
speed and starts this in a pid namespace of its own. Every figure is the median of --runs; requested
and achieved rates are shown separately.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import web_load
from company import Company, sentence
from load_daemon import LIMIT, Daemon, Unable


def rate(build, args):
    """Many busy processes."""
    daemon = Daemon(build)
    daemon.start()
    daemon.load(100, 100000, 1000)
    daemon.wait_for_books(100)
    time.sleep(2)
    before, begin = daemon.events(), time.monotonic()
    percent = daemon.cpu_percent(3 if args.quick else 20)
    after, end = daemon.events(), time.monotonic()
    rss = daemon.rss_mib()
    daemon.close()
    return {
        "rate_events_per_second": (after - before) / (end - begin),
        "rate_cpu_percent": percent,
        "rate_rss_mib": rss,
    }


def books(build, args):
    """Many idle processes; the daemon is killed and restarted."""
    daemon = Daemon(build)
    daemon.start()
    daemon.load(1000, 0, 10)
    daemon.wait_for_books(1000)
    percent = daemon.cpu_percent(3 if args.quick else 20)
    rss = daemon.rss_mib()
    daemon.kill()
    again = daemon.start()
    daemon.wait_for_books(1000)
    totals = daemon.ttmem("smi")["totals"]
    assert totals == {"bytes": 1000 * 10 * 4096, "buffers": 10000}, totals
    rss_again = daemon.rss_mib()
    daemon.close()
    return {
        "books_cpu_percent": percent,
        "books_rss_mib": max(rss, rss_again),
        "books_restart_ms": again * 1000,
    }


def fetch(url):
    with urllib.request.urlopen(url, timeout=LIMIT) as answer:
        return json.load(answer)


def pages(build, args):
    """Many live buffers, page by page."""
    live = 100000 if args.quick else 1000000
    daemon = Daemon(build)
    daemon.start()
    daemon.load(10, 0, live)
    daemon.wait_for_books(10)
    before = daemon.rss_mib()
    url = daemon.http()
    result = {"pages_buffers": 10 * live}
    if url:
        seen, cursor, times = 0, None, []
        keys = set()
        # Some pages at the beginning; reading the whole list takes one request per page.
        for _ in range(20):
            begin = time.monotonic()
            page = fetch(f"{url}api/v1/buffers?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            times.append(time.monotonic() - begin)
            seen += len(page["buffers"])
            keys |= {(b["pid"], b["device"], b["address"]) for b in page["buffers"]}
            cursor = page["next"]
        assert seen == len(keys) == 20000, (seen, len(keys))
        result["pages_first_ms"] = times[0] * 1000
        result["pages_next_ms"] = statistics.median(times[1:]) * 1000
    begin = time.monotonic()
    totals = daemon.ttmem("smi")["totals"]
    result["pages_totals_ms"] = (time.monotonic() - begin) * 1000
    assert totals["buffers"] == 10 * live
    result["pages_rss_mib"] = daemon.rss_mib("VmHWM")
    result["pages_rss_before_mib"] = before
    daemon.close()
    return result


def fleet(build, args):
    """What one host costs a Prometheus: 32 devices, 500 processes."""
    daemon = Daemon(build)
    daemon.start()
    daemon.load(500, 0, 200 if args.quick else 2000, devices=32)
    daemon.wait_for_books(500)
    url = daemon.http()
    times, text = [], ""
    for _ in range(10 if args.quick else 50):
        begin = time.monotonic()
        with urllib.request.urlopen(f"{url}metrics", timeout=LIMIT) as answer:
            text = answer.read().decode()
        times.append(time.monotonic() - begin)
    before = daemon.cpu_ns()
    urllib.request.urlopen(f"{url}metrics", timeout=LIMIT).read()
    cpu = daemon.cpu_ns() - before
    daemon.close()
    return {
        "fleet_series": sum(not line.startswith("#") for line in text.splitlines()),
        "fleet_bytes": len(text),
        "fleet_scrape_ms": statistics.median(times) * 1000,
        "fleet_scrape_worst_ms": max(times) * 1000,
        "fleet_scrape_cpu_ms": cpu / 1e6,
    }


def ways(daemon):
    """Environments of a command: alone, with a daemon, and as a user who may not read /proc."""
    plain = {n: v for n, v in daemon.env.items() if n != "TTMEM_PROC_ROOT"}
    return {"alone": {**plain, "TTMEM_SOCKET": "none"}, "both": plain, "daemon": daemon.env}


def timed(daemon, env, *words):
    """A command nine times, with its output in a file: medians of its time and its processor time in ms,
    and the document."""
    times, costs = [], []
    with open(daemon.folder / "output", "w+b") as out:
        for _ in range(9):
            out.seek(0)
            out.truncate()
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run([str(daemon.build / "src/cli/ttmem"), *words, "--json"], env=env, stdout=out,
                           stderr=subprocess.PIPE, check=True, timeout=LIMIT)  # fmt: skip
            times.append(time.monotonic() - begin)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        out.seek(0)
        return statistics.median(times) * 1000, statistics.median(costs) * 1000, json.load(out)


def smi_on(build, live, each, name):
    """"ttmem smi" with 500 processes on @each of 32 devices, @live buffers on each."""
    daemon = Daemon(build)
    card = daemon.folder / "sys/class/tenstorrent"
    for number in range(32):
        (card / f"tenstorrent!{number}").mkdir(parents=True)
        (card / f"tenstorrent!{number}/tt_card_type").write_text("galaxy-wormhole\n")
        (card / f"tenstorrent!{number}/tt_aiclk").write_text("1000\n")
    daemon.env["TTMEM_SYS_ROOT"] = str(daemon.folder / "sys")
    daemon.start()
    daemon.load(500, 0, live, devices=33 - each, each=each)
    daemon.wait_for_books(500)
    result = {}
    for way, env in ways(daemon).items():
        wall, cpu, document = timed(daemon, env, "smi")
        assert document["totals"]["buffers"] == 500 * live * each and len(document["devices"]) == 32
        result[f"{name}_{way}_ms"], result[f"{name}_{way}_cpu_ms"] = wall, cpu
    daemon.close()
    return result


def smi(build, args):
    """One "ttmem smi" on a large machine, without and with the daemon."""
    return smi_on(build, 200 if args.quick else 2000, 1, "smi")


def pairs(build, args):
    """The same if every process uses all devices: 16,000 pairs."""
    return smi_on(build, 1, 32, "pairs")


def rows(build, args):
    """"ttmem buffers" with 15,000 buffers of 40 processes, with stacks and without."""
    result = {}
    for stacks in ("off", "auto"):
        daemon = Daemon(build)
        daemon.start()
        daemon.load(40, 0, 375, stacks=stacks)
        daemon.wait_for_books(40)
        for way, env in ways(daemon).items():
            if way == "both":
                continue
            wall, cpu, document = timed(daemon, env, "buffers")
            assert len(document["buffers"]) == 15000
            assert all(bool(row["stack"]) == (stacks == "auto") for row in document["buffers"])
            result[f"rows_{stacks}_{way}_ms"], result[f"rows_{stacks}_{way}_cpu_ms"] = wall, cpu
        daemon.close()
    return result


# Message size, servers to compare with. The newest server misreads pairs of 72-byte messages as one of 144.
KINDS = (
    (72, ("discard", "plain", "first", "enhanced", "newest")),
    (144, ("discard", "plain", "newest")),
)


def old(build, args):
    """One old client in a tight loop, also with models of the old servers: tests/programs/old-server.h."""
    program = str(build / "tests/programs/old-client")
    count = 100000 if args.quick else 400000
    result = {}

    def run(*words):
        return json.loads(subprocess.run([program, *map(str, words)], capture_output=True, check=True,
                                         timeout=LIMIT).stdout)  # fmt: skip

    daemon = Daemon(build)
    daemon.start()
    # All servers of one size in succession, so that they run under similar conditions.
    for size, kinds in KINDS:
        cpu = daemon.cpu_ns()
        mine = run(daemon.legacy, size, count)
        result[f"old_{size}_per_second"] = mine["per_second"]
        result[f"old_{size}_client_cpu_ns"] = mine["client_cpu_ns"]
        result[f"old_{size}_daemon_cpu_ns"] = (daemon.cpu_ns() - cpu) / count
        for kind in kinds:
            # The newest one needs 0.1 ms per message.
            theirs = run("--server", kind, size, min(count, 40000) if kind == "newest" else count)
            result[f"old_{size}_{kind}_per_second"] = theirs["per_second"]
            result[f"old_{size}_{kind}_stall_ms"] = theirs["stall_ms"]
            result[f"old_{size}_{kind}_server_cpu_ns"] = theirs["server_cpu_ns"]
            result[f"old_{size}_ratio_{kind}"] = mine["per_second"] / theirs["per_second"]
        gaps = run("--gaps", daemon.legacy, size, 5 * count)
        result[f"old_{size}_stall_ms"] = gaps["stall_ms"]
        result[f"old_{size}_idle_gap_ms"] = gaps["idle_gap_ms"]
        result[f"old_{size}_stalls"] = gaps["stalls"]
        result[f"old_{size}_idle_gaps"] = gaps["idle_gaps"]
    daemon.close()
    return result


def day(build, args):
    """A day of samples; see src/store/day-test.c."""
    processes = 10 if args.quick else 100
    with tempfile.NamedTemporaryFile() as file:
        env = {**os.environ, "DAY_PROCESSES": str(processes), "DAY_FILE": file.name}
        begin = time.monotonic()
        result = subprocess.run([str(build / "src/store-day-test")], env=env, capture_output=True,
                                text=True, timeout=3600)  # fmt: skip
        if result.returncode:
            sys.exit(result.stdout + result.stderr)
        return {
            "day_processes": processes,
            "day_mib": int(file.read()) / (1 << 20),
            "day_seconds": time.monotonic() - begin,
        }


PARTS = {
    "rate": rate, "books": books, "pages": pages, "fleet": fleet, "smi": smi, "pairs": pairs, "rows": rows,
    "web": web_load.dashboards,
    "paint": web_load.paint, "old": old, "day": day,
}  # fmt: skip

# name: description, goal. A figure must not exceed its goal, or fall below it if the goal is negative.
GOALS = {
    "rate_events_per_second": ("100 processes: events per second that were reached", None),
    "rate_cpu_percent": ("the daemon then, % of a core", 1),
    "books_cpu_percent": ("1,000 processes at rest: the daemon, % of a core", None),
    "books_rss_mib": ("1,000 books, MiB resident", 64),
    "books_restart_ms": ("killed and started again with 1,000, ms until ready", 1000),
    "pages_first_ms": ("first page of 1,000 buffers, ms", None),
    "pages_next_ms": ("a further page, ms", None),
    "pages_totals_ms": ("totals of all of them (ttmem smi), ms", None),
    "pages_rss_mib": ("most memory of the daemon then, MiB", None),
    "fleet_series": ("32 devices, 500 processes: series in /metrics", None),
    "fleet_bytes": ("bytes of text", None),
    "fleet_scrape_ms": ("a scrape, ms", None),
    "fleet_scrape_worst_ms": ("the slowest one, ms", None),
    "fleet_scrape_cpu_ms": ("processor time of the daemon for one, ms", None),
    "smi_alone_ms": ("32 devices, 500 processes, 1 M buffers: ttmem smi without a daemon, ms", 1000),
    "smi_alone_cpu_ms": ("its processor time, ms", None),
    "smi_both_ms": ("with a daemon, looking at /proc as well (root), ms", None),
    "smi_both_cpu_ms": ("its processor time, ms", None),
    "smi_daemon_ms": ("by the daemon only, ms", 200),
    "smi_daemon_cpu_ms": ("its processor time, ms", None),
    "pairs_alone_ms": ("500 processes that all use 32 devices: ttmem smi without a daemon, ms", 400),
    "pairs_alone_cpu_ms": ("its processor time, ms", None),
    "pairs_both_ms": ("with a daemon, looking at /proc as well (root), ms", None),
    "pairs_both_cpu_ms": ("its processor time, ms", None),
    "pairs_daemon_ms": ("by the daemon only, ms", 150),
    "pairs_daemon_cpu_ms": ("its processor time, ms", None),
    "rows_off_alone_ms": ("ttmem buffers, 15,000 buffers of 40 processes, no stacks, ms", 150),
    "rows_off_alone_cpu_ms": ("its processor time, ms", None),
    "rows_off_daemon_ms": ("with books from the daemon, ms", 150),
    "rows_off_daemon_cpu_ms": ("its processor time, ms", None),
    "rows_auto_alone_ms": ("the same with stacks, ms", 150),
    "rows_auto_alone_cpu_ms": ("its processor time, ms", None),
    "rows_auto_daemon_ms": ("with books from the daemon, ms", 150),
    "rows_auto_daemon_cpu_ms": ("its processor time, ms", None),
    "old_72_per_second": ("old client, 72 bytes: messages per second", None),
    "old_144_per_second": ("old client, 144 bytes", None),
    "old_72_client_cpu_ns": ("72 bytes: processor time of the client for each, ns", None),
    "old_144_client_cpu_ns": ("144 bytes", None),
    "old_72_daemon_cpu_ns": ("72 bytes: of the daemon, ns", None),
    "old_144_daemon_cpu_ns": ("144 bytes", None),
    "old_72_first_server_cpu_ns": ("72 bytes: of the first server, ns", None),
    "old_72_enhanced_server_cpu_ns": ("72 bytes: of the enhanced server, ns", None),
    # No server can be faster than one that discards everything, so 1 is the maximum.
    "old_72_ratio_discard": ("72 bytes: times the rate of a server that does nothing", None),
    "old_144_ratio_discard": ("144 bytes", None),
    # ttmemd replaces the newest one. No client can send at five times the rate of the earlier ones.
    "old_72_ratio_newest": ("72 bytes: times the rate of the newest server", -5),
    "old_72_ratio_first": ("72 bytes: times the rate of the first server", None),
    "old_72_ratio_enhanced": ("72 bytes: times the rate of the enhanced server", None),
    "old_144_ratio_newest": ("144 bytes: times the rate of the newest server", -5),
    "old_72_ratio_plain": ("72 bytes: times the rate of the baseline of ttmem bench", -5),
    "old_144_ratio_plain": ("144 bytes", -5),
    "old_72_stall_ms": ("72 bytes: longest stall, ms", 10),
    "old_72_idle_gap_ms": ("longest gap of an idle loop in the same run, ms", None),
    "old_144_stall_ms": ("144 bytes: longest stall, ms", 10),
    "old_144_idle_gap_ms": ("longest gap of an idle loop in the same run, ms", None),
    "old_72_stalls": ("72 bytes: stalls of more than 10 ms", None),
    "old_72_idle_gaps": ("such gaps of the idle loop", None),
    "old_144_stalls": ("144 bytes: stalls of more than 10 ms", None),
    "old_144_idle_gaps": ("such gaps of the idle loop", None),
    "day_mib": ("a day of samples, MiB", 256),
    **web_load.GOALS,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter and smaller, one run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; all without")
    args = parser.parse_args()
    build = Path(os.environ.get("TTMEM_BUILD", "build-release")).resolve()
    figures, bad, company = {}, 0, Company()
    for name in args.part or PARTS:
        # A day always gives the same result and takes long.
        count = 1 if args.quick or name == "day" else args.runs
        try:
            runs = [PARTS[name](build, args) for _ in range(count)]
        except Unable as why:
            print(f"{name}: skipped, {why}")
            continue
        for key in runs[0]:
            values = [run[key] for run in runs]
            figures[key] = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    for key, figure in figures.items():
        what, goal = GOALS.get(key, (key, None))
        median = figure["median"]
        verdict = ""
        if goal is not None:
            good = median <= goal if goal >= 0 else median >= -goal
            verdict = f"{'≤' if goal >= 0 else '≥'} {abs(goal)}: {'yes' if good else 'NO'}"
            bad += not good
        print(f"{what:62} {median:14,.2f}  ({figure['low']:,.2f} - {figure['high']:,.2f})  {verdict}")
    told = company.tell()
    print(sentence(told))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({**figures, "machine": told}, file, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
