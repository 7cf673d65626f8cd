# SPDX-License-Identifier: Apache-2.0
"""ttmem smi on sample machines: what people see is compared with reviewed files.

TTMEM_GOLDEN=write regenerates the files; then review the diff.
"""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import LIMIT, ROOT
from common import AS_NOBODY, LIMIT
from machines import GIB, MACHINES, SAMPLES, Machine, Region, hot, n150, p150, p300b, t3000
from world import check_schema, wait_for

GOLDEN = ROOT / "tests" / "corpus" / "machines"

VIEWS = {
    "80.txt": (["smi"], {}),
    "120.txt": (["smi"], {"COLUMNS": "120"}),
    "ascii.txt": (["smi"], {"LC_ALL": "C"}),
    "details.txt": (["smi", "--details"], {}),
    "json": (["smi", "--json"], {}),
    "csv": (["smi", "--csv"], {}),
    "ps.txt": (["ps"], {}),
    "ps.json": (["ps", "--json"], {}),
    "doctor.txt": (["doctor"], {}),
    "doctor.json": (["doctor", "--json"], {}),
    "buffers.txt": (["buffers"], {}),
    "map.txt": (["map"], {}),
    "fit.txt": (["fit", "1GiB"], {}),
    "growth.txt": (["growth", "--seconds", "1"], {}),
    "incidents.txt": (["incidents"], {}),
    "history.txt": (["history", "0x1000"], {}),
}

# Those whose exit code says what they found.
JUDGES = ("doctor", "fit", "map")


def settle(text, folder):
    """What differs from run to run becomes the same, without changing any width."""
    text = text.replace(str(folder), "MACHINE")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "YYYY-MM-DD hh:mm:ss", text)
    text = re.sub(r"in \d\.\d s$", "in * s", text, flags=re.M)
    text = re.sub(r"[ \d]\d+ (?:ms|s|min|h|d)(?= )", lambda m: "*".rjust(len(m.group())), text)
    text = re.sub(r'("(?:time|start|last_activity)_ns":)\d+', r"\g<1>1", text)
    return re.sub(r"^\d{19},", "1,", text, flags=re.M)


