# SPDX-License-Identifier: Apache-2.0
"""/metrics, checked by its consumers: promtool, and a Prometheus that scrapes both formats."""

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from types import SimpleNamespace

import pytest

import machines
from conftest import LIMIT
from web import Server
from world import wait_for

OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"


@pytest.fixture
def server(world, tmp_path):
    return Server(world, tmp_path)


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def metrics(server, **headers):
    status, answer, body = server.ask("/metrics", headers=headers)
    assert status == 200 and answer["Vary"] == "Accept, Accept-Encoding"
    return answer["Content-Type"], body.decode()


def value(server, name):
    for line in metrics(server)[1].splitlines():
        if line.startswith(name + " "):
            return int(line.rsplit(" ", 1)[1])
    return None


def test_occupied_is_there_where_it_is_known(world, server):
    player = world.player("place 0 L1 0x40 2048 0 2048 12")
    name = 'ttmem_occupied_bytes{device="0",uid="",type="L1"}'
    wait_for(lambda: f"{name} 24576\n" in metrics(server)[1], "what it takes")
    player.play("alloc 0 L1 0x10000 1")
    wait_for(lambda: name not in metrics(server)[1], "a buffer of which it is not known")


def test_headroom_is_there_where_it_is_known(world, server):
    player = world.player(
        "device 0 0 wormhole_b0 n150 0 0x80000 0x80000 8",
        "place 0 L1 0x8000 4096 0 512 8", "place 0 CB 0x1000 32768 0 0x1000 0",
    )
    name = "ttmem_l1_headroom_bytes{"
    text = wait_for(lambda: (text := metrics(server)[1]).count(name) == 1 and text, "the headroom")
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    assert f'pid="{player.pid}",comm="player"' in line and 'device="0"' in line and line.endswith(f" {0x6000}"), line
    assert value(server, "ttmem_l1_headroom_left_out") == 0
    player.play("place 0 CB 0x3000 32768 0 0 0")  # how far it reaches is not told
    wait_for(lambda: name not in metrics(server)[1], "no headroom")
    assert value(server, "ttmem_l1_headroom_left_out") == 0


def test_headroom_is_left_out_where_too_much_would_have_to_be_read(world, server):
    few = ["device 0 0 wormhole_b0 n150 0 0x80000 0x80000 8", "place 0 CB 0x1000 32768 0 0x1000 0"]
    world.player(*few, "many 0 DRAM 0x1000 1 40000")
    wait_for(lambda: value(server, "ttmem_l1_headroom_left_out") == 1, "one that is left out")
    assert "ttmem_l1_headroom_bytes{" not in metrics(server)[1]
    player = world.player(*few)
    wait_for(lambda: f'ttmem_l1_headroom_bytes{{pid="{player.pid}"' in metrics(server)[1], "the small one's")


def test_metrics_format_follows_the_accept_header(server):
    assert metrics(server)[0] == PLAIN
    assert metrics(server, Accept="*/*")[0] == PLAIN
    kind, text = metrics(server, Accept="application/openmetrics-text;q=0.9,text/plain;q=0.8")
    assert kind == OPEN and text.endswith("# EOF\n")
    assert metrics(server, Accept="application/openmetrics-text;q=0.7,text/plain;q=0.8")[0] == PLAIN


def test_promtool_finds_nothing_wrong(world, server):
    need("promtool")
    world.player(
        "device 0 0xabc wormhole_b0 n150 0 1000 100", "alloc 0 DRAM 0x1000 10 a", "alloc 5 L1 0 3"
    )
    world.player("alloc 0 DRAM 0x1000 10 a")
    world.player("alloc 0 DRAM 0x1000 5 a")
    text = metrics(server)[1]
    assert 'pid="other"' in text
    result = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LIMIT
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_promtool_finds_nothing_wrong_with_cards(ttmemd):
    need("promtool")
    machine = machines.hot(ttmemd.folder / "machine")
    machine.write(machine.class_folder(0) / "tt_heartbeat", 5)
    ttmemd.start("--http", "127.0.0.1:0", env=machine.env())
    _, text = ttmemd.fetch("/metrics")
    assert 'ttmem_device_temperature_celsius{device="0",uid="0xb1acc401f"} 85.500\n' in text
    assert 'card="p150a",arch="blackhole",serial="0x40011112223",bus="0000:01:00.0"' in text
    result = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LIMIT
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_metrics_counters_outlive_processes(world, server):
    row = 'ttmem_allocations_total{device="0",uid="",type="DRAM"}'
    player = world.player("alloc 0 DRAM 0x1000 10 a", "alloc 0 DRAM 0x2000 10 a")
    assert value(server, row) == 2
    player.kill()
    assert value(server, row) == 2
    server.tell("ended 0 2 0")
    assert value(server, row) == 2
    world.player("alloc 0 DRAM 0x1000 10 a")
    assert value(server, row) == 3


