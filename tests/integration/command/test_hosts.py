# SPDX-License-Identifier: Apache-2.0
"""ttmem smi --host: several machines in one table, each with a daemon of its own."""

import json
import re
import socket
import threading

import pytest

from pretender import pretend  # noqa: F401 (fixture)
from terminal import Terminal
from ttmemd import Ttmemd
from world import check_schema, wait_for


@pytest.fixture
def hosts(ttmemd, build, clean_env, tmp_path):
    """Two daemons, each with a process that reported to it."""
    other = Ttmemd(build, clean_env, tmp_path)
    where = []
    for daemon, size in ((ttmemd, 1048576), (other, 3145728)):
        # Of its own processes only, as on machines of their own.
        blind = daemon.folder / "blind"
        blind.mkdir()
        daemon.start("--http", "127.0.0.1:0", env={"TTMEM_PROC_ROOT": str(blind)})
        where.append(daemon.address())
        player = daemon.player()
        (blind / str(player.pid)).symlink_to(f"/proc/{player.pid}")
        player.play("device 0 0x1 wormhole_b0 n150 0 1073741824 1048576", f"alloc 0 DRAM 0x1000 {size}")
        wait_for(lambda: daemon.json("status")["books"] == 1, "the process")
    yield ttmemd, where
    other.close()


def test_smi_shows_two_hosts_in_one_table(hosts):
    daemon, where = hosts
    shown = daemon.run("smi", "--host", where[0], "--host", where[1])
    assert shown.returncode == 0 and shown.stderr == ""
    rows = [re.split(r"\s{2,}", line.strip()) for line in shown.stdout.splitlines()]
    assert rows[0][0] == "HOST"
    assert [rows[1][0], rows[2][0]] == where
    assert "1.0 MiB" in rows[1] and "3.0 MiB" in rows[2]
    assert "n150 wormhole_b0" in shown.stdout
    assert shown.stdout.endswith("4.0 MiB of DRAM and 0 B of L1 in 2 buffers, 2 processes\n")
    shown = daemon.run("smi", "--host", where[0])
    assert shown.stdout.endswith("1.0 MiB of DRAM and 0 B of L1 in 1 buffer, 1 process\n")


def test_smi_json_of_hosts_names_the_problem_of_each(hosts):
    daemon, where = hosts
    shown = daemon.run("smi", "--host", where[0], "--host", "127.0.0.1:1", "--json")
    assert shown.returncode == 1
    document = check_schema(json.loads(shown.stdout))
    first, second = document["hosts"]
    check_schema(first["smi"])
    assert first["smi"]["totals"]["bytes"] == 1048576 and first["problem"] is None
    assert second == {"host": "127.0.0.1:1", "smi": None, "problem": second["problem"]}
    assert second["problem"] == "connection refused"


def test_hosts_that_hang_or_send_garbage_do_not_hide_others(hosts):
    daemon, where = hosts
    with socket.socket() as silent, socket.socket() as odd:
        for server in (silent, odd):
            server.bind(("127.0.0.1", 0))
            server.listen()

        def answer():
            connection, _ = odd.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n{\"schema\": \"other/1\"}")

        threading.Thread(target=answer, daemon=True).start()
        names = [f"127.0.0.1:{server.getsockname()[1]}" for server in (silent, odd)]
        shown = daemon.run("smi", "--host", names[0], "--host", where[0], "--host", names[1])
    assert shown.returncode == 1
    assert "1.0 MiB" in shown.stdout
    for name, why in ((names[0], "no answer within 5 seconds"), (names[1], "its answer is no ttmem.smi")):
        assert re.search(rf"^{name} +\({why}\)$", shown.stdout, re.M)


@pytest.mark.parametrize("name", ["", "a/b", "user@host", "a b"])
def test_invalid_host_names_are_refused(ttmemd, name):
    assert ttmemd.run("smi", "--host", name).returncode == 2


def test_host_cannot_be_combined_with_csv_or_watch(ttmemd):
    assert ttmemd.run("smi", "--host", "a", "--csv").returncode == 2
    assert ttmemd.run("smi", "--host", "a", "-w").returncode == 2


def smi(used=1048576, card="n150", device=0):
    """A document as another machine could send it."""
    memory = {"used": used, "buffers": 1, "capacity": 1 << 30}
    row = {"device": device, "card": card, "arch": "wormhole_b0", "memory": {"DRAM": memory}}
    return {"schema": "ttmem.smi/1", "devices": [row], "processes": []}


def test_smi_of_a_hundred_hosts_keeps_their_order(ttmemd, pretend):
    hosts = [pretend(smi(used=1048576)).name for _ in range(100)]
    shown = ttmemd.run("smi", *(word for name in hosts for word in ("--host", name)))
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = shown.stdout.splitlines()
    assert [row.split()[0] for row in rows[1:-1]] == hosts  # in the order in which they were named
    assert rows[-1].startswith("100.0 MiB of DRAM")


def test_more_than_256_hosts_are_refused(ttmemd):
    words = [word for number in range(257) for word in ("--host", f"127.0.0.1:{number + 1}")]
    assert ttmemd.run("smi", *words).returncode == 2