def compare(name, text):
    path = GOLDEN / name
    if os.environ.get("TTMEM_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path} says otherwise"


@pytest.fixture
def look(ttmem):
    def run(machine, *args, **env):
        result = ttmem(*args, env={**machine.env(), **env})
        assert result.returncode == 0 or args[0] in JUDGES, result.stderr
        return result.stdout

    return run


@pytest.mark.needs_root
@pytest.mark.parametrize("name", MACHINES)
def test_machine(look, tmp_path, name):
    machine = MACHINES[name](tmp_path / "machine")
    for view, (args, env) in VIEWS.items():
        if name == "galaxy" and view == "details.txt":
            continue  # 300 lines that say what the others say
        text = settle(look(machine, *args, **env), machine.folder)
        if view.endswith("json"):
            text = json.dumps(check_schema(json.loads(text)), indent=1) + "\n"
        if args[0] == "smi" and view.endswith(".txt"):
            width = 120 if view.startswith("120") else 80
            box = [line for line in text.splitlines() if line[0] in "|+"]
            assert all(len(line) == width for line in box)
        if name == "galaxy" and view != "120.txt":
            text = text[:4000]
        compare(f"{name}.{view}", text)


def on_terminal(build, env, *args):
    command = " ".join([str(build / "src" / "cli" / "ttmem"), *args])
    result = subprocess.run(
        ["script", "-qec", command, "/dev/null"], env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.needs_root
def test_colours_by_use(build, clean_env, look, tmp_path):
    """DRAM at 94 % is red, L1 at 86 % yellow, what is nearly empty green; and only where it is seen."""
    machine = p150(tmp_path / "machine")
    machine.card(1, "p150a", "blackhole", chip=1)
    assert "\033" not in look(machine, "smi")
    env = {**clean_env, **machine.env(), "TERM": "xterm"}
    lines = on_terminal(build, env, "smi").splitlines()
    (dram, empty) = [line for line in lines if " DRAM " in line and "/" in line]
    (l1, _) = [line for line in lines if " L1 " in line and "/" in line]
    assert "\033[31m" in dram and "\033[33m" in l1 and "\033[32m" in empty
    assert "\033" not in on_terminal(build, {**env, "NO_COLOR": "1"}, "smi")
    assert "\033" not in on_terminal(build, {**env, "TERM": "dumb"}, "smi")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_values_over_a_limit_are_red(build, clean_env, tmp_path, columns):
    machine = hot(tmp_path / "machine")
    env = {**clean_env, **machine.env(), "TERM": "xterm", "COLUMNS": columns}
    assert re.search("\033\\[31m86.C  312 W", on_terminal(build, env, "smi"))
    machine.write(machine.hwmon(0) / "temp1_max", 95000)
    machine.write(machine.hwmon(0) / "power1_max", 400000000)
    assert "\033[31m" not in on_terminal(build, env, "smi")


def states(document):
    return {device["device"]: device["state"] for device in document["devices"]}


@pytest.mark.needs_root
@pytest.mark.parametrize("name, state", [
    ("in_reset", "in_reset"), ("all_ones", "not_answering"), ("removed", "gone"), ("idle", "present")])
def test_the_state_of_a_card_is_told(look, tmp_path, name, state):
    machine = SAMPLES[name](tmp_path / "machine")
    document = check_schema(json.loads(look(machine, "smi", "--json")))
    assert [card["state"] for card in document["devices"]] == [state, "present"]
    text = look(machine, "smi")
    assert (state.replace("_", " ") in text) == (state != "present")


@pytest.mark.needs_root
@pytest.mark.parametrize("name, state", [("removed", "gone"), ("in_reset", "in_reset")])
def test_memory_of_a_card_that_is_away_is_stale(look, tmp_path, name, state):
    """At the first look, by a command that has seen nothing before."""
    machine = SAMPLES[name](tmp_path / "machine")
    document = json.loads(look(machine, "smi", "--json"))
    assert states(document) == {0: state, 1: "present"} and total(document) == 2 * GIB
    (process, other) = document["processes"]
    assert process["devices"][0]["stale_after_reset"] and not other["devices"][0]["stale_after_reset"]
    (row,) = [line for line in look(machine, "smi").splitlines() if " 600 " in line]
    assert " reset " in row and "1.0 GiB" in row
    assert "0 reset" in look(machine, "ps")


@pytest.mark.parametrize("asic_ids", [False, True])
def test_eight_chips_on_four_boards_are_eight_rows(look, tmp_path, asic_ids):
    """Of the chips without a node it is known what they are: the board's other chip has one."""
    machine = t3000(tmp_path / "machine", asic_ids)
    rows = json.loads(look(machine, "smi", "--json"))["devices"]
    assert [(r["device"], r["card"], r["arch"], r["remote"], r["present"]) for r in rows] == [
        (n, "n300", "wormhole_b0", n >= 4, n < 4) for n in range(8)]
    assert [(r["memory"]["DRAM"]["used"], r["memory"]["DRAM"]["capacity"]) for r in rows] == [
        ((n + 1) * GIB, 12 * GIB) for n in range(8)]
    assert json.loads(look(machine, "doctor", "--json"))["healthy"]


@pytest.mark.parametrize("asic_ids", [False, True])
def test_two_boards_of_two_chips_are_four_rows(look, tmp_path, asic_ids):
    """Their process has both chips of the first board open, and is nowhere else."""
    machine = p300b(tmp_path / "machine", asic_ids)
    document = json.loads(look(machine, "smi", "--json"))
    assert [(r["device"], r["card"], r["untracked"]) for r in document["devices"]] == [
        (n, "p300b", int(n < 2)) for n in range(4)]
    (process,) = document["processes"]
    assert [(part["node"], part["joined"]) for part in process["devices"]] == [(0, "open"), (1, "open")]


def test_ones_are_no_values(look, tmp_path):
    machine = n150(tmp_path / "machine")
    machine.all_ones(0)
    document = json.loads(look(machine, "smi", "--json"))
    (card,) = [device for device in document["devices"] if device["present"]]
    assert set(card["telemetry"].values()) == set(card["limits"].values()) == {None}
    assert card["serial"] is card["firmware"] is card["card"] is None
    assert card["uid"] is None  # whatever the region of the process says that has its node open


def test_limits_heartbeat_and_trips_are_told(look, tmp_path):
    machine = hot(tmp_path / "machine")
    machine.write(machine.class_folder(0) / "tt_heartbeat", 77)
    (card,) = json.loads(look(machine, "smi", "--json"))["devices"]
    assert card["limits"] == {"temperature_c": 75, "power_w": 300, "voltage_v": 1, "current_a": 300}
    assert card["heartbeat"] == 77 and card["thermal_trips"] == 2


def test_a_card_opened_from_outside_the_namespace_is_not_free(look, tmp_path):
    machine = SAMPLES["outside"](tmp_path / "machine")
    document = json.loads(look(machine, "smi", "--json"))
    assert [card["opened_outside"] for card in document["devices"]] == [2, 1]
    assert "device 0 is opened by a process outside this pid namespace" in look(machine, "smi")


@pytest.mark.parametrize("columns", ["1", "80", "99", "100", "111", "112", "159", "1000"])
def test_boxes_are_closed_at_any_width(look, tmp_path, columns):
    machine = n150(tmp_path / "machine")
    for args in ([], ["--details"], ["--bytes"], ["--bytes", "--details"]):
        lines = look(machine, "smi", *args, COLUMNS=columns).splitlines()
        assert len({len(line) for line in lines if line[0] in "|+"}) == 1


def total(document):
    return document["totals"]["bytes"]


def test_book_and_region_of_one_process(world, tmp_path):
    """The book is counted; the region is compared, and a difference is marked."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    player = world.player("device 0 0x4d wormhole_b0 n150 0 12884901888 94371840", "alloc 0 DRAM 0x1000 4096")
    machine.attach(player, 0x4D)
    path = machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=4096))
    document = world.json("smi")
    (process,) = document["processes"]
    assert total(document) == 4096 and process["source"] == "book" and not process["differs"]
    assert process["devices"][0]["region"]["DRAM"] == 4096 and document["notes"] == []
    machine.region(Region(4, 0x4D, 0).process(player.pid, "player", seconds_ago=0, DRAM=9000))
    document = world.json("smi")
    (process,) = document["processes"]
    assert total(document) == 4096 and process["differs"] and process["devices"][0]["differs"]
    assert process["devices"][0]["region"]["DRAM"] == 9000
    assert "disagree" in document["notes"][0] and " book! " in world.text("smi")
    path.unlink()
    assert world.json("smi")["processes"][0]["devices"][0]["region"] is None


def test_region_follows_its_process(world, tmp_path):
    """Counted while the process lives, stale from the moment it has ended."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    player = machine.attach(world.player(TTMEM="0"), 7)
    machine.region(Region(4, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB))
    document = world.json("smi")
    (process,) = document["processes"]
    assert total(document) == GIB and process["source"] == "tt-metal" and process["alive"]
    player.kill()
    document = world.json("smi")
    (process,) = document["processes"]
    assert total(document) == 0 and process["stale"] and not process["alive"]
    assert process["devices"][0]["memory"]["DRAM"]["used"] == GIB
    text = world.run("smi").stdout
    assert "0x7" in text and "on 1 device" in text  # though nobody has it open any more
    (row,) = [line for line in text.splitlines() if f" {player.pid} " in line]
    assert " stale " in row and "1.0 GiB" in row


@pytest.mark.needs_root
def test_a_row_from_a_pid_namespace_blames_nobody_outside(world, tmp_path):
    """Process 1 of a container has a row; process 1 of the machine is of the same user."""
    machine = Machine(tmp_path / "machine")
    world.env.update(TTMEM_SHM_DIR=str(machine.shm))
    outer = world.player(before=("unshare", "--pid", "--fork", "--kill-child"), show=False, TTMEM="0")
    machine.attach(outer, 7)
    inner = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text())
    world.show(1)
    machine.region(Region(4, 7, 0).process(1, "player", seconds_ago=0, DRAM=GIB))
    document = world.json("smi")  # which does not see the container
    assert total(document) == 0 and [p["stale"] for p in document["processes"]] == [True]
    world.show(inner)
    (process,) = world.json("smi")["processes"]
    assert process["pid"] == inner and process["ns_pid"] == 1 and process["alive"]


def test_regions_of_others_say_what_to_do(public):
    machine = Machine(public.root.parent / "machine")
    machine.region(Region(4, 7, 0))
    result = subprocess.run(
        [*AS_NOBODY, public.program, "smi", "--json"], env={**public.env, **machine.env()},
        capture_output=True, text=True, timeout=LIMIT,
    )
    assert result.returncode == 0, result.stderr
    notes = json.loads(result.stdout)["notes"]
    assert "1 region of tt-metal belongs to other users: look as root, or let ttmemd run" in notes


@pytest.mark.other_user
@pytest.mark.parametrize("version", [3, 4])
def test_the_daemon_tells_of_regions_that_others_may_not_read(ttmemd, version):
    if os.getuid() != 0:
        pytest.skip("needs to become another user")
    machine = Machine(ttmemd.folder / "machine")
    ttmemd.env["TTMEM_SHM_DIR"] = str(machine.shm)
    ttmemd.start()
    player = machine.attach(ttmemd.player(TTMEM="0"), 7)
    region = Region(version, 7, 0).process(player.pid, "player", seconds_ago=0, DRAM=GIB, CB=5)
    machine.region(region.process(1 << 22, "long gone", DRAM=77))
    own = ttmemd.json("smi")
    told = ttmemd.json("smi", before=AS_NOBODY)
    assert told["notes"] == own["notes"] and told["devices"] == own["devices"]
    assert own["devices"][0]["memory"]["DRAM"]["bound"] == "at_least"  # here is no driver
    for document in (own, told):
        document["processes"] = [p for p in document["processes"] if p["source"] == "tt-metal" or p["stale"]]
        for process in document["processes"]:
            del process["last_activity_ns"], process["start_ns"]
    # Only root sees its command line.
    own["processes"] = [{key: p[key] for key in p if not key.startswith("command")} for p in own["processes"]]
    assert told["processes"] == own["processes"] and len(own["processes"]) == 2
    assert total(told) == GIB + 5
    ttmemd.stop()
    assert "let ttmemd run" in " ".join(ttmemd.json("smi", before=AS_NOBODY)["notes"])


@pytest.mark.needs_root
def test_a_region_says_exact_only_where_that_is_known(look, tmp_path):
    """A full table, a user without a row, and a writer that sees one thread, each on an otherwise good machine."""
    def bounds(**changes):
        machine = p150(tmp_path / str(changes))
        region = Region(changes.get("version", 4), 0xB1ACC401E, 0).process(77, "vllm", DRAM=GIB)
        for pid in range(changes.get("rows", 0)):
            region.process(10_000 + pid, "gone", DRAM=1)
        machine.region(region)
        if "other" in changes:
            machine.process(88, "stranger", user=1234)
            machine.opened(0, 77, 88)
        document = json.loads(look(machine, "smi", "--json"))
        process = next(p for p in document["processes"] if p["pid"] == 77)
        (device,) = process["devices"]
        return document["devices"][0]["memory"]["DRAM"]["bound"], device["memory"]["DRAM"]["bound"]

    assert bounds() == ("exact", "exact")
    assert bounds(rows=62) == ("exact", "exact")
    assert bounds(rows=63) == ("at_least", "exact")
    assert bounds(other=True) == ("at_least", "exact")
    assert bounds(version=3) == ("at_least", "at_least")


@pytest.mark.needs_root
@pytest.mark.parametrize("name", ["n150", "n300", "broken"])
def test_http_shows_the_same(ttmemd, look, name):
    machine = MACHINES[name](ttmemd.folder / "machine")
    ttmemd.start("--http", "127.0.0.1:0", env=machine.env())
    _, served = ttmemd.fetch("/api/v1/smi")
    served = check_schema(json.loads(settle(served, machine.folder)))
    own = json.loads(settle(look(machine, "smi", "--json"), machine.folder))
    own["notes"] = [note for note in own["notes"] if "no process keeps a book" not in note]
    for document in (served, own):
        for device in document["devices"]:
            for memory in device["memory"].values():
                del memory["peak"]  # only the daemon has seen one
    assert served == own


def figures_of(document, *wanted):
    """(pid, why) of those processes in "ttmem smi" that have one of the marks."""
    return {(p["pid"], mark) for p in document["processes"] for mark in wanted if p.get(mark)}


def doctors_view(doctor, *kinds):
    """Counts of findings by (kind, pid)."""
    return Counter((f["id"], f["pid"]) for f in doctor["findings"] if f["id"] in kinds)


def cards_view(smi):
    """The same from what "ttmem smi" shows of cards and of devices without one."""
    seen = Counter()
    has_cards = any(device["bus"] for device in smi["devices"])
    remote = {device["uid"] for device in smi["devices"] if device["remote"]}
    for device in smi["devices"]:
        seen["card-unavailable", None] += device["state"] in ("in_reset", "not_answering", "gone")
        seen["thermal-trip", None] += bool(device["thermal_trips"])
        for name, limit in device["limits"].items():
            value = device["telemetry"][name]
            seen["over-limit", None] += None not in (limit, value) and value > limit
    for process in smi["processes"]:
        parts = [part for part in process["devices"] if process["alive"]]
        seen["stale-after-reset", process["pid"]] += sum(part["stale_after_reset"] for part in parts)
        lost = [part for part in parts if part["node"] is None and not part["stale_after_reset"]
                and (part["uid"] is None or part["uid"] not in remote)]
        seen["device-unmatched", process["pid"]] += has_cards and bool(lost)
    return +seen


@pytest.mark.needs_root
@pytest.mark.parametrize("name", SAMPLES)
def test_smi_doctor_and_status_agree(ttmemd, name):
    machine = SAMPLES[name](ttmemd.folder / "machine")
    ttmemd.env.update(machine.env())
    ttmemd.start()
    player = ttmemd.player("alloc 0 DRAM 0x1000 33554432 weights", "alloc 0 L1 0x1000 4096", "alloc 0 CB 0x9000 64")
    (machine.proc / str(player.pid)).symlink_to(f"/proc/{player.pid}")
    wait_for(lambda: ttmemd.json("status")["books"] == 1, "the book")
    smi, ps, status = (ttmemd.json(command) for command in ("smi", "ps", "status"))
    doctor = check_schema(json.loads(ttmemd.run("doctor", "--json").stdout))

    assert status["running"] and doctor["daemon"]
    books = [p["pid"] for p in smi["processes"] if p["source"] == "book"]
    assert books == [player.pid] and status["books"] == doctor["tracked"] == len(books)
    assert doctor["totals"]["bytes"] == total(smi) >= 33554432 + 4096 + 64
    assert doctor["totals"]["buffers"] == smi["totals"]["buffers"]
    for kind, memory in doctor["totals"]["memory"].items():
        for figure in ("used", "buffers"):
            parts = [d for p in ps["processes"] if p["alive"] for d in p["devices"] if not d["stale_after_reset"]]
            sums = [sum(d["memory"][kind][figure] for d in list) for list in (smi["devices"], parts)]
            # One of these machines claims more than can be counted.
            assert {min(sum, 2**64 - 1) for sum in sums} == {memory[figure]}, (kind, figure)
    found = {"device-untracked": "untracked", "region-stale": "stale", "region-differs": "differs"}
    told = {(f["pid"], found[f["id"]]) for f in doctor["findings"] if f["id"] in found and f["pid"]}
    assert told == figures_of(smi, *found.values())
    outside = [f for f in doctor["findings"] if f["id"] == "device-untracked" and not f["pid"]]
    assert len(outside) == sum(bool(d["opened_outside"]) for d in smi["devices"])
    assert doctors_view(doctor, "card-unavailable", "over-limit", "thermal-trip", "stale-after-reset",
                        "device-unmatched") == cards_view(smi)
    has_card = any(d["bus"] for d in smi["devices"])
    assert ("driver-none" not in {f["id"] for f in doctor["findings"]}) == has_card


@pytest.fixture
def old_tool(build, clean_env, tmp_path):
    """The scripts with the old tools' names, beside the command as when installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ttmem").symlink_to(build / "src" / "cli" / "ttmem")
    machine = n150(tmp_path / "machine")

    def start(name, *args):
        script = tmp_path / "bin" / name
        script.write_bytes((ROOT / "data" / "bin" / name).read_bytes())
        script.chmod(0o755)
        return subprocess.Popen(
            [script, *args], env={**clean_env, **machine.env()}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    return start


def test_tt_smi_takes_its_old_options(old_tool):
    plain, _ = old_tool("tt_smi").communicate(timeout=LIMIT)
    assert "n150 wormhole_b0" in plain and "L1_SMALL" not in plain
    details, errors = old_tool("tt_smi", "-d", "--no-cleanup", "--shm-only", "-r", "500").communicate(timeout=LIMIT)
    assert "L1_SMALL" in details and errors == ""
    wrong = old_tool("tt_smi", "-r")
    assert wrong.communicate(timeout=LIMIT)[0] == "" and wrong.returncode == 2


def test_allocation_monitor_client_goes_on(old_tool):
    monitor = old_tool("allocation_monitor_client", "-r", "20", "-d", "0", "-a")
    seen = 0
    for line in monitor.stdout:
        seen += "n150 wormhole_b0" in line
        if seen == 3:
            break
    monitor.terminate()
    monitor.communicate(timeout=LIMIT)
    assert seen == 3 and monitor.returncode == 0


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in MACHINES])
def test_sample_machines_can_be_shown(look, tmp_path, name):
    """What each of them should show is said by the tests that use it."""
    machine = SAMPLES[name](tmp_path / "machine")
    cards = list((machine.sys / "class" / "tenstorrent").iterdir())
    document = check_schema(json.loads(look(machine, "smi", "--json")))
    assert sum(device["present"] for device in document["devices"]) == len(cards)