def test_metrics_escape_names_of_any_bytes(world, server, tmp_path):
    need("promtool")
    odd = tmp_path / 'q"\\u\n\udcff'
    shutil.copy(world.build / "tests" / "programs" / "player", odd)
    player = world.player(before=(), show=False)
    player.kill()
    process = world.adopt(
        subprocess.Popen(
            [odd],
            env={**world.env, "TTMEM": "1", "LD_LIBRARY_PATH": str(world.build / "src" / "lib")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
    )
    world.show(process.pid)
    process.stdin.write("alloc 0 DRAM 0x1000 10 a\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ok\n"
    text = metrics(server)[1]
    assert 'comm="q\\"\\\\u\\n\ufffd"' in text
    result = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LIMIT
    )
    assert result.returncode == 0, result.stderr


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def query(port, expression):
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(address, timeout=LIMIT) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return []


class Prometheus:
    """A real one, with its own settings and storage."""

    def __init__(self, world, server, folder, *options):
        self.port = free_port()
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            "scrape_configs:\n"
            "  - job_name: ttmem\n"
            f"    static_configs: [{{targets: ['{server.host}:{server.port}']}}]\n"
        )
        world.adopt(
            subprocess.Popen(
                [
                    "prometheus", f"--config.file={folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn",
                    f"--web.listen-address=127.0.0.1:{self.port}", *options,
                ],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )

    def wait(self, expression):
        return wait_for(lambda: query(self.port, expression), expression)


@pytest.mark.parametrize("openmetrics", [True, False], ids=["openmetrics", "text"])
def test_prometheus_scrapes_it(ttmemd, tmp_path, openmetrics):
    """The real daemon, asked by a real Prometheus."""
    need("prometheus")
    ttmemd.start("--http", "127.0.0.1:0")
    host, port = ttmemd.address().split(":")
    server = SimpleNamespace(host=host, port=int(port))
    declare = "device 0 0xabc wormhole_b0 n150 0 1000 100"
    player = ttmemd.player(declare, "alloc 0 DRAM 0x1000 10 a")
    ttmemd.player(declare, "alloc 0 DRAM 0x1000 5 left").kill()
    target = server if openmetrics else PlainOnly(ttmemd, server)
    prometheus = Prometheus(ttmemd, target, tmp_path)
    (result,) = prometheus.wait('ttmem_device_bytes{uid="0xabc",type="DRAM"} == 10')
    assert result["metric"]["device"] == "0"
    (result,) = prometheus.wait(f'sum(ttmem_process_bytes{{pid="{player.pid}"}}) by (pid, comm)')
    assert result["metric"] == {"pid": str(player.pid), "comm": "player"}
    prometheus.wait('ttmem_allocations_total{uid="0xabc",type="DRAM"} == 2')
    assert prometheus.wait('up{job="ttmem"} == 1')
    prometheus.wait('ttmem_incidents_total{kind="leak"} >= 1')
    player.play("alloc 0 DRAM 0x2000 20 b")
    prometheus.wait('ttmem_device_bytes{uid="0xabc",type="DRAM"} == 30')
    prometheus.wait("process_resident_memory_bytes > 0")


class PlainOnly:
    """In front of a server: takes out what Prometheus says of OpenMetrics, as an older one would."""

    def __init__(self, world, server):
        self.host, self.port = "127.0.0.1", free_port()
        program = (
            "import http.server, urllib.request\n"
            "class Handler(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            f"        url = 'http://{server.host}:{server.port}' + self.path\n"
            "        ask = urllib.request.Request(url, headers={'Accept': 'text/plain;version=0.0.4'})\n"
            "        with urllib.request.urlopen(ask) as answer:\n"
            "            assert answer.headers['Content-Type'].startswith('text/plain; version=0.0.4')\n"
            "            body = answer.read()\n"
            "            self.send_response(200)\n"
            "            self.send_header('Content-Type', answer.headers['Content-Type'])\n"
            "            self.end_headers()\n"
            "            self.wfile.write(body)\n"
            f"http.server.HTTPServer(('127.0.0.1', {self.port}), Handler).serve_forever()\n"
        )
        world.adopt(
            subprocess.Popen(
                ["/usr/bin/python3", "-c", program],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )


def increase(samples):
    """What rate() and increase() make of a counter, without their guess at both ends: what is lower has begun anew."""
    values = [float(value) for _, value in samples]
    return sum(b - a if b >= a else b for a, b in zip(values, values[1:]))


def test_a_rate_over_a_restart_is_right(ttmemd, tmp_path):
    """What a living process did before the new daemon is not counted again."""
    need("prometheus")
    row = 'ttmem_allocations_total{device="0",type="DRAM"}'
    wrong = 'ttmem_incidents_total{kind="unknown_free"}'
    ttmemd.start("--http", "127.0.0.1:0")
    where = ttmemd.address()
    host, port = where.split(":")
    prometheus = Prometheus(ttmemd, SimpleNamespace(host=host, port=int(port)), tmp_path)
    lives = ttmemd.player("alloc 0 DRAM 0x1000 1")
    prometheus.wait(f"{row} == 1")
    lives.play(*["alloc 0 DRAM 0x2000 1", "free 0 DRAM 0x2000"] * 60, "free 0 DRAM 0x9000")
    ttmemd.player(*["alloc 0 DRAM 0x2000 1", "free 0 DRAM 0x2000"] * 40).end()
    prometheus.wait(f"{row} == 101 and on() {wrong} == 1")
    ttmemd.stop()
    ttmemd.start("--http", where)
    prometheus.wait(f"{row} == 0")
    # The old mistake is seen again, and a new one is made.
    wait_for(lambda: ttmemd.json("incidents")["incidents"], "the old one")
    lives.play(*["alloc 0 DRAM 0x2000 1", "free 0 DRAM 0x2000"] * 7, "free 0 DRAM 0xa000")
    prometheus.wait(f"{row} == 7 and on() {wrong} == 1")
    for counter, happened in ((row, 107), (wrong, 2)):
        (series,) = query(prometheus.port, f"{counter}[10m]")
        assert increase(series["values"]) == happened