def test_a_host_named_twice_counts_once(ttmemd, pretend):
    host = pretend(smi())
    shown = ttmemd.run("smi", *["--host", host.name] * 300)
    assert shown.returncode == 0 and len(host.asked) == 1
    assert shown.stdout.splitlines()[-1].startswith("1.0 MiB of DRAM")


def test_ipv6_hosts_are_taken_with_and_without_brackets(ttmemd):
    """An address of IPv6 is taken with or without its brackets; only with them it can have a port."""
    for name in ("::1", "[::1]", "[::1]:1", "nosuch.invalid"):
        shown = ttmemd.run("smi", "--host", name, "--json")
        problem = json.loads(shown.stdout)["hosts"][0]["problem"]
        assert shown.returncode == 1 and "URL" not in problem and problem, name


@pytest.mark.parametrize(
    "body, said",
    [
        (b"", "it answers 200"),
        (b"{", "no ttmem.smi"),
        (b"[" * 100000, "no ttmem.smi"),
        (b"\xff\xfe\x00", "no ttmem.smi"),
        ({"schema": 1}, "no ttmem.smi"),
        ({**smi(), "schema": "ttmem.smi/9"}, "(speaks ttmem.smi/9, which this ttmem does not know)"),
        ({**smi(), "schema": "ttmem.smi/9\x1b[2J"}, "no ttmem.smi"),
        ({"schema": "ttmem.smi/1", "devices": {"a": 1}}, "no device in use"),
    ],
)
def test_invalid_documents_of_hosts_are_reported(ttmemd, pretend, body, said):
    good, bad = pretend(smi()), pretend(body)
    shown = ttmemd.run("smi", "--host", bad.name, "--host", good.name)
    assert re.search(rf"^{bad.name} +\(", shown.stdout, re.M) and said in shown.stdout
    assert shown.returncode == (0 if "no device" in said else 1)
    assert shown.stdout.splitlines()[-1].startswith("1.0 MiB of DRAM") and "\x1b" not in shown.stdout


def test_unreachable_hosts_are_reported_as_unknown(ttmemd, pretend):
    """What is not known is not called nothing, and a port that is none is told in words of our own."""
    newer = pretend({**smi(), "schema": "ttmem.smi/9"})
    names = [newer.name, "127.0.0.1:1", "127.0.0.1:99999", "127.0.0.1:x", "[::1]x"]
    shown = ttmemd.run("smi", *(word for name in names for word in ("--host", name)))
    rows = shown.stdout.splitlines()
    assert (shown.returncode, rows[-1]) == (1, "no machine has answered")
    for row in rows[3:6]:
        assert row.endswith("(this is no address, or its port is no number up to 65535)")
    away = pretend(samples(({"__name__": "up", "instance": "dead:5392", "job": "ttmem"}, "0")))
    assert ttmemd.run("smi", "--prometheus", away.name).stdout.endswith("no machine has answered\n")


def test_extreme_numbers_of_hosts_do_not_overflow(ttmemd, pretend):
    """Less than nothing, more than there is, and what is no number: nothing overflows."""
    values = (-5, 2**63 - 1, 2**63 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**70, "x", 1e300, None)
    odd = [pretend(smi(used=value)).name for value in values]
    shown = ttmemd.run("smi", *(word for name in odd for word in ("--host", name)))
    assert shown.returncode == 0 and shown.stderr == "" and ">999" in shown.stdout
    assert "16.0 EiB of DRAM" in shown.stdout or "16777216.0 TiB of DRAM" in shown.stdout


def test_redirects_of_hosts_are_not_followed(ttmemd, pretend):
    other = pretend(smi())
    first = pretend(b"", status=f"302 Found\r\nLocation: http://{other.name}/")
    shown = ttmemd.run("smi", "--host", first.name)
    assert shown.returncode == 1 and "it answers 302" in shown.stdout
    assert not other.asked


def test_control_characters_from_hosts_are_escaped(ttmemd, pretend):
    evil = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e"
    host = pretend(smi(card=evil))
    shown = ttmemd.run("smi", "--host", host.name)
    assert shown.returncode == 0
    for sign in "\x1b\x07\u009b\u202e":
        assert sign not in shown.stdout
    told = ttmemd.run("smi", "--host", host.name, "--json").stdout
    assert told.isascii() and json.loads(told)["hosts"][0]["smi"]["devices"][0]["card"] == evil


def test_table_of_hosts_fits_a_terminal(ttmemd, pretend):
    hosts = [pretend(smi(used=900 * 1048576, card=card, device=31)).name for card in ("n150", "galaxy of cards")]
    hosts.append("127.0.0.1:1")
    words = [word for name in hosts for word in ("--host", name)]
    terminal = Terminal([ttmemd.build / "src/cli/ttmem", "smi", *words], ttmemd.env, columns=80)
    try:
        assert terminal.exit_code() == 1
        rows = terminal.wait("buffers,")
    finally:
        terminal.close()
    assert rows[0].split() == ["HOST", "DEV", "CARD", "DRAM", "%", "L1", "%", "BUFFERS"]
    assert [row.split()[0] for row in rows[1:4]] == hosts  # no row took two lines
    assert rows[1].split()[-6:] == ["MiB", "88", "0", "B", "-", "1"] and rows[4].startswith("1.8 GiB")


def samples(*rows):
    return {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [{"metric": labels, "value": [0, value]} for labels, value in rows],
        },
    }


def sample(value, name="ttmem_device_bytes", **labels):
    labels = {"__name__": name, "instance": "a:5392", "device": "0", "uid": "0x1", "type": "DRAM", **labels}
    return labels, value


def test_prometheus_hosts_are_sorted_and_devices_kept_apart(ttmemd, pretend):
    """Hosts in order, devices of one number but another id apart, and those that do not answer."""
    server = pretend(
        samples(
            sample("100", instance="b-10:5392"),
            sample("200", instance="b-9:5392"),
            sample("300", instance="b-9:5392", uid=""),
            sample("4", name="ttmem_device_buffers", instance="b-9:5392"),
            sample("400", name="ttmem_device_capacity_bytes", instance="b-9:5392"),
            sample("500", instance="b-9:5392", cluster="west"),
            ({"__name__": "up", "instance": "dead:5392", "job": "ttmem"}, "0"),
        )
    )
    shown = ttmemd.run("smi", "--prometheus", f"http://{server.name}/", env={"TTMEM_PROMETHEUS_TOKEN": "abc"})
    assert shown.returncode == 1 and shown.stderr == ""  # one is dead
    rows = [row.split() for row in shown.stdout.splitlines()]
    assert [row[0] for row in rows[1:-1]] == ["b-9:5392", "b-9:5392", "b-10:5392", "dead:5392", "west/b-9:5392"]
    assert [row[2:4] for row in rows[1:4]] == [["-", "300"], ["0x1", "200"], ["0x1", "100"]]
    assert rows[4][1:] == ["(Prometheus", "cannot", "scrape", "it)"]
    assert ["b-9:5392", "0", "0x1", "200", "B", "50", "0", "B", "-", "4"] in rows
    assert shown.stdout.splitlines()[-1] == "1.1 KiB of DRAM and 0 B of L1 in 4 buffers, 4 devices"
    assert "Authorization: Bearer abc" in server.asked[0]
    document = check_schema(json.loads(ttmemd.run("smi", "--prometheus", f"http://{server.name}", "--json").stdout))
    assert [row["cluster"] for row in document["devices"]] == [None] * 4 + ["west"]
    (dead,) = [row for row in document["devices"] if row["problem"]]
    assert dead["host"] == "dead:5392" and dead["device"] is None
    assert "Authorization" not in server.asked[1]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "x", 7, None, ["1"]])
def test_prometheus_values_are_clamped(ttmemd, pretend, value):
    server = pretend(samples(sample(value), sample("1", device="1")))
    document = ttmemd.json("smi", "--prometheus", f"http://{server.name}")
    used = document["devices"][0]["memory"]["DRAM"]["used"]
    assert used == (2**63 - 1 if value in ("+Inf", "1e300") else 0)


@pytest.mark.parametrize("body", [b"", b"<html>", {"data": {}}, {"data": {"result": {}}}, [1]])
def test_invalid_prometheus_answers_are_refused(ttmemd, pretend, body):
    server = pretend(body)
    shown = ttmemd.run("smi", "--prometheus", f"http://{server.name}")
    assert shown.returncode == 1 and shown.stdout == "" and server.name in shown.stderr


def test_prometheus_that_scrapes_no_ttmemd_says_so(ttmemd, pretend):
    server = pretend(samples())
    shown = ttmemd.run("smi", "--prometheus", server.name)
    assert shown.returncode == 0 and "it scrapes no ttmemd" in shown.stdout
    assert ttmemd.json("smi", "--prometheus", server.name)["devices"] == []


@pytest.mark.parametrize("url", ["", "ftp://a", "http://a b", "httpx://a", "http://a?b"])
def test_invalid_prometheus_urls_are_refused(ttmemd, url):
    shown = ttmemd.run("smi", "--prometheus", url)
    assert shown.returncode == 2 and "--prometheus" in shown.stderr


def test_unreachable_prometheus_is_an_error(ttmemd):
    shown = ttmemd.run("smi", "--prometheus", "http://127.0.0.1:1")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr == "ttmem smi: http://127.0.0.1:1: connection refused\n"


def test_invalid_prometheus_samples_are_skipped(ttmemd, pretend):
    evil = "\x1b[2J\u202e"
    answer = samples(sample("5", instance=evil))
    answer["data"]["result"] += [1, {}, {"metric": 3, "value": {}}, None]
    server = pretend(answer)
    shown = ttmemd.run("smi", "--prometheus", f"http://{server.name}")
    assert "\x1b" not in shown.stdout and "\u202e" not in shown.stdout and "5 B" in shown.stdout


def test_host_and_prometheus_exclude_each_other(ttmemd):
    assert ttmemd.run("smi", "--host", "a", "--prometheus", "http://b").returncode == 2
